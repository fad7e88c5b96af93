#include "graph/sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <vector>

#include "graph/scheduler.h"
#include "tests/graph/random_graphs.h"

namespace cavs {
namespace {

constexpr int kWord = 0, kLabel = 1;

class SharingTest : public ::testing::Test {
 protected:
  SharingTest() : builder_(columns_) {}

  // ((a b) (a c)) with words given, and every vertex labelled by its number.
  InputGraph Tree(int32_t a, int32_t b, int32_t c) {
    std::vector<int32_t> leaves;
    for (const int32_t word : {a, b, a, c}) {
      leaves.push_back(builder_.AddVertex(0));
      builder_.SetId(kWord, leaves.back(), word);
    }
    const int32_t left = builder_.AddVertex(1, {leaves[0], leaves[1]});
    const int32_t right = builder_.AddVertex(1, {leaves[2], leaves[3]});
    const int32_t root = builder_.AddVertex(1, {left, right});
    for (int32_t v = 0; v <= root; ++v) builder_.SetId(kLabel, v, v);
    return builder_.Build();
  }

  std::vector<int32_t> Merge(SharingPolicy policy, const GraphBatch& batch) {
    Sharer sharer(policy, types_);
    std::vector<int32_t> merged;
    sharer.Merge(batch, &shared_, &merged);
    return merged;
  }

