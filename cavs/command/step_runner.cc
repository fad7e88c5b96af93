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
  schedule += report.schedule_seconds;
  hoisted += report.times.hoisted;
  recurrent += report.times.recurrent;
  deferred += report.times.deferred;
  backward += report.times.backward;
  optimizer += optimizer_seconds;
}

StepRunner::StepRunner(std::string where, const Dataset& data, int64_t batch_size, Session* session,
                       const OptimizerOptions& options, std::optional<HeadRows> inference)
    : where_(std::move(where)),
      data_(data),
      batch_size_(batch_size),
      session_(*session),
      optimizer_(session->MakeOptimizer(options)),
      inference_(inference) {}

const BatchReport& StepRunner::Run(int64_t minibatch, RunTotals* totals) {
  const StopWatch step;
  examples_.clear();
  const int64_t begin = minibatch * batch_size_;
  for (int64_t i = begin; i < std::min(begin + batch_size_, data_.size()); ++i) {
    examples_.push_back({&data_.graphs[static_cast<size_t>(i)], i});
  }
  const BatchReport& report =
      inference_ ? session_.Forward(examples_, *inference_, [] {}) : session_.Accumulate(examples_);
  const StopWatch updating;
  const bool applied = inference_ || session_.Step(optimizer_).applied;
  const double seconds = updating.Seconds();
  // Products read packed copies of the parameters, which a step makes stale: renewing them is its cost.
  totals->Add(report, step.Seconds(), seconds + report.prepare_seconds);
  if (applied && std::isfinite(report.loss)) return report;
  throw std::runtime_error(fmt::format("[{}] expected finite numbers, got others in minibatch {}; a smaller --lr helps",
                                       where_, minibatch + 1));
}

}  // namespace cavs
