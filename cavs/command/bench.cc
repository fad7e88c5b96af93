#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cavs/base/stop_watch.h"
#include "cavs/command/chrome_trace.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/profile.h"
#include "cavs/command/progress.h"
#include "cavs/command/resident_memory.h"
#include "cavs/command/settings.h"
#include "cavs/command/step_runner.h"
#include "cavs/file_output.h"
#include "cavs/text.h"
#include "vertex/kernels/gemm.h"

namespace cavs {
namespace {

constexpr double kWarmUpSeconds = 2;
constexpr double kGemmSeconds = 0.3;  // of each of the four measurements, at most
constexpr int64_t kTracedSteps = 3;
constexpr int64_t kTracedSpans = 100000;  // as `help` says

// The best rate of this machine for the shapes that matter: a large square, and the node product of a Tree-LSTM.
double GemmRate(int64_t hidden, ThreadPool& threads, Precision precision, double seconds) {
  return std::max(cpu::MeasureGemmRate(1024, 1024, 1024, threads, seconds, precision),
                  cpu::MeasureGemmRate(256, 2 * hidden, 5 * hidden, threads, seconds, precision));
}

// Seconds of a step by part, and of what is done for it at another time: data are read once, so that the part of one
// step is its share of a pass over the data, and minibatches are planned ahead while others run.
nlohmann::ordered_json Split(const RunTotals& totals, double read_seconds_of_step) {
  return {{"read", read_seconds_of_step},
          {"ahead", totals.PerStep(totals.ahead)},
          {"schedule", totals.PerStep(totals.schedule)},
          {"hoisted", totals.PerStep(totals.hoisted)},
          {"recurrent", totals.PerStep(totals.recurrent)},
          {"deferred", totals.PerStep(totals.deferred)},
          {"backward", totals.PerStep(totals.backward)},
          {"optimizer", totals.PerStep(totals.optimizer)},
          {"other", totals.PerStep(totals.other())}};
}

void Print(const nlohmann::ordered_json& fields, Output& out) {
  const auto number = [&](const char* name) { return fields.at(name).get<double>(); };
  out.Line("{} steps in {:.2f} s: {:.1f} examples/s, {:.0f} vertices/s", fields.at("steps").get<int64_t>(),
           number("seconds"), number("examples_per_s"), number("vertices_per_s"));
  const auto size = [&](const char* name) { return FormatSize(fields.at(name).get<int64_t>()); };
  out.Line("{:.1f} tasks a step, {:.1f} vertices on average, {:.0f} kernel launches, {} copied",
           number("tasks_per_step"), number("mean_width"), number("launches_per_step"), size("copied_bytes"));
  out.Line("memory of a step: {} needed at one time, {} at the peak, {} held for it; a step runs in {:.1f} parts",
           size("needed_bytes"), size("peak_bytes"), size("reserved_bytes"), number("parts_per_step"));
  out.Line("{:.3f} of the vertices are distinct and run", number("distinct_share"));
  out.Line("{:.1f} GFLOP/s of useful work, {:.3f} of this machine's {:.1f} ({:.1f} before, {:.1f} after)",
           number("gflops"), number("gemm_fraction"), number("gemm_gflops"), number("gemm_gflops_before"),
           number("gemm_gflops_after"));
  const double step = number("seconds") / number("steps");
  out.Line("a step of {:.3f} ms:", step * 1e3);
  for (const auto& [part, value] : fields.at("split").items()) {
    const double seconds = value.get<double>();
    out.Line("  {:<10} {:>9.3f} ms {:>6.2f} %{}", part, seconds * 1e3, 100 * seconds / step,
             part == "read"    ? "  (once a run, not in the step)"
             : part == "ahead" ? "  (scheduling beside other steps, not in the step)"
                               : "");
  }
}

// What --mode=infer asks of an example: the loss of each of its words, or the answer of its roots.
std::optional<HeadRows> InferenceOf(const FlagValues& flags, LearningTask task) {
  if (flags.Text("mode") == "train") return std::nullopt;
  return task == LearningTask::kNextWord ? HeadRows::kLabelled : HeadRows::kRoots;
}

// A session that trains, or one that cannot.
Session MakeSession(Model& model, const SessionOptions& options, bool training) {
  return training ? Session(model, options) : Session(std::as_const(model), options);
}

// The steps of one call of `cavs bench`, over minibatches that are warm: their primitives exist and their memory is
// mapped.
class Bench {
 public:
  Bench(Invocation& call, const ModelAndData& task, Session* session)
      : call_(call),
        session_(*session),
        runner_("bench", task.data, call.flags.Int("batch_size"), session, OptimizerFrom(call.flags),
                InferenceOf(call.flags, task.data.task)),
        progress_(ProgressOnStderr(call.flags.Bool("quiet"))) {}

  int64_t minibatches() const { return runner_.minibatches(); }

