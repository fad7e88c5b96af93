#include "graph/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/graph/random_graphs.h"
#include "tests/graph/random_policy.h"
#include "tests/support/graph_shapes.h"

namespace cavs {
namespace {

constexpr BatchingPolicy kPolicies[] = {BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                        BatchingPolicy::kAgenda, BatchingPolicy::kFsm};

std::vector<InputGraph> RandomGraphs(uint64_t seed, int64_t max_graphs = 6,
                                     const testing::RandomGraphOptions& options = {}) {
  CounterRandom random(seed);
  return testing::RandomGraphs(random, 1 + random.Below(max_graphs), options);
}

// The table of kFsm: always the same one, with rules for some of the states of eight types.
std::shared_ptr<const FsmPolicy> Table() {
  CounterRandom random(8);
  return std::make_shared<const FsmPolicy>(testing::RandomFsmPolicy(random, 8));
}

Schedule PlanWith(BatchingPolicy policy, const GraphBatch& batch) {
  Schedule schedule;
  MakeScheduler(policy, Table())->Plan(batch, &schedule);
  return schedule;
}

std::vector<int32_t> TaskVertices(const Schedule& schedule, const Task& task) {
  const auto rows = schedule.vertex_of_row(task.type);
  return {rows.begin() + task.first_row, rows.begin() + task.first_row + task.count};
}

// Checks everything that a schedule promises, from its accessors alone.
void ExpectValid(const GraphBatch& batch, const Schedule& schedule) {
  ASSERT_EQ(schedule.vertex_count(), batch.vertex_count());
  std::vector<int64_t> task_of(static_cast<size_t>(batch.vertex_count()), -1);
  std::map<int32_t, int64_t> next_row, next_edge;
  for (int64_t t = 0; t < schedule.task_count(); ++t) {
    const Task& task = schedule.tasks()[static_cast<size_t>(t)];
    EXPECT_GE(task.count, 1);
    EXPECT_EQ(task.first_row, next_row[task.type]);
    EXPECT_EQ(task.first_edge, next_edge[task.type]);
    next_row[task.type] += task.count;
    next_edge[task.type] += task.edge_count;
    ASSERT_LE(next_row[task.type], schedule.rows(task.type));
    EXPECT_EQ(schedule.edge_begin(task.type)[static_cast<size_t>(task.first_row)], task.first_edge);
    EXPECT_EQ(schedule.edge_begin(task.type)[static_cast<size_t>(next_row[task.type])], next_edge[task.type]);
    const std::vector<int32_t> vertices = TaskVertices(schedule, task);
    EXPECT_TRUE(std::is_sorted(vertices.begin(), vertices.end()))
        << "task " << t << " is not in the order of its graphs";
    for (const int32_t v : vertices) {
      EXPECT_EQ(batch.type(v), task.type);
      EXPECT_EQ(std::exchange(task_of[static_cast<size_t>(v)], t), -1) << "vertex " << v << " twice";
    }
  }
  for (int64_t v = 0; v < batch.vertex_count(); ++v) {
    const int32_t type = batch.type(v);
    const auto row = static_cast<size_t>(schedule.row_of_vertex(v));
    ASSERT_LT(static_cast<int64_t>(row), schedule.rows(type));
    EXPECT_EQ(schedule.vertex_of_row(type)[row], v);
    std::vector<int32_t> edges;
    for (int64_t e = schedule.edge_begin(type)[row]; e < schedule.edge_begin(type)[row + 1]; ++e) {
      edges.push_back(schedule.edge_child(type)[static_cast<size_t>(e)]);
      EXPECT_EQ(schedule.edge_parent(type)[static_cast<size_t>(e)], static_cast<int32_t>(row));
    }
    EXPECT_THAT(edges, ::testing::ElementsAreArray(batch.children(v)));
    for (const int32_t child : batch.children(v)) {
      if (child == kNone) continue;
      EXPECT_LT(task_of[static_cast<size_t>(child)], task_of[static_cast<size_t>(v)]);
    }
  }
  for (int32_t type = 0; type < batch.type_count(); ++type) {
    EXPECT_EQ(schedule.rows(type), next_row[type]);
    EXPECT_EQ(schedule.edges(type), next_edge[type]);
  }
}

// Checks that the parts of every task are its rows and edges, cut at the borders of the batch's shards.
void ExpectParts(const GraphBatch& batch, const Schedule& schedule) {
  ASSERT_EQ(schedule.shard_count(), batch.shard_count());
  for (int64_t t = 0; t < schedule.task_count(); ++t) {
    const Task& task = schedule.tasks()[static_cast<size_t>(t)];
    int64_t next_row = task.first_row, next_edge = task.first_edge;
    for (int32_t shard = 0; shard < schedule.shard_count(); ++shard) {
      const Task part = schedule.Part(t, shard);
      EXPECT_EQ(part.type, task.type);
      EXPECT_EQ(part.first_row, next_row);
      EXPECT_EQ(part.first_edge, next_edge);
      int64_t edges = 0;
      for (const int32_t v : TaskVertices(schedule, part)) {
        EXPECT_EQ(batch.shard_of(v), shard);
        edges += std::ssize(batch.children(v));
      }
      EXPECT_EQ(part.edge_count, edges);
      next_row += part.count;
      next_edge += part.edge_count;
    }
    EXPECT_EQ(next_row, task.first_row + task.count);
    EXPECT_EQ(next_edge, task.first_edge + task.edge_count);
  }
}

// The most vertices on a path down from `v` that are of `type` (any type: kNone), by definition.
int64_t Longest(const GraphBatch& batch, int64_t v, int32_t type,
                std::map<std::pair<int64_t, int32_t>, int64_t>* memo) {
  const auto key = std::make_pair(v, type);
  if (const auto known = memo->find(key); known != memo->end()) return known->second;
  int64_t below = 0;
  for (const int32_t child : batch.children(v)) {
    if (child != kNone) below = std::max(below, Longest(batch, child, type, memo));
  }
  return (*memo)[key] = below + (type == kNone || batch.type(v) == type ? 1 : 0);
}

int64_t Longest(const GraphBatch& batch, int32_t type) {
  std::map<std::pair<int64_t, int32_t>, int64_t> memo;
  int64_t longest = 0;
  for (int64_t v = 0; v < batch.vertex_count(); ++v) longest = std::max(longest, Longest(batch, v, type, &memo));
  return longest;
}

int64_t LowerBound(const GraphBatch& batch) {
  int64_t bound = 0;
  for (int32_t type = 0; type < batch.type_count(); ++type) bound += Longest(batch, type);
  return bound;
}

using TaskSets = std::vector<std::set<int32_t>>;

TaskSets TasksOf(const Schedule& schedule) {
  TaskSets tasks;
  for (const Task& task : schedule.tasks()) {
    const auto vertices = TaskVertices(schedule, task);
    tasks.emplace_back(vertices.begin(), vertices.end());
  }
  return tasks;
}

// Frontier and agenda as they are described: look for everything that is ready, choose a type by the lowest
// `rank(type, ready vertices)`, repeat.
template <typename Rank>
TaskSets SimulateReady(const GraphBatch& batch, Rank rank) {
  TaskSets tasks;
  std::set<int32_t> done;
  while (std::ssize(done) < batch.vertex_count()) {
    std::map<int32_t, std::set<int32_t>> ready;
    for (int32_t v = 0; v < batch.vertex_count(); ++v) {
      const auto children = batch.children(v);
      const bool is_ready = std::all_of(children.begin(), children.end(),
                                        [&](int32_t child) { return child == kNone || done.contains(child); });
      if (is_ready && !done.contains(v)) ready[batch.type(v)].insert(v);
    }
    const auto chosen = std::min_element(ready.begin(), ready.end(), [&](const auto& a, const auto& b) {
      return rank(a.first, a.second) < rank(b.first, b.second);
    });
    done.insert(chosen->second.begin(), chosen->second.end());
    tasks.push_back(chosen->second);
  }
  return tasks;
}

TEST(BatchingPolicy, NamesAreParsed) {
  for (const BatchingPolicy policy : kPolicies) EXPECT_EQ(ParseBatchingPolicy(BatchingPolicyName(policy)), policy);
  EXPECT_EQ(BatchingPolicyName(BatchingPolicy::kFrontier), "frontier");
  try {
    ParseBatchingPolicy("fold");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "[batching] expected one of serial, depth, frontier, agenda, fsm, got 'fold'");
  }
}

class EveryPolicy : public ::testing::TestWithParam<BatchingPolicy> {};

TEST_P(EveryPolicy, PlansRandomBatches) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed, 6, {.shuffle_ids = seed % 3 != 0});
    const GraphBatch batch = testing::PackAll(graphs);
    const Schedule schedule = PlanWith(GetParam(), batch);
    ASSERT_NO_FATAL_FAILURE(ExpectValid(batch, schedule));
    EXPECT_EQ(schedule.segments().size(), 1u);
    const ScheduleReport report = Report(batch, schedule);
    EXPECT_EQ(report.vertices, batch.vertex_count());
    EXPECT_EQ(report.edges, batch.edge_count());
    EXPECT_EQ(report.levels, Longest(batch, kNone));
    EXPECT_EQ(report.task_lower_bound, LowerBound(batch));
    EXPECT_GE(report.tasks, report.task_lower_bound);
    EXPECT_GE(report.tasks, report.levels);
    EXPECT_EQ(report.tasks, schedule.task_count());
  }
}

