// How kernels cut rows into jobs, and rows that an index leaves out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "cavs/base/thread_pool.h"
#include "vertex/kernels/operand.h"

namespace cavs::cpu {

// Columns of a block that a kernel buffers on the stack.
inline constexpr int64_t kBlockColumns = 512;

// Floats a job should at least touch, so that starting it does not show.
inline constexpr int64_t kJobFloats = 1 << 14;
// Floats that all jobs should at least touch: what takes less than 20 us is done before another thread has woken up.
inline constexpr int64_t kParallelFloats = 1 << 16;

// body(begin, end) over blocks of [0, count) of at least kJobFloats floats; `floats_per_item` is what an item touches.
// Items must not depend on each other.
template <typename Body>
void ForBlocks(ThreadPool& pool, int64_t count, int64_t floats_per_item, const Body& body) {
  if (count <= 0) return;
  const int64_t grain = std::max<int64_t>(kJobFloats / std::max<int64_t>(floats_per_item, 1), 1);
  if (pool.size() == 1 || count <= grain || count * floats_per_item < kParallelFloats) {
    body(int64_t{0}, count);
    return;
  }
  const auto job = [&body](int64_t begin, int64_t end, int) { body(begin, end); };
  ParallelFor(pool, count, grain, std::cref(job));
}

// body(row) for every row, in no particular order.
template <typename Body>
void ForRows(ThreadPool& pool, int64_t rows, int64_t floats_per_row, const Body& body) {
  ForBlocks(pool, rows, floats_per_row, [&body](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

// body(first column, columns) over blocks of at most kBlockColumns columns, all of `rows` rows.
template <typename Body>
void ForColumns(ThreadPool& pool, int64_t rows, int64_t width, const Body& body) {
  const int64_t blocks = (width + kBlockColumns - 1) / kBlockColumns;
  ForRows(pool, blocks, rows * kBlockColumns, [&](int64_t block) {
    const int64_t first = block * kBlockColumns;
    body(first, std::min(kBlockColumns, width - first));
  });
}

// Reads the rows of an operand, zeros where its index says -1.
class RowReader {
 public:
  RowReader(ConstOperand operand, int64_t width) : operand_(operand) {
    static constexpr std::array<float, 4096> kZeros{};
    zeros_ = kZeros.data();
    if (operand.index != nullptr && width > static_cast<int64_t>(kZeros.size())) {
      wide_zeros_.resize(static_cast<size_t>(width));
      zeros_ = wide_zeros_.data();
    }
  }
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  const float* operator[](int64_t row) const {
    const float* const address = operand_.Row(row);
    return address != nullptr ? address : zeros_;
  }

 private:
  ConstOperand operand_;
  const float* zeros_;
  std::vector<float> wide_zeros_;
};

}  // namespace cavs::cpu
