#include "graph/fsm_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "tests/graph/random_graphs.h"
#include "tests/graph/random_policy.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int32_t> TaskTypes(const Schedule& schedule) {
  std::vector<int32_t> types;
  for (const Task& task : schedule.tasks()) types.push_back(task.type);
  return types;
}

Schedule Plan(const GraphBatch& batch, BatchingPolicy policy, const FsmPolicy& fsm = FsmPolicy()) {
  Schedule schedule;
  MakeScheduler(policy, std::make_shared<const FsmPolicy>(fsm))->Plan(batch, &schedule);
  return schedule;
}

TEST(FsmPolicy, FindsTheRuleOfAState) {
  const FsmPolicy policy(FsmFallback::kFrontier, {{{2, 0}, 0}, {{0, 2}, 2}, {{0, 2, 1}, 1}},
                         {{{5, 3}, 5}, {{0, 1}, 0}});
  EXPECT_EQ(policy.FindBySize(std::vector<int32_t>{2, 0}), 0);
  EXPECT_EQ(policy.FindBySize(std::vector<int32_t>{0, 2}), 2);
  EXPECT_EQ(policy.FindBySize(std::vector<int32_t>{0, 2, 1}), 1);
  EXPECT_EQ(policy.FindBySize(std::vector<int32_t>{0, 1, 2}), kNone);
  EXPECT_EQ(policy.FindBySize(std::vector<int32_t>{0, 1}), kNone);
  EXPECT_EQ(policy.FindBySet(std::vector<int32_t>{0, 1}), 0);
  EXPECT_EQ(policy.FindBySet(std::vector<int32_t>{3, 5}), 5);
  EXPECT_EQ(policy.FindBySet(std::vector<int32_t>{0, 2}), kNone);
  EXPECT_EQ(FsmPolicy().FindBySet(std::vector<int32_t>{0, 1}), kNone);
}

TEST(FsmPolicy, ComparesByContents) {
  const FsmPolicy policy(FsmFallback::kAgenda, {{{1, 0}, 0}, {{0, 1}, 0}}, {{{0, 1}, 1}});
  EXPECT_EQ(policy, FsmPolicy(FsmFallback::kAgenda, {{{0, 1}, 0}, {{1, 0}, 0}}, {{{1, 0}, 1}}));
  EXPECT_NE(policy, FsmPolicy(FsmFallback::kFrontier, {{{0, 1}, 0}, {{1, 0}, 0}}, {{{1, 0}, 1}}));
  EXPECT_NE(policy, FsmPolicy(FsmFallback::kAgenda, {{{0, 1}, 0}}, {{{1, 0}, 1}}));
  EXPECT_NE(policy, FsmPolicy(FsmFallback::kAgenda, {{{0, 1}, 0}, {{1, 0}, 0}}, {{{1, 0}, 0}}));
}

