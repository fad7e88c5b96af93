#include "cavs/command/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/models/model_sizes.h"

namespace cavs {
namespace {

// Gives a flag the value that the model in `file` has.
void Adopt(FlagValues* flags, std::string_view name, const std::string& value, const std::string& file) {
  const FlagSpec& flag = *FindFlag(name);
  if (flags->is_set(name) && flags->ValueText(flag) != value) {
    ThrowInvalid(fmt::format("--{}", name),
                 fmt::format("expected {}, as the model in {} has, got {}", value, file, flags->ValueText(flag)));
  }
  flags->SetDefault(flag, value);
}

void AdoptAll(FlagValues* flags, const ModelConfig& config, const std::string& file) {
  Adopt(flags, "model", config.model, file);
  Adopt(flags, "hidden", fmt::format("{}", config.hidden), file);
  Adopt(flags, "embed", fmt::format("{}", config.embed), file);
  Adopt(flags, "layers", fmt::format("{}", config.layers), file);
  Adopt(flags, "dropout", fmt::format("{}", config.dropout), file);
  if (config.binarize != Binarize::kKeep) {
    Adopt(flags, "binarize", config.binarize == Binarize::kLeft ? "left" : "right", file);
  }
  Adopt(flags, "unary", config.unary == Unary::kCollapse ? "collapse" : "keep", file);
  if (flags->is_set("min_count")) {
    ThrowInvalid("--min_count", fmt::format("expected none, as the vocabulary comes from the model in {}, got {}", file,
                                            flags->Int("min_count")));
  }
  // A loaded model may go on with other draws than those that made it.
  flags->SetDefault(*FindFlag("seed"), fmt::format("{}", config.seed));
}

// Whether the graph says what is to be learnt at some vertex.
bool HasAnswer(const InputGraph& graph) {
  for (const std::string_view name : {kLabelColumn, kTargetColumn}) {
    const int column = graph.columns().Find(name);
    if (column == kNone) continue;
    const std::span<const int32_t> ids = graph.ids(column);
    if (std::any_of(ids.begin(), ids.end(), [](int32_t id) { return id != kNone; })) return true;
  }
  return false;
}

}  // namespace

// Batching changes no answer, so any data will do to learn a policy from.
std::optional<FsmReport> LearnMissingBatching(const SubCommandSpec& command, const FlagValues& flags,
                                              const Dataset& data, Model* model) {
  const bool fsm = ParseBatchingPolicy(flags.Text("batching")) == BatchingPolicy::kFsm;
  if (!fsm || data.graphs.empty() || FsmPolicyOf(*model) != nullptr) return std::nullopt;
  const bool forward_only = command.command == SubCommand::kEval || command.command == SubCommand::kPredict;
  const FsmReport report = LearnBatching(data.graphs,
                                         {.batch_size = flags.Int("batch_size"),
                                          .sharing = ParseSharingPolicy(flags.Text("sharing")),
                                          .training = !forward_only,
                                          .seed = static_cast<uint64_t>(flags.Int("seed"))},
                                         model);
  Progress(ProgressOnStderr(flags.Bool("quiet"))).Line(DescribeLearning(report));
  return report;
}

std::optional<TrainedModel> LoadModel(FlagValues* flags) {
  const std::string& file = flags->Text("load");
  if (file.empty()) return std::nullopt;
  TrainedModel trained = TrainedModel::Load(file, PassesFrom(*flags), PrecisionFrom(*flags));
  AdoptAll(flags, trained.config, file);
  return trained;
}

CorpusOptions ReadingFrom(const FlagValues& flags) {
  CorpusOptions options;
  options.binarize = ParseBinarize(flags.Text("binarize"));
  options.unary = ParseUnary(flags.Text("unary"));
  options.max_examples = flags.Int("max_examples");
  options.seed = static_cast<uint64_t>(flags.Int("seed"));
  return options;
}

CorpusOptions ReadingFrom(const FlagValues& flags, const ModelConfig& config, DataPart part) {
  CorpusOptions options = ReadingOptions(config);
  options.max_examples = flags.Int("max_examples");
  options.seed = static_cast<uint64_t>(flags.Int("seed"));
  // The size of the training data is for the flags to say, also when a model goes on with more of them.
  if (part == DataPart::kTrain) options.generated_training = 0;
  return options;
}

TrainedModel NewModel(const Corpus& corpus, const FlagValues& flags) {
  ModelConfig config = ConfigFor(corpus);
  config.model = flags.Text("model");
  config.hidden = flags.Int("hidden");
  config.embed = flags.Int("embed");
  config.layers = flags.Int("layers");
  config.dropout = flags.Double("dropout");
  config.binarize = ParseBinarize(flags.Text("binarize"));
  config.unary = ParseUnary(flags.Text("unary"));
  config.seed = static_cast<uint64_t>(flags.Int("seed"));
  return TrainedModel::Create(config, MakeVocabulary(corpus, flags.Int("min_count")), PassesFrom(flags),
                              PrecisionFrom(flags));
}

void RequireLabels(const Dataset& data) {
  if (std::any_of(data.graphs.begin(), data.graphs.end(), HasAnswer)) return;
  const bool scores = data.task == LearningTask::kSimilarity;
  ThrowInvalid(data.name, fmt::format("expected {}, got none; only predict needs no labels",
                                      scores ? "pairs with a score" : "vertices with a class as label"));
}

ModelAndData ReadModelAndData(Invocation& call) {
  std::optional<TrainedModel> loaded = LoadModel(&call.flags);
  const FlagValues& flags = call.flags;
  const DataSource source = ParseDataSource(flags.Text("data"));
  const StopWatch watch;
  const CorpusOptions options = loaded ? ReadingFrom(flags, loaded->config, call.part) : ReadingFrom(flags);
  const Corpus corpus = ReadCorpus(source, options, call.part);
  double seconds = watch.Seconds();
  TrainedModel trained = loaded ? std::move(*loaded) : NewModel(corpus, flags);
  const StopWatch converting;
  Dataset data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  seconds += converting.Seconds();
  const std::optional<FsmReport> batching = LearnMissingBatching(call.command, flags, data, trained.model.get());
  return {std::move(trained), std::move(data), seconds, batching};
}

}  // namespace cavs
