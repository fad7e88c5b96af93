// What is hoisted at vertices with children runs once for each distinct input: which instructions do, over how many
// rows, and that nobody can tell from the results.
#include "vertex/input_sharing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backprop/differentiate.h"
#include "tests/vertex/random_graphs.h"
#include "tests/vertex/snapshot.h"
#include "tests/vertex/subject.h"
#include "vertex/builder.h"

namespace cavs {
namespace {

constexpr int64_t kWordWidth = 4, kTagWidth = 3, kInputWidth = kWordWidth + kTagWidth, kHidden = 6;
constexpr int32_t kWords = 3, kTags = 2;

// What the inputs of a step are made of.
struct Tables {
  Expression words, tags;
};
using Input = std::function<Expression(ProgramBuilder&, Vertex&, const Tables&)>;

Expression Embedded(Vertex& v, const Tables& tables) {
  return Concat(v.Pull(tables.words, "word"), v.Pull(tables.tags, "tag"));
}

Expression Transformed(ProgramBuilder& b, const Expression& x) {
  return Affine(x, b.Parameter("W", Shape::Matrix(x.shape().width(), kHidden)),
                b.Parameter("b", Shape::Vector(kHidden), Initializer::Uniform(0.2f)));
}

// A chain whose step adds `input` [kHidden] to the transformed state before; the loss is over the states.
Program Chains(const Input& input, Initializer words = Initializer::Uniform(0.8f)) {
  ProgramBuilder b;
  const Tables tables{b.Lookup("words", kWords, kWordWidth, std::move(words)),
                      b.Lookup("tags", kTags, kTagWidth, Initializer::Uniform(0.8f))};
  const Expression u = b.Parameter("U", Shape::Matrix(kHidden, kHidden));
  const State h = b.DeclareState("h", Shape::Vector(kHidden));
  b.DeclareType("step", 1).Define([&](Vertex& v) {
    const Expression next = Tanh(input(b, v, tables) + MatMul(v.Gather(0, h), u));
    v.Scatter(h, next);
    v.Push("h", next);
  });
  const Expression pushed = b.Pushed("h");
  b.AddLoss(Sum(pushed * pushed));
  return b.Build();
}

Program ChainsOfProducts() {
  return Chains([](ProgramBuilder& b, Vertex& v, const Tables& t) { return Transformed(b, Embedded(v, t)); });
}

// The operators that run over distinct inputs.
std::multiset<Op> MovedOps(const Program& f, const PassOptions& passes = {}) {
  std::multiset<Op> moved;
  for (const Instruction& instruction : ShareInputs(f, passes).instructions) {
    if (instruction.space.kind == Space::kInput) moved.insert(instruction.op);
  }
  return moved;
}

TEST(InputSharing, MovesWhatDependsOnIdsAlone) {
  const Program f = ChainsOfProducts();
  EXPECT_EQ(MovedOps(f), (std::multiset<Op>{Op::kLookup, Op::kLookup, Op::kConcat, Op::kMatMul}));
  EXPECT_TRUE(MovedOps(f, {.hoisting = false}).empty());
  const Program shared = Partition(ShareInputs(f, {}), {.lazy_batching = false});
  for (const Instruction& instruction : Partition(Differentiate(shared), {.lazy_batching = false}).instructions) {
    const bool of_inputs = instruction.space.kind == Space::kInput;
    EXPECT_TRUE(!of_inputs || instruction.phase == Phase::kDeferred);
    EXPECT_TRUE(of_inputs || instruction.op != Op::kLookupGrad);
  }
}

TEST(InputSharing, LeavesRowsOfFloatsDropoutAndSumsWithTheVertices) {
  // Of two inputs one is shared.
  const Program floats = Chains([](ProgramBuilder& b, Vertex& v, const Tables& t) {
    const Expression w = b.Parameter("F", Shape::Matrix(2, kHidden));
    return MatMul(v.PullRow("features", 2), w) + Transformed(b, v.Pull(t.words, "word"));
  });
  EXPECT_EQ(MovedOps(floats), (std::multiset<Op>{Op::kLookup, Op::kMatMul}));
  const Program random = Chains(
      [](ProgramBuilder& b, Vertex& v, const Tables& t) { return Transformed(b, Dropout(Embedded(v, t), 0.5)); });
  EXPECT_TRUE(MovedOps(random).empty());
  const Program sums = Chains([](ProgramBuilder&, Vertex& v, const Tables& t) {
    return Concat(v.Pull(t.words, "word"), Slice(v.Pull(t.tags, "tag"), 0, 2));
  });
  EXPECT_TRUE(MovedOps(sums).empty()) << "no product is saved";
}

TEST(InputSharing, LeavesVerticesWithoutChildrenToTheSharer) {
  ProgramBuilder b;
  const Expression words = b.Lookup("words", kWords, kWordWidth, Initializer::Uniform(0.8f));
  b.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Push("h", Transformed(b, v.Pull(words, "word"))); });
  b.AddLoss(Sum(b.Pushed("h")));
  EXPECT_TRUE(MovedOps(b.Build()).empty());
}