TEST(FsmPolicy, RefusesWhatIsNoRule) {
  const auto message = [](std::vector<FsmRule> by_size, std::vector<FsmRule> by_set) {
    try {
      const FsmPolicy policy(FsmFallback::kFrontier, std::move(by_size), std::move(by_set));
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({{{3, 1}, 2}}, {}),
            "[fsm policy] expected rules that choose one of two or more different types, got 2 of [3, 1]");
  EXPECT_THAT(message({}, {{{1}, 1}}), HasSubstr("got 1 of [1]"));
  EXPECT_THAT(message({{{}, kNone}}, {}), HasSubstr("got -1 of []"));
  EXPECT_THAT(message({{{1, 2, 1}, 1}}, {}), HasSubstr("different types"));
  EXPECT_THAT(message({{{-1, 2}, 2}}, {}), HasSubstr("different types"));
  EXPECT_EQ(message({}, {{{1, 2}, 1}, {{2, 1}, 1}}), "[fsm policy] expected one rule for a state, got two for [1, 2]");
  EXPECT_EQ(message({{{1, 2}, 1}, {{2, 1}, 1}}, {}), "") << "by size the order tells them apart";
}

TEST(FsmPolicy, PrintsNames) {
  const FsmPolicy policy(FsmFallback::kAgenda, {{{1, 0}, 0}}, {{{0, 2}, 2}});
  const std::vector<std::string> names = {"leaf", "node"};
  EXPECT_EQ(ToString(policy, names),
            "node > leaf: leaf\n{leaf, 2}: 2\notherwise the type of the lowest average depth\n");
  EXPECT_EQ(ToString(FsmPolicy()), "otherwise the type with the most ready vertices\n");
}

// Three vertices of type 0, two of type 1 and one of type 2, all ready.
GraphBatch Lone(std::vector<InputGraph>* graphs) {
  InputGraphBuilder builder(MakeColumns({}));
  for (const int32_t type : {0, 0, 0, 1, 1, 2}) builder.AddVertex(type);
  // A level of one type would leave nothing to choose.
  graphs->push_back(builder.Build());
  return testing::PackAll(*graphs);
}

TEST(FsmScheduler, GoesByTheMostSpecialRule) {
  std::vector<InputGraph> graphs;
  const GraphBatch batch = Lone(&graphs);
  const std::vector<FsmRule> by_size = {{{0, 1, 2}, 2}}, by_set = {{{0, 1, 2}, 1}, {{0, 1}, 1}};
  const auto types = [&](const FsmPolicy& policy) { return TaskTypes(Plan(batch, BatchingPolicy::kFsm, policy)); };
  EXPECT_THAT(types(FsmPolicy(FsmFallback::kFrontier, by_size, by_set)), ElementsAre(2, 1, 0));
  EXPECT_THAT(types(FsmPolicy(FsmFallback::kFrontier, by_size, {})), ElementsAre(2, 0, 1));
  EXPECT_THAT(types(FsmPolicy(FsmFallback::kFrontier, {}, by_set)), ElementsAre(1, 0, 2));
  EXPECT_THAT(types(FsmPolicy()), ElementsAre(0, 1, 2));
}

TEST(FsmScheduler, StatesByNoRuleGoByTheFallback) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    CounterRandom random(seed);
    const auto graphs = testing::RandomGraphs(random, 5);
    const GraphBatch batch = testing::PackAll(graphs);
    // Types that these graphs do not have.
    const std::vector<FsmRule> foreign = {{{7, 8}, 8}};
    for (const auto& [fallback, plain] : {std::pair(FsmFallback::kFrontier, BatchingPolicy::kFrontier),
                                          std::pair(FsmFallback::kAgenda, BatchingPolicy::kAgenda)}) {
      const Schedule schedule = Plan(batch, BatchingPolicy::kFsm, FsmPolicy(fallback, foreign, foreign));
      const Schedule expected = Plan(batch, plain);
      EXPECT_EQ(TaskTypes(schedule), TaskTypes(expected));
      EXPECT_THAT(schedule.row_of_vertex(), ::testing::ElementsAreArray(expected.row_of_vertex()));
    }
  }
}

// The types of the tasks, by definition: look for everything that is ready, look up the state, repeat.
std::vector<int32_t> Simulate(const GraphBatch& batch, const FsmPolicy& policy) {
  std::vector<int32_t> types;
  std::vector<char> done(static_cast<size_t>(batch.vertex_count()));
  for (int64_t left = batch.vertex_count(); left > 0;) {
    std::map<int32_t, std::vector<int32_t>> ready;
    for (int32_t v = 0; v < batch.vertex_count(); ++v) {
      const auto children = batch.children(v);
      const bool is_ready = std::all_of(children.begin(), children.end(), [&](int32_t child) {
        return child == kNone || done[static_cast<size_t>(child)] != 0;
      });
      if (is_ready && done[static_cast<size_t>(v)] == 0) ready[batch.type(v)].push_back(v);
    }
    std::vector<int32_t> set;
    for (const auto& entry : ready) set.push_back(entry.first);
    std::vector<int32_t> by_size = set;
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](int32_t a, int32_t b) { return ready[a].size() > ready[b].size(); });
    int32_t chosen = set.size() == 1 ? set.front() : policy.FindBySize(by_size);
    if (chosen == kNone) chosen = policy.FindBySet(set);
    if (chosen == kNone) chosen = by_size.front();
    for (const int32_t v : ready[chosen]) done[static_cast<size_t>(v)] = 1;
    left -= std::ssize(ready[chosen]);
    types.push_back(chosen);
  }
  return types;
}

TEST(FsmScheduler, FollowsRandomTables) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    CounterRandom random(seed);
    const auto graphs = testing::RandomGraphs(random, 4, {.shuffle_ids = seed % 2 == 0});
    const GraphBatch batch = testing::PackAll(graphs);
    const FsmPolicy drawn = testing::RandomFsmPolicy(random, 4);
    const FsmPolicy policy(FsmFallback::kFrontier, {drawn.by_size().begin(), drawn.by_size().end()},
                           {drawn.by_set().begin(), drawn.by_set().end()});
    EXPECT_EQ(TaskTypes(Plan(batch, BatchingPolicy::kFsm, policy)), Simulate(batch, policy));
  }
}

}  // namespace
}  // namespace cavs
