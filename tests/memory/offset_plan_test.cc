#include "memory/offset_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cavs/base/random.h"
#include "memory/alignment.h"
#include "memory/poison.h"

namespace cavs {
namespace {

int64_t Extent(int64_t bytes) { return AlignUp(bytes, kAlignment) + kRedZone; }

bool MeetInTime(const PlannedBlock& a, const PlannedBlock& b) {
  return a.first <= a.last && b.first <= b.last && a.first <= b.last && b.first <= a.last;
}

bool MeetInMemory(const PlannedBlock& a, const PlannedBlock& b) {
  return a.offset < b.offset + b.bytes + kRedZone && b.offset < a.offset + a.bytes + kRedZone;
}

// Like the buffers of a model: a few sizes, lives of any length, some never needed.
std::vector<PlannedBlock> RandomBlocks(CounterRandom& random) {
  std::vector<PlannedBlock> blocks(static_cast<size_t>(1 + random.Below(60)));
  for (PlannedBlock& block : blocks) {
    block.bytes = random.Below(10) == 0 ? random.Below(100) : (1 + random.Below(8)) * 1024 * (1 + random.Below(3));
    block.first = static_cast<int32_t>(random.Below(40));
    block.last = random.Below(20) == 0 ? -1 : block.first + static_cast<int32_t>(random.Below(20));
  }
  return blocks;
}

TEST(OffsetPlanner, ContemporariesNeverMeet) {
  OffsetPlanner planner;
  CounterRandom random(3);
  double worst = 1, sum = 0;
  constexpr int kPlans = 300;
  for (int repeat = 0; repeat < kPlans; ++repeat) {
    std::vector<PlannedBlock> blocks = RandomBlocks(random);
    const int64_t total = planner.Plan(blocks), least = planner.LeastBytes(blocks);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const PlannedBlock& block = blocks[i];
      ASSERT_EQ(block.offset % kAlignment, 0);
      ASSERT_GE(block.offset, 0);
      if (block.first <= block.last) {
        ASSERT_LE(block.offset + Extent(block.bytes), total);
      }
      for (size_t j = 0; j < i; ++j) {
        ASSERT_FALSE(MeetInTime(block, blocks[j]) && MeetInMemory(block, blocks[j])) << "plan " << repeat;
      }
    }
    ASSERT_GE(total, least);
    const double ratio = least > 0 ? static_cast<double>(total) / static_cast<double>(least) : 1;
    if (least > 100000) worst = std::max(worst, ratio);
    sum += least > 100000 ? ratio : 1;
  }
  std::printf("[ measured ] planned over least: %.3f at worst, %.3f on average\n", worst, sum / kPlans);
  EXPECT_LT(sum / kPlans, 1.05);
}

TEST(OffsetPlanner, BytesAreHandedOn) {
  // A chain: each value is read by the step that makes the next.
  std::vector<PlannedBlock> chain;
  for (int32_t i = 0; i < 10; ++i) chain.push_back({.bytes = 6400, .first = i, .last = i + 1});
  OffsetPlanner planner;
  EXPECT_EQ(planner.Plan(chain), 2 * Extent(6400));
  EXPECT_EQ(planner.LeastBytes(chain), 2 * 6400);
  // One that lives throughout stands beside them.
  chain.push_back({.bytes = 100, .first = 0, .last = 10});
  EXPECT_EQ(planner.Plan(chain), 2 * Extent(6400) + Extent(100));
}

TEST(OffsetPlanner, WhatIsNeverNeededTakesNothing) {
  OffsetPlanner planner;
  std::vector<PlannedBlock> none;
  EXPECT_EQ(planner.Plan(none), 0);
  EXPECT_EQ(planner.LeastBytes(none), 0);
  std::vector<PlannedBlock> blocks = {{.bytes = 1000, .first = 0, .last = -1}, {.bytes = 64, .first = 2, .last = 2}};
  EXPECT_EQ(planner.Plan(blocks), Extent(64));
  EXPECT_EQ(blocks[0].offset, 0);
  EXPECT_EQ(planner.LeastBytes(blocks), 64);
}

TEST(OffsetPlanner, EqualBlocksGiveEqualPlans) {
  CounterRandom random(5);
  const std::vector<PlannedBlock> blocks = RandomBlocks(random);
  const auto offsets = [](OffsetPlanner& planner, std::vector<PlannedBlock> copy) {
    planner.Plan(copy);
    std::vector<int64_t> result;
    for (const PlannedBlock& block : copy) result.push_back(block.offset);
    return result;
  };
  OffsetPlanner used, fresh;
  for (int i = 0; i < 5; ++i) offsets(used, RandomBlocks(random));
  EXPECT_EQ(offsets(used, blocks), offsets(fresh, blocks));
}

}  // namespace
}  // namespace cavs
