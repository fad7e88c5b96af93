// Planner: what is made of the graphs of a minibatch before it runs: graphs packed, equal vertices merged, shards cut,
// tasks scheduled. Index arrays and the numbering of distinct inputs are left to the Executor.
//
// A Session plans what it is given as examples by itself. Whoever knows the minibatches to come has them planned ahead,
// on another thread (cavs/prefetcher.h): a Planner touches neither parameters nor the Session it was made for. Its
// scratch and the arrays of a PlannedBatch are reused, so that planning allocates nothing once warm.
// Thread-safety: one thread at a time for a Planner, and for a PlannedBatch while it is planned; const access to one
// that is planned from any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cavs/model.h"
#include "cavs/session_options.h"
#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "graph/sharing.h"
#include "vertex/executor.h"

namespace cavs {

// Packing a matrix for both directions costs about as much as products of this many rows gain from it. The choice
// depends on the minibatch alone, so that a resumed run repeats it.
inline constexpr int64_t kRowsWorthPacking = 128;

// A graph and its number in the data set, which errors name and dropout draws from.
struct Example {
  const InputGraph* graph = nullptr;
  int64_t number = 0;
};

// A minibatch, or a part of one, that is ready to run. Refers to its graphs, which must outlive it or the next plan.
class PlannedBatch {
 public:
  PlannedBatch() = default;
  PlannedBatch(const PlannedBatch&) = delete;
  PlannedBatch& operator=(const PlannedBatch&) = delete;

  std::span<const Example> examples() const { return examples_; }
  bool training() const { return training_; }
  const GraphBatch& batch() const { return batch_; }
  // The vertices that F runs over: those of batch(), or the distinct ones where equal ones were merged.
  const GraphBatch& scheduled() const { return is_merged_ ? distinct_ : batch_; }
  const Schedule& schedule() const { return schedule_; }  // of scheduled()
  // Null unless equal vertices were merged.
  const SharedVertices* shared() const { return is_merged_ ? &shared_ : nullptr; }

  // Seconds that planning took, and for how many of them whoever runs the minibatch waited: all, unless it was planned
  // ahead.
  double seconds() const { return seconds_; }
  double waited() const { return waited_; }
  void set_waited(double seconds) { waited_ = seconds; }

 private:
  friend class Planner;

  std::vector<Example> examples_;
  bool training_ = false;
  bool is_merged_ = false;
  GraphBatch batch_;
  GraphBatch distinct_;
  std::vector<int32_t> merged_;  // by vertex of batch_: its number in distinct_
  SharedVertices shared_;        // of these
  Schedule schedule_;
  double seconds_ = 0;
  double waited_ = 0;
};

class Planner {
 public:
  // Plans as `options` say, by the policy that `model` keeps now where batching is kFsm; for training too if `trains`.
  // Throws std::invalid_argument when that policy does not fit the model.
  Planner(const Model& model, bool trains, const SessionOptions& options);

  // Overwrites `planned` with the minibatch of `examples`, for a run that trains or not. Throws std::invalid_argument
  // for 2^31 vertices or more; `planned` is good for another plan alone then.
  void Plan(std::span<const Example> examples, bool training, PlannedBatch* planned);

 private:
  int32_t Shards(const GraphBatch& batch) const;

  SharingPolicy sharing_;
  ParallelPolicy parallel_;
  int64_t threads_;
  bool draws_;  // training draws random numbers
  std::unique_ptr<Scheduler> scheduler_;
  Sharer sharer_;
};

}  // namespace cavs
