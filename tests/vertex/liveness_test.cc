// Lifetimes of buffers, values that last for one task, and what they save under policy `planned`.
#include "vertex/liveness.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/vertex/subject.h"

namespace cavs {
namespace {

constexpr int32_t kLeaf = 0, kNode = 1;

// A Tree-RNN of width 8 whose node has a wider layer inside; the score of every vertex is the loss.
Program TreeModel() {
  ProgramBuilder b;
  const Expression words = b.Lookup("words", 10, 4, Initializer::Uniform(0.7f));
  const Expression input = b.Parameter("input", Shape::Matrix(4, 8));
  const Expression inner = b.Parameter("inner", Shape::Matrix(16, 32));
  const Expression outer = b.Parameter("outer", Shape::Matrix(32, 8));
  const State h = b.DeclareState("h", Shape::Vector(8));
  const auto publish = [&](Vertex& v, const Expression& x) {
    v.Scatter(h, x);
    v.Push("h", x);
  };
  b.DeclareType("leaf", 0).Define([&](Vertex& v) { publish(v, Tanh(MatMul(v.Pull(words, "word"), input))); });
  b.DeclareType("node", 2).Define(
      [&](Vertex& v) { publish(v, Tanh(MatMul(Tanh(MatMul(Concat(v.Gather(0, h), v.Gather(1, h)), inner)), outer))); });
  const Expression score = MatMul(b.Pushed("h"), b.Parameter("w", Shape::Matrix(8, 1)));
  b.AddOutput("score", score);
  b.AddLoss(score * score);
  return b.Build();
}

// `levels` levels of nodes over a chain of leaves: tasks of one node each, apart from the leaves.
InputGraph Comb(const Program& f, int32_t levels) {
  InputGraphBuilder builder(GraphMaker(f).columns());
  const auto leaf = [&](int32_t word) {
    const int32_t vertex = builder.AddVertex(kLeaf);
    builder.SetId(0, vertex, word % 10);
    return vertex;
  };
  int32_t left = leaf(0);
  for (int32_t level = 1; level <= levels; ++level) {
    const int32_t right = leaf(level);
    left = builder.AddVertex(kNode, {left, right});
  }
  return builder.Build();
}

std::map<std::string, TensorBytes> TensorsOf(Runner& runner) {
  std::map<std::string, TensorBytes> tensors;
  for (const TensorBytes& tensor : runner.executor().tensors()) tensors.emplace(tensor.name, tensor);
  return tensors;
}

class LivenessTest : public ::testing::Test {
 protected:
  LivenessTest() : f_(TreeModel()), parameters_(f_.signature, 3), graph_(Comb(f_, 100)) { batch_.Add(graph_, 0); }

  Runner Make(bool training, PoolPolicy memory) {
    return {CompileAndPack(f_, training, {}, &parameters_), &parameters_, {.memory = memory}};
  }

