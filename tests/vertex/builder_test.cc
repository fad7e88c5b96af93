// The vertex API: what a model declares, and the sentences that a wrong one gets.
#include "vertex/builder.h"

#include <array>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cavs {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// What the misuses below have at hand: parameters, states, values of two vertex types and of the head.
struct Model {
  Model() {
    words = b.Lookup("words", 10, 5, Initializer::Uniform(1.0f));
    w = b.Parameter("W", Shape::Matrix(5, 3));
    bias = b.Parameter("b", Shape::Vector(3));
    h = b.DeclareState("h", Shape::Vector(5));
    leaf = b.DeclareType("leaf", 0);
    node = b.DeclareType("node", 2);
    bag = b.DeclareType("bag", kAnyArity);
    leaf.Define([&](Vertex& v) {
      leaf_value = v.Pull(words, "word");
      v.Scatter(h, leaf_value);
      v.Push("h", leaf_value);
    });
    head = b.Pushed("h");
    label = b.DeclareLabel("label", 5);
    target = b.DeclareTarget("target", 5);
  }
  // Runs `body` as the function of type node, with its child 0 (width 5) and a product of it (width 3).
  template <typename Body>
  void InNode(Body body) {
    node.Define([&](Vertex& v) {
      const Expression x = v.Gather(0, h);
      body(v, x, MatMul(x, w));
    });
  }

  ProgramBuilder b;
  Expression words, w, bias, leaf_value, head;
  State h;
  VertexType leaf, node, bag;
  Label label, target;
};

using E = const Expression&;

struct Misuse {
  std::string_view name;
  std::string_view where;              // the text starts with [where]
  std::vector<std::string_view> says;  // and contains these
  void (*run)(Model& m);
};

void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.name; }

std::shared_ptr<CustomOperator> Unfit() {
  auto op = std::make_shared<CustomOperator>();
  op->name = "pairwise";
  op->inputs = 2;
  op->infer = [](std::span<const Shape> x) -> Shape {
    throw std::invalid_argument("[pairwise] expected equal shapes, got " + x[0].ToString() + " and " + x[1].ToString());
  };
  return op;
}

