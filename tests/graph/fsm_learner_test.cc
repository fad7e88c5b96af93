#include "graph/fsm_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "graph/task_simulation.h"
#include "tests/graph/random_graphs.h"
#include "tests/support/graph_shapes.h"

namespace cavs {
namespace {

int64_t TaskCount(const GraphBatch& batch, const FsmPolicy& policy) {
  Schedule schedule;
  MakeScheduler(BatchingPolicy::kFsm, std::make_shared<const FsmPolicy>(policy))->Plan(batch, &schedule);
  return schedule.task_count();
}

// The open vertices of a type by definition: those above no other vertex of the type that is not done.
int64_t CountOpen(const GraphBatch& batch, int32_t type, const std::vector<char>& done) {
  // Whether a vertex of the type that is not done lies at or below each vertex; ids are children first.
  std::vector<char> blocked(static_cast<size_t>(batch.vertex_count()), 0);
  int64_t open = 0;
  for (int32_t v = 0; v < batch.vertex_count(); ++v) {
    const auto at = static_cast<size_t>(v);
    for (const int32_t child : batch.children(v)) {
      if (child != kNone && blocked[static_cast<size_t>(child)] != 0) blocked[at] = 1;
    }
    if (batch.type(v) != type || done[at] != 0) continue;
    open += blocked[at] == 0 ? 1 : 0;
    blocked[at] = 1;
  }
  return open;
}

TEST(TaskSimulation, CountsReadyAndOpenVertices) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    CounterRandom random(seed);
    const auto graphs = testing::RandomGraphs(random, 3, {.shuffle_ids = false});
    const GraphBatch batch = testing::PackAll(graphs);
    TaskSimulation game(batch);
    for (int play = 0; play < 2; ++play) {
      game.Restart();
      std::vector<char> done(static_cast<size_t>(batch.vertex_count()), 0);
      int64_t left = batch.vertex_count();
      while (!game.ready_types().empty()) {
        std::vector<std::vector<int32_t>> ready(static_cast<size_t>(batch.type_count()));
        for (int32_t v = 0; v < batch.vertex_count(); ++v) {
          const auto children = batch.children(v);
          const bool is_ready = std::all_of(children.begin(), children.end(), [&](int32_t child) {
            return child == kNone || done[static_cast<size_t>(child)] != 0;
          });
          if (is_ready && done[static_cast<size_t>(v)] == 0) ready[static_cast<size_t>(batch.type(v))].push_back(v);
        }
        const std::set<int32_t> types(game.ready_types().begin(), game.ready_types().end());
        for (int32_t type = 0; type < batch.type_count(); ++type) {
          EXPECT_EQ(types.contains(type), !ready[static_cast<size_t>(type)].empty());
          EXPECT_EQ(game.ready_count(type), std::ssize(ready[static_cast<size_t>(type)]));
          EXPECT_EQ(game.open_count(type), CountOpen(batch, type, done));
          EXPECT_GE(game.open_count(type), game.ready_count(type));
        }
        const int32_t type = *std::next(types.begin(), random.Below(std::ssize(types)));
        for (const int32_t v : ready[static_cast<size_t>(type)]) done[static_cast<size_t>(v)] = 1;
        left -= std::ssize(ready[static_cast<size_t>(type)]);
        game.Run(type);
      }
      EXPECT_EQ(left, 0);
    }
  }
}

// Types a = 0 and b = 1: a chain a, a, a, b, and ten lone b. Whoever runs b first runs it twice.
InputGraph ChainBesideMany() {
  InputGraphBuilder builder(MakeColumns({}));
  int32_t below = builder.AddVertex(0);
  for (const int32_t type : {0, 0, 1}) below = builder.AddVertex(type, {below});
  for (int i = 0; i < 10; ++i) builder.AddVertex(1);
  return builder.Build();
}

