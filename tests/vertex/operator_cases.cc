#include "tests/vertex/operator_cases.h"

#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "cavs/base/error.h"
#include "vertex/operator.h"

namespace cavs {
namespace {

constexpr int64_t kWidth = 5;

// A loss that gives each column of "r" its own gradient.
void AddWeightedLoss(ProgramBuilder& b) {
  const Expression r = b.Pushed("r");
  const Expression weights = b.Parameter("weights", r.shape(), Initializer::Uniform(1.0f));
  b.AddOutput("r", r);
  b.AddLoss(Sum(r * weights));
}

// Vertices without children: r = f(x, y) of two looked-up rows in (-0.9, 0.9).
template <typename Formula>
void Points(ProgramBuilder& b, Formula formula) {
  const Expression xs = b.Lookup("xs", 6, kWidth, Initializer::Uniform(0.9f));
  const Expression ys = b.Lookup("ys", 7, kWidth, Initializer::Uniform(0.9f));
  VertexType point = b.DeclareType("point", 0);
  point.Define([&](Vertex& v) { v.Push("r", formula(b, v.Pull(xs, "x"), v.Pull(ys, "y"))); });
  AddWeightedLoss(b);
}

template <typename Formula>
void PointsOfX(ProgramBuilder& b, Formula formula) {
  Points(b, [&](ProgramBuilder&, const Expression& x, const Expression& y) { return formula(x) * y; });
}

// Leaves whose state is a looked-up row, under parents that read it edge by edge: r = f(parent's row, children's rows).
template <typename Formula>
void Bags(ProgramBuilder& b, Formula formula) {
  const Expression xs = b.Lookup("xs", 6, kWidth, Initializer::Uniform(0.9f));
  const State h = b.DeclareState("h", Shape::Vector(kWidth));
  VertexType leaf = b.DeclareType("leaf", 0);
  VertexType bag = b.DeclareType("bag", kAnyArity);
  leaf.Define([&](Vertex& v) { v.Scatter(h, Tanh(v.Pull(xs, "x"))); });
  bag.Define([&](Vertex& v) { v.Push("r", formula(v.Pull(xs, "x"), v.GatherAll(h))); });
  AddWeightedLoss(b);
}

// Chains and binary trees whose parents read children slot by slot.
void Trees(ProgramBuilder& b) {
  const Expression xs = b.Lookup("xs", 6, kWidth, Initializer::Uniform(0.9f));
  const Expression u = b.Parameter("U", Shape::Matrix(2 * kWidth, kWidth));
  const Expression bias = b.Parameter("b", Shape::Vector(kWidth), Initializer::Uniform(0.2f));
  const State h = b.DeclareState("h", Shape::Vector(kWidth));
  VertexType leaf = b.DeclareType("leaf", 0);
  VertexType node = b.DeclareType("node", 2);
  leaf.Define([&](Vertex& v) {
    const Expression x = v.Pull(xs, "x");
    v.Scatter(h, x);
    v.Push("r", x);
  });
  node.Define([&](Vertex& v) {
    const Expression out = Tanh(Affine(Concat(v.Gather(0, h), v.Gather(1, h)), u, bias)) + v.Gather(1, h);
    v.Scatter(h, out);
    v.Push("r", out);
  });
  AddWeightedLoss(b);
}

// A loss over three scores of each vertex: loss(b, scores).
template <typename Loss>
void Losses(ProgramBuilder& b, Loss loss) {
  const Expression xs = b.Lookup("xs", 6, kWidth, Initializer::Uniform(0.9f));
  const Expression w = b.Parameter("W", Shape::Matrix(kWidth, 3));
  VertexType point = b.DeclareType("point", 0);
  point.Define([&](Vertex& v) { v.Push("r", v.Pull(xs, "x")); });
  const Expression scores = MatMul(b.Pushed("r"), w);
  b.AddOutput("scores", scores);
  b.AddLoss(loss(b, scores));
}

// x * sin(y), column by column.
std::shared_ptr<const CustomOperator> TimesSine() {
  auto op = std::make_shared<CustomOperator>();
  op->name = "times_sine";
  op->inputs = 2;
  op->infer = [](std::span<const Shape> x) {
    if (x[0] != x[1]) ThrowInvalid("times_sine", "expected equal shapes, got " + x[0].ToString() + x[1].ToString());
    return x[0];
  };
  op->forward = [](int64_t rows, std::span<const ConstOperand> x, std::span<const Shape> shapes, Operand y) {
    for (int64_t row = 0; row < rows; ++row) {
      const float *a = x[0].Row(row), *b = x[1].Row(row);
      for (int64_t i = 0; i < shapes[0].width(); ++i) {
        y.Row(row)[i] = a == nullptr || b == nullptr ? 0.0f : a[i] * std::sin(b[i]);
      }
    }
  };
  op->backward = [](int slot, int64_t rows, ConstOperand dy, ConstOperand, std::span<const ConstOperand> x,
                    std::span<const Shape> shapes, Operand dx) {
    for (int64_t row = 0; row < rows; ++row) {
      const float *a = x[0].Row(row), *b = x[1].Row(row), *d = dy.Row(row);
      for (int64_t i = 0; i < shapes[0].width(); ++i) {
        const float left = a == nullptr ? 0.0f : a[i], right = b == nullptr ? 0.0f : b[i];
        dx.Row(row)[i] = (d == nullptr ? 0.0f : d[i]) * (slot == 0 ? std::sin(right) : left * std::cos(right));
      }
    }
  };
  op->reference = [](std::span<const double* const> x, std::span<const Shape> shapes, double* y) {
    for (int64_t i = 0; i < shapes[0].width(); ++i) y[i] = x[0][i] * std::sin(x[1][i]);
  };
  op->reference_gradient = [](int slot, const double* dy, const double*, std::span<const double* const> x,
                              std::span<const Shape> shapes, double* dx) {
    for (int64_t i = 0; i < shapes[0].width(); ++i) {
      dx[i] = dy[i] * (slot == 0 ? std::sin(x[1][i]) : x[0][i] * std::cos(x[1][i]));
    }
  };
  return op;
}

using E = const Expression&;
using B = ProgramBuilder&;

Expression Weights(B b, int64_t rows, int64_t columns) { return b.Parameter("W", Shape::Matrix(rows, columns)); }
Expression Bias(B b) { return b.Parameter("b", Shape::Vector(kWidth), Initializer::Uniform(0.9f)); }

constexpr OperatorCase kCases[] = {
    // Rows from outside of the function, and between functions.
    {"lookup", Op::kLookup, [](B b) { Points(b, [](B, E x, E y) { return x + y; }); }, 1},
    {"lookup twice", Op::kLookup,
     [](B b) {
       const Expression table = b.Lookup("table", 4, kWidth, Initializer::Uniform(0.9f));
       b.DeclareType("point", 0).Define([&](Vertex& v) {
         v.Push("r", v.Pull(table, "first") * v.Pull(table, "second") + v.Pull(table, "first"));
       });
       AddWeightedLoss(b);
     },
     1},
    {"frozen lookup", Op::kLookup,
     [](B b) {
       const Expression table = b.Lookup("table", 4, kWidth, Initializer::Uniform(0.9f));
       b.Freeze(table);
       b.DeclareType("point", 0).Define([&](Vertex& v) { v.Push("r", v.Pull(table, "x") * Bias(b)); });
       AddWeightedLoss(b);
     },
     1},
    {"pull", Op::kPullRows,
     [](B b) {
       b.DeclareType("point", 0).Define([&](Vertex& v) {
         v.Push("r", Affine(v.PullRow("features", 3), Weights(b, 3, kWidth), Bias(b)));
       });
       AddWeightedLoss(b);
     },
     1},
    {"gather", Op::kGather, Trees, 6},
    {"scatter", Op::kScatter, Trees, 9},
    {"push", Op::kPush, Trees, 4},
    {"pushed twice", Op::kPushed,
     [](B b) {
       const Expression xs = b.Lookup("xs", 6, kWidth, Initializer::Uniform(0.9f));
       b.DeclareType("point", 0).Define([&](Vertex& v) {
         v.Push("a", v.Pull(xs, "x"));
         v.Push("c", Tanh(v.Pull(xs, "x")));
       });
       b.AddLoss(Sum(b.Pushed("a") * b.Pushed("c") + b.Pushed("a")));
     },
     1},
    {"gather all", Op::kGatherAll, [](B b) { Bags(b, [](E, E h) { return SumChildren(h); }); }, 5},
    {"to edges", Op::kToEdges, [](B b) { Bags(b, [](E x, E h) { return SumChildren(Tanh(x + h) * x); }); }, 5},
    {"sum children", Op::kSumChildren, [](B b) { Bags(b, [](E x, E h) { return SumChildren(h * h) * x; }); }, 5},
    {"mean children", Op::kMeanChildren, [](B b) { Bags(b, [](E x, E h) { return MeanChildren(h) * x; }); }, 5},
    {"max children", Op::kMaxChildren, [](B b) { Bags(b, [](E x, E h) { return MaxChildren(h) * x; }); }, 5},
    // A hoisted value that is read by vertices, by edges and by a product of each task.
    {"to vertices", Op::kToVertices,
     [](B b) {
       const Expression w = b.Parameter("input", Shape::Matrix(kWidth, kWidth));
       const Expression u = b.Parameter("U", Shape::Matrix(2 * kWidth, kWidth));
       Bags(b, [&](E x, E h) {
         const Expression y = Affine(x, w, Bias(b));
         return Tanh(MatMul(Concat(SumChildren(Tanh(y + h) * h), y), u)) * y * x;
       });
     },
     5},
    // Products.
    {"matmul", Op::kMatMul, [](B b) { Points(b, [](B c, E x, E y) { return MatMul(x * y, Weights(c, kWidth, 3)); }); },
     1},
    {"affine", Op::kMatMul,
     [](B b) {
       Points(b, [](B c, E x, E y) { return Affine(Concat(x, y), Weights(c, 2 * kWidth, kWidth), Bias(c)); });
     },
     1},
    {"affine over edges", Op::kMatMul,
     [](B b) {
       Bags(b, [&](E x, E h) { return SumChildren(Sigmoid(Affine(h, Weights(b, kWidth, kWidth), Bias(b)) + x) * h); });
     },
     5},
    {"shared weights", Op::kMatMul,
     [](B b) {
       Points(b, [](B c, E x, E y) {
         const Expression w = Weights(c, kWidth, kWidth);
         return MatMul(Tanh(MatMul(x, w)), w) + MatMul(y, w);
       });
     },
     1},
    {"bilinear", Op::kOuter,
     [](B b) { Points(b, [](B c, E x, E y) { return Bilinear(x, Weights(c, kWidth * kWidth, 4), y); }); }, 1},
    // Elementwise.
    {"add", Op::kAdd, [](B b) { Points(b, [](B, E x, E y) { return x + y; }); }, 1},
    {"add to itself", Op::kAdd, [](B b) { Points(b, [](B, E x, E y) { return (x + x) * y; }); }, 1},
    {"add a parameter", Op::kAdd, [](B b) { Points(b, [](B c, E x, E y) { return (x + Bias(c)) * y; }); }, 1},
    {"subtract", Op::kSubtract, [](B b) { Points(b, [](B, E x, E y) { return x * (x - y); }); }, 1},
    {"subtract from a parameter", Op::kSubtract,
     [](B b) { Points(b, [](B c, E x, E y) { return (Bias(c) - x) * y; }); }, 1},
    {"subtract from a constant", Op::kSubtract, [](B b) { PointsOfX(b, [](E x) { return 1.5 - x; }); }, 1},
    {"multiply", Op::kMultiply, [](B b) { Points(b, [](B, E x, E y) { return x * y; }); }, 1},
    {"square", Op::kMultiply, [](B b) { PointsOfX(b, [](E x) { return x * x; }); }, 1},
    {"multiply by a parameter", Op::kMultiply, [](B b) { Points(b, [](B c, E x, E y) { return x * Bias(c) + y; }); },
     1},
    {"multiply by a constant", Op::kMultiply,
     [](B b) { Points(b, [](B c, E x, E y) {
                 return x * c.Constant({1.0f, -2.0f, 0.5f, 0.0f, 3.0f}) * y;
               }); }, 1},
    {"divide", Op::kDivide, [](B b) { Points(b, [](B, E x, E y) { return x / (2.0 - y); }); }, 1},
    {"divide a parameter", Op::kDivide, [](B b) { Points(b, [](B c, E x, E y) { return Bias(c) / (2.0 - x) * y; }); },
     1},
    {"scale", Op::kScale, [](B b) { PointsOfX(b, [](E x) { return Scale(x, -1.75); }); }, 1},
    {"sigmoid", Op::kSigmoid, [](B b) { PointsOfX(b, [](E x) { return Sigmoid(4.0 * x); }); }, 1},
    {"tanh", Op::kTanh, [](B b) { PointsOfX(b, [](E x) { return Tanh(3.0 * x); }); }, 1},
    {"relu", Op::kRelu, [](B b) { PointsOfX(b, [](E x) { return Relu(x); }); }, 1},
    {"abs", Op::kRelu, [](B b) { PointsOfX(b, [](E x) { return Abs(x); }); }, 1},
    {"exp", Op::kExp, [](B b) { PointsOfX(b, [](E x) { return Exp(2.0 * x); }); }, 1},
    {"log", Op::kLog, [](B b) { PointsOfX(b, [](E x) { return Log(1.5 - x); }); }, 1},
    {"sqrt", Op::kSqrt, [](B b) { PointsOfX(b, [](E x) { return Sqrt(1.5 - x); }); }, 1},
    {"dropout", Op::kDropout, [](B b) { PointsOfX(b, [](E x) { return Dropout(x, 0.3) * Dropout(x, 0.5); }); }, 1},
    {"dropout of edges", Op::kDropout, [](B b) { Bags(b, [](E x, E h) { return SumChildren(Dropout(h, 0.4)) + x; }); },
     5},
    {"expand", Op::kExpand, [](B b) { Points(b, [](B, E x, E y) { return Slice(x, 1, 1) * y; }); }, 1},
    {"expand a parameter", Op::kExpand,
     [](B b) {
       Points(b, [](B c, E x, E y) {
         return x * c.Parameter("scale", Shape::Vector(1), Initializer::Constant(1.25f)) + y;
       });
     },
     1},
    // Whole rows.
    {"softmax", Op::kSoftmax, [](B b) { PointsOfX(b, [](E x) { return Softmax(3.0 * x); }); }, 1},
    {"log softmax", Op::kLogSoftmax, [](B b) { PointsOfX(b, [](E x) { return LogSoftmax(3.0 * x); }); }, 1},
    {"sum", Op::kSum, [](B b) { Points(b, [](B, E x, E y) { return Sum(x * y) * x; }); }, 1},
    {"mean", Op::kSum, [](B b) { Points(b, [](B, E x, E y) { return Mean(x * y); }); }, 1},
    {"concat", Op::kConcat, [](B b) { Points(b, [](B, E x, E y) { return Concat(x, Tanh(y), x, Slice(y, 2, 2)); }); },
     1},
    {"slice", Op::kSlice,
     [](B b) { Points(b, [](B, E x, E y) { return Slice(x, 1, 3) * Slice(y, 2, 3) + Slice(x, 0, 3); }); }, 1},
    {"split", Op::kSlice,
     [](B b) {
       Points(b, [](B, E x, E y) {
         const auto [i, o] = Split<2>(Concat(x, y));
         return Sigmoid(i) * Tanh(o);
       });
     },
     1},
    // Losses, and operators from outside.
    {"cross entropy", Op::kCrossEntropy,
     [](B b) { Losses(b, [](B c, E x) { return CrossEntropy(x, c.DeclareLabel("label", 3)); }); }, 1},
    {"squared error", Op::kSquaredError,
     [](B b) { Losses(b, [](B c, E x) { return SquaredError(x, c.DeclareTarget("target", 3)); }); }, 1},
    {"kl divergence", Op::kKlDivergence,
     [](B b) { Losses(b, [](B c, E x) { return KlDivergence(LogSoftmax(x), c.DeclareTarget("target", 3)); }); }, 1},
    {"custom", Op::kCustom,
     [](B b) { Points(b, [](B, E x, E y) {
                 return Apply(TimesSine(), std::array<Expression, 2>{x, y}) + x;
               }); }, 1},
};

}  // namespace

std::span<const OperatorCase> OperatorCases() { return kCases; }

}  // namespace cavs