const Misuse kMisuses[] = {
    {"matmul", "matmul", {"[3]", "[5, 3]"}, [](Model& m) { m.InNode([&](Vertex&, E, E y) { MatMul(y, m.w); }); }},
    {"matmul_by_vector",
     "matmul",
     {"rank 2", "[3]"},
     [](Model& m) { m.InNode([&](Vertex&, E x, E) { MatMul(x, m.bias); }); }},
    {"matmul_by_rows", "matmul", {"parameter"}, [](Model& m) { m.InNode([&](Vertex&, E x, E y) { MatMul(x, y); }); }},
    {"matmul_of_parameters", "matmul", {"row", "parameter"}, [](Model& m) { MatMul(m.bias, m.w); }},
    {"affine",
     "affine",
     {"[3]", "[5, 3]"},
     [](Model& m) { m.InNode([&](Vertex&, E, E y) { Affine(y, m.w, m.bias); }); }},
    {"affine_bias",
     "affine",
     {"[5, 3]", "[4]"},
     [](Model& m) { m.InNode([&](Vertex&, E x, E) { Affine(x, m.w, m.b.Parameter("c", Shape::Vector(4))); }); }},
    {"bilinear",
     "bilinear",
     {"[5]", "[5, 3]", "[3]"},
     [](Model& m) { m.InNode([&](Vertex&, E x, E y) { Bilinear(x, m.w, y); }); }},
    {"add", "add", {"[5]", "[3]"}, [](Model& m) { m.InNode([](Vertex&, E x, E y) { x + y; }); }},
    {"subtract", "subtract", {"[3]", "[5]"}, [](Model& m) { m.InNode([](Vertex&, E x, E y) { y - x; }); }},
    {"multiply_by_parameter",
     "multiply",
     {"[5]", "[3]"},
     [](Model& m) { m.InNode([&](Vertex&, E x, E) { x* m.bias; }); }},
    {"divide", "divide", {"[5]", "[2]"}, [](Model& m) { m.InNode([](Vertex&, E x, E) { x / Slice(x, 0, 2); }); }},
    {"two_parameters", "add", {"[3]"}, [](Model& m) { m.bias + m.bias; }},
    {"two_types", "add", {"node", "leaf"}, [](Model& m) { m.InNode([&](Vertex&, E x, E) { x + m.leaf_value; }); }},
    {"head_and_vertex", "multiply", {"head", "leaf"}, [](Model& m) { m.head* m.leaf_value; }},
    {"concat_of_head_and_vertex", "concat", {"head", "leaf"}, [](Model& m) { Concat(m.head, m.leaf_value); }},
    {"two_models",
     "add",
     {"two models"},
     [](Model& m) {
       const Model other;
       m.head + other.head;
     }},
    {"empty_expression", "tanh", {"empty"}, [](Model&) { Tanh(Expression()); }},
    {"empty_operand", "add", {"empty"}, [](Model& m) { m.head + Expression(); }},
    {"elementwise_of_parameter", "sigmoid", {"parameter", "[3]"}, [](Model& m) { Sigmoid(m.bias); }},
    {"dropout", "dropout", {"[0, 1)", "1"}, [](Model& m) { Dropout(m.head, 1.0); }},
    {"dropout_negative", "dropout", {"-0.5"}, [](Model& m) { Dropout(m.head, -0.5); }},
    {"slice", "slice", {"[5]", "[3, 6)"}, [](Model& m) { Slice(m.head, 3, 3); }},
    {"slice_negative", "slice", {"[5]"}, [](Model& m) { Slice(m.head, -1, 3); }},
    {"split", "split", {"2", "[5]"}, [](Model& m) { Split<2>(m.head); }},
    {"concat_of_nothing", "concat", {"at least one"}, [](Model&) { Concat(std::span<const Expression>()); }},
    {"sum_of_vertices", "sum_children", {"edges", "leaf"}, [](Model& m) { SumChildren(m.leaf_value); }},
    {"max_of_vertices", "max_children", {"edges", "leaf"}, [](Model& m) { MaxChildren(m.leaf_value); }},
    {"loss_of_vertices", "cross_entropy", {"head", "leaf"}, [](Model& m) { CrossEntropy(m.leaf_value, m.label); }},
    {"classes", "cross_entropy", {"5", "label", "[2]"}, [](Model& m) { CrossEntropy(Slice(m.head, 0, 2), m.label); }},
    {"target_width",
     "squared_error",
     {"5", "target", "[2]"},
     [](Model& m) { SquaredError(Slice(m.head, 0, 2), m.target); }},
    {"target_as_label", "cross_entropy", {"target"}, [](Model& m) { CrossEntropy(m.head, m.target); }},
    {"label_as_target", "squared_error", {"label"}, [](Model& m) { SquaredError(m.head, m.label); }},
    {"no_label", "cross_entropy", {"label"}, [](Model& m) { CrossEntropy(m.head, Label()); }},
    {"loss_not_one", "loss", {"[1]", "[5]"}, [](Model& m) { m.b.AddLoss(m.head); }},
    {"loss_of_vertex", "loss", {"head"}, [](Model& m) { m.b.AddLoss(Sum(m.leaf_value)); }},
    {"output_of_vertex", "output", {"head"}, [](Model& m) { m.b.AddOutput("x", m.leaf_value); }},
    {"gather_slot",
     "gather",
     {"node", "[0, 2)", "2"},
     [](Model& m) { m.InNode([&](Vertex& v, E, E) { v.Gather(2, m.h); }); }},
    {"gather_of_any",
     "gather",
     {"GatherAll", "bag"},
     [](Model& m) { m.bag.Define([&](Vertex& v) { v.Gather(0, m.h); }); }},
    {"gather_nothing", "gather", {"state"}, [](Model& m) { m.InNode([&](Vertex& v, E, E) { v.Gather(0, State()); }); }},
    {"gather_all_nothing",
     "gather_all",
     {"state"},
     [](Model& m) { m.bag.Define([](Vertex& v) { v.GatherAll(State()); }); }},
    {"scatter_nothing",
     "scatter",
     {"state"},
     [](Model& m) { m.InNode([](Vertex& v, E x, E) { v.Scatter(State(), x); }); }},
    {"scatter_shape",
     "scatter",
     {"h", "[5]", "[3]"},
     [](Model& m) { m.InNode([&](Vertex& v, E, E y) { v.Scatter(m.h, y); }); }},
    {"scatter_twice",
     "scatter",
     {"h", "node", "twice"},
     [](Model& m) {
       m.InNode([&](Vertex& v, E x, E) {
         v.Scatter(m.h, x);
         v.Scatter(m.h, x);
       });
     }},
    {"scatter_of_other",
     "scatter",
     {"h", "node"},
     [](Model& m) { m.InNode([&](Vertex& v, E, E) { v.Scatter(m.h, m.leaf_value); }); }},
    {"scatter_edges",
     "scatter",
     {"h", "bag"},
     [](Model& m) { m.bag.Define([&](Vertex& v) { v.Scatter(m.h, v.GatherAll(m.h)); }); }},
    {"scatter_parameter",
     "scatter",
     {"h"},
     [](Model& m) { m.InNode([&](Vertex& v, E, E) { v.Scatter(m.h, m.bias); }); }},
    {"push_shape", "push", {"h", "[5]", "[3]"}, [](Model& m) { m.InNode([](Vertex& v, E, E y) { v.Push("h", y); }); }},
    {"push_twice",
     "push",
     {"h", "node", "twice"},
     [](Model& m) {
       m.InNode([](Vertex& v, E x, E) {
         v.Push("h", x);
         v.Push("h", x);
       });
     }},
    {"push_nothing", "push", {"empty"}, [](Model& m) { m.InNode([](Vertex& v, E, E) { v.Push("h", Expression()); }); }},
    {"pull_of_matrix",
     "pull",
     {"word", "[5, 3]"},
     [](Model& m) { m.InNode([&](Vertex& v, E, E) { v.Pull(m.w, "word"); }); }},
    {"pull_of_nothing",
     "pull",
     {"word", "empty"},
     [](Model& m) { m.InNode([](Vertex& v, E, E) { v.Pull(Expression(), "word"); }); }},
    {"pull_other_size",
     "column",
     {"word", "10", "7"},
     [](Model& m) {
       const Expression other = m.b.Lookup("other", 7, 5, Initializer::Uniform(1.0f));
       m.InNode([&](Vertex& v, E, E) { v.Pull(other, "word"); });
     }},
    {"pull_ids_as_rows",
     "column",
     {"word"},
     [](Model& m) { m.InNode([](Vertex& v, E, E) { v.PullRow("word", 10); }); }},
    {"pull_row_of_none",
     "column",
     {"features", "0"},
     [](Model& m) { m.InNode([](Vertex& v, E, E) { v.PullRow("features", 0); }); }},
    {"pushed_unknown", "pushed", {"hidden"}, [](Model& m) { m.b.Pushed("hidden"); }},
    {"parameter_name", "parameter", {"W"}, [](Model& m) { m.b.Parameter("W", Shape::Vector(2)); }},
    {"parameter_size", "parameter", {"V", "[0, 3]"}, [](Model& m) { m.b.Parameter("V", Shape::Matrix(0, 3)); }},
    {"lookup_name", "parameter", {"W"}, [](Model& m) { m.b.Lookup("W", 2, 2, {}); }},
    {"state_name", "state", {"h"}, [](Model& m) { m.b.DeclareState("h", Shape::Vector(2)); }},
    {"state_size", "state", {"s", "[0]"}, [](Model& m) { m.b.DeclareState("s", Shape::Vector(0)); }},
    {"type_name", "vertex type", {"leaf"}, [](Model& m) { m.b.DeclareType("leaf", 0); }},
    {"type_children", "vertex type", {"t", "-2"}, [](Model& m) { m.b.DeclareType("t", -2); }},
    {"constant", "constant", {"none"}, [](Model& m) { m.b.Constant({}); }},
    {"freeze", "freeze", {"parameter"}, [](Model& m) { m.b.Freeze(m.head); }},
    {"define_twice", "define", {"leaf"}, [](Model& m) { m.leaf.Define([](Vertex&) {}); }},
    {"not_defined", "build", {"node"}, [](Model& m) { m.b.Build(); }},
    {"custom_count", "pairwise", {"2", "1"}, [](Model& m) { Apply(Unfit(), std::array{m.head}); }},
    {"custom_shapes",
     "pairwise",
     {"[5]", "[2]"},
     [](Model& m) {
       Apply(Unfit(), std::array{m.head, Slice(m.head, 0, 2)});
     }},
    {"custom_empty_operand",
     "pairwise",
     {"empty"},
     [](Model& m) {
       Apply(Unfit(), std::array{Expression(), m.head});
     }},
};

