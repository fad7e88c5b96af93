#include "memory/pool.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "cavs/base/error.h"
#include "memory/arena_pool.h"
#include "memory/block_pool.h"

namespace cavs {
namespace {

// No tensor has this much, under any policy; it keeps the arithmetic on sizes clear of overflow.
constexpr int64_t kAbsurdBytes = int64_t{1} << 40;

std::string DescribeOutOfMemory(const OutOfMemory::Details& details) {
  const std::string cap =
      details.cap_bytes > 0 ? fmt::format("a cap of {} bytes", details.cap_bytes) : "no cap (the device has no more)";
  const std::string vertices = details.vertices > 0 ? fmt::format(", at {} vertices", details.vertices) : "";
  return fmt::format("[pool {}] out of memory: asked for {} bytes for {}, with {} bytes in use and {}{}", details.pool,
                     details.bytes_asked, details.tensor, details.bytes_in_use, cap, vertices);
}

}  // namespace

std::string_view PoolPolicyName(PoolPolicy policy) {
  switch (policy) {
    case PoolPolicy::kMalloc:
      return "malloc";
    case PoolPolicy::kPool:
      return "pool";
    case PoolPolicy::kArena:
      return "arena";
    case PoolPolicy::kPlanned:
      return "planned";
  }
  return "";
}

PoolPolicy ParsePoolPolicy(std::string_view text) {
  for (const PoolPolicy policy : kPoolPolicies) {
    if (text == PoolPolicyName(policy)) return policy;
  }
  ThrowInvalid("memory policy", fmt::format("expected malloc, pool, arena or planned, got '{}'", text));
}

OutOfMemory::OutOfMemory(const Details& details)
    : std::runtime_error(DescribeOutOfMemory(details)),
      bytes_asked_(details.bytes_asked),
      bytes_in_use_(details.bytes_in_use),
      cap_bytes_(details.cap_bytes) {}

Pool::Pool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options)
    : policy_(policy), device_(std::move(device)), options_(std::move(options)) {
  if (options_.cap_bytes < 0) {
    ThrowInvalid("pool " + options_.name, fmt::format("expected a cap >= 0 bytes, got {}", options_.cap_bytes));
  }
}

OutOfMemory Pool::Refusal(int64_t bytes, std::string_view name) const {
  return OutOfMemory({.pool = options_.name,
                      .tensor = std::string(name),
                      .bytes_asked = bytes,
                      .bytes_in_use = statistics_.live,
                      .cap_bytes = options_.cap_bytes,
                      .vertices = vertices_});
}

void Pool::Expect(std::span<const int64_t> bytes, std::string_view name) {
  CAVS_CHECK(statistics_.live == 0, "tensors of pool {} are announced with {} bytes in use", options_.name,
             statistics_.live);
  int64_t sum = 0, footprint = 0;
  for (const int64_t tensor : bytes) {
    if (sum > kAbsurdBytes || tensor > kAbsurdBytes) throw Refusal(std::max(sum, tensor), name);
    sum += tensor;
    footprint += Footprint(std::max<int64_t>(tensor, 1));
  }
  if (footprint > limit()) throw Refusal(sum, name);
  try {
    Prepare(footprint);
  } catch (const std::bad_alloc&) {
    throw Refusal(sum, name);
  }
  statistics_.reserved = held();
}

void* Pool::Allocate(int64_t bytes, std::string_view name) {
  CAVS_CHECK(bytes >= 0, "{} bytes for {}", bytes, name);
  try {
    if (bytes > kAbsurdBytes) throw std::bad_alloc();
    void* data = Take(std::max<int64_t>(bytes, 1));
    ++statistics_.allocations;
    statistics_.reserved = held();
    statistics_.SetLive(statistics_.live + std::max<int64_t>(bytes, 1));
    return data;
  } catch (const std::bad_alloc&) {
    throw Refusal(bytes, name);
  }
}

void Pool::Free(void* data) {
  if (data == nullptr) return;
  const int64_t bytes = Return(data);
  statistics_.reserved = held();
  statistics_.SetLive(statistics_.live - bytes);
}

void Pool::Rewind() {
  ReturnAll();
  statistics_.reserved = held();
  statistics_.SetLive(0);
}

int64_t Pool::limit() const {
  return options_.cap_bytes > 0 ? options_.cap_bytes : std::numeric_limits<int64_t>::max();
}

std::unique_ptr<Pool> MakePool(PoolPolicy policy, std::shared_ptr<Device> device, PoolOptions options) {
  CAVS_CHECK(device != nullptr);
  if (policy == PoolPolicy::kArena || policy == PoolPolicy::kPlanned) {
    return std::make_unique<ArenaPool>(policy, std::move(device), std::move(options));
  }
  return std::make_unique<BlockPool>(policy, std::move(device), std::move(options));
}

}  // namespace cavs
