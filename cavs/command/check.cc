#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cavs/command/commands.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/settings.h"
#include "cavs/models/model_sizes.h"
#include "graph/draw.h"

namespace cavs {
namespace {

struct Part {
  std::string_view name;
  DataPart part;
};
// Training data first: the vocabulary comes from the first that are given.
constexpr std::array<Part, 4> kParts = {
    {{"train", DataPart::kTrain}, {"data", DataPart::kTrain}, {"dev", DataPart::kDev}, {"test", DataPart::kTest}}};

std::vector<int64_t> CountRootLabels(const Corpus& corpus) {
  std::vector<int64_t> counts(static_cast<size_t>(corpus.classes));
  for (const Tree& tree : corpus.trees.trees) {
    const int32_t label = tree.label[static_cast<size_t>(tree.root())];
    if (label != Tree::kNone) ++counts[static_cast<size_t>(label)];
  }
  return counts;
}

// Labels that were read and are no classes; what binarising added has made-up ones.
int64_t CountOtherLabels(const Corpus& corpus) {
  int64_t tags = 0;
  for (const Tree& tree : corpus.trees.trees) {
    tags += std::count_if(tree.tag.begin(), tree.tag.end(), [](int32_t tag) { return tag != Tree::kNone; });
  }
  return tags > 0 ? tags - corpus.trees.statistics.binarised : 0;
}

struct Scores {
  int64_t count = 0;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double mean() const { return sum / static_cast<double>(count); }
};

Scores SummarizeScores(const Corpus& corpus) {
  Scores scores;
  for (const double score : corpus.trees.scores) {
    if (std::isnan(score)) continue;
    ++scores.count;
    scores.lowest = std::min(scores.lowest, score);
    scores.highest = std::max(scores.highest, score);
    scores.sum += score;
  }
  return scores;
}

nlohmann::ordered_json Fields(const Corpus& corpus, const Vocabulary& vocabulary, const Coverage& coverage) {
  const ReaderStatistics& s = corpus.trees.statistics;
  nlohmann::ordered_json fields = {{"data", corpus.name},
                                   {"trees", s.trees},
                                   {"vertices", s.vertices},
                                   {"leaves", s.leaves},
                                   {"brackets", s.brackets},
                                   {"max_depth", s.max_depth},
                                   {"max_levels", s.max_levels},
                                   {"max_leaves", s.max_leaves},
                                   {"max_arity", s.max_arity},
                                   {"labels", s.class_labels},
                                   {"other_labels", CountOtherLabels(corpus)},
                                   {"root_labels", CountRootLabels(corpus)},
                                   {"collapsed_unary", s.collapsed_unary},
                                   {"binarised", s.binarised},
                                   {"dropped_tops", s.dropped_tops},
                                   {"blank_lines", s.blank_lines},
                                   {"unused_tokens", s.unused_tokens},
                                   {"vocabulary", vocabulary.size()},
                                   {"words", coverage.tokens},
                                   {"unknown_words", coverage.unknown_tokens},
                                   {"distinct_words", coverage.types},
                                   {"unknown_distinct_words", coverage.unknown_types}};
  if (TaskOf(corpus.format) == LearningTask::kSimilarity) fields["scores"] = SummarizeScores(corpus).count;
  return fields;
}

void PrintRootClasses(const Corpus& corpus, Output& out) {
  const Majority majority = RootMajority(corpus.trees.trees);
  if (majority.total == 0) return out.Line("  no root has a class");
  std::string line = "  classes at the roots:";
  const std::vector<int64_t> counts = CountRootLabels(corpus);
  for (size_t label = 0; label < counts.size(); ++label) {
    line += fmt::format("{} {} {}", label == 0 ? "" : ",", corpus.label_names[label], counts[label]);
  }
  out.Line("{}; the most frequent one {:.4f}", line, majority.rate());
}

void PrintTreeCounts(const Corpus& corpus, Output& out) {
  const ReaderStatistics& s = corpus.trees.statistics;
  out.Line("  {} trees, {} vertices, {} leaves, {} with a class", s.trees, s.vertices, s.leaves, s.class_labels);
  if (const int64_t others = CountOtherLabels(corpus); others > 0) {
    out.Line("  labels that are not classes: {}", others);
  }
  out.Line("  as read: {} brackets, depth {}, at most {} children", s.brackets, s.max_depth, s.max_arity);
  out.Line("  as used: {} levels, at most {} leaves a tree", s.max_levels, s.max_leaves);
  out.Line("  changed: {} unary brackets collapsed, {} vertices added by binarising, {} empty tops dropped",
           s.collapsed_unary, s.binarised, s.dropped_tops);
}

void PrintCounts(const Corpus& corpus, std::string_view part, Output& out) {
  const ReaderStatistics& s = corpus.trees.statistics;
  const LearningTask task = TaskOf(corpus.format);
  out.Line("{} {}", part, corpus.name);
  if (task == LearningTask::kTreeClasses) {
    PrintTreeCounts(corpus, out);
  } else {
    const std::string_view examples = Describe(task).examples;
    out.Line("  {} {}, {} words, at most {} in one of them", s.trees, examples, s.leaves, s.max_leaves);
    out.Line("  depth {}, at most {} children", s.max_levels, s.max_arity);
  }
  out.Line("  skipped: {} blank lines, {} tokens outside of trees", s.blank_lines, s.unused_tokens);
  if (task == LearningTask::kTreeClasses) PrintRootClasses(corpus, out);
  if (task != LearningTask::kSimilarity) return;
  const Scores scores = SummarizeScores(corpus);
  if (scores.count == 0) return out.Line("  no pair has a score");
  out.Line("  scores of {} pairs: {:.2f} to {:.2f}, {:.3f} on average", scores.count, scores.lowest, scores.highest,
           scores.mean());
}

// The first graph as models see it. Its shape needs a model; the widths of that are of no account.
void DrawFirst(Corpus corpus, Vocabulary vocabulary, Output& out) {
  ModelConfig config = ConfigFor(corpus);
  config.hidden = 1;
  config.embed = 1;
  const TrainedModel trained = TrainedModel::Create(config, std::move(vocabulary));
  corpus.trees.trees.erase(corpus.trees.trees.begin() + 1, corpus.trees.trees.end());
  const Dataset data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  const InputGraph& graph = data.graphs.front();
  const std::vector<std::string> words = trained.vocabulary.words();
  std::vector<std::string> types;
  for (const TypeDeclaration& type : trained.model->program().signature->types) types.push_back(type.name);
  const int word_column = graph.columns().Find(kWordColumn);
  DrawOptions options;
  options.type_names = types;
  options.id_text = [&](int column, int32_t id) {
    return (column == word_column ? words : trained.config.label_names)[static_cast<size_t>(id)];
  };
  out.Line("the first graph of {}:", corpus.name);
  out.Write(Draw(graph, options));
}

}  // namespace

void RunCheck(Invocation& call) {
  const FlagValues& flags = call.flags;
  RequireMetricsPlace(flags);
  std::vector<std::pair<Part, Corpus>> corpora;
  int64_t training = 0;
  for (const Part& part : kParts) {
    if (!flags.is_set(part.name)) continue;
    CorpusOptions options = ReadingFrom(flags);
    if (part.part != DataPart::kTrain) options.generated_training = training;
    corpora.emplace_back(part, ReadCorpus(ParseDataSource(flags.Text(part.name)), options, part.part));
    if (part.part == DataPart::kTrain) training = std::ssize(corpora.back().second.trees.trees);
    EndIfInterrupted(call.interrupt);
  }
  MetricsWriter metrics(flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  Corpus& source = corpora.front().second;
  Vocabulary vocabulary = MakeVocabulary(source, flags.Int("min_count"));
  for (const auto& [part, corpus] : corpora) {
    const Coverage coverage = vocabulary.Cover(corpus.trees.words, CountWords(corpus.trees));
    PrintCounts(corpus, part.name, call.out);
    call.out.Line("  {}", DescribeCoverage(coverage, part.name));
    metrics.Write("check", Fields(corpus, vocabulary, coverage));
  }
  call.out.Line("vocabulary of {}: {} words, <unk> {}", source.name, vocabulary.size(),
                vocabulary.unknown_trained() ? "among the training words" : "not among the training words");
  DrawFirst(std::move(source), std::move(vocabulary), call.out);
}

}  // namespace cavs