  // Runs minibatches for the first time: those of --minibatches, or what time allows. Returns how many are warm now.
  int64_t WarmUp() {
    const int64_t wanted = call_.flags.Int("minibatches");
    const int64_t limit = wanted > 0 ? std::min(wanted, minibatches()) : minibatches();
    progress_.Begin("warming up", limit, "minibatches");
    const StopWatch watch;
    RunTotals ignored;
    runner_.RunPass(limit, &ignored, [&](const BatchReport&) {
      EndIfInterrupted(call_.interrupt);
      progress_.Update(++warm_);
      return wanted > 0 || watch.Seconds() < kWarmUpSeconds;
    });
    progress_.End();
    return warm_;
  }

  // Whole passes over the warm minibatches, so that all count alike, for --seconds.
  RunTotals Measure(std::string title) {
    progress_.Begin(std::move(title), 0, "minibatches");
    RunTotals totals;
    while (totals.seconds < call_.flags.Double("seconds")) {
      runner_.RunPass(warm_, &totals, [&](const BatchReport&) {
        EndIfInterrupted(call_.interrupt);
        progress_.Update(totals.steps);
        return true;
      });
    }
    progress_.End();
    return totals;
  }

  // Measures once more with every kernel timed.
  void Profile(const RunTotals& plain, MetricsWriter* metrics) {
    session_.executor().Profile(true);
    const RunTotals totals = Measure("profiling");
    const std::vector<ProfileLine> lines = MakeProfile(session_.executor().profile(), totals);
    session_.executor().Profile(false);
    PrintProfile(lines, totals, plain, call_.out);
    WriteProfile(lines, totals, metrics);
  }

  void Trace(const std::string& path) {
    TraceLog log(kTracedSpans);
    RunTotals ignored;
    runner_.Trace(&log);
    runner_.RunPass(std::min(kTracedSteps, warm_), &ignored, [](const BatchReport&) { return true; });
    runner_.Trace(nullptr);
    WriteFile(path, ToChromeTrace(log));
    call_.out.Line("trace of {} steps in {}: {} events{}", ignored.steps, path, log.spans().size(),
                   log.dropped() > 0 ? fmt::format(", {} more were dropped", log.dropped()) : "");
  }

 private:
  Invocation& call_;
  Session& session_;
  StepRunner runner_;
  Progress progress_;
  int64_t warm_ = 0;
};

}  // namespace

void RunBench(Invocation& call) {
  RequireMetricsPlace(call.flags);
  RequireFilePlace(call.flags, "trace", "a trace", kTraceBegin);
  const SessionOptions options = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  Model& model = *task.trained.model;
  const int64_t resident_before =
      ResidentBytes() - model.parameters().total_elements() * static_cast<int64_t>(sizeof(float));
  ForgetPeakResidentBytes();
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  if (task.batching) metrics.Write("batching", BatchingFields(*task.batching));
  call.out.Line("{}", DescribeConfiguration(call));

  Session session = MakeSession(model, options, call.flags.Text("mode") == "train");
  Bench bench(call, task, &session);
  const int64_t warm = bench.WarmUp();
  const int64_t resident_peak = std::max<int64_t>(0, PeakResidentBytes() - resident_before);
  const auto gemm_rate = [&] {
    return GemmRate(task.trained.config.hidden, session.threads(), model.options().precision,
                    std::min(kGemmSeconds, call.flags.Double("seconds") / 5));
  };
  const double gemm_before = gemm_rate();
  const RunTotals totals = bench.Measure("measuring");
  const double gemm_after = gemm_rate();

  const double gemm = std::max(gemm_before, gemm_after), gflops = totals.flops / totals.seconds * 1e-9;
  const double read_of_step = task.read_seconds / static_cast<double>(bench.minibatches());
  const nlohmann::ordered_json fields = {
      {"examples_per_s", static_cast<double>(totals.examples) / totals.seconds},
      {"vertices_per_s", static_cast<double>(totals.vertices) / totals.seconds},
      {"gflops", gflops},
      {"gemm_gflops", gemm},
      {"gemm_fraction", gflops / gemm},
      {"gemm_gflops_before", gemm_before},
      {"gemm_gflops_after", gemm_after},
      {"copied_bytes", totals.copied_bytes / totals.steps},
      {"peak_bytes", session.memory().peak},
      {"resident_peak_bytes", resident_peak},
      {"needed_bytes", session.memory().needed},
      {"reserved_bytes", session.memory().peak + session.memory().waste},
      {"split", Split(totals, read_of_step)},
      {"steps", totals.steps},
      {"seconds", totals.seconds},
      {"minibatches", warm},
      {"parts_per_step", totals.PerStep(totals.parts)},
      {"tasks_per_step", totals.PerStep(totals.tasks)},
      {"mean_width", static_cast<double>(totals.vertices) / static_cast<double>(totals.tasks)},
      {"distinct_share", static_cast<double>(totals.distinct_vertices) / static_cast<double>(totals.vertices)},
      {"launches_per_step", totals.PerStep(totals.launches)}};
  Print(fields, call.out);
  metrics.Write("bench", fields);
  if (call.flags.Bool("profile")) bench.Profile(totals, &metrics);
  if (const std::string& path = call.flags.Text("trace"); !path.empty()) bench.Trace(path);
}

}  // namespace cavs
