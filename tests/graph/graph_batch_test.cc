#include "graph/graph_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
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

}  // namespace
}  // namespace cavs
