// The cells of the ready-made models, pinned by two leaves and one node computed by hand in double precision.
#include "cavs/models/tree_models.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "cavs/graph_builder.h"
#include "cavs/models/ready_models.h"
#include "cavs/session.h"

namespace cavs {
namespace {

constexpr int kWidth = 2;  // of words and states
using Row = std::array<double, kWidth>;

double S(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Small, distinct, reproducible values for element `i` of a parameter.
float ValueAt(std::string_view name, size_t i) {
  return static_cast<float>(0.1 * std::sin(static_cast<double>(i) * 1.3 + static_cast<double>(name.size())) +
                            (name == "words" ? 0.5 : 0.0));
}

class TreeModelsTest : public testing::Test {
 protected:
  void Make(const ReadyModel& kind) {
    ModelSizes options;
    options.vocabulary = 3;
    options.classes = 3;
    options.embed = kWidth;
    options.hidden = kWidth;
    kind.declare(model_, options);
    for (int32_t p = 0; p < model_.parameters().count(); ++p) {
      const std::string name = model_.parameters().declaration(p).name;
      std::vector<float> values(model_.parameters().values(p).size());
      for (size_t i = 0; i < values.size(); ++i) values[i] = ValueAt(name, i);
      model_.Set(name, values);
    }
  }

  // Entry [row][column] of a parameter with `columns` columns.
  double At(std::string_view name, int row, int column, int columns) const {
    return model_.Get(name)[static_cast<size_t>(row) * static_cast<size_t>(columns) + static_cast<size_t>(column)];
  }

  // x W + b in column `column`; b is left out when `bias` is empty.
  template <size_t N>
  double Affine(const std::array<double, N>& x, std::string_view weights, std::string_view bias, int column,
                int columns) const {
    double sum = bias.empty() ? 0.0 : At(bias, 0, column, columns);
    for (size_t i = 0; i < N; ++i) sum += x[i] * At(weights, static_cast<int>(i), column, columns);
    return sum;
  }

  Row Word(int id) const { return {At("words", id, 0, kWidth), At("words", id, 1, kWidth)}; }

  // Runs the tree (1 2) and compares h of all vertices, and the logits of the root.
  void Expect(const Row& left, const Row& right, const Row& root) {
    InputGraphBuilder builder(model_.columns());
    const int word = model_.columns()->Find(kWordColumn);
    const int32_t a = builder.AddVertex(kLeafType), b = builder.AddVertex(kLeafType);
    builder.SetId(word, a, 1);
    builder.SetId(word, b, 2);
    builder.AddVertex(kNodeType, {a, b});
    const InputGraph graph = builder.Build();
    const Example example{&graph, 0};
    Session session(std::as_const(model_));
    session.Forward({&example, 1});
    const std::array<Row, 3> expected = {left, right, root};
    for (int32_t v = 0; v < 3; ++v) {
      for (size_t j = 0; j < kWidth; ++j) {
        EXPECT_NEAR(session.executor().state(0, v)[j], expected[static_cast<size_t>(v)][j], 1e-6) << "vertex " << v;
      }
    }
    for (int c = 0; c < 3; ++c) {
      EXPECT_NEAR(session.executor().output(0)[static_cast<size_t>(c)], Affine(root, "head.W", "head.b", c, 3), 1e-6);
    }
  }

  Model model_;
};

TEST_F(TreeModelsTest, TreeLstm) {
  Make(FindReadyModel("tree_lstm"));
  constexpr int kLeaf = 3 * kWidth, kNode = 5 * kWidth;
  std::array<Row, 2> h{}, c{};
  for (int leaf = 0; leaf < 2; ++leaf) {
    for (int j = 0; j < kWidth; ++j) {
      const auto gate = [&](int block) {
        return Affine(Word(leaf + 1), "leaf.W", "leaf.b", block * kWidth + j, kLeaf);
      };
      double& cell = c[static_cast<size_t>(leaf)][static_cast<size_t>(j)];
      cell = S(gate(0)) * std::tanh(gate(2));
      h[static_cast<size_t>(leaf)][static_cast<size_t>(j)] = S(gate(1)) * std::tanh(cell);
    }
  }
  const std::array<double, 4> children = {h[0][0], h[0][1], h[1][0], h[1][1]};
  Row root{};
  for (int j = 0; j < kWidth; ++j) {
    const auto gate = [&](int block) { return Affine(children, "node.U", "node.b", block * kWidth + j, kNode); };
    const auto column = static_cast<size_t>(j);
    const double cell = S(gate(0)) * std::tanh(gate(2)) + S(gate(3)) * c[0][column] + S(gate(4)) * c[1][column];
    root[column] = S(gate(1)) * std::tanh(cell);
  }
  Expect(h[0], h[1], root);
}

TEST_F(TreeModelsTest, ForgetBiasesBeginAtOne) {
  ModelSizes options;
  options.vocabulary = 3;
  options.hidden = 4;
  DeclareTreeLstm(model_, options);
  const auto bias = model_.Get("node.b");
  ASSERT_EQ(bias.size(), 20u);
  for (size_t i = 0; i < bias.size(); ++i) EXPECT_EQ(bias[i], i < 12 ? 0.0f : 1.0f) << i;
}

TEST_F(TreeModelsTest, TreeRnn) {
  Make(FindReadyModel("tree_rnn"));
  std::array<Row, 2> h{};
  for (int j = 0; j < kWidth; ++j) {
    for (int leaf = 0; leaf < 2; ++leaf) {
      h[static_cast<size_t>(leaf)][static_cast<size_t>(j)] =
          std::tanh(Affine(Word(leaf + 1), "leaf.W", "leaf.b", j, kWidth));
    }
  }
  const std::array<double, 4> children = {h[0][0], h[0][1], h[1][0], h[1][1]};
  Expect(h[0], h[1],
         {std::tanh(Affine(children, "node.U", "node.b", 0, kWidth)),
          std::tanh(Affine(children, "node.U", "node.b", 1, kWidth))});
}

TEST_F(TreeModelsTest, TreeFc) {
  Make(FindReadyModel("tree_fc"));
  std::array<Row, 2> h{};
  for (int j = 0; j < kWidth; ++j) {
    for (int leaf = 0; leaf < 2; ++leaf) {
      h[static_cast<size_t>(leaf)][static_cast<size_t>(j)] = Affine(Word(leaf + 1), "leaf.W", "", j, kWidth);
    }
  }
  const std::array<double, 4> children = {h[0][0], h[0][1], h[1][0], h[1][1]};
  Expect(h[0], h[1],
         {std::fmax(0, Affine(children, "node.U", "node.b", 0, kWidth)),
          std::fmax(0, Affine(children, "node.U", "node.b", 1, kWidth))});
}

TEST_F(TreeModelsTest, UnknownNamesListTheKnown) {
  try {
    FindReadyModel("tree_gru");
    FAIL() << "found a model that does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "[model] expected one of tree_lstm, tree_rnn, tree_fc, lstm_lm, child_sum_tree_lstm, got \"tree_gru\"");
  }
}

}  // namespace
}  // namespace cavs
