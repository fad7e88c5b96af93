// The Child-Sum Tree-LSTM and its similarity head, against a pair of trees computed in double precision.
#include "cavs/models/child_sum_tree_lstm.h"

#include <gtest/gtest.h>

#include "cavs/session.h"
#include "tests/cavs/model_testing.h"

namespace cavs {
namespace {

constexpr int64_t kEmbed = 3, kHidden = 2, kScores = 5;

struct Node {
  DoubleRow h, c;
};

class ChildSumTreeLstm : public ::testing::Test {
 protected:
  ChildSumTreeLstm() {
    ModelSizes sizes;
    sizes.vocabulary = 4;
    sizes.classes = kScores;
    sizes.embed = kEmbed;
    sizes.hidden = kHidden;
    DeclareChildSumTreeLstm(model_, sizes);
    SetSmallValues(&model_);
  }

  // Tai et al. 2015, eq. 2-8; word kNone: a zero vector.
  Node Cell(int32_t word, const std::vector<Node>& children) const {
    const DoubleRow vector = word == kNone ? DoubleRow(kEmbed, 0.0) : RowOf(model_, "words", word, kEmbed);
    const DoubleRow x = Plus(Product(model_, vector, "node.W", 4 * kHidden), Bias(model_, "node.b"));
    DoubleRow sum(kHidden, 0.0);
    for (const Node& child : children) sum = Plus(sum, child.h);
    const DoubleRow gates = Product(model_, sum, "node.U", 3 * kHidden);
    Node node{DoubleRow(kHidden), DoubleRow(kHidden)};
    for (size_t j = 0; j < kHidden; ++j) {
      const auto gate = [&](size_t block) { return x[block * kHidden + j] + gates[block * kHidden + j]; };
      node.c[j] = SigmoidOf(gate(0)) * std::tanh(gate(2));
      for (const Node& child : children) {
        const double forget = SigmoidOf(x[3 * kHidden + j] + Product(model_, child.h, "node.U_f", kHidden)[j]);
        node.c[j] += forget * child.c[j];
      }
      node.h[j] = SigmoidOf(gate(1)) * std::tanh(node.c[j]);
    }
    return node;
  }

  DoubleRow Logits(const DoubleRow& left, const DoubleRow& right) const {
    DoubleRow both;
    for (size_t j = 0; j < kHidden; ++j) both.push_back(left[j] * right[j]);
    for (size_t j = 0; j < kHidden; ++j) both.push_back(std::abs(left[j] - right[j]));
    DoubleRow similarity = Plus(Product(model_, both, "pair.W", kSimilarityWidth), Bias(model_, "pair.b"));
    for (double& value : similarity) value = SigmoidOf(value);
    return Plus(Product(model_, similarity, "head.W", kScores), Bias(model_, "head.b"));
  }

  // Words 1, 2, 3 under 0, beside a lone 2; a vertex without word above all of the former.
  InputGraph Pair(std::vector<float> target) const {
    const std::shared_ptr<const ColumnSet> columns = model_.columns();
    InputGraphBuilder builder(columns);
    const auto add = [&](int32_t word, std::initializer_list<int32_t> children) {
      const int32_t v = builder.AddVertex(kDependencyType, children);
      builder.SetId(columns->Find(kWordColumn), v, word);
      return v;
    };
    const int32_t a = add(1, {}), b = add(2, {}), c = add(3, {b}), root = add(kNone, {add(0, {a, c, add(1, {})})});
    const int32_t pair = builder.AddVertex(kPairType, {root, add(2, {})});
    if (!target.empty()) builder.SetRow(columns->Find(kTargetColumn), pair, target);
    return builder.Build();
  }

  DoubleRow Expected() const {
    const Node one = Cell(1, {}), two = Cell(2, {});
    return Logits(Cell(kNone, {Cell(0, {one, Cell(3, {two}), one})}).h, two.h);
  }

  Model model_;
};

TEST_F(ChildSumTreeLstm, APairByHand) {
  const std::vector<float> target = {0, 0, 0.25f, 0.75f, 0};
  const InputGraph graph = Pair(target);
  const Example example{&graph, 0};
  Session session(std::as_const(model_));
  session.Forward({&example, 1}, HeadRows::kLabelled);
  const DoubleRow logits = Expected();
  double loss = 0;
  for (size_t j = 0; j < kScores; ++j) {
    EXPECT_NEAR(double{session.executor().output(0)[j]}, logits[j], 1e-6);
    const double t = double{target[j]};
    if (t > 0) loss += t * (std::log(t) - (logits[j] - LogSumExp(logits)));
  }
  EXPECT_NEAR(session.executor().loss(), loss, 1e-6);
}

TEST_F(ChildSumTreeLstm, AnUnscoredPairIsAnsweredButNotLearnt) {
  const InputGraph graph = Pair({});
  const Example example{&graph, 0};
  Session session(model_);
  session.Forward({&example, 1}, HeadRows::kRoots);
  EXPECT_NEAR(double{session.executor().output(0)[1]}, Expected()[1], 1e-6);
  const BatchReport& report = session.Accumulate({&example, 1});
  EXPECT_EQ(report.loss, 0);
  EXPECT_EQ(report.predictions, 0);
}

}  // namespace
}  // namespace cavs