TEST_P(EveryPolicy, ShardsCutTasksAndLeaveTheOrderOfRows) {
  const auto scheduler = MakeScheduler(GetParam(), Table());
  Schedule schedule;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed, 9, {.shuffle_ids = seed % 3 != 0});
    GraphBatch batch = testing::PackAll(graphs);
    const Schedule whole = PlanWith(GetParam(), batch);
    for (const int32_t shards : {3, 1, 2, 5}) {
      batch.Shard(shards);
      scheduler->Plan(batch, &schedule);
      ASSERT_NO_FATAL_FAILURE(ExpectValid(batch, schedule));
      ASSERT_NO_FATAL_FAILURE(ExpectParts(batch, schedule));
      EXPECT_EQ(schedule.task_count(), whole.task_count());
      EXPECT_THAT(schedule.row_of_vertex(), ::testing::ElementsAreArray(whole.row_of_vertex()));
    }
  }
}

TEST_P(EveryPolicy, ReusedSchedulesCarryNothingOver) {
  const auto scheduler = MakeScheduler(GetParam(), Table());
  Schedule reused;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    // Types, sizes and the order of ids all change from batch to batch.
    const auto graphs = RandomGraphs(seed, 1 + static_cast<int64_t>(seed * 7 % 5),
                                     {.types = 1 + static_cast<int32_t>(seed * 5 % 4), .shuffle_ids = seed % 2 == 0});
    const GraphBatch batch = testing::PackAll(graphs);
    scheduler->Plan(batch, &reused);
    ASSERT_NO_FATAL_FAILURE(ExpectValid(batch, reused));
    const Schedule fresh = PlanWith(GetParam(), batch);
    EXPECT_EQ(TasksOf(reused), TasksOf(fresh));
    EXPECT_THAT(reused.row_of_vertex(), ::testing::ElementsAreArray(fresh.row_of_vertex()));
    EXPECT_EQ(reused.type_count(), fresh.type_count());
  }
}

