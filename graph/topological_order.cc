#include "graph/topological_order.h"

#include <numeric>

namespace cavs {
namespace {

constexpr int64_t kUnseen = -1;

size_t At(int64_t v, int64_t first) { return static_cast<size_t>(v - first); }

}  // namespace

std::span<const int32_t> TopologicalOrder::Compute(const GraphBatch& batch, int64_t first) {
  order_.clear();
  if (batch.children_first()) {
    order_.resize(static_cast<size_t>(batch.vertex_count() - first));
    std::iota(order_.begin(), order_.end(), static_cast<int32_t>(first));
    return order_;
  }
  next_slot_.assign(static_cast<size_t>(batch.vertex_count() - first), kUnseen);
  for (int64_t v = first; v < batch.vertex_count(); ++v) {
    if (next_slot_[At(v, first)] == kUnseen) WalkFrom(batch, first, static_cast<int32_t>(v));
  }
  return order_;
}

// A depth-first walk with its own stack.
void TopologicalOrder::WalkFrom(const GraphBatch& batch, int64_t first, int32_t start) {
  stack_.assign(1, start);
  next_slot_[At(start, first)] = 0;
  while (!stack_.empty()) {
    const int32_t v = stack_.back();
    const auto children = batch.children(v);
    int64_t& slot = next_slot_[At(v, first)];
    while (slot < std::ssize(children)) {
      const int32_t child = children[static_cast<size_t>(slot++)];
      if (child < first || next_slot_[At(child, first)] != kUnseen) continue;
      next_slot_[At(child, first)] = 0;
      stack_.push_back(child);
      break;
    }
    if (stack_.back() != v) continue;
    order_.push_back(v);
    stack_.pop_back();
  }
}

}  // namespace cavs
