#include "graph/graph_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "tests/graph/random_graphs.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

InputGraph Pair() {
  InputGraphBuilder builder(MakeColumns({}));
  builder.AddVertex(2, {1, kNone, 1});
  builder.AddVertex(0);
  return builder.Build();
}

InputGraph Single() {
  InputGraphBuilder builder(MakeColumns({}));
  builder.AddVertex(1);
  return builder.Build();
}

TEST(GraphBatch, PacksIntoBatchIds) {
  const InputGraph single = Single(), pair = Pair();
  const std::array graphs = {&single, &pair, &pair};
  GraphBatch batch;
  batch.Pack(graphs, std::array<int64_t, 3>{70, 50, 60});

  EXPECT_EQ(batch.graph_count(), 3);
  EXPECT_EQ(batch.vertex_count(), 5);
  EXPECT_EQ(batch.edge_count(), 6);
  EXPECT_EQ(batch.type_count(), 3);
  EXPECT_FALSE(batch.children_first());
  EXPECT_THAT(batch.first_vertex(), ElementsAre(0, 1, 3, 5));
  EXPECT_THAT(batch.types(), ElementsAre(1, 2, 0, 2, 0));
  EXPECT_THAT(batch.graph_of(), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(batch.child_begin(), ElementsAre(0, 0, 3, 3, 6, 6));
  EXPECT_THAT(batch.children(), ElementsAre(2, kNone, 2, 4, kNone, 4));
  EXPECT_THAT(batch.children(3), ElementsAre(4, kNone, 4));
  EXPECT_THAT(batch.children(4), IsEmpty());
  EXPECT_THAT(batch.parent_counts(), ElementsAre(0, 0, 2, 0, 2));
  EXPECT_EQ(batch.local_id(4), 1);
  EXPECT_EQ(&batch.graph(2), &pair);
  EXPECT_EQ(batch.example(0), 70);
  EXPECT_EQ(batch.example(2), 60);
}

TEST(GraphBatch, PackForgetsTheBatchBefore) {
  const InputGraph single = Single(), pair = Pair();
  GraphBatch batch;
  batch.Pack(std::array{&pair, &single, &pair}, std::array<int64_t, 3>{1, 2, 3});
  batch.Pack(std::array{&single}, std::array<int64_t, 1>{4});
  EXPECT_EQ(batch.graph_count(), 1);
  EXPECT_EQ(batch.vertex_count(), 1);
  EXPECT_EQ(batch.edge_count(), 0);
  EXPECT_EQ(batch.type_count(), 2);
  EXPECT_TRUE(batch.children_first());
  EXPECT_THAT(batch.first_vertex(), ElementsAre(0, 1));
  EXPECT_THAT(batch.child_begin(), ElementsAre(0, 0));
  EXPECT_THAT(batch.parent_counts(), ElementsAre(0));

  batch.Clear();
  EXPECT_EQ(batch.graph_count(), 0);
  EXPECT_EQ(batch.vertex_count(), 0);
  EXPECT_EQ(batch.type_count(), 0);
  EXPECT_THAT(batch.first_vertex(), ElementsAre(0));
}

TEST(GraphBatch, AddingKeepsBatchIds) {
  CounterRandom random(5);
  const std::vector<InputGraph> graphs = testing::RandomGraphs(random, 20);
  const GraphBatch whole = testing::PackAll(graphs);
  GraphBatch grown;
  for (size_t i = 0; i < graphs.size(); ++i) {
    grown.Add(graphs[i], static_cast<int64_t>(i));
    const auto n = static_cast<size_t>(grown.vertex_count());
    EXPECT_THAT(grown.types(), ::testing::ElementsAreArray(whole.types().first(n)));
    EXPECT_THAT(grown.parent_counts(), ::testing::ElementsAreArray(whole.parent_counts().first(n)));
    EXPECT_THAT(grown.children(),
                ::testing::ElementsAreArray(whole.children().first(static_cast<size_t>(grown.edge_count()))));
  }
}

// A graph of so many vertices without edges.
InputGraph Loose(int64_t vertices) {
  InputGraphBuilder builder(MakeColumns({}));
  for (int64_t v = 0; v < vertices; ++v) builder.AddVertex(0);
  return builder.Build();
}

// Checks what Shard promises; returns the vertices of each shard.
std::vector<int64_t> ShardSizes(const GraphBatch& batch) {
  std::vector<int64_t> sizes(static_cast<size_t>(batch.shard_count()), 0);
  int32_t last = 0;
  for (int64_t v = 0; v < batch.vertex_count(); ++v) {
    const int32_t shard = batch.shard_of(v);
    EXPECT_TRUE(shard == last || (shard == last + 1 && batch.local_id(v) == 0)) << "vertex " << v;
    last = shard;
    ++sizes.at(static_cast<size_t>(shard));
  }
  EXPECT_THAT(sizes, ::testing::Each(::testing::Gt(0)));
  return sizes;
}

TEST(GraphBatch, ShardsAreEvenRunsOfGraphs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    CounterRandom random(seed);
    const auto graphs = testing::RandomGraphs(random, 1 + random.Below(30));
    GraphBatch batch = testing::PackAll(graphs);
    int64_t largest = 0;
    for (const InputGraph& graph : graphs) largest = std::max(largest, graph.vertex_count());
    for (const int32_t shards : {1, 2, 3, 4, 7, 30, 1000}) {
      batch.Shard(shards);
      ASSERT_EQ(batch.shard_count(), std::min<int64_t>(shards, batch.graph_count()));
      const std::vector<int64_t> sizes = ShardSizes(batch);
      const int64_t even = batch.vertex_count() / batch.shard_count();
      EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), even + largest + 1) << shards;
    }
  }
}

