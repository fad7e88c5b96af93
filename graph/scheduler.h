// Policies that turn a batch of graphs into a schedule.
//
//   serial    one vertex at a time, children first, graph after graph: the oracle
//   depth     vertices of a type at the same distance from the leaves (Fold)
//   frontier  all ready vertices of a type, the type with the most of them first (Cavs)
//   agenda    all ready vertices of a type, the type of the lowest average depth first (DyNet)
//
// Vertices of a task are in the order of their graphs, so that the rows of a shard follow each other and the order of
// rows does not depend on the number of shards.
//
// All depend on the batch alone, take linear time (for frontier and agenda plus, for every task, the number of types
// that have ready vertices), and do not recurse. Ties go to the lowest type. A scheduler keeps scratch that it reuses;
// it allocates nothing once warm. Thread-safety: one thread per scheduler.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "graph/graph_batch.h"
#include "graph/schedule.h"

namespace cavs {

enum class BatchingPolicy { kSerial, kDepth, kFrontier, kAgenda };

// "serial", "depth", "frontier", "agenda".
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
  // A segment in the form that Schedule::Append takes.
  struct Order {
    std::vector<int32_t> vertices;
    std::vector<int64_t> task_begin;
  };
  // Fills `order`, which arrives with no vertices and task_begin = {0}, with the vertices from `first` on.
  virtual void Arrange(const GraphBatch& batch, int64_t first, Order* order) = 0;

 private:
  void SortTasks(const GraphBatch& batch);

  Order order_;
};

std::unique_ptr<Scheduler> MakeScheduler(BatchingPolicy policy);

}  // namespace cavs
