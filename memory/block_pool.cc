#include "memory/block_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "cavs/base/error.h"
#include "memory/alignment.h"
#include "memory/poison.h"

namespace cavs {

BlockPool::BlockPool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options)
    : Pool(policy, std::move(device), std::move(options)) {}

BlockPool::~BlockPool() {
  ReturnAll();
  DropFreeBlocks();
}

int64_t BlockPool::Footprint(int64_t bytes) const {
  if (policy() == PoolPolicy::kMalloc) return AlignUp(bytes, kAlignment);
  // Four classes between a power of two and the next: 4/4, 5/4, 6/4, 7/4 of it.
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)));
  return AlignUp(bytes, std::max(power / 4, kAlignment));
}

void* BlockPool::Take(int64_t bytes) {
  const int64_t block_bytes = Footprint(bytes);
  const auto found = free_.find(block_bytes);
  void* data = nullptr;
  if (found != free_.end() && !found->second.empty()) {
    data = found->second.back();
    found->second.pop_back();
  } else {
    data = TakeFromDevice(block_bytes);
  }
  live_.emplace(data, bytes);
  if (device().kind() == DeviceKind::kCpu) {
    Unpoison(data, bytes);
    Poison(static_cast<char*>(data) + bytes, block_bytes - bytes);
  }
  return data;
}

void* BlockPool::TakeFromDevice(int64_t block_bytes) {
  if (block_bytes > limit() - held_) DropFreeBlocks();
  if (block_bytes > limit() - held_) throw std::bad_alloc();
  void* data = nullptr;
  try {
    data = device().Allocate(block_bytes);
  } catch (const std::bad_alloc&) {
    if (free_.empty()) throw;
    DropFreeBlocks();
    data = device().Allocate(block_bytes);
  }
  held_ += block_bytes;
  return data;
}

int64_t BlockPool::Return(void* data) {
  const auto found = live_.find(data);
  CAVS_CHECK(found != live_.end(), "a pointer that pool {} did not hand out", options().name);
  const int64_t bytes = found->second;
  live_.erase(found);
  Discard(data, bytes);
  return bytes;
}

void BlockPool::ReturnAll() {
  for (const auto& [data, bytes] : live_) Discard(data, bytes);
  live_.clear();
}

void BlockPool::Discard(void* data, int64_t bytes) {
  const int64_t block_bytes = Footprint(bytes);
  if (policy() == PoolPolicy::kPool) {
    if (device().kind() == DeviceKind::kCpu) Poison(data, block_bytes);
    free_[block_bytes].push_back(data);
    return;
  }
  if (device().kind() == DeviceKind::kCpu) Unpoison(data, block_bytes);
  device().Free(data, block_bytes);
  held_ -= block_bytes;
}

void BlockPool::DropFreeBlocks() {
  for (const auto& [block_bytes, blocks] : free_) {
    for (void* data : blocks) {
      if (device().kind() == DeviceKind::kCpu) Unpoison(data, block_bytes);
      device().Free(data, block_bytes);
      held_ -= block_bytes;
    }
  }
  free_.clear();
}

}  // namespace cavs
