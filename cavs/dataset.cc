#include "cavs/dataset.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/models/child_sum_tree_lstm.h"
#include "cavs/models/lstm_lm.h"
#include "cavs/models/model_sizes.h"
#include "cavs/models/tree_models.h"
#include "cavs/similarity.h"
#include "graph/readers/listops.h"
#include "graph/readers/sentence_reader.h"
#include "graph/readers/tree_pair_reader.h"

namespace cavs {
namespace {

// An example before it is a graph.
struct Source {
  const Tree& tree;
  double score;                   // of pairs
  std::span<const int32_t> rows;  // of the lookup table, by number of the word in its corpus
  int32_t end_of_sentence;        // row of the lookup table, of sentences
};

// The graph that a converter fills: vertices, and the columns that it has something to say about.
struct Sink {
  GraphParts parts;
  std::vector<int32_t>* words = nullptr;        // ids
  GraphParts::ColumnValues* answers = nullptr;  // what is to be learnt
  std::vector<int32_t>& labels() const { return answers->ids; }

  void AddVertex(int32_t type, std::span<const int32_t> children) {
    parts.types.push_back(type);
    parts.children.insert(parts.children.end(), children.begin(), children.end());
    parts.child_begin.push_back(std::ssize(parts.children));
  }
};

int32_t RowOf(const Source& source, int32_t v) {
  const int32_t word = source.tree.word[static_cast<size_t>(v)];
  return word == Tree::kNone ? kNone : source.rows[static_cast<size_t>(word)];
}

void ConvertTree(const Source& source, Sink* sink) {
  for (int32_t v = 0; v < source.tree.vertex_count(); ++v) {
    const std::span<const int32_t> children = source.tree.children(v);
    if (children.size() == 1) {
      sink->AddVertex(kNodeType, std::array{children[0], kNone});
    } else {
      sink->AddVertex(children.empty() ? kLeafType : kNodeType, children);
    }
    sink->words->push_back(children.empty() ? RowOf(source, v) : kNone);
  }
  sink->labels() = source.tree.label;
}

// A vertex more than words: the first reads the end of the sentence before.
void ConvertSentence(const Source& source, Sink* sink) {
  const int32_t words = source.tree.vertex_count();
  for (int32_t v = 0; v <= words; ++v) {
    sink->AddVertex(kTokenType, std::array{v == 0 ? kNone : v - 1});
    sink->words->push_back(v == 0 ? source.end_of_sentence : RowOf(source, v - 1));
    sink->labels().push_back(v == words ? source.end_of_sentence : RowOf(source, v));
  }
}

void ConvertPair(const Source& source, Sink* sink) {
  const int32_t pair = source.tree.root();
  for (int32_t v = 0; v <= pair; ++v) {
    sink->AddVertex(v == pair ? kPairType : kDependencyType, source.tree.children(v));
    sink->words->push_back(RowOf(source, v));
    sink->labels().push_back(kNone);
  }
  if (std::isnan(source.score)) return;
  sink->labels().back() = 0;  // its row
  sink->answers->rows = ScoreDistribution(source.score, kHighestScore);
}

struct Conversion {
  std::string_view answers;  // the column of what is to be learnt
  int32_t max_children;      // of a vertex; 0: any number
  void (*convert)(const Source& source, Sink* sink);
};

// By value of LearningTask.
constexpr std::array<Conversion, 3> kConversions = {
    {{kLabelColumn, 2, ConvertTree}, {kLabelColumn, 1, ConvertSentence}, {kTargetColumn, 0, ConvertPair}}};

// Turns the trees of a corpus into graphs, one after another; keeps its buffers.
class Converter {
 public:
  // Throws std::invalid_argument unless the columns of the model are those of the task and of these sizes.
  Converter(const Corpus& corpus, const Vocabulary& vocabulary, const Model& model)
      : conversion_(kConversions[static_cast<size_t>(TaskOf(corpus.format))]),
        columns_(model.columns()),
        word_(columns_->Find(kWordColumn)),
        answers_(columns_->Find(conversion_.answers)),
        scores_(corpus.trees.scores),
        rows_(vocabulary.Map(corpus.trees.words)),
        end_of_sentence_(vocabulary.Lookup(kEndOfSentence)) {
    if (word_ == kNone || answers_ == kNone) {
      ThrowInvalid("dataset", fmt::format("expected a model with columns \"{}\" and \"{}\", got one without",
                                          kWordColumn, conversion_.answers));
    }
    CheckSizes(corpus, vocabulary);
    sink_.parts.columns.resize(static_cast<size_t>(columns_->size()));
  }

