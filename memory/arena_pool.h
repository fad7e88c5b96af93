// ArenaPool: policies `arena` and `planned`. Tensors stand side by side in one reserved address range, in the order of
// allocation. Growing commits more of the range, so nothing moves; Rewind starts again at the front and keeps the
// memory. Under `planned` a run asks for one tensor and lays its own out inside of it.
#pragma once

#include <vector>

#include "memory/address_range.h"
#include "memory/pool.h"

namespace cavs {

class ArenaPool final : public Pool {
 public:
  // Policy kArena or kPlanned.
  ArenaPool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options);
  ~ArenaPool() override;

 protected:
  void* Take(int64_t bytes) override;
  // Space at the end becomes free again; a hole in the middle waits for the tensors behind it, or for the rewind.
  int64_t Return(void* data) override;
  void ReturnAll() override;
  int64_t held() const override { return range_.committed(); }
  int64_t Footprint(int64_t bytes) const override;
  void Prepare(int64_t footprint) override;

 private:
  struct Block {
    int64_t offset;
    int64_t bytes;  // 0: freed
  };

  bool poisons() const { return device().kind() == DeviceKind::kCpu; }
  // Forbids what was committed since `committed` bytes were.
  void PoisonNew(int64_t committed);

  AddressRange range_;
  std::vector<Block> blocks_;  // by offset
  int64_t next_ = 0;           // offset of the first free byte behind all blocks
};

}  // namespace cavs
