// Minibatches: a data set in groups of graphs, in its own order or another. A plain value; const use is thread-safe.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/planner.h"
#include "graph/input_graph.h"

namespace cavs {

class Minibatches {
 public:
  // Groups of `batch_size`; the last one may be smaller. Refers to `graphs` and to `order`, which numbers the graphs to
  // take, in their order; without one all are taken, in that of the data set. Throws std::invalid_argument for a batch
  // size below 1.
  Minibatches(std::span<const InputGraph> graphs, int64_t batch_size,
              std::optional<std::span<const int32_t>> order = std::nullopt)
      : graphs_(graphs), batch_size_(batch_size), order_(order) {
    if (batch_size < 1) ThrowInvalid("batch size", fmt::format("expected at least 1, got {}", batch_size));
  }

  int64_t size() const { return (examples() + batch_size_ - 1) / batch_size_; }

  // Overwrites `examples` with those of a minibatch. Is a Prefetcher::Source.
  void operator()(int64_t minibatch, std::vector<Example>* examples) const {
    const int64_t begin = minibatch * batch_size_, end = std::min(begin + batch_size_, this->examples());
    examples->clear();
    examples->reserve(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t number = order_ ? (*order_)[static_cast<size_t>(i)] : i;
      examples->push_back({&graphs_[static_cast<size_t>(number)], number});
    }
  }

 private:
  int64_t examples() const { return order_ ? std::ssize(*order_) : std::ssize(graphs_); }

  std::span<const InputGraph> graphs_;
  int64_t batch_size_;
  std::optional<std::span<const int32_t>> order_;
};

}  // namespace cavs
