// Graphs that systems of this kind have been seen to get wrong: graphs without edges anywhere in a batch, very deep and
// very wide ones, and vertices of one task that read different constants.
#include <array>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backprop/differentiate.h"
#include "tests/vertex/random_graphs.h"
#include "tests/vertex/snapshot.h"
#include "vertex/builder.h"

namespace cavs {
namespace {

constexpr int32_t kLeaf = 0, kNode = 1, kBag = 2;

// Leaves, nodes of two children and bags of any number, one state of width 4, a score for every root.
Program TreeModel() {
  ProgramBuilder b;
  const Expression words = b.Lookup("words", 10, 4, Initializer::Uniform(0.7f));
  const Expression u = b.Parameter("U", Shape::Matrix(8, 4));
  const Expression bias = b.Parameter("b", Shape::Vector(4), Initializer::Uniform(0.3f));
  const State h = b.DeclareState("h", Shape::Vector(4));
  VertexType leaf = b.DeclareType("leaf", 0);
  VertexType node = b.DeclareType("node", 2);
  VertexType bag = b.DeclareType("bag", kAnyArity);
  const auto publish = [&](Vertex& v, const Expression& x) {
    v.Scatter(h, x);
    v.Push("h", x);
  };
  leaf.Define([&](Vertex& v) { publish(v, v.Pull(words, "word")); });
  node.Define([&](Vertex& v) { publish(v, Tanh(Affine(Concat(v.Gather(0, h), v.Gather(1, h)), u, bias))); });
  bag.Define([&](Vertex& v) { publish(v, Tanh(MeanChildren(v.GatherAll(h)) + v.Pull(words, "word"))); });
  const Expression score = Sum(b.Pushed("h") * b.Parameter("w", Shape::Vector(4), Initializer::Uniform(1.0f)));
  b.AddOutput("score", score);
  b.AddLoss(score * score);
  return b.Build();
}

struct Model {
  explicit Model(Program program)
      : f(std::move(program)), df(Differentiate(f)), parameters(f.signature, 3), interpreter(f, &df, parameters) {}

  // One training step against the oracle.
  Difference Step(const GraphBatch& batch, HeadRows head) {
    const auto executable = CompileAndPack(f, true, {}, &parameters);
    const RunOptions options{.training = true, .head = head};
    runner = std::make_unique<Runner>(executable, &parameters, RunPolicy{});
    const Snapshot result = runner->Run(batch, options, true);
    return WorstDifference(RunInterpreter(f, batch, options, true, &interpreter), result);
  }

