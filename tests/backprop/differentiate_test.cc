// The structure of dF: which instructions a derivative consists of, and which it must not contain.
#include "backprop/differentiate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "vertex/builder.h"
#include "vertex/operator.h"

namespace cavs {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<Op> Ops(const Program& program) {
  std::vector<Op> ops;
  for (const Instruction& instruction : program.instructions) ops.push_back(instruction.op);
  return ops;
}

std::vector<Instruction> Find(const Program& program, Op op) {
  std::vector<Instruction> found;
  std::copy_if(program.instructions.begin(), program.instructions.end(), std::back_inserter(found),
               [op](const Instruction& instruction) { return instruction.op == op; });
  return found;
}

// Sinks of one kind into one parameter.
int64_t Sinks(const Program& df, Op op, const Program& f, const Expression& parameter) {
  const std::vector<Instruction> sinks = Find(df, op);
  return std::count_if(sinks.begin(), sinks.end(), [&](const Instruction& sink) {
    return sink.attributes.parameter == f.value(parameter.id()).parameter;
  });
}

// Differentiates, and checks what holds for every dF.
Program Derive(const Program& f) {
  Program df = Differentiate(f);
  EXPECT_EQ(df.first_own_value, static_cast<ValueId>(f.values.size()));
  EXPECT_EQ(df.signature, f.signature);
  EXPECT_THAT(df.losses, IsEmpty());
  EXPECT_THAT(df.outputs, IsEmpty());
  std::set<ValueId> made;
  for (const Instruction& instruction : df.instructions) {
    const std::string text = ToString(df, instruction);
    for (const ValueId input : instruction.inputs) {
      const bool constant = df.value(input).space.kind == Space::kConstant;
      EXPECT_TRUE(input < df.first_own_value || constant || made.contains(input)) << text;
    }
    if (instruction.output == kNoValue) {
      EXPECT_TRUE(IsSink(instruction.op)) << text;
      continue;
    }
    EXPECT_GE(instruction.output, df.first_own_value) << text;
    EXPECT_TRUE(made.insert(instruction.output).second) << text;
    EXPECT_EQ(df.value(instruction.output).space, instruction.space) << text;
  }
  return df;
}

// A type without children that pushes function(vertex), [width], through a loss against `width` targets.
class Leaf {
 public:
  ProgramBuilder builder;

  template <typename Function>
  Program Build(Function function) {
    builder.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Push("y", function(v)); });
    const Expression y = builder.Pushed("y");
    builder.AddLoss(SquaredError(y, builder.DeclareTarget("target", y.shape().width())));
    return builder.Build();
  }
  Expression Weights(std::string_view name, int64_t rows, int64_t columns) {
    return builder.Parameter(name, Shape::Matrix(rows, columns));
  }
  Expression Bias(std::string_view name, int64_t width) { return builder.Parameter(name, Shape::Vector(width)); }
};

TEST(Differentiate, AClassifierOverWordsIsTheReverseOfItself) {
  ProgramBuilder b;
  const Expression words = b.Lookup("words", 10, 4, Initializer::Uniform(0.1f));
  const Expression w = b.Parameter("W", Shape::Matrix(4, 3)), bias = b.Parameter("b", Shape::Vector(3));
  const Expression u = b.Parameter("U", Shape::Matrix(3, 2)), c = b.Parameter("c", Shape::Vector(2));
  b.DeclareType("word", 0).Define([&](Vertex& v) { v.Push("h", Tanh(Affine(v.Pull(words, "word"), w, bias))); });
  b.AddLoss(CrossEntropy(Affine(b.Pushed("h"), u, c), b.DeclareLabel("label", 2)));
  const Program f = b.Build();
  const Program df = Derive(f);
  EXPECT_THAT(Ops(df), ElementsAre(Op::kLossSeed, Op::kCrossEntropyGrad, Op::kMatMul, Op::kMatMulGrad,
                                   Op::kColumnSumGrad, Op::kPushedGrad, Op::kPushGrad, Op::kTanhGrad, Op::kMatMul,
                                   Op::kMatMulGrad, Op::kColumnSumGrad, Op::kLookupGrad));
  for (const Instruction& product : Find(df, Op::kMatMul)) EXPECT_TRUE(product.attributes.transposed);
  for (const Instruction& sink : Find(df, Op::kMatMulGrad)) EXPECT_FALSE(sink.attributes.transposed);
  EXPECT_EQ(Sinks(df, Op::kMatMulGrad, f, w), 1);
  EXPECT_EQ(Sinks(df, Op::kMatMulGrad, f, u), 1);
  EXPECT_EQ(Sinks(df, Op::kColumnSumGrad, f, bias), 1);
  EXPECT_EQ(Sinks(df, Op::kColumnSumGrad, f, c), 1);
  EXPECT_EQ(Sinks(df, Op::kLookupGrad, f, words), 1);
  EXPECT_EQ(Find(df, Op::kLookupGrad)[0].attributes.column, Find(f, Op::kLookup)[0].attributes.column);
  EXPECT_EQ(df.value(Find(df, Op::kLookupGrad)[0].inputs[0]).shape, Shape::Vector(4));
}

