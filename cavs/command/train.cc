#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/parameter_values.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/file_output.h"
#include "cavs/trainer.h"

namespace cavs {
namespace {

// Below this many vertices a task, calling kernels costs more than what they compute.
constexpr double kNarrow = 8;

// All that training reads.
struct TrainingInputs {
  TrainedModel trained;
  Dataset train;
  std::optional<Dataset> dev;
  std::optional<Dataset> test;
  double read_seconds = 0;  // of all data
};

// Refuses places that could not be written later, before time goes into anything else.
void RequirePlaces(const FlagValues& flags) {
  RequireMetricsPlace(flags);
  const std::string& folder = flags.Text("save");
  if (folder.empty()) return;
  RequireWritableFolder(folder);
  std::error_code ignored;
  if (flags.Bool("resume") && !std::filesystem::exists(StatePath(folder), ignored)) {
    throw FileError(StatePath(folder), "expected the state of a run to resume, got no such file");
  }
}

std::optional<Dataset> ReadHeldOut(const FlagValues& flags, std::string_view name, DataPart part,
                                   const TrainedModel& trained, int64_t training_examples) {
  if (!flags.is_set(name)) return std::nullopt;
  CorpusOptions options = ReadingFrom(flags, trained.config, part);
  options.generated_training = std::max(options.generated_training, training_examples);
  Dataset data =
      MakeDataset(ReadCorpus(ParseDataSource(flags.Text(name)), options, part), trained.vocabulary, *trained.model);
  RequireLabels(data);
  return data;
}

TrainingInputs ReadInputs(const FlagValues& flags, std::optional<TrainedModel> loaded) {
  const CorpusOptions options = loaded ? ReadingFrom(flags, loaded->config, DataPart::kTrain) : ReadingFrom(flags);
  StopWatch watch;
  std::optional<Corpus> corpus = ReadCorpus(ParseDataSource(flags.Text("train")), options);
  double seconds = watch.Seconds();
  TrainedModel trained = loaded ? std::move(*loaded) : NewModel(*corpus, flags);
  watch.Restart();
  Dataset train = MakeDataset(*corpus, trained.vocabulary, *trained.model);
  corpus.reset();
  RequireLabels(train);
  std::optional<Dataset> dev = ReadHeldOut(flags, "dev", DataPart::kDev, trained, train.size());
  std::optional<Dataset> test = ReadHeldOut(flags, "test", DataPart::kTest, trained, train.size());
  seconds += watch.Seconds();
  return {std::move(trained), std::move(train), std::move(dev), std::move(test), seconds};
}

TrainerOptions TrainerFrom(const FlagValues& flags) {
  TrainerOptions options;
  options.epochs = flags.Int("epochs");
  options.batch_size = flags.Int("batch_size");
  options.shuffle = flags.Bool("shuffle");
  options.seed = static_cast<uint64_t>(flags.Int("seed"));
  options.on_nan = flags.Text("on_nan") == "skip" ? OnNan::kSkip : OnNan::kStop;
  options.optimizer = OptimizerFrom(flags);
  options.session = SessionFrom(flags);
  options.save_folder = flags.Text("save");
  options.save_every = flags.Int("save_every");
  options.resume = flags.Bool("resume");
  return options;
}

// One call of `cavs train`, from data that are read to the last line.
class Training {
 public:
  Training(Invocation& call, TrainingInputs inputs)
      : call_(call),
        inputs_(std::move(inputs)),
        options_(TrainerFrom(call.flags)),
        metrics_(call.flags.Text("metrics"), options_.resume),
        progress_(ProgressOnStderr(call.flags.Bool("quiet"))) {}

  void Run() {
    metrics_.Write("config", Configuration(call_));
    metrics_.Write("data", {{"train_examples", inputs_.train.size()},
                            {"train_vertices", inputs_.train.statistics.vertices},
                            {"read_s", inputs_.read_seconds}});
    DescribeInputs();
    const TrainingResult result = Train();
    progress_.End();
    if (result.interrupted) throw std::runtime_error(DescribeInterruption(result));
    Finish(result);
  }

 private:
  Model& model() { return *inputs_.trained.model; }
  const Dataset* dev() const { return inputs_.dev ? &*inputs_.dev : nullptr; }
  LearningTask task() const { return inputs_.train.task; }
  std::string noun() const { return std::string(Describe(task()).examples); }

  void DescribeInputs() {
    const std::vector<std::string>& labels = inputs_.trained.config.label_names;
    const Vocabulary& vocabulary = inputs_.trained.vocabulary;
    call_.out.Line("{}", DescribeDataset(inputs_.train, "train", labels));
    call_.out.Line("vocabulary: {} words, {} parameters", vocabulary.size(), model().parameters().total_elements());
    if (inputs_.dev) DescribeHeldOut(*inputs_.dev, "dev");
    if (inputs_.test) DescribeHeldOut(*inputs_.test, "test");
  }

  void DescribeHeldOut(const Dataset& data, std::string_view part) {
    call_.out.Line("{}", DescribeDataset(data, part, inputs_.trained.config.label_names));
    call_.out.Line("{}", DescribeCoverage(data.coverage, part));
    if (data.coverage.unknown_tokens == 0 || inputs_.trained.vocabulary.unknown_trained()) return;
    progress_.Line(
        fmt::format("warning: no training word is {}, so its vector is never trained; --min_count=2 makes "
                    "the rarest words train it",
                    Vocabulary::kUnknownWord));
  }

