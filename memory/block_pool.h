// BlockPool: policies `malloc` and `pool`, which hold a block of the device's memory for each tensor.
// `malloc` gives a block back at once; `pool` rounds sizes to a few classes and keeps free blocks for their class.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "memory/pool.h"

namespace cavs {

class BlockPool final : public Pool {
 public:
  // Policy kMalloc or kPool.
  BlockPool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options);
  ~BlockPool() override;

 protected:
  void* Take(int64_t bytes) override;
  int64_t Return(void* data) override;
  void ReturnAll() override;
  int64_t held() const override { return held_; }
  // The size of the block for a tensor: a multiple of kAlignment, or a size class.
  int64_t Footprint(int64_t bytes) const override;

 private:
  // A block from the device. Gives free blocks back first where the cap or the device requires it.
  void* TakeFromDevice(int64_t block_bytes);
  void Discard(void* data, int64_t bytes);
  void DropFreeBlocks();

  std::unordered_map<void*, int64_t> live_;     // block -> bytes it was taken for
  std::map<int64_t, std::vector<void*>> free_;  // block bytes -> free blocks; only with policy kPool
  int64_t held_ = 0;
};

}  // namespace cavs