  std::shared_ptr<const ColumnSet> columns_ =
      MakeColumns({{"word", ColumnKind::kIds, 1, 0}, {"label", ColumnKind::kIds, 1, 0}});
  std::vector<TypeInputs> types_ = {{{"word"}, true}, {{}, true}};
  InputGraphBuilder builder_;
  GraphBatch shared_;
};

TEST_F(SharingTest, InputsMergesEqualLeavesOnly) {
  const InputGraph first = Tree(1, 2, 2), second = Tree(1, 2, 3);
  GraphBatch batch;
  batch.Add(first, 7);
  batch.Add(second, 9);
  const std::vector<int32_t> merged = Merge(SharingPolicy::kInputs, batch);
  EXPECT_EQ(shared_.vertex_count(), 3 + 3 + 3);  // words 1, 2, 3 and every node
  EXPECT_EQ(merged[0], merged[2]);
  EXPECT_EQ(merged[1], merged[8]);
  EXPECT_NE(merged[4], merged[5]);
  EXPECT_EQ(shared_.parent_counts()[static_cast<size_t>(merged[0])], 4);
  EXPECT_TRUE(shared_.children_first());
}

TEST_F(SharingTest, SubgraphsMergesWhatIsEqualAllTheWayDown) {
  const InputGraph first = Tree(1, 2, 2), second = Tree(1, 2, 3);
  GraphBatch batch;
  batch.Add(first, 7);
  batch.Add(second, 9);
  batch.Add(first, 11);
  const std::vector<int32_t> merged = Merge(SharingPolicy::kSubgraphs, batch);
  EXPECT_EQ(shared_.vertex_count(), 3 + 2 + 2);  // words; (1 2) and (1 3); two roots
  EXPECT_EQ(merged[4], merged[5]);
  EXPECT_EQ(merged[4], merged[11]);
  EXPECT_EQ(merged[6], merged[20]);
  EXPECT_NE(merged[6], merged[13]);
  // A merged vertex stands for the first of its kind.
  EXPECT_EQ(shared_.example(shared_.graph_of(merged[20])), 7);
  EXPECT_EQ(shared_.local_id(merged[20]), 6);
}

TEST_F(SharingTest, OrderOfSlotsAndMissingChildrenTellVerticesApart) {
  const int32_t a = builder_.AddVertex(0), b = builder_.AddVertex(0);
  builder_.SetId(kWord, a, 1);
  builder_.SetId(kWord, b, 2);
  builder_.AddVertex(1, {a, b});
  builder_.AddVertex(1, {b, a});
  builder_.AddVertex(1, {a, kNone});
  builder_.AddVertex(1, {kNone, a});
  const InputGraph graph = builder_.Build();
  GraphBatch batch;
  batch.Add(graph, 0);
  Merge(SharingPolicy::kSubgraphs, batch);
  EXPECT_EQ(shared_.vertex_count(), 6);
}

TEST_F(SharingTest, TypesWithFloatInputsAreLeftAlone) {
  types_[0].shareable = false;
  const InputGraph tree = Tree(1, 1, 1);
  GraphBatch batch;
  batch.Add(tree, 0);
  const std::vector<int32_t> merged = Merge(SharingPolicy::kSubgraphs, batch);
  EXPECT_EQ(shared_.vertex_count(), 7);
  EXPECT_NE(merged[0], merged[1]);
}

TEST_F(SharingTest, WorksWhereParentsComeBeforeChildren) {
  builder_.AddVertex(1, {1, 2});
  for (int i = 0; i < 2; ++i) builder_.SetId(kWord, builder_.AddVertex(0), 5);
  const InputGraph graph = builder_.Build();
  GraphBatch batch;
  batch.Add(graph, 0);
  batch.Add(graph, 1);
  const std::vector<int32_t> merged = Merge(SharingPolicy::kSubgraphs, batch);
  EXPECT_EQ(shared_.vertex_count(), 2);
  EXPECT_EQ(merged[0], merged[3]);
}

TEST_F(SharingTest, AtMostSoManyVerticesBecomeOne) {
  const int32_t copies = 3 * Sharer::kMostCopies;
  for (int32_t i = 0; i < copies; ++i) builder_.SetId(kWord, builder_.AddVertex(0), 5);
  const InputGraph graph = builder_.Build();
  GraphBatch batch;
  batch.Add(graph, 0);
  const std::vector<int32_t> merged = Merge(SharingPolicy::kInputs, batch);
  EXPECT_EQ(shared_.vertex_count(), 3);
  EXPECT_EQ(std::count(merged.begin(), merged.end(), 0), Sharer::kMostCopies);
  EXPECT_EQ(std::count(merged.begin(), merged.end(), 2), Sharer::kMostCopies);
}

TEST_F(SharingTest, RecurrentTypesMergeInsideOfTheirShardAlone) {
  const InputGraph tree = Tree(1, 2, 2);
  GraphBatch batch;
  for (int64_t i = 0; i < 4; ++i) batch.Add(tree, i);
  batch.Shard(2);
  types_[0].recurrent = false;
  std::vector<int32_t> merged = Merge(SharingPolicy::kSubgraphs, batch);
  EXPECT_EQ(shared_.vertex_count(), 2 + 2 * 2);  // two words; (1 2) and the root, once a shard
  EXPECT_EQ(merged[0], merged[21]) << "leaves do not recur";
  EXPECT_EQ(merged[6], merged[13]);
  EXPECT_NE(merged[6], merged[20]);
  ASSERT_EQ(shared_.shard_count(), 2);
  EXPECT_EQ(shared_.shard_of(merged[13]), 0);
  EXPECT_EQ(shared_.shard_of(merged[20]), 1);

  types_[0].recurrent = true;
  merged = Merge(SharingPolicy::kInputs, batch);
  EXPECT_EQ(shared_.vertex_count(), 2 * 2 + 4 * 3);
  EXPECT_EQ(merged[0], merged[7]);
  EXPECT_NE(merged[0], merged[21]);

  batch.Shard(1);
  Merge(SharingPolicy::kSubgraphs, batch);
  EXPECT_EQ(shared_.vertex_count(), 2 + 2);
}

// On random batches under every policy: what recurs needs nothing that recurs in another shard.
TEST(Sharing, ShardsOfMergedBatchesAreApart) {
  int64_t across = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    CounterRandom random(seed);
    auto graphs = testing::RandomGraphs(random, 2 + random.Below(6), {.max_vertices = 20, .max_arity = 2});
    for (size_t i = 0, n = graphs.size(); i < n; ++i) graphs.push_back(graphs[i]);
    GraphBatch batch = testing::PackAll(graphs), shared;
    batch.Shard(3);
    std::vector<TypeInputs> types(4);
    types[0].recurrent = false;
    Sharer sharer(seed % 2 == 0 ? SharingPolicy::kInputs : SharingPolicy::kSubgraphs, types);
    std::vector<int32_t> merged;
    sharer.Merge(batch, &shared, &merged);
    for (int64_t v = 0; v < batch.vertex_count(); ++v) {
      const int32_t home = shared.shard_of(merged[static_cast<size_t>(v)]);
      if (batch.type(v) == 0) {
        across += home != batch.shard_of(v) ? 1 : 0;
        continue;
      }
      ASSERT_EQ(home, batch.shard_of(v));
      for (const int32_t child : shared.children(merged[static_cast<size_t>(v)])) {
        ASSERT_TRUE(child == kNone || shared.type(child) == 0 || shared.shard_of(child) == home);
      }
    }
    for (const BatchingPolicy policy :
         {BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier, BatchingPolicy::kAgenda}) {
      Schedule schedule;
      MakeScheduler(policy)->Plan(shared, &schedule);
      int64_t rows = 0;
      for (int64_t task = 0; task < schedule.task_count(); ++task) {
        for (int32_t shard = 0; shard < 3; ++shard) {
          const Task part = schedule.Part(task, shard);
          for (int64_t row = part.first_row; row < part.first_row + part.count; ++row) {
            ASSERT_EQ(shared.shard_of(schedule.vertex_of_row(part.type)[static_cast<size_t>(row)]), shard);
            ++rows;
          }
        }
      }
      ASSERT_EQ(rows, shared.vertex_count());
    }
  }
  EXPECT_GT(across, 0) << "nothing was shared between shards";
}

TEST_F(SharingTest, PoliciesHaveNames) {
  for (const SharingPolicy policy : {SharingPolicy::kOff, SharingPolicy::kInputs, SharingPolicy::kSubgraphs}) {
    EXPECT_EQ(ParseSharingPolicy(SharingPolicyName(policy)), policy);
  }
  EXPECT_THROW(ParseSharingPolicy("all"), std::invalid_argument);
}

}  // namespace
}  // namespace cavs
