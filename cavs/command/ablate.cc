#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cavs/command/ablation_grid.h"
#include "cavs/command/ablation_report.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/parameter_values.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/file_output.h"
#include "cavs/version.h"
#include "memory/pool.h"

namespace cavs {
namespace {

// The name of the processor where the system tells it.
std::string ProcessorName() {
  constexpr std::string_view kKey = "model name";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t value = line.find(": ");
    if (line.starts_with(kKey) && value != std::string::npos) return line.substr(value + 2);
  }
  return "unknown processor";
}

// A setting with all that it runs on. Models are shared by the settings that compile alike.
struct Lane {
  Setting setting;
  AblationResult result;
  Model* model = nullptr;
  std::unique_ptr<Session> session;
  std::unique_ptr<StepRunner> runner;
};

// One call of `cavs ablate`. Every measurement begins with the same parameters and a new optimizer and runs whole
// passes over the same minibatches, so all settings do the same training.
class Ablation {
 public:
  Ablation(Invocation& call, AblationGrid grid, ModelAndData task)
      : call_(call),
        grid_(std::move(grid)),
        task_(std::move(task)),
        initial_(*task_.trained.model),
        metrics_(call.flags.Text("metrics"), /*append=*/false),
        progress_(ProgressOnStderr(call.flags.Bool("quiet"))) {}

  void Run() {
    metrics_.Write("config", Configuration(call_));
    if (task_.batching) metrics_.Write("batching", BatchingFields(*task_.batching));
    call_.out.Line("{}", DescribeConfiguration(call_));
    Prepare();
    TakeTurns();
    progress_.End();
    Report();
  }

 private:
  double seconds() const { return call_.flags.Double("seconds"); }

  // Makes every lane and runs its first pass, which nobody times: its kernels are chosen, its memory is mapped, and its
  // losses say whether it computes what the base does.
  void Prepare() {
    LearnBatchingOnce();
    progress_.Begin("warming up", std::ssize(grid_.settings), "settings");
    for (const Setting& setting : grid_.settings) {
      EndIfInterrupted(call_.interrupt);
      Lane& lane = lanes_.emplace_back(Lane{setting, {}, nullptr, nullptr, nullptr});
      lane.result.name = setting.name;
      lane.result.flag = setting.flag;
      lane.result.value = setting.value;
      lane.result.tolerance = setting.flags.Double("tolerance");
      WarmUp(&lane);
      progress_.Update(std::ssize(lanes_));
    }
  }

  // All models keep the policy that the first one keeps.
  void LearnBatchingOnce() {
    for (const Setting& setting : grid_.settings) {
      const std::optional<FsmReport> report =
          LearnMissingBatching(call_.command, setting.flags, task_.data, task_.trained.model.get());
      if (report) metrics_.Write("batching", BatchingFields(*report));
    }
  }

  // A setting that this machine has not, or that does not fit into --memory_limit, is skipped unless it is the base.
  void WarmUp(Lane* lane) {
    std::optional<std::string> reason;
    try {
      const SessionOptions options = SessionFrom(lane->setting.flags);
      lane->model = &ModelFor(lane->setting.flags);
      lane->session = std::make_unique<Session>(*lane->model, options);
      lane->runner = std::make_unique<StepRunner>(lane->setting.name, task_.data, lane->setting.flags.Int("batch_size"),
                                                  lane->session.get(), OptimizerFrom(lane->setting.flags));
      FirstPass(lane);
    } catch (const std::invalid_argument& error) {
      reason = error.what();
    } catch (const OutOfMemory& error) {
      reason = error.what();
    }
    if (!reason) return;
    if (lanes_.size() == 1) throw std::runtime_error(fmt::format("the base setting cannot run: {}", *reason));
    lane->runner.reset();
    lane->session.reset();
    lane->result.reason = *reason;
  }

  void FirstPass(Lane* lane) {
    StepRunner& runner = Restart(lane);
    AblationResult& result = lane->result;
    // The base decides how many minibatches a pass has.
    const bool is_base = minibatches_ == 0;
    const int64_t most = is_base ? runner.minibatches() : minibatches_;
    runner.RunPass(most, &result.pass, [&](const BatchReport& report) {
      EndIfInterrupted(call_.interrupt);
      result.losses.push_back(report.loss);
      return !is_base || std::ssize(result.losses) < kComparedSteps || result.pass.seconds < seconds() / 2;
    });
    if (is_base) minibatches_ = std::ssize(result.losses);
    result.loss_difference = LossDifference(lanes_.front().result.losses, result.losses);
    result.peak_bytes = lane->session->memory().peak;
  }

