// ArenaPool: policy `arena`. Tensors stand side by side in one reserved address range, in the order of allocation.
// Growing commits more of the range, so nothing moves; Rewind starts again at the front and keeps the memory.
#pragma once

#include <vector>

#include "memory/address_range.h"
#include "memory/pool.h"

namespace cavs {

class ArenaPool final : public Pool {
 public:
  ArenaPool(std::shared_ptr<Device> device, PoolOptions options);
  ~ArenaPool() override;

 protected:
  void* Take(int64_t bytes) override;
  // Space at the end becomes free again; a hole in the middle waits for the tensors behind it, or for the rewind.
  int64_t Return(void* data) override;
  void ReturnAll() override;
  int64_t held() const override { return range_.committed(); }

 private:
  struct Block {
    int64_t offset;
    int64_t bytes;  // 0: freed
  };

  bool poisons() const { return device().kind() == DeviceKind::kCpu; }

  AddressRange range_;
  std::vector<Block> blocks_;  // by offset
  int64_t next_ = 0;           // offset of the first free byte behind all blocks
};

}  // namespace cavs
