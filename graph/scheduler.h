// Policies that turn a batch of graphs into a schedule.
//
//   serial    one vertex at a time, children first, graph after graph: the oracle
//   depth     vertices of a type at the same distance from the leaves (Fold)
//   frontier  all ready vertices of a type, the type with the most of them first (Cavs)
//   agenda    all ready vertices of a type, the type of the lowest average depth first (DyNet)
//   fsm       all ready vertices of a type, which a learned table chooses (ED-Batch; graph/fsm_policy.h)
//
// Vertices of a task are in the order of their graphs, and of their ids inside of one. So the rows of each shard of a
// batch (GraphBatch::Shard) follow each other, and the order of rows does not depend on the number of shards.
//
// All depend on the batch (and the table) alone, take linear time (plus, for every task of the last three, the time to
// go through the types that have ready vertices), and do not recurse. Ties go to the lowest type. A scheduler keeps
// scratch that it reuses; it allocates nothing once warm. Thread-safety: one thread per scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/fsm_policy.h"
#include "graph/graph_batch.h"
#include "graph/schedule.h"

namespace cavs {

enum class BatchingPolicy { kSerial, kDepth, kFrontier, kAgenda, kFsm };

// "serial", "depth", "frontier", "agenda", "fsm".
std::string_view BatchingPolicyName(BatchingPolicy policy);
// Throws std::invalid_argument that lists the names.
BatchingPolicy ParseBatchingPolicy(std::string_view name);

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // Overwrites `schedule` with one segment that covers every vertex of `batch` once.
  void Plan(const GraphBatch& batch, Schedule* schedule);
  // Appends one segment for the vertices that were added to `batch` after `schedule` was planned; those scheduled
  // before count as done.
  void Extend(const GraphBatch& batch, Schedule* schedule);

 protected:
  // Fills `task_of` [vertices from `first` on] with the task of each vertex as Schedule::Append takes it, and returns
  // the number of tasks. It arrives with the right size and unspecified entries.
  virtual int64_t Arrange(const GraphBatch& batch, int64_t first, std::span<int32_t> task_of) = 0;

 private:
  std::vector<int32_t> task_of_;
};

// `fsm` is the table of kFsm, which without one is the frontier policy; others ignore it.
std::unique_ptr<Scheduler> MakeScheduler(BatchingPolicy policy, std::shared_ptr<const FsmPolicy> fsm = nullptr);

}  // namespace cavs