TEST(Differentiate, ATransposedProductIsFlipped) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 4), v = leaf.Weights("V", 4, 4);
  Program f = leaf.Build([&](Vertex& vertex) { return MatMul(MatMul(vertex.PullRow("x", 4), v), w); });
  for (Instruction& instruction : f.instructions) instruction.attributes.transposed = instruction.op == Op::kMatMul;
  const Program df = Derive(f);
  ASSERT_THAT(Find(df, Op::kMatMul), SizeIs(1));
  EXPECT_FALSE(Find(df, Op::kMatMul)[0].attributes.transposed);
  ASSERT_THAT(Find(df, Op::kMatMulGrad), SizeIs(2));
  EXPECT_TRUE(Find(df, Op::kMatMulGrad)[0].attributes.transposed);
}

TEST(Differentiate, ASplitGivesOneConcatAndNoAdditions) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 15);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const auto [i, o, u, l, r] = Split<5>(MatMul(v.PullRow("x", 4), w));
    return Sigmoid(i) * Tanh(u) + Sigmoid(l) * Tanh(r) + Sigmoid(o);
  }));
  ASSERT_THAT(Find(df, Op::kConcat), SizeIs(1));
  const Instruction concat = Find(df, Op::kConcat)[0];
  EXPECT_THAT(concat.inputs, SizeIs(5));
  for (const ValueId part : concat.inputs) EXPECT_EQ(df.value(part).space.kind, Space::kVertex);
  EXPECT_EQ(df.value(concat.output).shape, Shape::Vector(15));
  EXPECT_THAT(Find(df, Op::kAdd), IsEmpty());
}

TEST(Differentiate, AnUnusedStretchIsZeros) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 9);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const Expression x = MatMul(v.PullRow("x", 4), w);
    return Slice(x, 6, 2) * Slice(x, 1, 2);
  }));
  ASSERT_THAT(Find(df, Op::kConcat), SizeIs(1));
  const std::vector<ValueId> parts = Find(df, Op::kConcat)[0].inputs;
  ASSERT_THAT(parts, SizeIs(5));  // [0, 1) zero, [1, 3), [3, 6) zero, [6, 8), [8, 9) zero
  EXPECT_EQ(df.value(parts[0]).constant, std::vector<float>({0}));
  EXPECT_EQ(df.value(parts[2]).constant, std::vector<float>({0, 0, 0}));
  EXPECT_EQ(parts[0], parts[4]);
  EXPECT_EQ(df.value(parts[1]).space.kind, Space::kVertex);
  EXPECT_EQ(df.value(parts[3]).space.kind, Space::kVertex);
}

TEST(Differentiate, OverlappingSlicesAreSummed) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 4);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const Expression x = MatMul(v.PullRow("x", 4), w);
    return Slice(x, 0, 3) * Slice(x, 1, 3);
  }));
  EXPECT_THAT(Find(df, Op::kConcat), SizeIs(2));
  EXPECT_THAT(Find(df, Op::kAdd), SizeIs(1));
}

TEST(Differentiate, EqualSlicesAreAddedBeforeTheyAreLaidOut) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 4);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const Expression x = MatMul(v.PullRow("x", 4), w);
    return Tanh(Slice(x, 0, 2)) * Slice(x, 0, 2) * Slice(x, 2, 2);
  }));
  ASSERT_THAT(Find(df, Op::kAdd), SizeIs(1));
  EXPECT_EQ(df.value(Find(df, Op::kAdd)[0].output).shape, Shape::Vector(2));
  ASSERT_THAT(Find(df, Op::kConcat), SizeIs(1));
  EXPECT_THAT(Find(df, Op::kConcat)[0].inputs, SizeIs(2));
}

