#include "memory/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "memory/address_range.h"
#include "memory/alignment.h"

namespace cavs {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

TEST(Device, CpuAllocatesAligned) {
  const auto device = MakeDevice(DeviceKind::kCpu);
  EXPECT_EQ(device->kind(), DeviceKind::kCpu);
  EXPECT_THAT(device->name(), ::testing::StartsWith("cpu"));
  for (const int64_t bytes : {1, 63, 64, 65, 100000}) {
    void* data = device->Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kAlignment, 0u);
    std::memset(data, 0x5A, static_cast<size_t>(bytes));
    device->Free(data, bytes);
  }
}

TEST(Device, CpuCopiesAndFills) {
  const auto device = MakeDevice(DeviceKind::kCpu);
  const std::vector<int> source = {1, 2, 3, 4};
  std::vector<int> target(4, 9);
  device->Copy(target.data(), source.data(), 3 * sizeof(int));
  device->Synchronize();
  EXPECT_EQ(target, (std::vector<int>{1, 2, 3, 9}));
  device->FillZero(target.data() + 1, 2 * sizeof(int));
  EXPECT_EQ(target, (std::vector<int>{1, 0, 0, 9}));
  device->Copy(nullptr, nullptr, 0);
}

TEST(Device, CudaIsRefusedInOneSentence) {
  EXPECT_THAT(
      [] { MakeDevice(DeviceKind::kCuda); },
      ThrowsMessage<std::invalid_argument>(StrEq("[device] expected cpu, got cuda: this build has no CUDA back end")));
}

TEST(AddressRange, GrowsInPlaceAndZeroed) {
  AddressRange range(MakeDevice(DeviceKind::kCpu), int64_t{1} << 32);
  EXPECT_EQ(range.committed(), 0);
  const char* base = range.base();
  int64_t before = 0;
  for (int64_t bytes = 1; bytes <= int64_t{64} << 20; bytes *= 8) {
    range.Commit(bytes, kNoLimit);
    ASSERT_GE(range.committed(), bytes);
    for (int64_t i = before; i < range.committed(); i += 4096) ASSERT_EQ(range.base()[i], i < before ? 1 : 0);
    std::memset(range.base() + before, 1, static_cast<size_t>(range.committed() - before));
    before = range.committed();
  }
  EXPECT_EQ(range.base(), base);
  EXPECT_LE(range.committed(), (int64_t{64} << 20) * 5 / 4);
}

TEST(AddressRange, KeepsTheLimit) {
  AddressRange range(MakeDevice(DeviceKind::kCpu), int64_t{1} << 30);
  range.Commit(100000, 100000);
  EXPECT_LT(range.committed(), 100000 + 4096);
  EXPECT_THROW(range.Commit(100001, 100000), std::bad_alloc);
  EXPECT_THROW(range.Commit(range.reserved() + 1, kNoLimit), std::bad_alloc);
  range.Commit(100000, 100000);
}

TEST(AddressRange, ReservesLessWhereTheSystemRefuses) {
  AddressRange range(MakeDevice(DeviceKind::kCpu), int64_t{1} << 55);
  EXPECT_LT(range.reserved(), int64_t{1} << 55);
  EXPECT_GE(range.reserved(), int64_t{1} << 30);
  range.Commit(1, kNoLimit);
  range.base()[0] = 1;
}

}  // namespace
}  // namespace cavs
