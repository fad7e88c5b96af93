#include "memory/offset_plan.h"

#include <algorithm>
#include <limits>

#include "memory/alignment.h"
#include "memory/poison.h"

namespace cavs {
namespace {

// A plan that wastes no more than one part in so many is not worth a second try.
constexpr int64_t kNegligible = 64;

int64_t ExtentOf(const PlannedBlock& block) { return AlignUp(block.bytes, kAlignment) + kRedZone; }

}  // namespace

int64_t OffsetPlanner::Plan(std::span<PlannedBlock> blocks) {
  const int64_t by_size = Place(blocks, Order::kSize);
  if (by_size - LeastBytes(blocks) <= by_size / kNegligible) return by_size;
  const int64_t by_duration = Place(blocks, Order::kDuration);
  return by_duration < by_size ? by_duration : Place(blocks, Order::kSize);
}

int64_t OffsetPlanner::Place(std::span<PlannedBlock> blocks, Order order) {
  order_.clear();
  placed_.clear();
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i].offset = 0;
    if (blocks[i].first <= blocks[i].last) order_.push_back(static_cast<int32_t>(i));
  }
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    const PlannedBlock& left = blocks[static_cast<size_t>(a)];
    const PlannedBlock& right = blocks[static_cast<size_t>(b)];
    const int32_t left_duration = left.last - left.first, right_duration = right.last - right.first;
    if (order == Order::kDuration && left_duration != right_duration) return left_duration > right_duration;
    return left.bytes != right.bytes ? left.bytes > right.bytes : a < b;
  });
  int64_t total = 0;
  for (const int32_t i : order_) {
    PlannedBlock& block = blocks[static_cast<size_t>(i)];
    const int64_t extent = ExtentOf(block);
    block.offset = FindOffset(blocks, block, extent);
    total = std::max(total, block.offset + extent);
    const auto behind = std::upper_bound(
        placed_.begin(), placed_.end(), block.offset,
        [&](int64_t offset, int32_t other) { return offset < blocks[static_cast<size_t>(other)].offset; });
    placed_.insert(behind, i);
  }
  return total;
}

int64_t OffsetPlanner::FindOffset(std::span<const PlannedBlock> blocks, const PlannedBlock& block,
                                  int64_t extent) const {
  int64_t end = 0;  // of the contemporaries so far
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max();
  for (const int32_t i : placed_) {
    const PlannedBlock& other = blocks[static_cast<size_t>(i)];
    if (other.last < block.first || block.last < other.first) continue;
    const int64_t gap = other.offset - end;
    if (gap >= extent && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other.offset + ExtentOf(other));
  }
  return best >= 0 ? best : end;
}

int64_t OffsetPlanner::LeastBytes(std::span<const PlannedBlock> blocks) {
  int64_t positions = 1;  // the last block's end is one behind its last position
  for (const PlannedBlock& block : blocks) positions = std::max(positions, int64_t{block.last} + 2);
  changes_.assign(static_cast<size_t>(positions), 0);
  for (const PlannedBlock& block : blocks) {
    if (block.first > block.last) continue;
    changes_[static_cast<size_t>(block.first)] += block.bytes;
    changes_[static_cast<size_t>(block.last) + 1] -= block.bytes;
  }
  int64_t needed = 0, most = 0;
  for (const int64_t change : changes_) most = std::max(most, needed += change);
  return most;
}

}  // namespace cavs