TEST(Differentiate, AConcatIsSlicedAndAConcatOfOnePartIsItself) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 2), u = leaf.Weights("U", 4, 3);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const Expression x = v.PullRow("x", 4);
    return Concat(x, Concat(MatMul(x, w)), MatMul(x, u));
  }));
  const std::vector<Instruction> slices = Find(df, Op::kSlice);
  ASSERT_THAT(slices, SizeIs(2));  // none for the external input
  EXPECT_EQ(slices[0].attributes.begin, 4);
  EXPECT_EQ(df.value(slices[0].output).shape, Shape::Vector(2));
  EXPECT_EQ(slices[1].attributes.begin, 6);
  EXPECT_EQ(df.value(slices[1].output).shape, Shape::Vector(3));
  EXPECT_THAT(Find(df, Op::kConcat), IsEmpty());
}

TEST(Differentiate, AValueUsedTwiceSumsItsGradients) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 3);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const Expression x = MatMul(v.PullRow("x", 4), w);
    return x * x;
  }));
  const Instruction add = Find(df, Op::kAdd).at(0);
  ASSERT_THAT(Find(df, Op::kMultiply), SizeIs(2));
  EXPECT_THAT(add.inputs, ElementsAre(Find(df, Op::kMultiply)[0].output, Find(df, Op::kMultiply)[1].output));
  EXPECT_EQ(Find(df, Op::kMatMulGrad).at(0).inputs[1], add.output);
}

TEST(Differentiate, ATiedParameterHasASinkForEachUse) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 4);
  const Program f = leaf.Build([&](Vertex& v) { return MatMul(Tanh(MatMul(v.PullRow("x", 4), w)), w); });
  EXPECT_EQ(Sinks(Derive(f), Op::kMatMulGrad, f, w), 2);
}

TEST(Differentiate, AFrozenParameterHasNoSinkAndStopsTheGradient) {
  Leaf leaf;
  const Expression table = leaf.builder.Lookup("table", 7, 4, {});
  const Expression frozen = leaf.Weights("frozen", 4, 4), w = leaf.Weights("W", 4, 3), b = leaf.Bias("b", 3);
  leaf.builder.Freeze(table);
  leaf.builder.Freeze(frozen);
  leaf.builder.Freeze(b);
  const Program f = leaf.Build([&](Vertex& v) { return Affine(Tanh(MatMul(v.Pull(table, "id"), frozen)), w, b); });
  EXPECT_THAT(Ops(Derive(f)),
              ElementsAre(Op::kLossSeed, Op::kSquaredErrorGrad, Op::kPushedGrad, Op::kPushGrad, Op::kMatMulGrad));
}

TEST(Differentiate, NothingTrainedOrNoLossGivesAnEmptyProgram) {
  Leaf leaf;
  EXPECT_THAT(Derive(leaf.Build([](Vertex& v) { return Tanh(v.PullRow("x", 4)); })).instructions, IsEmpty());

  ProgramBuilder b;
  const Expression w = b.Parameter("W", Shape::Matrix(4, 3));
  b.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Push("y", MatMul(v.PullRow("x", 4), w)); });
  b.AddOutput("y", b.Pushed("y"));
  EXPECT_THAT(Derive(b.Build()).instructions, IsEmpty());
}

TEST(Differentiate, ABroadcastParameterGetsTheSumOfRows) {
  Leaf leaf;
  const Expression b = leaf.Bias("b", 4), s = leaf.Bias("s", 1);
  const Program f = leaf.Build([&](Vertex& v) { return s * (1.0 - (b / (v.PullRow("x", 4) + b))); });
  const Program df = Derive(f);
  EXPECT_EQ(Sinks(df, Op::kColumnSumGrad, f, b), 2);
  EXPECT_EQ(Sinks(df, Op::kColumnSumGrad, f, s), 1);
  ASSERT_THAT(Find(df, Op::kSum), SizeIs(1));  // [4] of every row to the [1] that was expanded
  EXPECT_EQ(df.value(Find(df, Op::kSum)[0].output).shape, Shape::Vector(1));
  EXPECT_THAT(Ops(df), Not(Contains(Op::kExpand)));
}

TEST(Differentiate, DropoutKeepsItsMask) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 3);
  const Program f = leaf.Build([&](Vertex& v) { return Dropout(MatMul(v.PullRow("x", 4), w), 0.25); });
  const Instruction dropout = Find(Derive(f), Op::kDropout).at(0);
  EXPECT_EQ(dropout.attributes, Find(f, Op::kDropout).at(0).attributes);
}

