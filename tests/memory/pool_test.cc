#include "memory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "cavs/base/random.h"
#include "memory/alignment.h"
#include "memory/poison.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

struct Tensor {
  unsigned char* data;
  int64_t bytes;
  unsigned char pattern;
};

// Sizes from one byte to a mebibyte, small ones more often.
int64_t RandomBytes(CounterRandom& random) { return random.Below((int64_t{1} << random.Below(21)) + 1); }

Tensor Allocate(Pool& pool, int64_t bytes, CounterRandom& random) {
  Tensor tensor = {static_cast<unsigned char*>(pool.Allocate(bytes, "t")), bytes,
                   static_cast<unsigned char>(random.Below(256))};
  std::memset(tensor.data, tensor.pattern, static_cast<size_t>(bytes));
  return tensor;
}

bool Intact(const Tensor& tensor) {
  return std::all_of(tensor.data, tensor.data + tensor.bytes, [&](unsigned char c) { return c == tensor.pattern; });
}

class PoolTest : public ::testing::TestWithParam<PoolPolicy> {
 protected:
  static std::unique_ptr<Pool> Make(PoolOptions options = {}) {
    return MakePool(GetParam(), MakeDevice(DeviceKind::kCpu), std::move(options));
  }
};
INSTANTIATE_TEST_SUITE_P(Policies, PoolTest, ::testing::ValuesIn(kPoolPolicies),
                         [](const auto& policy) { return std::string(PoolPolicyName(policy.param)); });

TEST_P(PoolTest, KeepsEveryTensorIntactOverRandomUse) {
  const auto pool = Make();
  CounterRandom random(17, static_cast<uint64_t>(GetParam()));
  int64_t allocations = 0, peak = 0;
  for (int minibatch = 0; minibatch < 20; ++minibatch) {
    std::vector<Tensor> tensors;
    int64_t live = 0;
    for (int step = 0; step < 100; ++step) {
      if (!tensors.empty() && random.Below(4) == 0) {
        std::swap(tensors[static_cast<size_t>(random.Below(std::ssize(tensors)))], tensors.back());
        ASSERT_TRUE(Intact(tensors.back()));
        pool->Free(tensors.back().data);
        live -= std::max<int64_t>(tensors.back().bytes, 1);
        tensors.pop_back();
      } else {
        tensors.push_back(Allocate(*pool, RandomBytes(random), random));
        ASSERT_EQ(reinterpret_cast<uintptr_t>(tensors.back().data) % kAlignment, 0u);
        live += std::max<int64_t>(tensors.back().bytes, 1);
        ++allocations;
      }
      peak = std::max(peak, live);
      ASSERT_EQ(pool->statistics().live, live);
      ASSERT_GE(pool->statistics().reserved, live);
    }
    for (const Tensor& tensor : tensors) ASSERT_TRUE(Intact(tensor));
    pool->Rewind();
    EXPECT_EQ(pool->statistics().live, 0);
  }
  EXPECT_EQ(pool->statistics().peak, peak);
  EXPECT_EQ(pool->statistics().allocations, allocations);
}

// Without frees, what a policy holds beyond the tensors themselves is bounded.
TEST_P(PoolTest, WasteIsBounded) {
  const auto pool = Make();
  CounterRandom random(23);
  constexpr int kTensors = 300;
  for (int i = 0; i < kTensors; ++i) pool->Allocate(RandomBytes(random), "t");
  const MemoryStatistics statistics = pool->statistics();
  EXPECT_EQ(statistics.waste, statistics.reserved - statistics.peak);
  const int64_t alignment = kTensors * (kAlignment + kRedZone);
  switch (GetParam()) {
    case PoolPolicy::kMalloc:
      EXPECT_LE(statistics.waste, alignment);
      break;
    case PoolPolicy::kPool:
      EXPECT_LE(statistics.waste, statistics.peak / 4 + alignment);
      EXPECT_GT(statistics.waste, alignment);
      break;
    case PoolPolicy::kArena:
    case PoolPolicy::kPlanned:
      EXPECT_LE(statistics.waste, statistics.peak / 4 + alignment + (int64_t{1} << 16) + 4096);
      break;
  }
}

