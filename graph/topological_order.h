// An order of evaluation of a batch, children first, without recursion. Scratch is reused; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph_batch.h"

namespace cavs {

class TopologicalOrder {
 public:
  // The vertices from `first` on, those before counting as done: by id where ids allow it, else depth first, which
  // keeps a graph's vertices together. Linear time. Valid until the next call.
  std::span<const int32_t> Compute(const GraphBatch& batch, int64_t first = 0);

 private:
  void WalkFrom(const GraphBatch& batch, int64_t first, int32_t start);

  std::vector<int32_t> order_;
  std::vector<int64_t> next_slot_;  // by id - first: the child to visit next
  std::vector<int32_t> stack_;
};

}  // namespace cavs