TEST_P(EveryPolicy, ExtendingKeepsRows) {
  const auto scheduler = MakeScheduler(GetParam(), Table());
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed, 5), more = RandomGraphs(seed + 1000, 5, {.types = 6});
    GraphBatch batch = testing::PackAll(graphs);
    Schedule schedule;
    scheduler->Plan(batch, &schedule);
    const Schedule before = schedule;
    for (const InputGraph& graph : more) batch.Add(graph, batch.graph_count());
    scheduler->Extend(batch, &schedule);
    ASSERT_NO_FATAL_FAILURE(ExpectValid(batch, schedule));
    ASSERT_EQ(schedule.segments().size(), 2u);
    EXPECT_EQ(schedule.segments()[1].first_task, before.task_count());
    const auto is_prefix = [](auto part, auto whole) { return std::ranges::equal(part, whole.first(part.size())); };
    EXPECT_TRUE(is_prefix(before.row_of_vertex(), schedule.row_of_vertex()));
    for (int32_t type = 0; type < before.type_count(); ++type) {
      EXPECT_TRUE(is_prefix(before.vertex_of_row(type), schedule.vertex_of_row(type)));
      EXPECT_TRUE(is_prefix(before.edge_begin(type), schedule.edge_begin(type)));
      EXPECT_TRUE(is_prefix(before.edge_child(type), schedule.edge_child(type)));
    }
    // What comes later is planned as it would be on its own.
    const Schedule alone = PlanWith(GetParam(), testing::PackAll(more));
    EXPECT_EQ(schedule.segments()[1].task_count, alone.task_count());
    scheduler->Extend(batch, &schedule);
    EXPECT_EQ(schedule.segments().size(), 2u) << "nothing new, no segment";
  }
}

