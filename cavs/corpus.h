// Corpora: what a text format holds, before any model. A format has a task (cavs/learning_task.h); each example is one
// tree.
//
// Whatever is wrong with the data is found while reading: ParseError with file, line and mostly column. Corpora are
// plain data: any number of threads may read one that none changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/learning_task.h"
#include "graph/readers/bracket_reader.h"
#include "graph/readers/tree.h"
#include "graph/readers/vocabulary.h"

namespace cavs {

enum class CorpusFormat : uint8_t { kSst, kTree, kListOps, kLm, kTreeLstm, kSick };

// "sst", "tree", "listops", "lm", "treelstm", "sick".
std::string_view CorpusFormatName(CorpusFormat format);
std::optional<CorpusFormat> FindCorpusFormat(std::string_view name);

// What the data of a format ask of a model.
LearningTask TaskOf(CorpusFormat format);

// Where data come from: a format and a path, or ListOps expressions that are drawn.
struct DataSource {
  CorpusFormat format = CorpusFormat::kTree;
  std::string path;        // of a file or folder; empty for drawn data
  bool generated = false;  // "listops:generate"

  // As it was written: "sst:train.txt".
  std::string ToString() const;
};

// Reads "FORMAT:PATH". Throws std::invalid_argument that names the known formats for an unknown one, and for a path
// that is missing. The file is not touched.
DataSource ParseDataSource(std::string_view text);

// Which part of drawn data and of `sick:` is meant; other files and folders have one part. No drawn expression is in
// the training part and in another one.
enum class DataPart : uint8_t { kTrain, kDev, kTest };

inline constexpr int64_t kGeneratedTraining = 10000;
inline constexpr int64_t kGeneratedHeldOut = 1000;

struct CorpusOptions {
  int32_t classes = 5;  // of `tree:`; the other formats have their own
  Binarize binarize = Binarize::kLeft;
  Unary unary = Unary::kCollapse;
  int32_t max_children = 2;  // after binarisation; more are refused
  int64_t max_examples = 0;  // the first so many; 0 for all
  // Of drawn data. The training part has `generated_training` expressions, or if that is 0 `max_examples`, or
  // kGeneratedTraining; every other part kGeneratedHeldOut, or `max_examples` if that is fewer.
  uint64_t seed = 1;
  int64_t generated_training = 0;
};

// The examples of a source, each of them one tree (graph/readers/tree.h), with their classes or scores.
struct Corpus {
  std::string name;  // the source as it was written
  CorpusFormat format = CorpusFormat::kTree;
  std::string file;  // what errors call it; empty for drawn data
  TreeCorpus trees;
  int32_t classes = 0;                   // 0 where they are the words of the vocabulary
  std::vector<std::string> label_names;  // [classes]
  uint64_t digest = 0;                   // XXH64 over all trees, their words and scores
};

// The number of classes of a format, and what they are called; for kTree as many as `classes`, for kLm none, for pairs
// the scores from 1 to 5.
int32_t ClassesOf(CorpusFormat format, int32_t classes);
std::vector<std::string> LabelNames(CorpusFormat format, int32_t classes);

// Reads or draws the trees. Throws ParseError for what a format refuses, for an empty file, and for a number outside of
// the classes as a label of `tree:` beside others inside; std::invalid_argument for a file that cannot be read.
Corpus ReadCorpus(const DataSource& source, const CorpusOptions& options = {}, DataPart part = DataPart::kTrain);

// The words of training data that occur at least `min_count` times; of ListOps all tokens that there are, of sentences
// their end as well.
Vocabulary MakeVocabulary(const Corpus& corpus, int64_t min_count = 1);

}  // namespace cavs
