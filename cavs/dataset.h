// Data sets: a text format becomes a Corpus of trees, and a Corpus with a Vocabulary the InputGraphs of a Model.
//
// A Corpus knows no model: counts, vocabulary and digest come from it. A Dataset has the columns of one Model (see
// cavs/models/tree_models.h) and can be used by any number of threads that only read it. Whatever is wrong with the
// data is found while reading: ParseError with file, line and mostly column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/model.h"
#include "graph/input_graph.h"
#include "graph/readers/bracket_reader.h"
#include "graph/readers/tree.h"
#include "graph/readers/vocabulary.h"

namespace cavs {

enum class CorpusFormat : uint8_t { kSst, kTree, kListOps };

// "sst", "tree", "listops".
std::string_view CorpusFormatName(CorpusFormat format);
std::optional<CorpusFormat> FindCorpusFormat(std::string_view name);

// Where data come from: a format and a path, or ListOps expressions that are drawn.
struct DataSource {
  CorpusFormat format = CorpusFormat::kTree;
  std::string path;        // of files; empty for drawn data
  bool generated = false;  // "listops:generate"

  // As it was written: "sst:train.txt".
  std::string ToString() const;
};

// Reads "FORMAT:PATH". Throws std::invalid_argument that names the known formats for an unknown one, and for a path
// that is missing. The file is not touched.
DataSource ParseDataSource(std::string_view text);

// Which part of drawn data is meant; files have one part. No expression is in the training part and in another one.
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

// The trees of a source with their classes.
struct Corpus {
  std::string name;  // the source as it was written
  CorpusFormat format = CorpusFormat::kTree;
  std::string file;  // what errors call it; empty for drawn data
  TreeCorpus trees;
  int32_t classes = 0;
  std::vector<std::string> label_names;  // [classes]
  uint64_t digest = 0;                   // XXH64 over all trees and their words
};

// The number of classes of a format, and what they are called; for kTree as many as `classes`.
int32_t ClassesOf(CorpusFormat format, int32_t classes);
std::vector<std::string> LabelNames(CorpusFormat format, int32_t classes);

// Reads or draws the trees. Throws ParseError for what a format refuses, for an empty file, and for a number outside of
// the classes as a label of `tree:` beside others inside; std::invalid_argument for a file that cannot be read.
Corpus ReadCorpus(const DataSource& source, const CorpusOptions& options = {}, DataPart part = DataPart::kTrain);

// The words of training data that occur at least `min_count` times; of ListOps all tokens that there are.
Vocabulary MakeVocabulary(const Corpus& corpus, int64_t min_count = 1);

// Graphs of a Model, and what is known about them.
struct Dataset {
  std::string name;  // "sst:train.txt"
  std::string file;  // "train.txt", or empty
  std::vector<InputGraph> graphs;
  std::vector<int64_t> lines;   // [graphs]: where each begins in its file, from 1; 0 for none
  std::string group_name;       // what `groups` are, "depth"; empty where there are none
  std::vector<int32_t> groups;  // [graphs]: of ListOps, how deep operators are nested; else empty
  ReaderStatistics statistics;
  Coverage coverage;
  Majority majority;  // of the classes at the roots
  uint64_t digest = 0;

  int64_t size() const { return std::ssize(graphs); }
  // "train.txt:12" for a graph that came from a file, else "example 12"; for messages.
  std::string Describe(int64_t example) const;
};

// Leaves pull their word's row, vertices of one child have a missing second one, and labels are those of the trees;
// `model` is one of cavs/models/tree_models.h. Throws std::invalid_argument, naming both numbers, when the classes of
// corpus and model differ.
Dataset MakeDataset(const Corpus& corpus, const Vocabulary& vocabulary, const Model& model);

}  // namespace cavs