// What is announced fits, and an arena then holds a page and the alignment too much at most, however it has grown.
TEST_P(PoolTest, AnnouncedTensorsFit) {
  CounterRandom random(41);
  std::vector<int64_t> bytes(200);
  for (int64_t& tensor : bytes) tensor = RandomBytes(random);
  const auto probe = Make();
  for (const int64_t tensor : bytes) probe->Allocate(tensor, "t");
  const int64_t enough = probe->statistics().reserved;
  const auto pool = Make({.cap_bytes = enough, .name = "p"});
  for (const size_t count : {size_t{50}, size_t{51}, size_t{120}, bytes.size()}) {
    pool->Rewind();
    pool->Expect(std::span(bytes).first(count), "all");
    for (size_t i = 0; i < count; ++i) pool->Allocate(bytes[i], "t");
    const MemoryStatistics& now = pool->statistics();
    EXPECT_LE(now.reserved, enough + 4096);
    if (GetParam() != PoolPolicy::kArena) continue;
    EXPECT_LE(now.reserved - now.live, static_cast<int64_t>(count) * (kAlignment + kRedZone) + 4096);
  }
}

TEST_P(PoolTest, WhatDoesNotFitIsRefusedBeforeAnythingIsTaken) {
  const auto pool = Make({.cap_bytes = 1 << 20, .name = "p"});
  pool->set_context(77);
  const std::vector<int64_t> bytes(9, 128 << 10);
  EXPECT_THAT(
      [&] { pool->Expect(bytes, "all tensors"); },
      ThrowsMessage<OutOfMemory>(StrEq("[pool p] out of memory: asked for 1179648 bytes for all tensors, with 0 "
                                       "bytes in use and a cap of 1048576 bytes, at 77 vertices")));
  EXPECT_EQ(pool->statistics().reserved, 0);
  EXPECT_THROW(pool->Expect(std::vector<int64_t>(3, int64_t{1} << 62), "t"), OutOfMemory);
  EXPECT_NO_THROW(pool->Expect(std::span(bytes).first(6), "t"));
  pool->Allocate(1, "t");
  EXPECT_THROW(pool->Expect({}, "t"), std::logic_error) << "in the middle of a minibatch";
}

TEST_P(PoolTest, AWarmPoolTakesNothingFromTheDevice) {
  const auto pool = Make();
  int64_t reserved = 0;
  std::vector<void*> first, again;
  for (int minibatch = 0; minibatch < 5; ++minibatch) {
    CounterRandom random(31);
    std::vector<void*>& pointers = minibatch == 0 ? first : again;
    pointers.clear();
    for (int i = 0; i < 50; ++i) pointers.push_back(pool->Allocate(RandomBytes(random), "t"));
    if (minibatch == 0) reserved = pool->statistics().reserved;
    EXPECT_EQ(pool->statistics().reserved, reserved);
    pool->Rewind();
    EXPECT_EQ(pool->statistics().reserved, GetParam() == PoolPolicy::kMalloc ? 0 : reserved);
  }
  if (GetParam() == PoolPolicy::kArena) {
    EXPECT_EQ(first, again);
  }
}

TEST_P(PoolTest, NothingMovesWhileItGrows) {
  const auto pool = Make();
  CounterRandom random(37);
  const Tensor first = Allocate(*pool, 1000, random);
  for (int i = 0; i < 30; ++i) pool->Allocate(4 << 20, "large");
  EXPECT_TRUE(Intact(first));
}