  // Interleaved, there and back again, so that a machine that slows down slows all settings alike.
  void TakeTurns() {
    const int64_t turns = call_.flags.Int("repeat");
    progress_.Begin("measuring", turns * std::ssize(lanes_), "turns");
    int64_t done = 0;
    for (int64_t turn = 0; turn < turns; ++turn) {
      for (size_t i = 0; i < lanes_.size(); ++i) {
        Lane& lane = lanes_[turn % 2 == 0 ? i : lanes_.size() - 1 - i];
        if (!lane.result.skipped()) Measure(&lane);
        progress_.Update(++done, lane.result.name);
      }
    }
  }

  void Measure(Lane* lane) {
    StepRunner& runner = Restart(lane);
    RunTotals totals;
    do {
      runner.RunPass(minibatches_, &totals, [&](const BatchReport&) {
        EndIfInterrupted(call_.interrupt);
        return true;
      });
    } while (totals.seconds < seconds());
    lane->result.step_seconds.push_back(totals.PerStep(totals.seconds));
  }

  StepRunner& Restart(Lane* lane) {
    initial_.Restore(lane->model);
    lane->runner->Restart();
    return *lane->runner;
  }

  // The model that is compiled as the flags say; one for each way.
  Model& ModelFor(const FlagValues& flags) {
    const PassOptions passes = PassesFrom(flags);
    const Precision precision = PrecisionFrom(flags);
    const auto matches = [&](const Model& model) {
      return model.options().passes == passes && model.options().precision == precision;
    };
    if (matches(*task_.trained.model)) return *task_.trained.model;
    for (const std::unique_ptr<Model>& model : models_) {
      if (matches(*model)) return *model;
    }
    return *models_.emplace_back(task_.trained.Recompiled(passes, precision));
  }

  void Report() {
    std::vector<AblationResult> results;
    results.reserve(lanes_.size());
    for (const Lane& lane : lanes_) results.push_back(lane.result);
    call_.out.Line("base: {}", grid_.base);
    PrintAblation(results, call_.out);
    for (const AblationResult& result : results) metrics_.Write("ablate", AblationFields(results.front(), result));
    if (const std::string& path = call_.flags.Text("svg"); !path.empty()) {
      WriteFile(path, ToSvg(Chart(results)));
      call_.out.Line("picture in {}", path);
    }
    RequireAgreement(results);
  }

  BarChart Chart(const std::vector<AblationResult>& results) const {
    const ModelConfig& config = task_.trained.config;
    const FlagValues& flags = call_.flags;
    const std::string examples(Describe(task_.data.task).examples);
    BarChart chart = AblationChart(results);
    chart.title = fmt::format("Training {} on {}", config.model, task_.data.name);
    chart.subtitles = {
        fmt::format("hidden {}, embed {}, {} {} a minibatch, {} minibatch{}, {}", config.hidden, config.embed,
                    flags.Int("batch_size"), examples, minibatches_, minibatches_ == 1 ? "" : "es",
                    flags.Text("optimizer")),
        fmt::format("{}, {} threads, cavs {}", ProcessorName(), ThreadsFrom(grid_.settings.front().flags), Version()),
        fmt::format("base: {}", grid_.base)};
    const int64_t turns = flags.Int("repeat");
    chart.footnote =
        turns == 1 ? "one turn" : fmt::format("medians of {} turns in rotation; whiskers: all turns", turns);
    return chart;
  }

  void RequireAgreement(const std::vector<AblationResult>& results) const {
    std::vector<std::string> others;
    for (const AblationResult& result : results) {
      if (result.skipped() || result.agrees()) continue;
      others.push_back(fmt::format("{:.1e} for {}", result.loss_difference, result.name));
    }
    if (others.empty()) return;
    throw std::runtime_error(
        fmt::format("[ablate] expected losses within --tolerance of the base's, got {}", fmt::join(others, ", ")));
  }

  Invocation& call_;
  AblationGrid grid_;
  ModelAndData task_;
  ParameterValues initial_;
  MetricsWriter metrics_;
  Progress progress_;
  std::vector<std::unique_ptr<Model>> models_;  // besides that of task_
  std::vector<Lane> lanes_;
  int64_t minibatches_ = 0;  // of a pass
};

}  // namespace

void RunAblate(Invocation& call) {
  RequireMetricsPlace(call.flags);
  RequireFilePlace(call.flags, "svg", "a picture", kSvgBegin);
  // A wrong grid is refused before anything is read. A model that is loaded brings flags of its own.
  MakeGrid(call.flags);
  ModelAndData task = ReadModelAndData(call);
  Ablation(call, MakeGrid(call.flags), std::move(task)).Run();
}

}  // namespace cavs