TEST(Differentiate, LossesShareOneSeedAndALossAddedTwiceCountsTwice) {
  ProgramBuilder b;
  const Expression w = b.Parameter("W", Shape::Matrix(4, 3));
  b.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Push("y", MatMul(v.PullRow("x", 4), w)); });
  const Expression loss = CrossEntropy(b.Pushed("y"), b.DeclareLabel("label", 3));
  b.AddLoss(loss);
  b.AddLoss(Sum(b.Pushed("y")));
  b.AddLoss(loss);
  const Program df = Derive(b.Build());
  ASSERT_THAT(Find(df, Op::kLossSeed), SizeIs(1));
  const ValueId seed = Find(df, Op::kLossSeed)[0].output;
  ASSERT_THAT(Find(df, Op::kAdd), SizeIs(1));
  EXPECT_THAT(Find(df, Op::kAdd)[0].inputs, ElementsAre(seed, seed));
  EXPECT_THAT(Find(df, Op::kPushedGrad), SizeIs(2));
}

class Recursion : public ::testing::Test {
 protected:
  ProgramBuilder b_;
  Expression w_ = b_.Parameter("W", Shape::Matrix(3, 3));
  State h_ = b_.DeclareState("h", Shape::Vector(3));
  State c_ = b_.DeclareState("c", Shape::Vector(3));

  Program Finish() {
    const Expression y = b_.Pushed("y");
    b_.AddLoss(SquaredError(y, b_.DeclareTarget("target", y.shape().width())));
    return b_.Build();
  }
};

TEST_F(Recursion, GathersSendToTheirChildAndScattersReceive) {
  b_.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Scatter(h_, MatMul(v.PullRow("x", 3), w_)); });
  b_.DeclareType("node", 2).Define([&](Vertex& v) {
    const Expression h = Tanh(MatMul(v.Gather(0, h_) + v.Gather(1, h_), w_));
    v.Scatter(h_, h);
    v.Push("y", h);
  });
  const Program df = Derive(Finish());
  const std::vector<Instruction> received = Find(df, Op::kScatterGrad), sent = Find(df, Op::kGatherGrad);
  ASSERT_THAT(received, SizeIs(2));
  EXPECT_EQ(received[0].space.type, 1);
  EXPECT_EQ(received[1].space.type, 0);
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_EQ(sent[0].inputs, sent[1].inputs);
  EXPECT_EQ(sent[0].attributes.slot + sent[1].attributes.slot, 1);
  EXPECT_EQ(sent[0].attributes.channel, h_.channel);
  EXPECT_THAT(Find(df, Op::kPushGrad), SizeIs(1));
}

TEST_F(Recursion, AStateThatNobodyReadsOrWhoseReadersLeadNowhereGetsNoGradient) {
  const State unread = b_.DeclareState("unread", Shape::Vector(3));
  b_.DeclareType("node", 1).Define([&](Vertex& v) {
    const Expression h = Tanh(MatMul(v.Gather(0, h_), w_));
    v.Scatter(h_, h);
    v.Scatter(c_, v.Gather(0, c_) + h);  // gathered, but on no path to the loss
    v.Scatter(unread, h);
    v.Push("y", h);
    v.Push("ignored", h * h);
  });
  const Program df = Derive(Finish());
  ASSERT_THAT(Find(df, Op::kScatterGrad), SizeIs(1));
  EXPECT_EQ(Find(df, Op::kScatterGrad)[0].attributes.channel, h_.channel);
  EXPECT_THAT(Find(df, Op::kGatherGrad), SizeIs(1));
  EXPECT_THAT(Find(df, Op::kPushGrad), SizeIs(1));
}

TEST_F(Recursion, AStateThatNothingTrainedReachesSendsNothing) {
  b_.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Scatter(c_, v.PullRow("x", 3)); });
  b_.DeclareType("node", 1).Define([&](Vertex& v) { v.Push("y", MatMul(v.Gather(0, c_), w_)); });
  EXPECT_THAT(Ops(Derive(Finish())),
              ElementsAre(Op::kLossSeed, Op::kSquaredErrorGrad, Op::kPushedGrad, Op::kPushGrad, Op::kMatMulGrad));
}

TEST_F(Recursion, ATypeThatIsNeverGatheredIsTrainedAlone) {
  b_.DeclareType("apart", 0).Define([&](Vertex& v) { v.Push("y", MatMul(v.PullRow("x", 3), w_)); });
  b_.DeclareType("node", 1).Define([&](Vertex& v) { v.Scatter(h_, MatMul(v.Gather(0, h_), w_)); });
  const Program df = Derive(Finish());
  EXPECT_THAT(Find(df, Op::kMatMulGrad), SizeIs(1));
  EXPECT_THAT(Ops(df), Not(Contains(Op::kScatterGrad)));
}

