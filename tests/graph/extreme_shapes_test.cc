// Very deep and very wide graphs: everything about them is linear in time and takes no call stack.

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "graph/draw.h"
#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "graph/scheduler.h"

namespace cavs {
namespace {

constexpr int32_t kLevels = 200000;
constexpr int32_t kStarChildren = 100000;
constexpr size_t kStackBytes = 1 << 20;  // far below the usual 8 MiB
// Generous for a slow machine under a sanitizer; anything quadratic would take minutes.
constexpr std::chrono::seconds kTimeLimit(10);

void RunOnSmallStack(const std::function<void()>& action) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto entry = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, const_cast<std::function<void()>*>(&action)), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTimeLimit);
  pthread_attr_destroy(&attributes);
}

// A left-branching binary tree. Ids ascend from the leaves (children first) or from the root.
InputGraph DeepTree(bool children_first) {
  InputGraphBuilder builder(MakeColumns({}));
  if (children_first) {
    int32_t below = builder.AddVertex(0);
    for (int32_t level = 1; level < kLevels; ++level) {
      const int32_t leaf = builder.AddVertex(0);
      below = builder.AddVertex(1, {below, leaf});
    }
  } else {
    for (int32_t level = 1; level < kLevels; ++level) {
      builder.AddVertex(1, {2 * level, 2 * level - 1});
      builder.AddVertex(0);
    }
    builder.AddVertex(0);
  }
  return builder.Build();
}

InputGraph Star(bool children_first) {
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<int32_t> children(kStarChildren);
  std::iota(children.begin(), children.end(), children_first ? 0 : 1);
  if (!children_first) builder.AddVertex(1, children);
  for (int32_t i = 0; i < kStarChildren; ++i) builder.AddVertex(0);
  if (children_first) builder.AddVertex(1, children);
  return builder.Build();
}

// Many parents of one child: the star upside down.
InputGraph Fan() {
  InputGraphBuilder builder(MakeColumns({}));
  builder.AddVertex(0);
  for (int32_t i = 0; i < kStarChildren; ++i) builder.AddVertex(1, {0, kNone, 0});
  return builder.Build();
}

class ExtremeShapes : public ::testing::TestWithParam<BatchingPolicy> {
 protected:
  ScheduleReport Plan(const std::vector<const InputGraph*>& graphs) {
    GraphBatch batch;
    batch.Pack(graphs, std::vector<int64_t>(graphs.size()));
    Schedule schedule;
    MakeScheduler(GetParam())->Plan(batch, &schedule);
    EXPECT_EQ(schedule.vertex_count(), batch.vertex_count());
    return Report(batch, schedule);
  }
  bool serial() const { return GetParam() == BatchingPolicy::kSerial; }
};

TEST_P(ExtremeShapes, DeepTree) {
  RunOnSmallStack([&] {
    for (const bool children_first : {true, false}) {
      const InputGraph graph = DeepTree(children_first);
      EXPECT_EQ(graph.children_first(), children_first);
      EXPECT_EQ(graph.roots().size(), 1u);
      const ScheduleReport report = Plan({&graph});
      EXPECT_EQ(report.levels, kLevels);
      EXPECT_EQ(report.task_lower_bound, kLevels);
      EXPECT_EQ(report.tasks, serial() ? 2 * kLevels - 1 : kLevels);
      EXPECT_FALSE(Draw(graph).empty());
    }
  });
}

TEST_P(ExtremeShapes, Star) {
  RunOnSmallStack([&] {
    for (const bool children_first : {true, false}) {
      const InputGraph graph = Star(children_first);
      const ScheduleReport report = Plan({&graph});
      EXPECT_EQ(report.levels, 2);
      EXPECT_EQ(report.tasks, serial() ? kStarChildren + 1 : 2);
    }
    const InputGraph fan = Fan();
    EXPECT_EQ(fan.roots().size(), static_cast<size_t>(kStarChildren));
    EXPECT_EQ(Plan({&fan}).levels, 2);
  });
}

TEST_P(ExtremeShapes, DeepTreeAndStarInOneBatch) {
  RunOnSmallStack([&] {
    const InputGraph deep = DeepTree(false), star = Star(false);
    const ScheduleReport report = Plan({&deep, &star});
    EXPECT_EQ(report.levels, kLevels);
    EXPECT_EQ(report.vertices, deep.vertex_count() + star.vertex_count());
    EXPECT_EQ(report.tasks, serial() ? report.vertices : kLevels);
  });
}

INSTANTIATE_TEST_SUITE_P(All, ExtremeShapes,
                         ::testing::Values(BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                           BatchingPolicy::kAgenda, BatchingPolicy::kFsm),
                         [](const auto& param) { return std::string(BatchingPolicyName(param.param)); });

}  // namespace
}  // namespace cavs
