#include "graph/sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace cavs {
namespace {

constexpr int kWord = 0, kLabel = 1;

class SharingTest : public testing::Test {
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
    const auto merged = sharer.Merge(batch, &shared_);
    return {merged.begin(), merged.end()};
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

TEST_F(SharingTest, PoliciesHaveNames) {
  for (const SharingPolicy policy : {SharingPolicy::kOff, SharingPolicy::kInputs, SharingPolicy::kSubgraphs}) {
    EXPECT_EQ(ParseSharingPolicy(SharingPolicyName(policy)), policy);
  }
  EXPECT_THROW(ParseSharingPolicy("all"), std::invalid_argument);
}

}  // namespace
}  // namespace cavs