TEST_F(Recursion, EdgesAndVerticesMirrorEachOther) {
  b_.DeclareType("node", kAnyArity).Define([&](Vertex& v) {
    const Expression x = MatMul(v.PullRow("x", 3), w_);
    const Expression edges = v.GatherAll(h_) * x;  // x goes to the edges
    const Expression h = SumChildren(edges) + MeanChildren(edges) + MaxChildren(edges);
    v.Scatter(h_, h);
    v.Push("y", h);
  });
  const Program f = Finish();
  const Program df = Derive(f);
  ASSERT_THAT(Find(df, Op::kToEdges), SizeIs(1));  // of SumChildren
  EXPECT_EQ(Find(df, Op::kToEdges)[0].space.kind, Space::kEdge);
  ASSERT_THAT(Find(df, Op::kSumChildren), SizeIs(1));  // of ToEdges
  EXPECT_EQ(Find(df, Op::kSumChildren)[0].space.kind, Space::kVertex);
  ASSERT_THAT(Find(df, Op::kMeanChildrenGrad), SizeIs(1));
  EXPECT_EQ(Find(df, Op::kMeanChildrenGrad)[0].space.kind, Space::kEdge);
  const Instruction maximum = Find(f, Op::kMaxChildren).at(0), maximum_grad = Find(df, Op::kMaxChildrenGrad).at(0);
  EXPECT_EQ(maximum_grad.inputs[0], maximum.inputs[0]);
  EXPECT_EQ(maximum_grad.inputs[1], maximum.output);
  ASSERT_THAT(Find(df, Op::kGatherAllGrad), SizeIs(1));
  EXPECT_EQ(Find(df, Op::kGatherAllGrad)[0].space.kind, Space::kEdge);
}

TEST(Differentiate, ABilinearFormSendsToBothSides) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 2), u = leaf.Weights("U", 4, 3), t = leaf.Weights("T", 6, 5);
  const Program df = Derive(leaf.Build([&](Vertex& v) {
    const Expression x = v.PullRow("x", 4);
    return Bilinear(MatMul(x, w), t, MatMul(x, u));
  }));
  EXPECT_EQ(df.value(Find(df, Op::kOuterGradLeft).at(0).output).shape, Shape::Vector(2));
  EXPECT_EQ(df.value(Find(df, Op::kOuterGradRight).at(0).output).shape, Shape::Vector(3));
}

std::shared_ptr<CustomOperator> Product() {
  auto op = std::make_shared<CustomOperator>();
  op->name = "product";
  op->inputs = 2;
  op->infer = [](std::span<const Shape> x) { return x[0]; };
  op->backward = [](int, int64_t, ConstOperand, ConstOperand, std::span<const ConstOperand>, std::span<const Shape>,
                    Operand) {};
  return op;
}

TEST(Differentiate, ARegisteredOperatorIsAskedForEachInputThatIsTrained) {
  Leaf leaf;
  const Expression w = leaf.Weights("W", 4, 4);
  const auto product = Product();
  const Program f = leaf.Build([&](Vertex& v) {
    const Expression x = v.PullRow("x", 4);
    const std::vector<Expression> operands{x, MatMul(x, w)};
    return Apply(product, operands);
  });
  const Program df = Derive(f);
  ASSERT_THAT(Find(df, Op::kCustomGrad), SizeIs(1));
  const Instruction gradient = Find(df, Op::kCustomGrad)[0], apply = Find(f, Op::kCustom).at(0);
  EXPECT_EQ(gradient.attributes.slot, 1);
  EXPECT_EQ(gradient.attributes.custom, product);
  EXPECT_THAT(gradient.inputs,
              ElementsAre(Find(df, Op::kPushGrad).at(0).output, apply.output, apply.inputs[0], apply.inputs[1]));
}

template <typename Function>
std::string MessageOf(Function function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(Differentiate, RefusesWhatHasNoGradient) {
  Leaf custom;
  const Expression w = custom.Weights("W", 4, 4);
  const auto product = Product();
  product->backward = nullptr;
  const Program f = custom.Build([&](Vertex& v) {
    const Expression x = MatMul(v.PullRow("x", 4), w);
    const std::vector<Expression> operands{x, x};
    return Apply(product, operands);
  });
  EXPECT_THAT(MessageOf([&] { Differentiate(f); }), HasSubstr("[product] expected a gradient kernel"));

  Leaf tied;
  const Expression table = tied.builder.Lookup("words", 4, 4, {});
  const Program g = tied.Build([&](Vertex& v) { return MatMul(v.Pull(table, "word"), table); });
  EXPECT_THAT(MessageOf([&] { Differentiate(g); }),
              HasSubstr("expected lookup table 'words' to be used by id only, got matmul_grad"));
}

}  // namespace
}  // namespace cavs