TEST(FsmLearner, WaitsWhereFrontierAndAgendaDoNot) {
  const std::vector<InputGraph> graphs = {ChainBesideMany()};
  const std::vector<GraphBatch> sample = {testing::PackAll(graphs)};
  const LearnedFsm learned = LearnFsmPolicy(sample);
  EXPECT_EQ(learned.report.frontier_tasks, 5);
  EXPECT_EQ(learned.report.agenda_tasks, 5) << "b lies at a depth of 3 / 11 on average, a at 1";
  EXPECT_EQ(learned.report.lower_bound, 4);
  EXPECT_EQ(learned.report.tasks, 4);
  EXPECT_EQ(learned.report.minibatches, 1);
  EXPECT_EQ(learned.report.vertices, 14);
  EXPECT_GT(learned.report.plays, 0);
  EXPECT_EQ(TaskCount(sample[0], learned.policy), 4);
  EXPECT_EQ(learned.policy, FsmPolicy(FsmFallback::kFrontier, {}, {{{0, 1}, 0}}));
}

// Types a = 0, b = 1, c = 2. Ten lone a and a chain b, a; c above all of these; above c ten b and a chain a, b. It
// takes a rule for "more a than b" and another for "more b than a" to take the few first both times.
InputGraph FewFirstTwice() {
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<int32_t> row;
  for (int i = 0; i < 10; ++i) row.push_back(builder.AddVertex(0));
  row.push_back(builder.AddVertex(0, {builder.AddVertex(1)}));
  const int32_t c = builder.AddVertex(2, row);
  for (int i = 0; i < 10; ++i) builder.AddVertex(1, {c});
  builder.AddVertex(1, {builder.AddVertex(0, {c})});
  return builder.Build();
}

TEST(FsmLearner, SizesTellStatesApart) {
  const std::vector<InputGraph> graphs = {FewFirstTwice()};
  const std::vector<GraphBatch> sample = {testing::PackAll(graphs)};
  const LearnedFsm learned = LearnFsmPolicy(sample);
  EXPECT_EQ(learned.report.frontier_tasks, 7);
  EXPECT_EQ(learned.report.agenda_tasks, 6);
  EXPECT_EQ(learned.report.lower_bound, 5);
  EXPECT_EQ(learned.report.tasks, 5);
  EXPECT_FALSE(learned.policy.by_size().empty());
  // Any fixed preference is one task worse.
  for (const int32_t first : {0, 1}) {
    EXPECT_EQ(TaskCount(sample[0], FsmPolicy(FsmFallback::kFrontier, {}, {{{0, 1}, first}})), 6);
  }
}

TEST(FsmLearner, HasNothingToLearnWherePlainPoliciesAreOptimal) {
  CounterRandom random(5);
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<InputGraph> trees;
  trees.reserve(40);
  for (int i = 0; i < 40; ++i) trees.push_back(testing::MakeRandomTree(builder, random, 1 + random.Below(30)));
  const std::vector<GraphBatch> two_types = {testing::PackAll(trees)};
  const std::vector<InputGraph> dags = testing::RandomGraphs(random, 10, {.types = 1});
  const std::vector<GraphBatch> one_type = {testing::PackAll(dags)};
  for (const auto& sample : {two_types, one_type}) {
    const LearnedFsm learned = LearnFsmPolicy(sample);
    EXPECT_EQ(learned.report.plays, 0);
    EXPECT_EQ(learned.report.tasks, learned.report.lower_bound);
    EXPECT_EQ(learned.policy, FsmPolicy());
  }
  EXPECT_EQ(LearnFsmPolicy({}).policy, FsmPolicy());
}

std::vector<GraphBatch> RandomSample(uint64_t seed, std::vector<std::vector<InputGraph>>* graphs) {
  CounterRandom random(seed);
  std::vector<GraphBatch> sample;
  const auto types = static_cast<int32_t>(2 + random.Below(5));
  for (int i = 0; i < 3; ++i) {
    graphs->push_back(testing::RandomGraphs(random, 6, {.types = types, .max_arity = 3}));
    sample.push_back(testing::PackAll(graphs->back()));
  }
  return sample;
}