  TrainingResult Train() {
    Trainer trainer(model(), options_);
    TrainerCallbacks callbacks;
    callbacks.on_step = [this](const StepReport& step) { ShowStep(step); };
    callbacks.on_epoch = [this](const EpochReport& report, const Evaluation* evaluation, bool is_best) {
      ShowEpoch(report, evaluation, is_best);
    };
    callbacks.on_batching = [this](const FsmReport& report) {
      progress_.Line(DescribeLearning(report));
      metrics_.Write("batching", BatchingFields(report));
    };
    callbacks.should_stop = [this] { return call_.interrupt.requested(); };
    callbacks.log = [this](LogLevel level, std::string_view text) {
      progress_.Line(fmt::format("{}{}", level == LogLevel::kInfo ? "" : "warning: ", text));
    };
    return trainer.Run(inputs_.train, dev(), callbacks);
  }

  void ShowStep(const StepReport& step) {
    if (shown_epoch_ != step.epoch) {
      shown_epoch_ = step.epoch;
      progress_.Begin(fmt::format("epoch {}/{}", step.epoch, options_.epochs), step.total, noun());
    }
    progress_.Update(step.done, fmt::format("loss {:.5g}", step.loss));
  }

  void ShowEpoch(const EpochReport& report, const Evaluation* evaluation, bool is_best) {
    progress_.End();
    call_.out.Line("{}{}", DescribeEpoch(report, options_.epochs, task(), evaluation), is_best ? "  best" : "");
    metrics_.Write("epoch", EpochFields(report, task(), evaluation));
    if (is_best && evaluation != nullptr) best_dev_ = *evaluation;
    if (is_best && options_.save_folder.empty()) best_values_.emplace(model());
    if (hinted_ || report.mean_width() >= kNarrow || report.tasks == 0) return;
    hinted_ = true;
    progress_.Line(
        fmt::format("hint: tasks are narrow, {:.1f} vertices on average; a larger --batch_size makes them "
                    "wider and training faster",
                    report.mean_width()));
  }

  std::string DescribeInterruption(const TrainingResult& result) const {
    const std::string where = fmt::format("interrupted behind step {}", result.steps);
    if (options_.save_folder.empty()) return fmt::format("{}; without --save nothing was kept", where);
    return fmt::format("{}; the same command with --resume goes on from {}", where, StatePath(options_.save_folder));
  }

  void RestoreBest() {
    if (!options_.save_folder.empty()) return model().Load(BestModelPath(options_.save_folder));
    best_values_->Restore(&model());
  }

  Evaluation Measure(const Dataset& data, std::string_view part) {
    progress_.Begin(fmt::format("measuring {}", part), data.size(), noun());
    Evaluator evaluator(std::as_const(model()), options_.session);
    Evaluation evaluation =
        evaluator.Evaluate(data, options_.batch_size, [this](int64_t done) { progress_.Update(done); });
    progress_.End();
    return evaluation;
  }

  void Finish(const TrainingResult& result) {
    if (result.best.epoch == 0)
      throw std::runtime_error("no epoch ended with a finite loss, so there is no best model");
    RestoreBest();
    // A run that went on may have had its best epoch before.
    if (inputs_.dev && !best_dev_) best_dev_ = Measure(*inputs_.dev, "dev");
    nlohmann::ordered_json fields = EpochFields(result.best, task(), best_dev_ ? &*best_dev_ : nullptr);
    const bool saved = !options_.save_folder.empty();
    fields["model"] = saved ? nlohmann::ordered_json(BestModelPath(options_.save_folder)) : nullptr;
    call_.out.Line("best epoch {}{}", result.best.epoch,
                   saved ? fmt::format(", saved as {}", BestModelPath(options_.save_folder)) : "");
    if (best_dev_ && !best_dev_->groups.empty()) {
      call_.out.Line("dev {}", DescribeGroups(best_dev_->groups, inputs_.dev->group_name));
      fields["dev_accuracy_by_depth"] = GroupFields(best_dev_->groups);
    }
    if (inputs_.test) {
      const Evaluation evaluation = Measure(*inputs_.test, "test");
      call_.out.Line("test {}", DescribeEvaluation(evaluation, task()));
      if (!evaluation.groups.empty()) {
        call_.out.Line("test {}", DescribeGroups(evaluation.groups, inputs_.test->group_name));
      }
      fields.update(EvaluationFields(evaluation, task(), "test_"));
    }
    metrics_.Write("final", fields);
  }

  Invocation& call_;
  TrainingInputs inputs_;
  TrainerOptions options_;
  MetricsWriter metrics_;
  Progress progress_;
  int64_t shown_epoch_ = 0;
  bool hinted_ = false;
  std::optional<ParameterValues> best_values_;  // of a run that saves none
  std::optional<Evaluation> best_dev_;          // of the best epoch, if this process has seen it
};

}  // namespace

void RunTrain(Invocation& call) {
  RequirePlaces(call.flags);
  SessionFrom(call.flags);
  std::optional<TrainedModel> loaded = LoadModel(&call.flags);
  call.out.Line("{}", DescribeConfiguration(call));
  Training(call, ReadInputs(call.flags, std::move(loaded))).Run();
}

}  // namespace cavs
