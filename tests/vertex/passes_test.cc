// Passes on a Tree-LSTM-like F and its dF: what is merged, dropped, hoisted and deferred.
#include "vertex/passes.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backprop/differentiate.h"
#include "vertex/builder.h"

namespace cavs {
namespace {

constexpr int64_t kHidden = 4;

// A binary Tree-LSTM whose inner vertices read a word too, with a classifier on what every vertex pushes.
Program TreeLstm() {
  ProgramBuilder b;
  const Expression words = b.Lookup("words", 10, 3, Initializer::Uniform(1.0f));
  const Expression w = b.Parameter("W", Shape::Matrix(3, 5 * kHidden));
  const Expression u = b.Parameter("U", Shape::Matrix(2 * kHidden, 5 * kHidden));
  const Expression bias = b.Parameter("b", Shape::Vector(5 * kHidden));
  const Expression v_out = b.Parameter("V", Shape::Matrix(kHidden, kHidden));
  const State h = b.DeclareState("h", Shape::Vector(kHidden));
  const State c = b.DeclareState("c", Shape::Vector(kHidden));
  VertexType leaf = b.DeclareType("leaf", 0);
  VertexType node = b.DeclareType("node", 2);
  leaf.Define([&](Vertex& v) {
    const auto [i, o, g, l, r] = Split<5>(Affine(v.Pull(words, "word"), w, bias));
    const Expression cell = Sigmoid(i) * Tanh(g), out = Sigmoid(o) * Tanh(cell);
    v.Scatter(c, cell);
    v.Scatter(h, out);
    v.Push("h", Tanh(MatMul(out, v_out)));
  });
  node.Define([&](Vertex& v) {
    const Expression input = Affine(v.Pull(words, "word"), w, bias);
    const Expression children = MatMul(Concat(v.Gather(0, h), v.Gather(1, h)), u);
    const auto [i, o, g, l, r] = Split<5>(input + children);
    const Expression cell = Sigmoid(i) * Tanh(g) + Sigmoid(l) * v.Gather(0, c) + Sigmoid(r) * v.Gather(1, c);
    const Expression out = Sigmoid(o) * Tanh(cell);
    v.Scatter(c, cell);
    v.Scatter(h, out);
    v.Push("h", Tanh(MatMul(out, v_out)));
  });
  const Expression w_class = b.Parameter("Wc", Shape::Matrix(kHidden, 3));
  b.AddLoss(CrossEntropy(MatMul(b.Pushed("h"), w_class), b.DeclareLabel("label", 3)));
  return b.Build();
}

Program RunAll(const Program& program, const PassOptions& options) {
  return Partition(Simplify(program, options), options);
}

// "phase op" or "phase op parameter" for each instruction of a vertex type.
std::multiset<std::string> Phases(const Program& program, int32_t type) {
  std::multiset<std::string> result;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.space.type != type) continue;
    static constexpr const char* kNames[] = {"hoisted ", "recurrent ", "deferred "};
    std::string text = kNames[static_cast<size_t>(instruction.phase)] + std::string(OpName(instruction.op));
    int32_t parameter = instruction.attributes.parameter;
    for (const ValueId input : instruction.inputs) parameter = std::max(parameter, program.value(input).parameter);
    if (parameter >= 0) text += " " + program.signature->parameters[static_cast<size_t>(parameter)].name;
    result.insert(std::move(text));
  }
  return result;
}

int64_t Count(const Program& program, Op op) {
  return std::count_if(program.instructions.begin(), program.instructions.end(),
                       [op](const Instruction& instruction) { return instruction.op == op; });
}

TEST(Partition, HoistsInputsAndDefersPushes) {
  const Program f = RunAll(TreeLstm(), {});
  const std::multiset<std::string> node = Phases(f, 1);
  EXPECT_TRUE(node.contains("hoisted lookup words"));
  EXPECT_TRUE(node.contains("hoisted matmul b"));  // x W + b, for all vertices at once
  EXPECT_EQ(node.count("recurrent gather"), 4U);
  EXPECT_TRUE(node.contains("recurrent matmul U"));
  EXPECT_EQ(node.count("recurrent scatter"), 2U);
  EXPECT_TRUE(node.contains("deferred matmul V"));
  EXPECT_TRUE(node.contains("deferred push"));
  EXPECT_EQ(node.count("recurrent matmul V") + node.count("recurrent push") + node.count("recurrent matmul b"), 0U);
  // A leaf depends on nothing that was gathered.
  for (const std::string& text : Phases(f, 0)) EXPECT_EQ(text.rfind("hoisted", 0), 0U) << text;
}

TEST(Partition, DefersEveryParameterGradient) {
  const Program df = RunAll(Differentiate(TreeLstm()), {});
  for (const Instruction& instruction : df.instructions) {
    const bool is_sink =
        instruction.op == Op::kMatMulGrad || instruction.op == Op::kColumnSumGrad || instruction.op == Op::kLookupGrad;
    if (is_sink && instruction.space.kind != Space::kHead) {
      EXPECT_NE(instruction.phase, Phase::kRecurrent) << ToString(df, instruction);
    }
  }
  const std::multiset<std::string> node = Phases(df, 1);
  EXPECT_EQ(node.count("recurrent scatter_grad"), 2U);
  EXPECT_EQ(node.count("recurrent gather_grad"), 4U);
  EXPECT_TRUE(node.contains("recurrent matmul U"));      // what goes back to the children
  EXPECT_TRUE(node.contains("deferred matmul_grad U"));  // once over all vertices
  EXPECT_TRUE(node.contains("deferred lookup_grad words"));
  EXPECT_TRUE(node.contains("hoisted push_grad"));  // the head's part is known before the recursion
  EXPECT_TRUE(node.contains("hoisted matmul V"));
  EXPECT_TRUE(node.contains("hoisted matmul_grad V"));
  // Nothing is sent on from a leaf, so all that depends on its parents can wait.
  for (const std::string& text : Phases(df, 0)) EXPECT_NE(text.rfind("recurrent", 0), 0U) << text;
}