// The rows of a task in one shard after another make up the task, and no shard changes them.
TEST_P(EveryPolicy, TasksAreCutIntoPartsOfShards) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed, 9, {.shuffle_ids = seed % 2 == 0});
    GraphBatch batch = testing::PackAll(graphs);
    const Schedule whole = PlanWith(GetParam(), batch);
    batch.Shard(3);
    const Schedule schedule = PlanWith(GetParam(), batch);
    EXPECT_EQ(schedule.shard_count(), std::min<int64_t>(3, batch.graph_count()));
    EXPECT_THAT(schedule.row_of_vertex(), ::testing::ElementsAreArray(whole.row_of_vertex()));
    for (int64_t t = 0; t < schedule.task_count(); ++t) {
      const Task& task = schedule.tasks()[static_cast<size_t>(t)];
      int64_t row = task.first_row, edge = task.first_edge;
      for (int32_t shard = 0; shard < schedule.shard_count(); ++shard) {
        const Task part = schedule.Part(t, shard);
        EXPECT_EQ(part.type, task.type);
        EXPECT_EQ(part.first_row, row);
        EXPECT_EQ(part.first_edge, edge);
        for (const int32_t v : TaskVertices(schedule, part)) EXPECT_EQ(batch.shard_of(v), shard);
        row += part.count;
        edge += part.edge_count;
      }
      EXPECT_EQ(row, task.first_row + task.count);
      EXPECT_EQ(edge, task.first_edge + task.edge_count);
    }
  }
}

TEST_P(EveryPolicy, PlansAnEmptyBatch) {
  const Schedule schedule = PlanWith(GetParam(), GraphBatch());
  EXPECT_EQ(schedule.task_count(), 0);
  EXPECT_EQ(schedule.segments().size(), 0u);
  EXPECT_EQ(schedule.mean_width(), 0.0);
}

// Graphs without edges, or without vertices, at any place in the batch.
TEST_P(EveryPolicy, EdgelessAndEmptyGraphs) {
  InputGraphBuilder builder(MakeColumns({}));
  builder.AddVertex(0, {1});
  builder.AddVertex(0);
  const InputGraph g1 = builder.Build();
  builder.AddVertex(0);
  const InputGraph g2 = builder.Build();
  const std::vector<std::vector<const InputGraph*>> batches = {{&g2}, {&g1, &g2}, {&g2, &g1}, {&g2, &g2}};
  for (const auto& graphs : batches) {
    GraphBatch batch;
    batch.Pack(graphs, std::vector<int64_t>(graphs.size(), 3));
    EXPECT_EQ(batch.graph_count(), std::ssize(graphs));
    const Schedule schedule = PlanWith(GetParam(), batch);
    ASSERT_NO_FATAL_FAILURE(ExpectValid(batch, schedule));
    for (int64_t g = 0; g < batch.graph_count(); ++g) {
      if (&batch.graph(g) != &g2) continue;
      const auto row = static_cast<size_t>(schedule.row_of_vertex(batch.first_vertex(g)));
      EXPECT_EQ(schedule.edge_begin(0)[row + 1] - schedule.edge_begin(0)[row], 0);
      EXPECT_EQ(batch.first_vertex(g + 1) - batch.first_vertex(g), 1);
    }
  }
  // A graph without vertices never gets as far as a batch, at whatever place it would have stood.
  EXPECT_THROW(builder.Build(), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy, ::testing::ValuesIn(kPolicies),
                         [](const auto& param) { return std::string(BatchingPolicyName(param.param)); });

TEST(SerialScheduler, RunsOneVertexAtATimeGraphAfterGraph) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto graphs = RandomGraphs(seed);
    const GraphBatch batch = testing::PackAll(graphs);
    const Schedule schedule = PlanWith(BatchingPolicy::kSerial, batch);
    EXPECT_EQ(schedule.task_count(), batch.vertex_count());
    int32_t graph = 0;
    for (const auto& task : TasksOf(schedule)) {
      EXPECT_GE(batch.graph_of(*task.begin()), graph);
      graph = batch.graph_of(*task.begin());
    }
  }
}