  Program f_;
  ParameterStore parameters_;
  InputGraph graph_;
  GraphBatch batch_;
  RunOptions options_{.training = true, .head = HeadRows::kAll};
};

TEST_F(LivenessTest, PhasesFollowTheOrderOfARun) {
  const auto executable = CompileAndPack(f_, true, {}, &parameters_);
  const Liveness& whole = executable->liveness(true);
  EXPECT_EQ(whole.phases.front().second, "hoisted");
  EXPECT_EQ(whole.phases.back(), (std::pair<int32_t, std::string_view>{whole.end, "end"}));
  EXPECT_EQ(whole.PhaseOf(whole.backward_begin), "d head");
  EXPECT_EQ(whole.PhaseOf(whole.backward_begin - 1), "head");
  EXPECT_TRUE(std::is_sorted(whole.phases.begin(), whole.phases.end()));
  EXPECT_EQ(executable->liveness(false).end, whole.backward_begin);
  for (const int32_t b : whole.births) {
    const Lifetime& lifetime = whole.lifetimes[static_cast<size_t>(b)];
    EXPECT_LE(lifetime.first, lifetime.last);
    EXPECT_LE(lifetime.last, whole.end);
  }
}

TEST_F(LivenessTest, ResultsLiveToTheEnd) {
  Runner runner = Make(true, PoolPolicy::kPlanned);
  runner.Run(batch_, options_, true);
  const std::map<std::string, TensorBytes> tensors = TensorsOf(runner);
  EXPECT_EQ(tensors.at("h").from, "hoisted");
  EXPECT_EQ(tensors.at("h").to, "end");
  EXPECT_EQ(tensors.at("d pushed h").from, "d hoisted");
  EXPECT_EQ(tensors.at("d h").from, "d recurrent");
  int64_t dead = 0;
  for (const auto& [name, tensor] : tensors) dead += tensor.to != "end" ? 1 : 0;
  EXPECT_GT(dead, 3);
}

// A comb of 100 levels: 101 rows of leaves, and one row at a time of nodes.
TEST_F(LivenessTest, ValuesOfOneTaskKeepNoRowsForOthers) {
  const auto widest_rows = [&](bool training, int64_t width) {
    Runner runner = Make(training, PoolPolicy::kArena);
    runner.Run(batch_, options_, training);
    int64_t rows = 0;
    for (const TensorBytes& tensor : runner.executor().tensors()) {
      if (tensor.width == width) rows = std::max(rows, tensor.rows);
    }
    return rows;
  };
  EXPECT_EQ(widest_rows(false, 32), 1) << "nothing reads the inner layer behind its task";
  EXPECT_EQ(widest_rows(true, 32), 100) << "dF does";
  EXPECT_EQ(widest_rows(false, 16), 0) << "the gathered rows are rows of the state";
}

TEST_F(LivenessTest, PlannedNeedsLessAndForwardAloneMuchLess) {
  std::map<std::pair<PoolPolicy, bool>, MemoryStatistics> memory;
  for (const PoolPolicy policy : kPoolPolicies) {
    for (const bool training : {true, false}) {
      Runner runner = Make(training, policy);
      runner.Run(batch_, options_, training);
      memory[{policy, training}] = runner.memory();
    }
  }
  for (const bool training : {true, false}) {
    const MemoryStatistics& arena = memory.at({PoolPolicy::kArena, training});
    const MemoryStatistics& planned = memory.at({PoolPolicy::kPlanned, training});
    for (const PoolPolicy policy : kPoolPolicies) {
      const MemoryStatistics& other = memory.at({policy, training});
      EXPECT_EQ(other.needed, planned.needed) << PoolPolicyName(policy);
      EXPECT_GE(other.peak, planned.needed) << PoolPolicyName(policy);
    }
    std::printf("[ measured ] training %d: arena %lld, planned %lld, needed %lld\n", training ? 1 : 0,
                static_cast<long long>(arena.peak), static_cast<long long>(planned.peak),
                static_cast<long long>(planned.needed));
    EXPECT_LT(planned.peak, arena.peak * 9 / 10);
  }
  EXPECT_LT(memory.at({PoolPolicy::kPlanned, false}).peak * 3, memory.at({PoolPolicy::kPlanned, true}).peak);
}

// Under every policy a run finds the first bad number while its value is alive, as do its results.
TEST_F(LivenessTest, NonFiniteNumbersAreFoundUnderEveryPolicy) {
  parameters_.values(0)[3 * 4] = std::numeric_limits<float>::quiet_NaN();  // of word 3
  parameters_.Changed(0);
  for (const PoolPolicy policy : kPoolPolicies) {
    Runner runner = Make(true, policy);
    runner.Run(batch_, options_, true);
    EXPECT_FALSE(std::isfinite(runner.executor().loss())) << PoolPolicyName(policy);
    const NonFinite place = runner.executor().FindNonFinite(batch_, runner.schedule(), options_);
    ASSERT_TRUE(place.found) << PoolPolicyName(policy);
    EXPECT_NE(place.operation.find("lookup"), std::string::npos) << place.operation;
    EXPECT_EQ(graph_.ids(0)[static_cast<size_t>(place.vertex)], 3);
  }
}

TEST_F(LivenessTest, BackwardFollowsOnlyAForwardThatWasTold) {
  Runner runner = Make(true, PoolPolicy::kPlanned);
  Gradients gradients(f_.signature);
  runner.Run(batch_, options_, false);
  EXPECT_THROW(runner.executor().Backward(&gradients), std::logic_error);
  runner.Run(batch_, options_, true);
  EXPECT_THROW(runner.executor().Backward(&gradients), std::logic_error) << "a second time";
}

// Random models in parts: gradients and losses are those of the whole, with the same draws of dropout.
TEST(Parts, AddUpToTheWhole) {
  double worst = 0;
  for (uint64_t seed = 700; seed < 760; ++seed) {
    Subject subject(seed, seed % 2 == 0);
    const std::unique_ptr<RandomBatch> batch = subject.MakeBatch(9, 16, seed);
    const RunOptions options = OptionsFor(seed);
    const auto executable = CompileAndPack(subject.f, true, {}, &subject.parameters);
    RunPolicy policy{.sharing = seed % 3 == 0 ? SharingPolicy::kSubgraphs : SharingPolicy::kOff};
    Snapshot whole = Runner(executable, &subject.parameters, policy).Run(batch->batch, options, true);
    policy.memory = PoolPolicy::kPlanned;
    Runner runner(executable, &subject.parameters, policy);
    Snapshot sum;
    for (const auto& [begin, end] : {std::pair{0, 4}, {4, 5}, {5, 9}}) {
      GraphBatch part;
      for (int64_t g = begin; g < end; ++g) part.Add(batch->batch.graph(g), batch->batch.example(g));
      sum = runner.Run(part, options, true, begin > 0);
    }
    const auto is_value = [](const NamedTensor& tensor) { return !tensor.is_gradient; };
    std::erase_if(whole, is_value);
    std::erase_if(sum, is_value);
    const Difference difference = WorstDifference(whole, sum);
    worst = std::max(worst, difference.error);
    // Both are within about 1e-6 of double precision.
    EXPECT_LE(difference.error, 2e-6) << difference.tensor << ", model " << seed;
  }
  std::printf("[ measured ] parts against the whole: largest difference %.2e\n", worst);
}

}  // namespace
}  // namespace cavs