  InputGraph Convert(const Tree& tree, size_t number, const std::string& where) {
    CheckArity(tree, where);
    sink_.parts.types.clear();
    sink_.parts.child_begin.assign(1, 0);
    sink_.parts.children.clear();
    for (GraphParts::ColumnValues& column : sink_.parts.columns) {
      column.ids.clear();
      column.rows.clear();
    }
    sink_.words = &sink_.parts.columns[static_cast<size_t>(word_)].ids;
    sink_.answers = &sink_.parts.columns[static_cast<size_t>(answers_)];
    const double score = scores_.empty() ? kNoScore : scores_[number];
    conversion_.convert({tree, score, rows_, end_of_sentence_}, &sink_);
    for (GraphParts::ColumnValues& column : sink_.parts.columns) column.ids.resize(sink_.parts.types.size(), kNone);
    return InputGraph(columns_, sink_.parts);
  }

 private:
  void CheckSizes(const Corpus& corpus, const Vocabulary& vocabulary) const {
    const int64_t own = (*columns_)[word_].id_limit;
    if (own != vocabulary.size()) {
      ThrowInvalid("vocabulary", fmt::format("expected {} words, as the model has, got {}", own, vocabulary.size()));
    }
    const Column& answers = (*columns_)[answers_];
    const int64_t classes = answers.kind == ColumnKind::kIds ? answers.id_limit : answers.width;
    const int64_t given = corpus.classes > 0 ? corpus.classes : vocabulary.size();
    if (classes != given) {
      ThrowInvalid(corpus.name, fmt::format("expected data of {} classes, as the model has, got {}", classes, given));
    }
  }

  void CheckArity(const Tree& tree, const std::string& where) const {
    if (conversion_.max_children == 0) return;
    for (int32_t v = 0; v < tree.vertex_count(); ++v) {
      if (tree.arity(v) <= conversion_.max_children) continue;
      ThrowInvalid(where, fmt::format("expected at most {} children, got {}", conversion_.max_children, tree.arity(v)));
    }
  }

  const Conversion& conversion_;
  std::shared_ptr<const ColumnSet> columns_;
  int word_;
  int answers_;
  const std::vector<double>& scores_;
  std::vector<int32_t> rows_;
  int32_t end_of_sentence_;
  Sink sink_;
};

}  // namespace

std::string Dataset::Describe(int64_t example) const {
  const bool known = example >= 0 && example < std::ssize(lines) && !file.empty();
  const int64_t line = known ? lines[static_cast<size_t>(example)] : 0;
  return line > 0 ? fmt::format("{}:{}", file, line) : fmt::format("example {}", example);
}

Dataset MakeDataset(const Corpus& corpus, const Vocabulary& vocabulary, const Model& model) {
  Converter converter(corpus, vocabulary, model);
  Dataset data;
  data.name = corpus.name;
  data.file = corpus.file;
  data.task = TaskOf(corpus.format);
  data.statistics = corpus.trees.statistics;
  data.statistics.vertices = 0;
  data.coverage = vocabulary.Cover(corpus.trees.words, CountWords(corpus.trees));
  data.majority = RootMajority(corpus.trees.trees);
  data.digest = corpus.digest;
  const bool grouped = corpus.format == CorpusFormat::kListOps;
  if (grouped) data.group_name = "depth";
  data.graphs.reserve(corpus.trees.trees.size());
  for (const Tree& tree : corpus.trees.trees) {
    data.lines.push_back(tree.line);
    const InputGraph& graph =
        data.graphs.emplace_back(converter.Convert(tree, data.graphs.size(), data.Describe(std::ssize(data.graphs))));
    data.statistics.vertices += graph.vertex_count();
    if (grouped) data.groups.push_back(OperatorDepth(tree));
  }
  return data;
}

}  // namespace cavs
