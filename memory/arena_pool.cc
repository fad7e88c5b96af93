#include "memory/arena_pool.h"

#include <algorithm>
#include <utility>

#include "cavs/base/error.h"
#include "memory/alignment.h"
#include "memory/poison.h"

namespace cavs {
namespace {

// Addresses, not memory: far more than any machine has, and a fraction of what a process can address.
constexpr int64_t kReservation = int64_t{1} << 40;

}  // namespace

ArenaPool::ArenaPool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options)
    : Pool(policy, std::move(device), std::move(options)), range_(shared_device(), kReservation) {}

ArenaPool::~ArenaPool() {
  // The addresses may be handed out again by the system, to somebody who knows nothing of this pool.
  if (poisons()) Unpoison(range_.base(), range_.committed());
}

int64_t ArenaPool::Footprint(int64_t bytes) const { return AlignUp(bytes, kAlignment) + kRedZone; }

void ArenaPool::Prepare(int64_t footprint) {
  const int64_t committed = range_.committed();
  range_.Commit(next_ + footprint, limit());
  PoisonNew(committed);
}

void ArenaPool::PoisonNew(int64_t committed) {
  if (poisons()) Poison(range_.base() + committed, range_.committed() - committed);
}

void* ArenaPool::Take(int64_t bytes) {
  const int64_t end = next_ + Footprint(bytes);
  const int64_t committed = range_.committed();
  range_.Grow(end, limit());
  PoisonNew(committed);
  char* data = range_.base() + next_;
  if (poisons()) Unpoison(data, bytes);
  blocks_.push_back({next_, bytes});
  next_ = end;
  return data;
}

int64_t ArenaPool::Return(void* data) {
  const int64_t offset = static_cast<char*>(data) - range_.base();
  const auto found = std::lower_bound(blocks_.begin(), blocks_.end(), offset,
                                      [](const Block& block, int64_t at) { return block.offset < at; });
  CAVS_CHECK(found != blocks_.end() && found->offset == offset && found->bytes > 0,
             "a pointer that pool {} did not hand out", options().name);
  const int64_t bytes = std::exchange(found->bytes, 0);
  if (poisons()) Poison(data, bytes);
  while (!blocks_.empty() && blocks_.back().bytes == 0) {
    next_ = blocks_.back().offset;
    blocks_.pop_back();
  }
  return bytes;
}

void ArenaPool::ReturnAll() {
  if (poisons()) Poison(range_.base(), std::min(next_, range_.committed()));
  blocks_.clear();
  next_ = 0;
}

}  // namespace cavs