TEST_P(PoolTest, TheCapNamesEverything) {
  const auto pool = Make({.cap_bytes = 1 << 20, .name = "activations"});
  pool->set_context(12345);
  pool->Allocate(1000, "h");
  EXPECT_THAT(
      [&] { pool->Allocate(2 << 20, "gates"); },
      ThrowsMessage<OutOfMemory>(StrEq("[pool activations] out of memory: asked for 2097152 bytes for gates, with "
                                       "1000 bytes in use and a cap of 1048576 bytes, at 12345 vertices")));
  // A refusal changes nothing: what is left under the cap can still be had, and again after a rewind.
  EXPECT_EQ(pool->statistics().live, 1000);
  EXPECT_EQ(pool->statistics().allocations, 1);
  EXPECT_NO_THROW(pool->Allocate(900000, "gates"));
  EXPECT_THROW(pool->Allocate(900000, "gates"), OutOfMemory);
  pool->Rewind();
  EXPECT_NO_THROW(pool->Allocate(900000, "gates"));
  EXPECT_LE(pool->statistics().reserved, 1 << 20);
}

TEST_P(PoolTest, FreeBlocksOfOtherSizesDoNotCountAgainstTheCap) {
  const auto pool = Make({.cap_bytes = 1 << 20, .name = "p"});
  for (int64_t bytes = 1 << 10; bytes < 1 << 20; bytes += 50000) {
    pool->Allocate(bytes, "t");
    pool->Rewind();
  }
  EXPECT_LE(pool->statistics().reserved, 1 << 20);
}

TEST_P(PoolTest, ImpossibleSizesAreOutOfMemory) {
  const auto pool = Make();
  EXPECT_THAT([&] { pool->Allocate(int64_t{1} << 55, "t"); },
              ThrowsMessage<OutOfMemory>(AllOf(HasSubstr("36028797018963968 bytes for t"), HasSubstr("no cap"))));
  EXPECT_THROW(pool->Allocate(std::numeric_limits<int64_t>::max(), "t"), OutOfMemory);
  EXPECT_THROW(pool->Allocate(-1, "t"), std::logic_error);
  EXPECT_NE(pool->Allocate(0, "empty"), nullptr);
}

TEST_P(PoolTest, ForeignAndFreedPointersAreCaught) {
  const auto pool = Make();
  int other = 0;
  EXPECT_THROW(pool->Free(&other), std::logic_error);
  void* data = pool->Allocate(10, "t");
  void* behind = pool->Allocate(10, "t");
  pool->Free(data);
  EXPECT_THROW(pool->Free(data), std::logic_error);
  pool->Free(behind);
  pool->Free(nullptr);
  EXPECT_EQ(pool->statistics().live, 0);
}

TEST_P(PoolTest, ANegativeCapIsRefused) {
  EXPECT_THAT([] { Make({.cap_bytes = -1, .name = "p"}); },
              ThrowsMessage<std::invalid_argument>(StrEq("[pool p] expected a cap >= 0 bytes, got -1")));
}

TEST(ArenaPool, FreedTensorsAtTheEndAreReused) {
  const auto pool = MakePool(PoolPolicy::kArena, MakeDevice(DeviceKind::kCpu));
  void* first = pool->Allocate(100, "t");
  void* second = pool->Allocate(100, "t");
  pool->Free(first);
  pool->Free(second);
  EXPECT_EQ(pool->Allocate(50, "t"), first);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_P(PoolTest, AddressSanitizerSeesStaleAndNeighbouringReads) {
  const auto pool = Make();
  auto* data = static_cast<volatile char*>(pool->Allocate(64, "t"));
  pool->Allocate(64, "t");
  EXPECT_DEATH(data[64] = 1, "AddressSanitizer");
  pool->Rewind();
  EXPECT_DEATH(data[0] = 1, "AddressSanitizer");
}
#endif

TEST(PoolPolicy, ParsesWhatItPrints) {
  for (const PoolPolicy policy : kPoolPolicies) {
    EXPECT_EQ(ParsePoolPolicy(PoolPolicyName(policy)), policy);
    EXPECT_EQ(MakePool(policy, MakeDevice(DeviceKind::kCpu))->policy(), policy);
  }
  EXPECT_THAT([] { ParsePoolPolicy("heap"); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("[memory policy] expected malloc, pool, arena or planned, got 'heap'")));
}

}  // namespace
}  // namespace cavs