TEST(GraphBatch, EqualGraphsMakeEqualShards) {
  const std::vector<InputGraph> graphs(12, Loose(5));
  GraphBatch batch = testing::PackAll(graphs);
  batch.Shard(2);
  EXPECT_THAT(ShardSizes(batch), ElementsAre(30, 30));
  batch.Shard(3);
  EXPECT_THAT(ShardSizes(batch), ElementsAre(20, 20, 20));
  batch.Shard(12);
  EXPECT_THAT(ShardSizes(batch), ::testing::Each(5));
}

// Wherever the giant stands, no shard that holds it holds much else, and none is empty.
TEST(GraphBatch, AGiantGraphIsAShardAlmostOfItsOwn) {
  constexpr size_t kGraphs = 11;
  for (size_t place = 0; place < kGraphs; ++place) {
    SCOPED_TRACE(place);
    std::vector<InputGraph> graphs(kGraphs, Loose(1));
    graphs[place] = Loose(1000);
    GraphBatch batch = testing::PackAll(graphs);
    for (const int32_t shards : {2, 3, 5}) {
      batch.Shard(shards);
      ASSERT_EQ(batch.shard_count(), shards);
      const std::vector<int64_t> sizes = ShardSizes(batch);
      EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 1000 + static_cast<int64_t>(kGraphs) - shards);
    }
    batch.Shard(kGraphs);
    EXPECT_EQ(ShardSizes(batch).at(place), 1000);
  }
}

TEST(GraphBatch, AChangeOfTheBatchEndsItsShards) {
  const InputGraph single = Single();
  GraphBatch batch;
  EXPECT_EQ(batch.shard_count(), 1);
  batch.Shard(3);
  EXPECT_EQ(batch.shard_count(), 1) << "of nothing";
  for (int64_t i = 0; i < 3; ++i) batch.Add(single, i);
  EXPECT_EQ(batch.shard_of(2), 0);
  batch.Shard(3);
  EXPECT_EQ(batch.shard_of(2), 2);
  batch.Add(single, 3);
  EXPECT_EQ(batch.shard_count(), 1);
  EXPECT_EQ(batch.shard_of(3), 0);
  batch.Shard(2);
  EXPECT_THAT(ShardSizes(batch), ElementsAre(2, 2));
  batch.Shard(1);
  EXPECT_EQ(batch.shard_of(3), 0);
  batch.Shard(4);
  batch.Clear();
  EXPECT_EQ(batch.shard_count(), 1);
  EXPECT_THROW(batch.Shard(0), std::logic_error);
}

TEST(GraphBatch, MergedBatchesKeepTheirShards) {
  const InputGraph pair = Pair();
  GraphBatch batch;
  for (int64_t i = 0; i < 2; ++i) batch.Add(pair, i);
  batch.Shard(2);
  // The leaf of the first stands for that of the second too.
  GraphBatch merged;
  merged.Merge(batch, std::array{1, 0, 2}, std::array{1, 0, 2, 0});
  EXPECT_EQ(merged.shard_count(), 2);
  EXPECT_EQ(merged.shard_of(0), 0);
  EXPECT_EQ(merged.shard_of(1), 0);
  EXPECT_EQ(merged.shard_of(2), 1);
  batch.Shard(1);
  merged.Merge(batch, std::array{1, 0, 2}, std::array{1, 0, 2, 0});
  EXPECT_EQ(merged.shard_count(), 1);
}

}  // namespace
}  // namespace cavs
