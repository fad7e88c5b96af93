#include "memory/dynamic_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "cavs/base/random.h"
#include "memory/pool.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(DynamicTensor, RowsNeverMoveAndKeepTheirBits) {
  DynamicTensor tensor(MakeDevice(DeviceKind::kCpu), DType::kI32, 37, "h");
  EXPECT_EQ(tensor.view().rows, 0);
  CounterRandom random(41);
  const void* base = tensor.view().data;
  int64_t rows = 0;
  while (rows < 20000) {
    const int64_t more = rows + 1 + random.Below(rows + 10);
    tensor.Resize(more);
    ASSERT_EQ(tensor.view().data, base);
    ASSERT_EQ(tensor.rows(), more);
    for (int64_t row = 0; row < more; ++row) {
      auto* values = tensor.view().Row<int32_t>(row);
      if (row < rows) {
        ASSERT_EQ(values[0], row);
        ASSERT_EQ(values[36], -row);
      }
      values[0] = static_cast<int32_t>(row);
      values[36] = static_cast<int32_t>(-row);
    }
    rows = more;
  }
}

TEST(DynamicTensor, StatisticsAndRewind) {
  DynamicTensor tensor(MakeDevice(DeviceKind::kCpu), DType::kF32, 100, "h");
  tensor.Resize(1000);
  const MemoryStatistics full = tensor.statistics();
  EXPECT_EQ(full.live, 400000);
  EXPECT_EQ(full.peak, 400000);
  EXPECT_GE(full.reserved, full.live);
  EXPECT_EQ(full.waste, full.reserved - full.peak);
  EXPECT_LE(full.waste, 4096);
  EXPECT_EQ(full.allocations, 1);
  tensor.Rewind();
  EXPECT_EQ(tensor.statistics().live, 0);
  tensor.Resize(1000);
  EXPECT_EQ(tensor.statistics().reserved, full.reserved);
  EXPECT_EQ(tensor.statistics().allocations, 1);
}

TEST(DynamicTensor, GrowingRowByRowCommitsSeldom) {
  DynamicTensor tensor(MakeDevice(DeviceKind::kCpu), DType::kF32, 256, "h");
  for (int64_t rows = 1; rows <= 20000; ++rows) tensor.Resize(rows);
  EXPECT_LE(tensor.statistics().allocations, 40);
  EXPECT_LE(tensor.statistics().waste, tensor.statistics().peak / 4 + (1 << 16) + 4096);
}

// More than 2^31 elements: every offset must be 64-bit. Only the pages of two rows are ever touched.
TEST(DynamicTensor, HoldsMoreElementsThanAnInt) {
  constexpr int64_t kWidth = 1000, kRows = 2500000;
  DynamicTensor tensor(MakeDevice(DeviceKind::kCpu), DType::kF32, kWidth, "h");
  try {
    tensor.Resize(kRows);
  } catch (const OutOfMemory& error) {
    GTEST_SKIP() << "the system commits no 10 GB ahead: " << error.what();
  }
  EXPECT_GT(tensor.view().elements(), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(tensor.statistics().live, kRows * kWidth * 4);
  auto* last = tensor.view().Row<float>(kRows - 1);
  EXPECT_EQ(last - tensor.view().Row<float>(0), (kRows - 1) * kWidth);
  last[kWidth - 1] = 1.5f;
  tensor.view().Row<float>(0)[0] = 2.5f;
  EXPECT_EQ(last[kWidth - 1], 1.5f);
}

TEST(DynamicTensor, RefusesMoreThanItsReservation) {
  DynamicTensor tensor(MakeDevice(DeviceKind::kCpu), DType::kF32, 16, "states", 1 << 20);
  tensor.Resize(100);
  EXPECT_THAT([&] { tensor.Resize(1 << 20); },
              ThrowsMessage<OutOfMemory>(AllOf(HasSubstr("states"), HasSubstr("67108864 bytes for 1048576 rows"),
                                               HasSubstr("6400 bytes in use"), HasSubstr("1048576 bytes"))));
  EXPECT_EQ(tensor.rows(), 100);
  EXPECT_THROW(tensor.Resize(std::numeric_limits<int64_t>::max()), OutOfMemory);
  EXPECT_THROW(tensor.Resize(-1), std::logic_error);
  EXPECT_THROW(DynamicTensor(MakeDevice(DeviceKind::kCpu), DType::kF32, 0, "h"), std::invalid_argument);
}

}  // namespace
}  // namespace cavs
