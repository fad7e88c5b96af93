#include "graph/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "graph/graph_batch.h"
#include "graph/input_graph.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 3(type 1): 0, -, 2    2(type 1): 1    0, 1: leaves of type 0    4: a lone vertex of type 3
InputGraph Example() {
  InputGraphBuilder builder(MakeColumns({}));
  builder.AddVertex(0);
  builder.AddVertex(0);
  builder.AddVertex(1, {1});
  builder.AddVertex(1, {0, kNone, 2});
  builder.AddVertex(3);
  return builder.Build();
}

class ScheduleTest : public ::testing::Test {
 protected:
  ScheduleTest() { batch_.Add(graph_, 0); }

  // The task of each of the last vertices, and how many tasks there are.
  void Append(const std::vector<int32_t>& task_of, int64_t task_count) {
    schedule_.Append(batch_, task_of, task_count);
  }

  InputGraph graph_ = Example();
  GraphBatch batch_;
  Schedule schedule_;
};

TEST_F(ScheduleTest, NumbersRowsAndEdgesInScheduleOrder) {
  Append({0, 0, 2, 3, 1}, 4);
  EXPECT_EQ(schedule_.vertex_count(), 5);
  EXPECT_EQ(schedule_.task_count(), 4);
  EXPECT_DOUBLE_EQ(schedule_.mean_width(), 1.25);
  EXPECT_EQ(schedule_.type_count(), 4);
  EXPECT_THAT(schedule_.vertex_of_row(0), ElementsAre(0, 1));
  EXPECT_THAT(schedule_.vertex_of_row(1), ElementsAre(2, 3));
  EXPECT_THAT(schedule_.vertex_of_row(2), IsEmpty());
  EXPECT_THAT(schedule_.vertex_of_row(3), ElementsAre(4));
  EXPECT_THAT(schedule_.row_of_vertex(), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(schedule_.edge_begin(0), ElementsAre(0, 0, 0));
  EXPECT_THAT(schedule_.edge_begin(1), ElementsAre(0, 1, 4));
  EXPECT_THAT(schedule_.edge_child(1), ElementsAre(1, 0, kNone, 2));
  EXPECT_THAT(schedule_.edge_parent(1), ElementsAre(0, 1, 1, 1));
  const Task& last = schedule_.tasks().back();
  EXPECT_EQ(last.type, 1);
  EXPECT_EQ(last.first_row, 1);
  EXPECT_EQ(last.count, 1);
  EXPECT_EQ(last.first_edge, 1);
  EXPECT_EQ(last.edge_count, 3);
}

TEST_F(ScheduleTest, AnswersNoRowsForAbsentTypes) {
  Append({0, kNone, kNone, kNone, kNone}, 1);
  for (const int32_t type : {-1, 1, 2, 100}) {
    EXPECT_EQ(schedule_.rows(type), 0);
    EXPECT_EQ(schedule_.edges(type), 0);
    EXPECT_THAT(schedule_.vertex_of_row(type), IsEmpty());
    EXPECT_THAT(schedule_.edge_begin(type), ElementsAre(0));
    EXPECT_THAT(schedule_.edge_child(type), IsEmpty());
    EXPECT_THAT(schedule_.edge_parent(type), IsEmpty());
  }
}

TEST_F(ScheduleTest, SegmentsKeepTheRowsBefore) {
  Append({kNone, 0, 1, kNone, kNone}, 2);
  EXPECT_THAT(schedule_.row_of_vertex(), ElementsAre(kNone, 0, 0, kNone, kNone));
  Append({kNone, kNone}, 0);
  Append({0, kNone, kNone, 1, kNone}, 2);
  EXPECT_THAT(schedule_.row_of_vertex(), ElementsAre(1, 0, 0, 1, kNone));
  EXPECT_EQ(schedule_.vertex_count(), 4);
  ASSERT_EQ(schedule_.segments().size(), 2u) << "an empty segment is not recorded";
  const Segment& second = schedule_.segments()[1];
  EXPECT_EQ(second.first_task, 2);
  EXPECT_EQ(second.task_count, 2);
  EXPECT_EQ(second.vertex_count, 2);
  EXPECT_EQ(&schedule_.tasks(second).front(), &schedule_.tasks()[2]);
  EXPECT_THAT(schedule_.edge_child(1), ElementsAre(1, 0, kNone, 2));
}

TEST_F(ScheduleTest, RefusesWhatIsNoOrder) {
  constexpr int32_t kNo = kNone;
  EXPECT_THROW(Append({0, kNo, kNo}, 1), std::logic_error) << "child not scheduled";
  schedule_.Clear();
  EXPECT_THROW(Append({0, 0, 1, 2, 3}, 3), std::logic_error) << "no such task";
  schedule_.Clear();
  EXPECT_THROW(Append({0, -2, kNo, kNo, kNo}, 1), std::logic_error) << "no such task";
  schedule_.Clear();
  EXPECT_THROW(Append({0, 0, 0, 0, 0, 0}, 1), std::logic_error) << "more than the batch has";
  schedule_.Clear();
  EXPECT_THROW(Append({0, 2, kNo, kNo, kNo}, 3), std::logic_error) << "empty task";
  schedule_.Clear();
  EXPECT_THROW(Append({0, kNo, kNo, kNo, 0}, 1), std::logic_error) << "two types in one task";
  schedule_.Clear();
  Append({0, kNo, kNo, kNo, kNo}, 1);
  EXPECT_THROW(Append({0, 0, kNo, kNo, kNo}, 1), std::logic_error) << "twice";
  schedule_.Clear();
  EXPECT_THROW(Append({0, 0, 1, 1, kNo}, 2), std::logic_error) << "child in the same task";
  schedule_.Clear();
  EXPECT_THROW(Append({0, 0, 2, 1, kNo}, 3), std::logic_error) << "child in a later task";
}

TEST_F(ScheduleTest, PartsOfTasksAreRunsOfRows) {
  const InputGraph lone = [] {
    InputGraphBuilder builder(MakeColumns({}));
    builder.AddVertex(0);
    builder.AddVertex(1, {0});
    return builder.Build();
  }();
  batch_.Add(lone, 1);  // vertices 5 and 6
  batch_.Shard(2);
  Append({0, 0, 1, 2, 3, 0, 1}, 4);
  ASSERT_EQ(schedule_.shard_count(), 2);
  const auto expect_part = [&](int64_t task, int32_t shard, const Task& want) {
    const Task part = schedule_.Part(task, shard);
    EXPECT_EQ(part.type, want.type);
    EXPECT_EQ(part.first_row, want.first_row);
    EXPECT_EQ(part.count, want.count);
    EXPECT_EQ(part.first_edge, want.first_edge);
    EXPECT_EQ(part.edge_count, want.edge_count);
  };
  expect_part(0, 0, {0, 0, 2, 0, 0});
  expect_part(0, 1, {0, 2, 1, 0, 0});
  expect_part(1, 0, {1, 0, 1, 0, 1});
  expect_part(1, 1, {1, 1, 1, 1, 1});
  expect_part(2, 0, {1, 2, 1, 2, 3});
  expect_part(2, 1, {1, 3, 0, 5, 0});  // the second shard is done by then
  schedule_.Clear();
  EXPECT_EQ(schedule_.shard_count(), 1);
  batch_.Shard(1);
  Append({0, 0, kNone, kNone, kNone, 0, kNone}, 1);
  expect_part(0, 0, {0, 0, 3, 0, 0});
}

TEST_F(ScheduleTest, RefusesToMixShards) {
  batch_.Add(graph_, 1);
  batch_.Shard(2);
  Append({0, 0, kNone, kNone, kNone, 0, 0, kNone, kNone, kNone}, 1);
  batch_.Shard(1);
  EXPECT_THROW(Append({kNone, kNone, 0, kNone, kNone, kNone, kNone, 0, kNone, kNone}, 1), std::logic_error);
  schedule_.Clear();
  // Shards of a merged batch are those of vertices that stand for others, which must be in order.
  GraphBatch merged;
  batch_.Shard(2);
  merged.Merge(batch_, std::vector<int32_t>{5, 0}, std::vector<int32_t>(10, 0));
  EXPECT_THROW(schedule_.Append(merged, std::vector<int32_t>{0, 0}, 1), std::logic_error);
}

TEST_F(ScheduleTest, ReportsTheLowerBound) {
  Append({0, 0, 1, 2, 3}, 4);
  const ScheduleReport report = Report(batch_, schedule_);
  EXPECT_EQ(report.vertices, 5);
  EXPECT_EQ(report.edges, 4);
  EXPECT_EQ(report.tasks, 4);
  EXPECT_DOUBLE_EQ(report.mean_width, 1.25);
  EXPECT_EQ(report.levels, 3);
  EXPECT_EQ(report.task_lower_bound, 1 + 2 + 1);
}

TEST(ScheduleReport, OfNothing) {
  const ScheduleReport report = Report(GraphBatch(), Schedule());
  EXPECT_EQ(report.tasks, 0);
  EXPECT_EQ(report.mean_width, 0.0);
  EXPECT_EQ(report.levels, 0);
  EXPECT_EQ(report.task_lower_bound, 0);
}

}  // namespace
}  // namespace cavs
