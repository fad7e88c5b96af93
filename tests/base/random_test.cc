#include "cavs/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

namespace cavs {
namespace {

TEST(Mix, IsSplitmix64) {
  // The first three numbers of splitmix64 from the state 0, as its authors publish them.
  EXPECT_EQ(Mix(kGoldenGamma * 1), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(Mix(kGoldenGamma * 2), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(Mix(kGoldenGamma * 3), 0x06C45D188009454Fu);
}

TEST(HashCounter, TellsCountersApart) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t a = 0; a < 8; ++a) {
      for (uint64_t b = 0; b < 8; ++b) {
        for (uint64_t c = 0; c < 8; ++c) seen.insert(HashCounter(seed, a, b, c));
      }
    }
  }
  EXPECT_EQ(seen.size(), 8u * 8 * 8 * 8);
}

TEST(CounterRandom, ContinuesFromItsPosition) {
  CounterRandom random(7, 3);
  for (int i = 0; i < 100; ++i) random.Normal();
  CounterRandom resumed(7, 3);
  resumed.set_position(random.position());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Next(), resumed.Next());
}

TEST(CounterRandom, SeedsAndStreamsDiffer) {
  EXPECT_NE(CounterRandom(1).Next(), CounterRandom(2).Next());
  EXPECT_NE(CounterRandom(1, 0).Next(), CounterRandom(1, 1).Next());
}

// Mean and variance of n draws stay within five standard errors.
TEST(CounterRandom, MomentsAreRight) {
  CounterRandom random(11);
  constexpr int kDraws = 200000;
  double uniform = 0, normal = 0, normal_squared = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.Uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u;
    const double x = random.Normal();
    ASSERT_TRUE(std::isfinite(x));
    normal += x;
    normal_squared += x * x;
  }
  const double root = std::sqrt(kDraws);
  EXPECT_NEAR(uniform / kDraws, 0.5, 5 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(normal / kDraws, 0.0, 5 / root);
  EXPECT_NEAR(normal_squared / kDraws, 1.0, 5 * std::sqrt(2.0) / root);
}

TEST(CounterRandom, BelowIsUniformAndInRange) {
  CounterRandom random(5);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) {
    const int64_t value = random.Below(7);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 7);
    ++counts[static_cast<size_t>(value)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * std::sqrt(10000 * 6.0 / 7));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Below(1), 0);
  // Half of this range would come out if the draw were a 32-bit one.
  const int64_t huge = (int64_t{1} << 62) + 1;
  int64_t largest = 0;
  for (int i = 0; i < 100; ++i) largest = std::max(largest, random.Below(huge));
  EXPECT_GT(largest, huge / 2);
  EXPECT_LT(largest, huge);
  EXPECT_THROW(random.Below(0), std::logic_error);
}

TEST(Shuffle, IsAPermutationThatTheSeedDecides) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> sorted = items;
  std::vector<int> again = items;
  CounterRandom first(3), second(3);
  Shuffle(std::span<int>(items), first);
  Shuffle(std::span<int>(again), second);
  EXPECT_EQ(items, again);
  EXPECT_NE(items, sorted);
  std::sort(items.begin(), items.end());
  EXPECT_EQ(items, sorted);
}

TEST(Shuffle, EveryOrderIsEquallyLikely) {
  CounterRandom random(9);
  std::array<int, 6> counts{};
  for (int i = 0; i < 6000; ++i) {
    std::array<int, 3> items = {0, 1, 2};
    Shuffle(std::span<int>(items), random);
    const int order = items[0] * 2 + (items[1] > items[2] ? 1 : 0);
    ++counts[static_cast<size_t>(order)];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000 * 5.0 / 6));
}

TEST(DropoutKeep, DropsTheGivenShareInRowsAndColumns) {
  for (const double rate : {0.0, 0.1, 0.5, 0.9}) {
    const auto threshold = static_cast<uint32_t>(rate * 0x1.0p32);
    constexpr int kRows = 400, kColumns = 250;
    std::vector<int> by_column(kColumns);
    int kept = 0;
    for (uint64_t row = 0; row < kRows; ++row) {
      for (uint32_t column = 0; column < kColumns; ++column) {
        const bool keep = DropoutKeep(HashCounter(1, row), column, threshold);
        kept += keep;
        by_column[column] += keep;
      }
    }
    constexpr double kAll = kRows * kColumns;
    EXPECT_NEAR(kept / kAll, 1 - rate, 5 * std::sqrt(rate * (1 - rate) / kAll)) << "rate " << rate;
    for (const int count : by_column) EXPECT_NEAR(count, kRows * (1 - rate), 6 * std::sqrt(kRows * rate * (1 - rate)));
  }
}

}  // namespace
}  // namespace cavs
