// Training steps over the minibatches of a data set in file order, as `bench` and `ablate` time them, or their
// inference. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backprop/optimizer.h"
#include "cavs/base/trace_log.h"
#include "cavs/dataset.h"
#include "cavs/minibatches.h"
#include "cavs/prefetcher.h"
#include "cavs/session.h"

namespace cavs {

// Sums over the steps that were timed. Seconds.
struct RunTotals {
  int64_t steps = 0, parts = 0, examples = 0, vertices = 0, distinct_vertices = 0;
  int64_t tasks = 0, launches = 0, copied_bytes = 0;
  double flops = 0;
  double seconds = 0;
  double schedule = 0, hoisted = 0, recurrent = 0, deferred = 0, backward = 0, optimizer = 0;
  double ahead = 0;  // of packing and planning beside other steps; not part of `seconds`

  // Of no part that is measured.
  double other() const { return seconds - schedule - hoisted - recurrent - deferred - backward - optimizer; }
  // Per step.
  double PerStep(double total) const { return total / static_cast<double>(steps); }
  double PerStep(int64_t total) const { return PerStep(static_cast<double>(total)); }

  void Add(const BatchReport& report, double step_seconds, double optimizer_seconds);
};

class StepRunner {
 public:
  // A new optimizer over `session`'s model; `where` begins the texts of errors. With `inference`, a step runs F and the
  // head over those rows alone, and `session` may be one that cannot train. `data` and `session` must outlive the
  // runner, at whose end `session` forgets its last minibatch.
  StepRunner(std::string where, const Dataset& data, int64_t batch_size, Session* session,
             const OptimizerOptions& options, std::optional<HeadRows> inference = std::nullopt);

  int64_t minibatches() const { return minibatches_.size(); }

  // Called behind each step; false ends the pass.
  using StepVisitor = std::function<bool(const BatchReport& report)>;

  // One step over each of the first `count` minibatches, in order; adds their cost to `totals`. Throws
  // std::runtime_error when a loss or gradient is not finite.
  void RunPass(int64_t count, RunTotals* totals, const StepVisitor& visit);

  // Goes on as a new runner on a new session would, but warm: from step 0, with a new optimizer.
  void Restart();

  // Draws every step from now on into `log`, which must outlive the tracing; null stops.
  void Trace(TraceLog* log);

 private:
  // Of the pass, drawn as a part of the step.
  const PlannedBatch& Next(Prefetcher::Pass& pass);

  std::string where_;
  Minibatches minibatches_;
  Session& session_;
  Optimizer optimizer_;
  std::optional<HeadRows> inference_;
  Prefetcher prefetcher_;
  TraceLog* trace_ = nullptr;
};

}  // namespace cavs
