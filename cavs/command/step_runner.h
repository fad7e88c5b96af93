// Training steps over the minibatches of a data set in file order, as `bench` and `ablate` time them, or their
// inference. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backprop/optimizer.h"
#include "cavs/dataset.h"
#include "cavs/session.h"

namespace cavs {

// Sums over the steps that were timed. Seconds.
struct RunTotals {
  int64_t steps = 0, parts = 0, examples = 0, vertices = 0, distinct_vertices = 0;
  int64_t tasks = 0, launches = 0, copied_bytes = 0;
  double flops = 0;
  double seconds = 0;
  double schedule = 0, hoisted = 0, recurrent = 0, deferred = 0, backward = 0, optimizer = 0;

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
  // runner.
  StepRunner(std::string where, const Dataset& data, int64_t batch_size, Session* session,
             const OptimizerOptions& options, std::optional<HeadRows> inference = std::nullopt);

  int64_t minibatches() const { return (data_.size() + batch_size_ - 1) / batch_size_; }

  // One step; adds its cost to `totals`. Throws std::runtime_error when a loss or gradient is not finite.
  const BatchReport& Run(int64_t minibatch, RunTotals* totals);

 private:
  std::string where_;
  const Dataset& data_;
  int64_t batch_size_;
  Session& session_;
  Optimizer optimizer_;
  std::optional<HeadRows> inference_;
  std::vector<Example> examples_;
};

}  // namespace cavs
