#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cavs/command/commands.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/settings.h"
#include "cavs/models/tree_models.h"
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

nlohmann::ordered_json Fields(const Corpus& corpus, const Vocabulary& vocabulary, const Coverage& coverage) {
  const ReaderStatistics& s = corpus.trees.statistics;
  return {{"data", corpus.name},
          {"trees", s.trees},
          {"vertices", s.vertices},
          {"leaves", s.leaves},
          {"brackets", s.brackets},
          {"max_depth", s.max_depth},
          {"max_levels", s.max_levels},
          {"max_leaves", s.max_leaves},
          {"max_arity", s.max_arity},
          {"labels", s.class_labels},
          {"root_labels", CountRootLabels(corpus)},
          {"collapsed_unary", s.collapsed_unary},
          {"binarised", s.binarised},
          {"dropped_tops", s.dropped_tops},
          {"blank_lines", s.blank_lines},
          {"vocabulary", vocabulary.size()},
          {"words", coverage.tokens},
          {"unknown_words", coverage.unknown_tokens},
          {"distinct_words", coverage.types},
          {"unknown_distinct_words", coverage.unknown_types}};
}

void PrintCounts(const Corpus& corpus, std::string_view part, Output& out) {
  const ReaderStatistics& s = corpus.trees.statistics;
  out.Line("{} {}", part, corpus.name);
  out.Line("  {} trees, {} vertices, {} leaves, {} with a class", s.trees, s.vertices, s.leaves, s.class_labels);
  out.Line("  as read: {} brackets, depth {}, at most {} children", s.brackets, s.max_depth, s.max_arity);
  out.Line("  as used: {} levels, at most {} leaves a tree", s.max_levels, s.max_leaves);
  out.Line("  changed: {} unary brackets collapsed, {} vertices added by binarising, {} empty tops dropped",
           s.collapsed_unary, s.binarised, s.dropped_tops);
  out.Line("  skipped: {} blank lines", s.blank_lines);
  const Majority majority = RootMajority(corpus.trees.trees);
  if (majority.total == 0) return out.Line("  no root has a class");
  std::string line = "  classes at the roots:";
  const std::vector<int64_t> counts = CountRootLabels(corpus);
  for (size_t label = 0; label < counts.size(); ++label) {
    line += fmt::format("{} {} {}", label == 0 ? "" : ",", corpus.label_names[label], counts[label]);
  }
  out.Line("{}; the most frequent one {:.4f}", line, majority.rate());
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
  const std::array<std::string, 2> types = {"leaf", "node"};
  const int word_column = graph.columns().Find(kWordColumn);
  DrawOptions options;
  options.type_names = types;
  options.id_text = [&](int column, int32_t id) {
    if (column == word_column) return words[static_cast<size_t>(id)];
    return corpus.label_names[static_cast<size_t>(id)];
  };
  out.Line("the first graph of {}:", corpus.name);
  out.Write(Draw(graph, options));
}

}  // namespace

void RunCheck(Invocation& call) {
  const FlagValues& flags = call.flags;
  RequireWritableFile(flags.Text("metrics"));
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