TEST(DepthScheduler, TakesATypeAtADistanceFromTheLeaves) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed);
    const GraphBatch batch = testing::PackAll(graphs);
    std::map<std::pair<int64_t, int32_t>, std::set<int32_t>> expected;
    std::map<std::pair<int64_t, int32_t>, int64_t> memo;
    for (int32_t v = 0; v < batch.vertex_count(); ++v) {
      expected[{Longest(batch, v, kNone, &memo), batch.type(v)}].insert(v);
    }
    TaskSets tasks;
    for (const auto& [key, vertices] : expected) tasks.push_back(vertices);
    EXPECT_EQ(TasksOf(PlanWith(BatchingPolicy::kDepth, batch)), tasks);
  }
}

TEST(FrontierScheduler, TakesAllReadyVerticesOfTheLargestType) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed);
    const GraphBatch batch = testing::PackAll(graphs);
    const auto expected = SimulateReady(batch, [](int32_t, const auto& ready) { return -std::ssize(ready); });
    EXPECT_EQ(TasksOf(PlanWith(BatchingPolicy::kFrontier, batch)), expected);
  }
}

TEST(FrontierScheduler, ReachesTheLowerBoundForOneType) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto graphs = RandomGraphs(seed, 6, {.types = 1});
    const GraphBatch batch = testing::PackAll(graphs);
    const Schedule schedule = PlanWith(BatchingPolicy::kFrontier, batch);
    EXPECT_EQ(schedule.task_count(), Report(batch, schedule).task_lower_bound);
  }
}

TEST(FrontierScheduler, ReachesTheLowerBoundForTreesOfLeavesAndNodes) {
  CounterRandom random(9);
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<InputGraph> trees;
  trees.reserve(20);
  for (int i = 0; i < 20; ++i) trees.push_back(testing::MakeRandomTree(builder, random, 1 + random.Below(30)));
  const GraphBatch batch = testing::PackAll(trees);
  const Schedule schedule = PlanWith(BatchingPolicy::kFrontier, batch);
  EXPECT_EQ(schedule.task_count(), Report(batch, schedule).task_lower_bound);
}

TEST(AgendaScheduler, TakesTheReadyTypeOfTheLowestAverageDepth) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto graphs = RandomGraphs(seed);
    const GraphBatch batch = testing::PackAll(graphs);
    std::map<std::pair<int64_t, int32_t>, int64_t> memo;
    std::map<int32_t, std::pair<double, int64_t>> depth;
    for (int64_t v = 0; v < batch.vertex_count(); ++v) {
      auto& [sum, count] = depth[batch.type(v)];
      sum += static_cast<double>(Longest(batch, v, kNone, &memo) - 1);
      ++count;
    }
    const auto expected = SimulateReady(
        batch, [&](int32_t type, const auto&) { return depth[type].first / static_cast<double>(depth[type].second); });
    EXPECT_EQ(TasksOf(PlanWith(BatchingPolicy::kAgenda, batch)), expected);
  }
}

}  // namespace
}  // namespace cavs