// Chains of up to 12 steps with all pairs of ids, and steps without a word; where F reads no tags, without these.
class InputSharingRuns : public ::testing::Test {
 protected:
  explicit InputSharingRuns(Program f = ChainsOfProducts())
      : f_(std::move(f)), df_(Differentiate(f_)), parameters_(f_.signature, 5) {
    graphs_.reserve(4);
    for (const int32_t length : {12, 5, 9, 1}) graphs_.push_back(Chain(length));
    for (const InputGraph& graph : graphs_) batch_.Add(graph, 10 * batch_.graph_count());
  }

  // Step i reads word i mod 4, of which 3 is missing, and tag i mod 2: there are four inputs.
  InputGraph Chain(int32_t length) {
    const std::shared_ptr<const ColumnSet> columns = GraphMaker(f_).columns();
    InputGraphBuilder builder(columns);
    for (int32_t i = 0; i < length; ++i) {
      builder.AddVertex(0, {i - 1});
      if (i % 4 < kWords) builder.SetId(columns->Find("word"), i, i % 4);
      if (columns->Find("tag") != kNone) builder.SetId(columns->Find("tag"), i, i % kTags);
    }
    return builder.Build();
  }

  Runner Make(bool shares_inputs, const RunPolicy& policy = {}, const PassOptions& passes = {}) {
    return {CompileAndPack(f_, true, passes, &parameters_, shares_inputs), &parameters_, policy};
  }

  static constexpr int64_t kInputs = 4, kVertices = 12 + 5 + 9 + 1;
  Program f_, df_;
  ParameterStore parameters_;
  std::vector<InputGraph> graphs_;
  GraphBatch batch_;
  const RunOptions options_{.training = true, .head = HeadRows::kAll};
};

TEST_F(InputSharingRuns, EqualTheInterpreterInAllOrders) {
  Interpreter interpreter(f_, &df_, parameters_);
  const Snapshot expected = RunInterpreter(f_, batch_, options_, true, &interpreter);
  for (const PassOptions& passes : AllPassOptions()) {
    for (const int32_t shards : {1, 3}) {
      const RunPolicy policy{.memory = PoolPolicy::kPlanned, .threads = 2, .shards = shards};
      const Difference difference = WorstDifference(expected, Make(true, policy, passes).Run(batch_, options_, true));
      EXPECT_LE(difference.error, 2e-6) << difference.tensor << ", " << ToString(passes) << ", " << shards << " shards";
    }
  }
}