  Program f, df;
  ParameterStore parameters;
  Interpreter interpreter;
  std::unique_ptr<Runner> runner;
};

TEST(Scenario, GraphsWithoutEdgesAnywhereInABatch) {
  Model model(TreeModel());
  InputGraphBuilder builder(GraphMaker(model.f).columns());
  builder.AddVertex(kLeaf);
  builder.AddVertex(kBag, {0});
  builder.SetId(0, 0, 3);
  builder.SetId(0, 1, 4);
  const InputGraph g1 = builder.Build();
  builder.AddVertex(kLeaf);
  builder.SetId(0, 0, 5);
  const InputGraph g2 = builder.Build();
  EXPECT_THROW(builder.Build(), std::invalid_argument) << "a graph without vertices";

  const auto scores = [&](const std::vector<const InputGraph*>& graphs) {
    GraphBatch batch;
    for (const InputGraph* graph : graphs) batch.Add(*graph, batch.graph_count());
    EXPECT_LE(model.Step(batch, HeadRows::kRoots).error, 1e-5);
    const std::span<const float> output = model.runner->executor().output(0);
    return std::vector<float>(output.begin(), output.end());
  };
  const float one = scores({&g1}).at(0);
  const float two = scores({&g2}).at(0);
  EXPECT_NE(one, two);
  EXPECT_EQ(scores({&g1, &g2}), (std::vector<float>{one, two}));
  EXPECT_EQ(scores({&g2, &g1}), (std::vector<float>{two, one}));
  EXPECT_EQ(scores({&g2, &g2}), (std::vector<float>{two, two}));
}

InputGraph LeftBranchingTree(InputGraphBuilder* builder, int32_t levels) {
  int32_t left = builder->AddVertex(kLeaf);
  builder->SetId(0, left, 1);
  for (int32_t level = 1; level < levels; ++level) {
    const int32_t right = builder->AddVertex(kLeaf);
    builder->SetId(0, right, level % 10);
    left = builder->AddVertex(kNode, {left, right});
  }
  return builder->Build();
}

InputGraph Star(InputGraphBuilder* builder, int32_t children) {
  std::vector<int32_t> leaves;
  for (int32_t i = 0; i < children; ++i) {
    leaves.push_back(builder->AddVertex(kLeaf));
    builder->SetId(0, leaves.back(), i % 10);
  }
  builder->AddVertex(kBag, leaves);
  return builder->Build();
}

TEST(Scenario, VeryDeepAndVeryWide) {
  Model model(TreeModel());
  InputGraphBuilder builder(GraphMaker(model.f).columns());
  const InputGraph deep = LeftBranchingTree(&builder, 200000);
  const InputGraph wide = Star(&builder, 100000);
  const auto step = [&](const std::vector<const InputGraph*>& graphs) {
    GraphBatch batch;
    for (const InputGraph* graph : graphs) batch.Add(*graph, batch.graph_count());
    const Difference difference = model.Step(batch, HeadRows::kRoots);
    EXPECT_LE(difference.error, 1e-5) << difference.tensor;
    std::printf("[ measured ] %lld vertices: error %.1e (%s)\n", static_cast<long long>(batch.vertex_count()),
                difference.error, difference.tensor.c_str());
    return Report(batch, model.runner->schedule()).levels;
  };
  EXPECT_EQ(step({&deep}), 200000);
  EXPECT_EQ(step({&wide}), 2);
  EXPECT_EQ(step({&deep, &wide}), 200000);
}

// h = c x + sum of the children, c and x read by each vertex.
Program ConstantsModel() {
  ProgramBuilder b;
  const Expression xs = b.Lookup("x", 500, 1, Initializer::Constant(1.0f));
  const State h = b.DeclareState("h", Shape::Vector(1));
  b.DeclareType("sum", kAnyArity).Define([&](Vertex& v) {
    const Expression out = v.PullRow("c", 1) * v.Pull(xs, "x") + SumChildren(v.GatherAll(h));
    v.Scatter(h, out);
    v.Push("h", out);
  });
  b.AddOutput("h", b.Pushed("h"));
  b.AddLoss(b.Pushed("h"));
  return b.Build();
}

TEST(Scenario, OneTaskWithDifferentConstants) {
  Model model(ConstantsModel());
  const std::shared_ptr<const ColumnSet> columns = GraphMaker(model.f).columns();
  const int c = columns->Find("c"), x = columns->Find("x");
  InputGraphBuilder builder(columns);
  const auto graph = [&](std::array<float, 3> constants, int32_t first_x) {
    for (int32_t i = 0; i < 2; ++i) builder.AddVertex(0);
    builder.AddVertex(0, {0, 1});
    for (int32_t i = 0; i < 3; ++i) {
      builder.SetRow(c, i, std::array{constants[static_cast<size_t>(i)]});
      builder.SetId(x, i, first_x + i);
    }
    return builder.Build();
  };
  const InputGraph first = graph({1.1f, 1.7f, 0.0f}, 0);
  const InputGraph second = graph({2.5f, 2.5f, 1.0f}, 3);
  model.parameters.values(0)[5] = 4.0f;
  model.parameters.Changed(0);
  model.interpreter.parameter(0)[5] = 4.0;
  GraphBatch batch;
  batch.Add(first, 0);
  batch.Add(second, 1);
  const auto executable = CompileAndPack(model.f, true, {}, &model.parameters);
  const RunOptions options{.training = true, .head = HeadRows::kRoots};
  for (const RunPolicy& policy : AllRunPolicies()) {
    Runner runner(executable, &model.parameters, policy);
    const Snapshot result = runner.Run(batch, options, true);
    const std::span<const float> roots = runner.executor().output(0);
    ASSERT_EQ(roots.size(), 2U);
    EXPECT_FLOAT_EQ(roots[0], 2.8f) << policy.ToString();
    EXPECT_FLOAT_EQ(roots[1], 9.0f) << policy.ToString();
    const SparseRows& gradient = runner.gradients().sparse(0);
    EXPECT_EQ(gradient.ids, (std::vector<int32_t>{0, 1, 2, 3, 4, 5})) << policy.ToString();
    EXPECT_EQ(gradient.rows, (std::vector<float>{1.1f, 1.7f, 0.0f, 2.5f, 2.5f, 1.0f})) << policy.ToString();
    EXPECT_LE(WorstDifference(RunInterpreter(model.f, batch, options, true, &model.interpreter), result).error, 1e-5);
  }
}

// A random DAG of 500 vertices: every policy against one vertex at a time.
TEST(Scenario, DifferentConstantsInARandomGraph) {
  Model model(ConstantsModel());
  GraphOptions graph_options;
  graph_options.vertices = 500;
  graph_options.most_children = 3;
  graph_options.second_parent = 0.05;
  CounterRandom random(15);
  const std::unique_ptr<RandomBatch> batch = GraphMaker(model.f).MakeBatch(1, true, graph_options, random);
  const auto executable = CompileAndPack(model.f, true, {}, &model.parameters);
  const RunOptions options{.training = true, .head = HeadRows::kAll};
  const Snapshot expected = RunInterpreter(model.f, batch->batch, options, true, &model.interpreter);
  for (const RunPolicy& policy : AllRunPolicies()) {
    Runner runner(executable, &model.parameters, policy);
    const Difference difference = WorstDifference(expected, runner.Run(batch->batch, options, true));
    EXPECT_LE(difference.error, 1e-5) << difference.tensor << " " << policy.ToString();
  }
}

}  // namespace
}  // namespace cavs