TEST(Partition, SwitchesKeepInstructionsInTheRecursion) {
  for (const bool backward : {false, true}) {
    const Program f = TreeLstm();
    const Program program = backward ? Differentiate(f) : f;
    for (const bool hoisting : {false, true}) {
      for (const bool lazy : {false, true}) {
        const Program result = Partition(program, {.hoisting = hoisting, .lazy_batching = lazy});
        ASSERT_EQ(result.instructions.size(), program.instructions.size());
        const auto has = [&](Phase phase) {
          return std::any_of(result.instructions.begin(), result.instructions.end(),
                             [&](const Instruction& i) { return i.phase == phase && i.space.kind != Space::kHead; });
        };
        EXPECT_EQ(has(Phase::kHoisted), hoisting);
        EXPECT_EQ(has(Phase::kDeferred), lazy);
        EXPECT_TRUE(has(Phase::kRecurrent));
      }
    }
  }
}

// No instruction may read what runs in a later phase.
TEST(Partition, PhasesAreInOrderOfDependence) {
  for (const Program& program : {TreeLstm(), Differentiate(TreeLstm())}) {
    const Program result = RunAll(program, {});
    std::vector<Phase> phase(result.values.size(), Phase::kHoisted);
    for (const Instruction& instruction : result.instructions) {
      for (const ValueId input : instruction.inputs) {
        EXPECT_LE(phase[static_cast<size_t>(input)], instruction.phase) << ToString(result, instruction);
      }
      if (instruction.output != kNoValue) phase[static_cast<size_t>(instruction.output)] = instruction.phase;
    }
  }
}

// One type that is written with repetitions and waste.
Program Wasteful() {
  ProgramBuilder b;
  const Expression words = b.Lookup("words", 10, kHidden, Initializer::Uniform(1.0f));
  const State h = b.DeclareState("h", Shape::Vector(kHidden));
  b.DeclareType("node", 1).Define([&](Vertex& v) {
    const Expression first = Tanh(v.Gather(0, h)) + v.Pull(words, "word");
    const Expression again = Tanh(v.Gather(0, h)) + v.Pull(words, "word");
    const Expression other = Tanh(v.Gather(0, h)) - v.Pull(words, "other");
    Sigmoid(Exp(first));  // nobody reads it
    v.Scatter(h, first * again);
    v.Push("h", Dropout(other, 0.5) + Dropout(other, 0.5));
  });
  b.AddLoss(Sum(b.Pushed("h")));
  b.AddOutput("h", b.Pushed("h"));
  return b.Build();
}

TEST(CommonExpressions, EqualInstructionsRunOnce) {
  const Program before = Wasteful();
  const Program after = MergeCommonExpressions(before);
  EXPECT_EQ(Count(before, Op::kGather), 3);
  EXPECT_EQ(Count(after, Op::kGather), 1);
  EXPECT_EQ(Count(after, Op::kTanh), 1);
  EXPECT_EQ(Count(before, Op::kLookup), 3);
  EXPECT_EQ(Count(after, Op::kLookup), 2) << "columns differ";
  EXPECT_EQ(Count(after, Op::kAdd), 2) << "one of the two equal sums, and the sum of the dropouts";
  EXPECT_EQ(Count(after, Op::kDropout), 2) << "two dropouts draw apart";
  EXPECT_EQ(Count(after, Op::kScatter), 1);
  EXPECT_EQ(Count(after, Op::kPush), 1);
  EXPECT_EQ(Count(after, Op::kPushed), 1);
  EXPECT_EQ(MergeCommonExpressions(after).instructions.size(), after.instructions.size());
  ASSERT_EQ(after.values.size(), before.values.size()) << "values keep their ids";
}

TEST(DeadCode, DropsWhatReachesNothing) {
  const Program before = Wasteful();
  const Program after = DropDeadCode(before);
  EXPECT_EQ(Count(before, Op::kExp), 1);
  EXPECT_EQ(Count(after, Op::kExp), 0);
  EXPECT_EQ(Count(after, Op::kSigmoid), 0);
  EXPECT_EQ(after.instructions.size() + 2, before.instructions.size());
}

TEST(Simplify, SwitchesAreObeyed) {
  const Program f = Wasteful();
  const Program none = RunAll(f, {.common_expressions = false, .dead_code = false});
  EXPECT_EQ(none.instructions.size(), f.instructions.size());
  EXPECT_EQ(Count(RunAll(f, {.common_expressions = false}), Op::kGather), 3);
  EXPECT_EQ(Count(RunAll(f, {.common_expressions = false}), Op::kExp), 0);
  EXPECT_EQ(Count(RunAll(f, {.dead_code = false}), Op::kGather), 1);
  EXPECT_EQ(Count(RunAll(f, {.dead_code = false}), Op::kExp), 1);
}

}  // namespace
}  // namespace cavs