std::vector<GraphBatch> LatticeSample(uint64_t seed, std::vector<std::vector<InputGraph>>* graphs) {
  CounterRandom random(seed);
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<GraphBatch> sample;
  for (int i = 0; i < 4; ++i) {
    graphs->emplace_back();
    for (int g = 0; g < 16; ++g) graphs->back().push_back(testing::MakeLattice(builder, random, 5 + random.Below(20)));
    sample.push_back(testing::PackAll(graphs->back()));
  }
  return sample;
}

TEST(FsmLearner, WhatIsLearnedHoldsForOtherGraphs) {
  std::vector<std::vector<InputGraph>> graphs;
  const std::vector<GraphBatch> sample = LatticeSample(1, &graphs);
  const LearnedFsm learned = LearnFsmPolicy(sample);
  EXPECT_LT(10 * learned.report.tasks, 9 * std::min(learned.report.frontier_tasks, learned.report.agenda_tasks));
  int64_t tasks = 0, frontier = 0, agenda = 0;
  for (const GraphBatch& batch : LatticeSample(2, &graphs)) {
    tasks += TaskCount(batch, learned.policy);
    frontier += TaskCount(batch, FsmPolicy(FsmFallback::kFrontier));
    agenda += TaskCount(batch, FsmPolicy(FsmFallback::kAgenda));
  }
  EXPECT_LT(10 * tasks, 9 * std::min(frontier, agenda));
}

TEST(FsmLearner, IsNeverWorseThanThePlainPoliciesOnItsSample) {
  int64_t better = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::vector<std::vector<InputGraph>> graphs;
    const std::vector<GraphBatch> sample = RandomSample(seed, &graphs);
    const LearnedFsm learned = LearnFsmPolicy(sample, {.seed = seed, .max_plays = 300});
    const FsmReport& report = learned.report;
    int64_t tasks = 0;
    for (const GraphBatch& batch : sample) tasks += TaskCount(batch, learned.policy);
    EXPECT_EQ(report.tasks, tasks);
    EXPECT_LE(report.tasks, std::min(report.frontier_tasks, report.agenda_tasks));
    EXPECT_GE(report.tasks, report.lower_bound);
    better += report.tasks < std::min(report.frontier_tasks, report.agenda_tasks) ? 1 : 0;
  }
  EXPECT_GT(better, 0) << "random graphs leave something to learn";
}

TEST(FsmLearner, EqualSeedsGiveEqualPolicies) {
  std::vector<std::vector<InputGraph>> graphs;
  const std::vector<GraphBatch> sample = LatticeSample(3, &graphs);
  const LearnedFsm learned = LearnFsmPolicy(sample, {.seed = 4, .max_plays = 200});
  EXPECT_EQ(LearnFsmPolicy(sample, {.seed = 4, .max_plays = 200}).policy, learned.policy);
  EXPECT_FALSE(learned.policy.by_set().empty());
}

TEST(FsmLearner, KeepsToItsLimits) {
  std::vector<std::vector<InputGraph>> graphs;
  const std::vector<GraphBatch> sample = RandomSample(3, &graphs);
  EXPECT_EQ(LearnFsmPolicy(sample, {.max_plays = 70}).report.plays, 140) << "two encodings";
  const int64_t work = TaskSimulation::EpisodeWork(sample[0]);
  const FsmReport bounded = LearnFsmPolicy(sample, {.max_work = 250 * work}).report;
  EXPECT_GT(bounded.plays, 0);
  EXPECT_LT(bounded.plays, 500);
  const FsmReport none = LearnFsmPolicy(sample, {.max_work = work}).report;
  EXPECT_EQ(none.plays, 0);
  EXPECT_EQ(none.tasks, std::min(none.frontier_tasks, none.agenda_tasks));
}

}  // namespace
}  // namespace cavs
