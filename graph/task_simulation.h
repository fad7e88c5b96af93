// TaskSimulation: plays the scheduling of one batch over and over, with the numbers that a learner of policies is
// rewarded by. It builds no Schedule.
//
// A vertex is *open* when all vertices of its own type below it have run, whatever else it still waits for. A task that
// takes all open vertices of its type loses nothing: no other order puts more vertices of that type into one task. One
// thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/dependents.h"
#include "graph/graph_batch.h"

namespace cavs {

class TaskSimulation {
 public:
  // Keeps no reference to `batch`. Time and memory are EpisodeWork(batch).
  explicit TaskSimulation(const GraphBatch& batch);

  // An upper bound of the array elements that one play of a batch touches: vertices and edges, for each vertex type.
  static int64_t EpisodeWork(const GraphBatch& batch);

  void Restart();
  // Types with ready vertices, in no particular order; none when all vertices have run.
  std::span<const int32_t> ready_types() const { return ready_types_; }
  int64_t ready_count(int32_t type) const { return std::ssize(ready_[static_cast<size_t>(type)]); }
  // Vertices of the type that are open; at least ready_count(type).
  int64_t open_count(int32_t type) const { return open_[static_cast<size_t>(type)]; }
  // Runs all ready vertices of a type that has some.
  void Run(int32_t type);

 private:
  size_t At(int32_t type, int32_t v) const {
    return static_cast<size_t>(type) * types_.size() + static_cast<size_t>(v);
  }
  void CountBlocked(const GraphBatch& batch);
  void AddReady(int32_t v);
  // Tells the ancestors of `v`, of type `type`, that all of that type from `v` down have run.
  void Clear(int32_t type, int32_t v);

  std::vector<int32_t> types_;  // by vertex
  Dependents dependents_;       // at the beginning of a play
  // By type and vertex: children with a vertex of the type at or below them that has not run.
  std::vector<int32_t> initially_blocked_, blocked_;
  std::vector<int32_t> waiting_;                // by vertex: children that have not run
  std::vector<int64_t> initially_open_, open_;  // by type
  std::vector<std::vector<int32_t>> ready_;     // by type
  std::vector<int32_t> ready_types_;
  std::vector<int32_t> taken_, cleared_;  // scratch
};

}  // namespace cavs
