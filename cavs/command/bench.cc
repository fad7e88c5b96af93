#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cavs/base/stop_watch.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/text.h"
#include "vertex/kernels/gemm.h"

namespace cavs {
namespace {

constexpr double kWarmUpSeconds = 2;
constexpr double kGemmSeconds = 0.3;  // of each of the four measurements

// The best rate of this machine for the shapes that matter: a large square, and the node product of a Tree-LSTM.
double GemmRate(int64_t hidden, ThreadPool& threads, Precision precision) {
  return std::max(cpu::MeasureGemmRate(1024, 1024, 1024, threads, kGemmSeconds, precision),
                  cpu::MeasureGemmRate(256, 2 * hidden, 5 * hidden, threads, kGemmSeconds, precision));
}

// Sums over the steps that were timed.
struct Totals {
  int64_t steps = 0, parts = 0, examples = 0, vertices = 0, distinct_vertices = 0;
  int64_t tasks = 0, launches = 0, copied_bytes = 0;
  double flops = 0;
  double seconds = 0;
  double schedule = 0, hoisted = 0, recurrent = 0, deferred = 0, backward = 0, optimizer = 0;

  double other() const { return seconds - schedule - hoisted - recurrent - deferred - backward - optimizer; }

  void Add(const BatchReport& report, double step_seconds, double optimizer_seconds) {
    ++steps;
    parts += report.parts;
    examples += report.graphs;
    vertices += report.vertices;
    distinct_vertices += report.distinct_vertices;
    tasks += report.tasks;
    launches += report.counters.launches;
    copied_bytes += report.counters.copied_bytes;
    flops += report.counters.flops;
    seconds += step_seconds;
    schedule += report.schedule_seconds;
    hoisted += report.times.hoisted;
    recurrent += report.times.recurrent;
    deferred += report.times.deferred;
    backward += report.times.backward;
    optimizer += optimizer_seconds;
  }
};

// Training steps over the minibatches of a data set, in file order.
class StepRunner {
 public:
  StepRunner(const Dataset& data, int64_t batch_size, Session* session, const OptimizerOptions& options)
      : data_(data), batch_size_(batch_size), session_(*session), optimizer_(session->MakeOptimizer(options)) {}

  int64_t minibatches() const { return (data_.size() + batch_size_ - 1) / batch_size_; }

  void Run(int64_t minibatch, Totals* totals) {
    const StopWatch step;
    examples_.clear();
    const int64_t begin = minibatch * batch_size_;
    for (int64_t i = begin; i < std::min(begin + batch_size_, data_.size()); ++i) {
      examples_.push_back({&data_.graphs[static_cast<size_t>(i)], i});
    }
    const BatchReport& report = session_.Accumulate(examples_);
    const StopWatch updating;
    const bool applied = session_.Step(optimizer_).applied;
    const double seconds = updating.Seconds();
    // Products read packed copies of the parameters, which a step makes stale: renewing them is its cost.
    totals->Add(report, step.Seconds(), seconds + report.prepare_seconds);
    if (applied && std::isfinite(report.loss)) return;
    throw std::runtime_error(
        fmt::format("[bench] expected finite numbers, got others in minibatch {}; a smaller --lr "
                    "helps",
                    minibatch + 1));
  }

 private:
  const Dataset& data_;
  int64_t batch_size_;
  Session& session_;
  Optimizer optimizer_;
  std::vector<Example> examples_;
};

// Seconds of a step by part. Data are read once: the part of one step is its share of a pass over the data.
nlohmann::ordered_json Split(const Totals& totals, double read_seconds_of_step) {
  const auto steps = static_cast<double>(totals.steps);
  return {{"read", read_seconds_of_step},          {"schedule", totals.schedule / steps},
          {"hoisted", totals.hoisted / steps},     {"recurrent", totals.recurrent / steps},
          {"deferred", totals.deferred / steps},   {"backward", totals.backward / steps},
          {"optimizer", totals.optimizer / steps}, {"other", totals.other() / steps}};
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
             part == "read" ? "  (once a run, not in the step)" : "");
  }
}

}  // namespace

void RunBench(Invocation& call) {
  RequireMetricsPlace(call.flags);
  const SessionOptions options = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  if (task.batching) metrics.Write("batching", BatchingFields(*task.batching));
  call.out.Line("{}", DescribeConfiguration(call));

  Progress progress(ProgressOnStderr(call.flags.Bool("quiet")));
  Session session(*task.trained.model, options);
  StepRunner runner(task.data, call.flags.Int("batch_size"), &session, OptimizerFrom(call.flags));
  // Only minibatches that have been run before are timed: their primitives exist and their memory is mapped.
  progress.Begin("warming up", runner.minibatches(), "minibatches");
  int64_t warm = 0;
  const StopWatch warming;
  for (Totals ignored; warm < runner.minibatches() && (warm == 0 || warming.Seconds() < kWarmUpSeconds);) {
    EndIfInterrupted(call.interrupt);
    runner.Run(warm++, &ignored);
    progress.Update(warm);
  }
  const double gemm_before =
      GemmRate(task.trained.config.hidden, session.threads(), task.trained.model->options().precision);
  progress.Begin("measuring", 0, "minibatches");
  Totals totals;
  // Whole passes over them, so that all count alike.
  while (totals.seconds < call.flags.Double("seconds")) {
    for (int64_t minibatch = 0; minibatch < warm; ++minibatch) {
      EndIfInterrupted(call.interrupt);
      runner.Run(minibatch, &totals);
      progress.Update(totals.steps);
    }
  }
  progress.End();
  const double gemm_after =
      GemmRate(task.trained.config.hidden, session.threads(), task.trained.model->options().precision);

  const double gemm = std::max(gemm_before, gemm_after), gflops = totals.flops / totals.seconds * 1e-9;
  const auto steps = static_cast<double>(totals.steps);
  const double read_of_step = task.read_seconds / static_cast<double>(runner.minibatches());
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
      {"needed_bytes", session.memory().needed},
      {"reserved_bytes", session.memory().peak + session.memory().waste},
      {"split", Split(totals, read_of_step)},
      {"steps", totals.steps},
      {"seconds", totals.seconds},
      {"minibatches", warm},
      {"parts_per_step", static_cast<double>(totals.parts) / steps},
      {"tasks_per_step", static_cast<double>(totals.tasks) / steps},
      {"mean_width", static_cast<double>(totals.vertices) / static_cast<double>(totals.tasks)},
      {"distinct_share", static_cast<double>(totals.distinct_vertices) / static_cast<double>(totals.vertices)},
      {"launches_per_step", static_cast<double>(totals.launches) / steps}};
  Print(fields, call.out);
  metrics.Write("bench", fields);
}

}  // namespace cavs