class MisuseTest : public testing::TestWithParam<Misuse> {};

TEST_P(MisuseTest, NamesOperatorAndShapes) {
  Model model;
  try {
    GetParam().run(model);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, StartsWith("[" + std::string(GetParam().where) + "] "));
    for (const std::string_view part : GetParam().says) EXPECT_THAT(text, HasSubstr(std::string(part)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MisuseTest, testing::ValuesIn(kMisuses),
                         [](const testing::TestParamInfo<Misuse>& c) { return std::string(c.param.name); });

TEST(Builder, InfersShapes) {
  Model m;
  m.InNode([&](Vertex& v, E x, E y) {
    EXPECT_EQ(y.shape(), Shape::Vector(3));
    EXPECT_EQ(Affine(x, m.w, m.bias).shape(), Shape::Vector(3));
    EXPECT_EQ(Concat(x, y, y).shape(), Shape::Vector(11));
    EXPECT_EQ(Slice(x, 1, 2).shape(), Shape::Vector(2));
    EXPECT_EQ((Split<5>(x))[4].shape(), Shape::Vector(1));
    EXPECT_EQ(Sum(x).shape(), Shape::Vector(1));
    EXPECT_EQ((Mean(x) * x).shape(), Shape::Vector(5));
    EXPECT_EQ((m.bias - y).shape(), Shape::Vector(3));
    EXPECT_EQ(Bilinear(x, m.b.Parameter("V", Shape::Matrix(15, 7)), y).shape(), Shape::Vector(7));
    EXPECT_EQ(v.PullRow("features", 6).shape(), Shape::Vector(6));
  });
  m.bag.Define([&](Vertex& v) {
    const Expression edges = v.GatherAll(m.h);
    EXPECT_EQ(SumChildren(edges).shape(), Shape::Vector(5));
    // A value of the vertex meets its edges edge by edge, on either side.
    EXPECT_EQ(m.b.value((v.Pull(m.words, "word") * edges).id()).space.kind, Space::kEdge);
    EXPECT_EQ(m.b.value(Concat(v.Pull(m.words, "word"), edges).id()).space.kind, Space::kEdge);
  });
  EXPECT_EQ(CrossEntropy(m.head, m.label).shape(), Shape::Vector(1));
}

TEST(Builder, BuildsOneFunctionPerTypeInDependenceOrder) {
  Model m;
  m.InNode([&](Vertex& v, E x, E) { v.Scatter(m.h, Tanh(x)); });
  m.bag.Define([&](Vertex& v) { v.Scatter(m.h, SumChildren(v.GatherAll(m.h))); });
  m.b.AddLoss(CrossEntropy(m.head, m.label));
  const Program f = m.b.Build();
  std::vector<bool> made(f.values.size(), false);
  for (size_t i = 0; i < f.values.size(); ++i) {
    made[i] = f.values[i].space.kind == Space::kParameter || f.values[i].space.kind == Space::kConstant;
  }
  for (const Instruction& instruction : f.instructions) {
    for (const ValueId input : instruction.inputs)
      EXPECT_TRUE(made[static_cast<size_t>(input)]) << ToString(f, instruction);
    if (instruction.output == kNoValue) continue;
    EXPECT_FALSE(made[static_cast<size_t>(instruction.output)]) << "made twice: " << ToString(f, instruction);
    made[static_cast<size_t>(instruction.output)] = true;
  }
  EXPECT_FALSE(f.is_backward());
  EXPECT_EQ(f.losses.size(), 1U);
  EXPECT_EQ(f.head_columns.size(), 2U);
}

TEST(Builder, DropoutsOfAModelDifferAndRateZeroIsNone) {
  Model m;
  const Expression first = Dropout(m.head, 0.5), second = Dropout(m.head, 0.5);
  EXPECT_NE(first.id(), second.id());
  EXPECT_EQ(Dropout(m.head, 0.0).id(), m.head.id());
  m.node.Define([](Vertex&) {});
  m.bag.Define([](Vertex&) {});
  std::vector<uint64_t> salts;
  for (const Instruction& instruction : m.b.Build().instructions) {
    if (instruction.op == Op::kDropout) salts.push_back(instruction.attributes.salt);
  }
  ASSERT_EQ(salts.size(), 2U);
  EXPECT_NE(salts[0], salts[1]);
}

}  // namespace
}  // namespace cavs
