#include "cavs/command/step_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cavs/base/stop_watch.h"

namespace cavs {

void RunTotals::Add(const BatchReport& report, double step_seconds, double optimizer_seconds) {
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
  schedule += report.wait_seconds;
  ahead += std::max(0.0, report.schedule_seconds - report.wait_seconds);
  hoisted += report.times.hoisted;
  recurrent += report.times.recurrent;
  deferred += report.times.deferred;
  backward += report.times.backward;
  optimizer += optimizer_seconds;
}

StepRunner::StepRunner(std::string where, const Dataset& data, int64_t batch_size, Session* session,
                       const OptimizerOptions& options, std::optional<HeadRows> inference)
    : where_(std::move(where)),
      minibatches_(data.graphs, batch_size),
      session_(*session),
      optimizer_(session->MakeOptimizer(options)),
      inference_(inference),
      prefetcher_(*session, /*training=*/!inference) {}

void StepRunner::RunPass(int64_t count, RunTotals* totals, const StepVisitor& visit) {
  Prefetcher::Pass pass(&prefetcher_, count, minibatches_);
  for (int64_t minibatch = 1; minibatch <= count; ++minibatch) {
    const std::string name = trace_ != nullptr ? fmt::format("minibatch {}", minibatch) : "";
    TraceScope scope(trace_, TraceLevel::kMinibatch, trace_ != nullptr ? trace_->Intern(name) : "");
    const StopWatch step;
    const PlannedBatch& planned = Next(pass);
    const BatchReport& report = inference_ ? session_.Forward(planned, *inference_, {}) : session_.Accumulate(planned);
    const StopWatch updating;
    const bool applied = inference_ || session_.Step(optimizer_).applied;
    // Products read packed copies of the parameters, which a step makes stale: renewing them is its cost.
    totals->Add(report, step.Seconds(), updating.Seconds() + report.prepare_seconds);
    scope.set_rows(report.vertices);
    if (!applied || !std::isfinite(report.loss)) {
      throw std::runtime_error(fmt::format(
          "[{}] expected finite numbers, got others in minibatch {}; a smaller --lr helps", where_, minibatch));
    }
    if (!visit(report)) return;
  }
}

const PlannedBatch& StepRunner::Next(Prefetcher::Pass& pass) {
  const TraceScope scope(trace_, TraceLevel::kPart, "plan, or wait for it");
  return *pass.Next();
}

void StepRunner::Restart() {
  session_.set_step(0);
  optimizer_ = session_.MakeOptimizer(optimizer_.options());
}

void StepRunner::Trace(TraceLog* log) {
  trace_ = log;
  session_.Trace(log);
}

}  // namespace cavs
