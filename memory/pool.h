// Pool: the memory of one Session's minibatches, under one of four policies that give equal results.
//
// A minibatch allocates what its actual rows need and ends with Rewind, which takes everything back at once; Free gives
// one tensor back early. Every tensor starts at a multiple of kAlignment, its contents are undefined, and it never
// moves. A pool belongs to one thread at a time; it shares its Device.
// Under AddressSanitizer all policies report reads and writes outside of a tensor, and of one that has been freed or
// rewound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "memory/device.h"
#include "memory/statistics.h"

namespace cavs {

enum class PoolPolicy : uint8_t {
  kMalloc,   // a system allocation for each tensor
  kPool,     // blocks of a few sizes (at most a fifth of a block is rounding), kept and reused
  kArena,    // one reserved address range, filled from the front; memory stays committed over minibatches
  kPlanned,  // an arena with one tensor for each run, in which values that are no longer read make room for others
};
inline constexpr PoolPolicy kPoolPolicies[] = {PoolPolicy::kMalloc, PoolPolicy::kPool, PoolPolicy::kArena,
                                               PoolPolicy::kPlanned};

// "malloc", "pool", "arena" or "planned".
std::string_view PoolPolicyName(PoolPolicy policy);
// Throws std::invalid_argument that names the choices.
PoolPolicy ParsePoolPolicy(std::string_view text);

struct PoolOptions {
  int64_t cap_bytes = 0;             // most bytes to hold from the device (arena: rounded up to a page); 0: no cap
  std::string name = "activations";  // for error texts
};

// Asked for more than the cap or the device allows.
class OutOfMemory : public std::runtime_error {
 public:
  struct Details {
    std::string pool;
    std::string tensor;
    int64_t bytes_asked = 0;
    int64_t bytes_in_use = 0;  // by live tensors
    int64_t cap_bytes = 0;     // 0: no cap, the device itself had no more
    int64_t vertices = 0;      // of the minibatch; 0: unknown
  };
  explicit OutOfMemory(const Details& details);

  int64_t bytes_asked() const { return bytes_asked_; }
  int64_t bytes_in_use() const { return bytes_in_use_; }
  int64_t cap_bytes() const { return cap_bytes_; }

 private:
  int64_t bytes_asked_;
  int64_t bytes_in_use_;
  int64_t cap_bytes_;
};

class Pool {
 public:
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  virtual ~Pool() = default;

  // Announces the tensors of the minibatch that begins, by their bytes; to be called behind Rewind. Throws OutOfMemory,
  // which asks for their sum and calls them `name`, when they do not fit together: so a minibatch is refused before it
  // has done anything. Whether they fit depends on the sizes and the cap alone. An arena commits just what they need.
  void Expect(std::span<const int64_t> bytes, std::string_view name);
  // `bytes` >= 0 for a tensor called `name` (used in error texts only); the pointer is never null. The memory is the
  // pool's: it is valid until Free, Rewind or the pool's end. Throws OutOfMemory and changes nothing at the cap.
  void* Allocate(int64_t bytes, std::string_view name);
  // Gives one tensor back before the minibatch ends. Null is ignored.
  void Free(void* data);
  // Ends a minibatch: gives back all tensors. A warm pool or arena keeps its memory for the next one.
  void Rewind();

  // Books what a minibatch needs at least: the largest sum of the tensors that have to be there at one time.
  void BookNeeded(int64_t bytes) { statistics_.needed = std::max(statistics_.needed, bytes); }

  const MemoryStatistics& statistics() const { return statistics_; }
  PoolPolicy policy() const { return policy_; }
  const PoolOptions& options() const { return options_; }

  // The number of vertices of the minibatch that now allocates, for the text of OutOfMemory.
  void set_context(int64_t vertices) { vertices_ = vertices; }

 protected:
  Pool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options);

  // Memory for `bytes` > 0. Throws std::bad_alloc at the cap or when the device has no more.
  virtual void* Take(int64_t bytes) = 0;
  // Takes back a block and returns the bytes it was taken for. Throws std::logic_error unless the block is live.
  virtual int64_t Return(void* data) = 0;
  virtual void ReturnAll() = 0;
  // Bytes held from the device.
  virtual int64_t held() const = 0;
  // Bytes held for a tensor of `bytes` > 0.
  virtual int64_t Footprint(int64_t bytes) const = 0;
  // Makes room for tensors of this footprint. Throws std::bad_alloc when there is none.
  virtual void Prepare(int64_t /*footprint*/) {}

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  // The cap, or INT64_MAX without one.
  int64_t limit() const;

 private:
  OutOfMemory Refusal(int64_t bytes, std::string_view name) const;

  PoolPolicy policy_;
  std::shared_ptr<Device> device_;
  PoolOptions options_;
  MemoryStatistics statistics_;
  int64_t vertices_ = 0;
};

// Throws std::invalid_argument for a negative cap, std::bad_alloc when no address range can be reserved.
std::unique_ptr<Pool> MakePool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options = {});

}  // namespace cavs