TEST_F(InputSharingRuns, ProductsHaveARowForEachInput) {
  Runner runner = Make(true);
  runner.executor().Profile(true);
  runner.Run(batch_, options_, true);
  std::multiset<int64_t> rows;  // of products: x W, its dx and dW; of h U of the four widest and narrower tasks, in all
  int64_t summed = 0;
  for (const StepProfile& step : runner.executor().profile()) {
    if (step.operation == "matmul" || step.operation == "matmul_grad") rows.insert(step.rows);
    EXPECT_TRUE(step.operation != "column_sum_grad" || step.rows == kInputs) << step.rows;
    const bool sums_vertices = step.backward && step.operation == "collect" && step.rows == kInputs;
    if (sums_vertices) summed += step.bytes;
    EXPECT_TRUE(step.operation != "merge" || step.rows == 2 * kInputs) << step.rows;
  }
  EXPECT_EQ(rows, (std::multiset<int64_t>{kInputs, kInputs, kInputs, kVertices, kVertices, kVertices}));
  EXPECT_EQ(summed, (kInputs + kVertices) * kHidden * static_cast<int64_t>(sizeof(float)));
  constexpr int64_t kFlops = 3 * 2 * (kInputs * kInputWidth * kHidden + kVertices * kHidden * kHidden);
  EXPECT_EQ(runner.executor().counters().flops, static_cast<double>(kFlops));

  Runner plain = Make(false);
  plain.Run(batch_, options_, true);
  EXPECT_LT(runner.executor().counters().copied_bytes, plain.executor().counters().copied_bytes);
}

// A minibatch smaller than the last, and a larger one.
TEST_F(InputSharingRuns, MinibatchesAreNumberedAnew) {
  Interpreter interpreter(f_, &df_, parameters_);
  Runner runner = Make(true, {.memory = PoolPolicy::kPlanned});
  for (const size_t count : {4, 1, 2, 4}) {
    GraphBatch batch;
    for (size_t i = 0; i < count; ++i) batch.Add(graphs_[graphs_.size() - 1 - i], static_cast<int64_t>(i));
    const Snapshot expected = RunInterpreter(f_, batch, options_, true, &interpreter);
    const Difference difference = WorstDifference(expected, runner.Run(batch, options_, true));
    EXPECT_LE(difference.error, 2e-6) << difference.tensor;
  }
}

TEST_F(InputSharingRuns, RefuseIdsThatDoNotFitAtAnyVertex) {
  const std::shared_ptr<const ColumnSet> columns = GraphMaker(f_).columns();
  InputGraphBuilder builder(columns);
  for (int32_t i = 0; i < 3; ++i) builder.AddVertex(0, {i - 1});
  const InputGraph without = builder.Build();
  Runner runner = Make(true);
  GraphBatch batch = batch_;
  batch.Add(without, 99);
  EXPECT_NO_THROW(runner.Run(batch, options_, true)) << "ids may be missing";
  InputGraphBuilder other(MakeColumns({{"word", ColumnKind::kIds, 1, 0}}));
  other.AddVertex(0, {kNone});
  const InputGraph column_missing = other.Build();
  batch.Add(column_missing, 100);
  EXPECT_THROW(runner.Run(batch, options_, true), std::invalid_argument);
}

// A step of which the second word overflows.
class InputSharingFaults : public InputSharingRuns {
 protected:
  static constexpr float kHuge = 1e3f;
  InputSharingFaults()
      : InputSharingRuns(Chains(
            [](ProgramBuilder& b, Vertex& v, const Tables& t) { return Transformed(b, Exp(v.Pull(t.words, "word"))); },
            Initializer::Values({0, 0, 0, 0, 0, kHuge, 0, 0, 0, 0, 0, 0}))) {}
};

TEST_F(InputSharingFaults, AreTracedToTheFirstVertexWithTheInput) {
  Runner runner = Make(true, {}, {.fusion = false});
  runner.Run(batch_, options_, false);
  const NonFinite place = runner.executor().FindNonFinite(batch_, runner.schedule(), options_);
  ASSERT_TRUE(place.found);
  EXPECT_NE(place.operation.find("= exp"), std::string::npos) << place.operation;
  EXPECT_EQ(place.example, 0);
  EXPECT_EQ(place.vertex, 1);
}

}  // namespace
}  // namespace cavs
