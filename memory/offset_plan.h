// OffsetPlanner: places blocks whose lifetimes are known in one stretch of memory, so that blocks which are never
// needed at the same time share bytes.
//
// After Pisarchyk and Lee (2020), "Efficient Memory Management for Deep Neural Net Inference": one block after another,
// each into the smallest gap that its contemporaries leave, or behind them. Their order is the largest first; as no
// order is best for all models, the longest-lived first is tried too, and the shorter stretch kept. Equal blocks give
// equal plans. Scratch is reused: a warm planner allocates nothing. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cavs {

struct PlannedBlock {
  int64_t bytes = 0;
  int32_t first = 0, last = -1;  // times >= 0 at which it is needed, both included; never when first > last
  int64_t offset = 0;            // set by Plan
};

class OffsetPlanner {
 public:
  // Sets all offsets, multiples of kAlignment, with kRedZone bytes behind each block; that of a block which is never
  // needed is 0. Returns the bytes of the stretch. Time is quadratic in the number of blocks.
  int64_t Plan(std::span<PlannedBlock> blocks);

  // The largest sum of the bytes needed at one time, which no plan can be below.
  int64_t LeastBytes(std::span<const PlannedBlock> blocks);

 private:
  enum class Order : uint8_t { kSize, kDuration };
  // Sets the offsets, placing blocks in this order; returns the bytes of the stretch.
  int64_t Place(std::span<PlannedBlock> blocks, Order order);
  // Where a block of `extent` bytes fits best among those placed that live at one of its times.
  int64_t FindOffset(std::span<const PlannedBlock> blocks, const PlannedBlock& block, int64_t extent) const;

  std::vector<int32_t> order_;    // blocks as they are placed
  std::vector<int32_t> placed_;   // blocks, by offset
  std::vector<int64_t> changes_;  // by time: bytes that begin to be needed, less those that ended
};

}  // namespace cavs
