#include "cavs/planner.h"

#include <algorithm>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "cavs/learned_batching.h"
#include "vertex/executable.h"

namespace cavs {
namespace {

// Of the automatic choice of shards: the fewest vertices and graphs that each should have. Two shards have rows worth
// packing, as the bits of a row of a packed product, unlike those of a plain one, do not depend on the rows beside it.
constexpr int64_t kRowsWorthShards = 64;
constexpr int64_t kGraphsOfShard = 2;
static_assert(2 * kRowsWorthShards >= kRowsWorthPacking);

std::unique_ptr<Scheduler> SchedulerFor(const Model& model, BatchingPolicy batching) {
  return MakeScheduler(batching, batching == BatchingPolicy::kFsm ? FsmPolicyOf(model) : nullptr);
}

}  // namespace

Planner::Planner(const Model& model, bool trains, const SessionOptions& options)
    : sharing_(options.sharing),
      parallel_(options.parallel),
      threads_(options.threads),
      draws_(trains && model.executable(true, options.sharing)->draws()),
      scheduler_(SchedulerFor(model, options.batching)),
      sharer_(options.sharing, model.executable(trains, options.sharing)->inputs()) {}

void Planner::Plan(std::span<const Example> examples, bool training, PlannedBatch* planned) {
  const StopWatch watch;
  planned->examples_.assign(examples.begin(), examples.end());
  planned->training_ = training;
  planned->batch_.Clear();
  for (const Example& example : examples) planned->batch_.Add(*example.graph, example.number);
  planned->batch_.Shard(Shards(planned->batch_));
  planned->is_merged_ = sharing_ != SharingPolicy::kOff && !(training && draws_);
  if (planned->is_merged_) {
    sharer_.Merge(planned->batch_, &planned->distinct_, &planned->merged_);
    planned->shared_ = {&planned->batch_, planned->merged_};
  }
  scheduler_->Plan(planned->scheduled(), &planned->schedule_);
  planned->seconds_ = planned->waited_ = watch.Seconds();
}

// Graphs are cut unevenly, and a shard's tasks are narrower: shards of one or two graphs gain little or nothing.
int32_t Planner::Shards(const GraphBatch& batch) const {
  const int64_t graphs = batch.graph_count();
  switch (parallel_) {
    case ParallelPolicy::kTask:
      return 1;
    case ParallelPolicy::kShard:
      return static_cast<int32_t>(std::min(threads_, std::max<int64_t>(1, graphs)));
    case ParallelPolicy::kAuto:
      break;
  }
  if (batch.vertex_count() < kRowsWorthShards * threads_) return 1;
  return static_cast<int32_t>(std::min(threads_, std::max<int64_t>(1, graphs / kGraphsOfShard)));
}

}  // namespace cavs
