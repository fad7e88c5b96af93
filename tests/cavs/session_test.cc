// What a Session does at the edges: losses of any form, refused minibatches, missing inputs, non-finite numbers.
#include "cavs/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "cavs/graph_builder.h"

namespace cavs {
namespace {

// Leaves pull a word of width 2 and push it; `head` makes the loss from what they pushed.
class SessionTest : public testing::Test {
 protected:
  void Declare(const std::function<void(const Expression& pushed)>& head) {
    words_ = model_.Lookup("words", 4, 2, Initializer::Values({1, 2, 3, 4, 5, 6, 7, 8}));
    leaf_ = model_.VertexType("leaf", 0);
    leaf_.Define([&](Vertex& v) { v.Push("x", v.Pull(words_, "word")); });
    head(model_.Pushed("x"));
  }

  InputGraph Leaf(int32_t word) {
    GraphBuilder builder(model_);
    builder.Add(leaf_, {{"word", word}});
    return builder.Build();
  }

  Model model_;
  Expression words_;
  VertexType leaf_;
};

TEST_F(SessionTest, ALossMayBeAProductAndNeedNoLabel) {
  Declare([&](const Expression& x) {
    model_.Loss(MatMul(x, model_.Parameter("W", {2, 1}, Initializer::Values({10, 1}))));
  });
  const std::vector<InputGraph> graphs = {Leaf(0), Leaf(2)};
  Session session(model_);
  const std::vector<Example> examples = {{&graphs[0], 0}, {&graphs[1], 1}};
  EXPECT_FLOAT_EQ(static_cast<float>(session.Accumulate(examples).loss), 10 * 1 + 2 + 10 * 5 + 6);
  EXPECT_EQ(session.gradients().dense(model_.parameters().Find("W"))[0], 0.5f * (1 + 5));
  EXPECT_EQ(session.gradients().sparse(model_.parameters().Find("words")).ids, (std::vector<int32_t>{0, 2}));
}

TEST_F(SessionTest, WhatIsPushedButNotReadAddsNoRowsAndTakesNone) {
  Declare([&](const Expression& x) { model_.Loss(Sum(x)); });
  auto other = model_.VertexType("other", 0);
  other.Define([&](Vertex& v) { v.Push("y", v.Pull(words_, "word")); });
  model_.Pushed("y");  // read by nothing
  const std::vector<InputGraph> graphs = {Leaf(1)};
  Session session(model_);
  const std::vector<Example> examples = {{&graphs[0], 0}};
  EXPECT_EQ(session.Accumulate(examples).predictions, 1);
}

TEST_F(SessionTest, AHeadWithoutRowsIsRefused) {
  Declare([&](const Expression& x) { model_.Loss(Sum(x)); });
  auto other = model_.VertexType("other", 0);
  other.Define([&](Vertex& v) { v.Push("y", v.Pull(words_, "word")); });
  model_.Loss(Sum(model_.Pushed("y")));
  EXPECT_THROW(Session{model_}, std::invalid_argument);
}

TEST_F(SessionTest, ARefusedMinibatchLeavesNothingToRead) {
  Declare([&](const Expression& x) { model_.Loss(Sum(x)); });
  const InputGraph good = Leaf(1);
  InputGraphBuilder strange(MakeColumns({{"wrod", ColumnKind::kIds, 1, 0}}));
  strange.AddVertex(0);
  const InputGraph bad = strange.Build();
  Session session(model_);
  const std::vector<Example> one = {{&good, 0}}, two = {{&bad, 1}};
  session.Accumulate(one);
  try {
    session.Accumulate(two);
    FAIL() << "ran a graph without the column that its vertices pull";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "[graph] example 1, vertex 0: expected a column \"word\", which type \"leaf\" pulls, got a graph without it");
  }
  EXPECT_THROW(session.executor().loss_rows(0), std::logic_error);
  EXPECT_THROW(session.executor().tensors(), std::logic_error);
  Optimizer optimizer = session.MakeOptimizer({.kind = OptimizerKind::kSgd, .lr = 1.0});
  const std::vector<float> before = model_.Get("words");
  EXPECT_THROW(session.Train(two, optimizer), std::invalid_argument);
  // Nothing of the refused minibatch, or of the one before it, is in the next step.
  session.Train(one, optimizer);
  EXPECT_EQ(model_.Get("words")[2], before[2] - 1.0f);
}

TEST_F(SessionTest, ANonFiniteNumberIsTracedToItsOperator) {
  Declare([&](const Expression& x) {
    model_.Loss(Sum(Sigmoid(x) + Tanh(Log(x - model_.Parameter("shift", {2}, Initializer::Constant(4))))));
  });
  const std::vector<InputGraph> graphs = {Leaf(3), Leaf(0)};
  Session session(model_);
  const std::vector<Example> examples = {{&graphs[0], 5}, {&graphs[1], 8}};
  EXPECT_TRUE(std::isnan(session.Accumulate(examples).loss));
  const NonFinite place = session.FindNonFinite();
  ASSERT_TRUE(place.found);
  EXPECT_NE(place.operation.find("= log"), std::string::npos) << place.operation;
  EXPECT_EQ(place.example, 8);
  EXPECT_EQ(place.vertex, 0);
}

TEST_F(SessionTest, AFunctionThatThrowsIsNotDefined) {
  Declare([&](const Expression& x) { model_.Loss(Sum(x)); });
  auto node = model_.VertexType("node", 0);
  const auto broken = [&](Vertex& v) {
    v.Push("x", v.Pull(words_, "word"));
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(node.Define(broken), std::runtime_error);
  EXPECT_THROW(Session{model_}, std::invalid_argument);
  node.Define([&](Vertex& v) { v.Push("x", v.Pull(words_, "word")); });
  EXPECT_NO_THROW(Session{model_});
}

TEST_F(SessionTest, ARefusedVertexIsNotInTheGraph) {
  Declare([&](const Expression& x) { model_.Loss(Sum(x)); });
  GraphBuilder builder(model_);
  EXPECT_THROW(builder.Add(leaf_, {{"wrod", 1}}), std::invalid_argument);
  builder.Add(leaf_, {{"word", 1}});
  EXPECT_EQ(builder.Build().vertex_count(), 1);
}

TEST_F(SessionTest, ManySmallAccumulationsAddUp) {
  Declare([&](const Expression& x) { model_.Loss(Sum(x)); });
  const std::vector<InputGraph> graphs = {Leaf(0), Leaf(1), Leaf(2)};
  Session session(model_);
  for (int i = 0; i < 100; ++i) {
    const Example example{&graphs[static_cast<size_t>(i % 3)], i};
    session.Accumulate({&example, 1}, 100);
  }
  const SparseRows& sum = session.gradients().sparse(model_.parameters().Find("words"));
  EXPECT_EQ(sum.ids, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_NEAR(sum.rows[0], 0.34, 1e-6);
  EXPECT_NEAR(sum.rows[2], 0.33, 1e-6);
}

// A model whose operator has no gradient can be served, and is refused for training only.
TEST(Serving, NeedsNoGradient) {
  auto negate = std::make_shared<CustomOperator>();
  negate->name = "negate";
  negate->infer = [](std::span<const Shape> x) { return x[0]; };
  negate->forward = [](int64_t rows, std::span<const ConstOperand> x, std::span<const Shape> shapes, Operand y) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < shapes[0].width(); ++j) y.base[r * y.ld + j] = -x[0].base[r * x[0].ld + j];
    }
  };
  Model model;
  const Expression words = model.Lookup("words", 2, 1, Initializer::Values({3, 4}));
  auto leaf = model.VertexType("leaf", 0);
  leaf.Define([&](Vertex& v) {
    const Expression word = v.Pull(words, "word");
    v.Push("x", Apply(negate, std::span(&word, 1)));
  });
  model.Output("x", model.Pushed("x"));
  model.Loss(Sum(model.Pushed("x")));
  GraphBuilder builder(model);
  builder.Add(leaf, {{"word", 1}});
  const InputGraph graph = builder.Build();
  const Example example{&graph, 0};
  Session session(std::as_const(model));
  session.Forward({&example, 1});
  EXPECT_EQ(session.executor().output(0)[0], -4.0f);
  EXPECT_THROW(Session{model}, std::invalid_argument);
}

}  // namespace
}  // namespace cavs
