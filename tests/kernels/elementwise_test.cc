#include "vertex/kernels/elementwise.h"

#include <functional>

#include "tests/kernels/kernel_test_util.h"

namespace cavs::cpu {
namespace {

using Op = ElementwiseOp;
using Formula = std::function<double(double a, double b, double scalar)>;

struct Operator {
  const char* name;
  Op op;
  int arity;
  double low;  // the range of its random arguments
  double high;
  Formula formula;
};

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<Operator>& Operators() {
  static const std::vector<Operator> kOperators = {
      {"copy", Op::kCopy, 1, -2, 2, [](double a, double, double) { return a; }},
      {"fill", Op::kFill, 0, -2, 2, [](double, double, double s) { return s; }},
      {"add", Op::kAdd, 2, -2, 2, [](double a, double b, double) { return a + b; }},
      {"subtract", Op::kSubtract, 2, -2, 2, [](double a, double b, double) { return a - b; }},
      {"multiply", Op::kMultiply, 2, -2, 2, [](double a, double b, double) { return a * b; }},
      {"divide", Op::kDivide, 2, -2, 2, [](double a, double b, double) { return a / b; }},
      {"scale", Op::kScale, 1, -2, 2, [](double a, double, double s) { return a * s; }},
      {"sigmoid", Op::kSigmoid, 1, -20, 20, [](double a, double, double) { return SigmoidOf(a); }},
      {"tanh", Op::kTanh, 1, -6, 6, [](double a, double, double) { return std::tanh(a); }},
      {"relu", Op::kRelu, 1, -2, 2, [](double a, double, double) { return a < 0 ? 0 : a; }},
      {"exp", Op::kExp, 1, -20, 20, [](double a, double, double) { return std::exp(a); }},
      {"log", Op::kLog, 1, 0.001, 20, [](double a, double, double) { return std::log(a); }},
      {"sqrt", Op::kSqrt, 1, 0, 20, [](double a, double, double) { return std::sqrt(a); }},
      {"sigmoid_grad", Op::kSigmoidGrad, 2, 0, 1, [](double a, double b, double) { return a * b * (1 - b); }},
      {"tanh_grad", Op::kTanhGrad, 2, -1, 1, [](double a, double b, double) { return a * (1 - b * b); }},
      {"relu_grad", Op::kReluGrad, 2, -2, 2, [](double a, double b, double) { return b > 0 ? a : 0; }},
  };
  return kOperators;
}

// What an operator may lose to rounding: the terms of a difference round before they cancel.
double Tolerance(const Operator& op, double a, double b) {
  if (op.op == Op::kSigmoidGrad || op.op == Op::kTanhGrad) return 2.5e-7 * std::abs(a);
  if (op.op == Op::kAdd || op.op == Op::kSubtract) return 1e-7 * (std::abs(a) + std::abs(b));
  return 0;
}

ElementwiseProgram Single(const Operator& op, int64_t width) {
  ElementwiseProgram program{.inputs = 2, .outputs = 1, .temporaries = 0, .width = width, .steps = {}};
  program.steps.push_back({.op = op.op, .dst = 2, .a = 0, .b = 1, .scalar = -0.75f});
  return program;
}

TEST(Elementwise, OperatorsMatchDoublesInEveryAddressingMode) {
  ThreadPool pool(1);
  constexpr Addressing kModes[] = {Addressing::kDense, Addressing::kStrided, Addressing::kIndexed,
                                   Addressing::kBroadcast};
  for (const Operator& op : Operators()) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t width : kWidths) {
        for (int mode = 0; mode < 4; ++mode) {
          SCOPED_TRACE(testing::Message() << op.name << " [" << rows << ", " << width << "] " << Name(kModes[mode]));
          Rows2d a(kModes[mode], rows, width, 1, false, op.low, op.high);
          Rows2d b(kModes[(mode * 2) % 4], rows, width, 2, false, op.low, op.high);
          Rows2d dst(kModes[mode % 3], rows, width, 3, true);
          const std::vector<float> before = dst.values();
          const Operand operands[] = {a.operand(), b.operand(), dst.operand()};
          RunElementwise(Single(op, width), rows, operands, nullptr, pool, false);
          int64_t wrong = 0;
          for (int64_t row = 0; row < rows; ++row) {
            for (int64_t column = 0; column < width && !dst.left_out(row); ++column) {
              const double x = a.At(row, column), y = b.At(row, column);
              const double want = op.formula(x, y, -0.75);
              const double got = dst.At(row, column);
              wrong += !Agrees(static_cast<float>(got), want, 4e-7) && !(std::abs(got - want) <= Tolerance(op, x, y));
            }
          }
          EXPECT_EQ(wrong, 0);
          EXPECT_EQ(WrittenOutside(dst, before, dst.operand(), rows, width), 0);
        }
      }
    }
  }
}

TEST(Elementwise, SpecialValuesAreThoseOfStd) {
  ThreadPool pool(1);
  const float values[] = {0.0f,       -0.0f,  1.0f,    -1.0f,           kInfinity,  -kInfinity, kNan,   kDenormal,
                          -kDenormal, 1e-39f, -1e-39f, 1.17549435e-38f, 1e-30f,     -1e-30f,    3e38f,  -3e38f,
                          88.72284f,  88.7f,  89.5f,   -87.4f,          -95.0f,     -103.5f,    -110.f, 20.0f,
                          -20.0f,     1e-8f,  -1e-8f,  0.99999994f,     1.0000001f, 1e9f,       -1e9f};
  for (const Operator& op : Operators()) {
    std::vector<float> a, b;
    for (const float x : values) {
      for (const float y : values) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    std::vector<float> dst(a.size());
    const auto width = static_cast<int64_t>(a.size());
    const Operand operands[] = {{a.data(), width}, {b.data(), width}, {dst.data(), width}};
    RunElementwise(Single(op, width), 1, operands, nullptr, pool, false);
    for (size_t i = 0; i < a.size(); ++i) {
      // In floats where floats overflow half way; in doubles where the function is one rounding.
      const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      double want = op.formula(x, y, -0.75);
      if (op.op == Op::kSigmoidGrad) want = static_cast<double>(a[i] * b[i] * (1 - b[i]));
      if (op.op == Op::kTanhGrad) want = static_cast<double>(a[i] * (1 - b[i] * b[i]));
      const bool cancels = op.op == Op::kTanhGrad && std::abs(b[i]) > 0.5f && std::abs(b[i]) < 2.0f;
      if (cancels && std::isfinite(want)) {
        EXPECT_NEAR(dst[i], want, 1e-7 * std::abs(x)) << op.name << "(" << x << ", " << y << ")";
      } else {
        EXPECT_TRUE(Agrees(dst[i], want, 4e-7))
            << op.name << "(" << x << ", " << y << ") = " << dst[i] << ", want " << want;
      }
    }
  }
}

TEST(Elementwise, TranscendentalsKeepRelativeAccuracy) {
  ThreadPool pool(1);
  constexpr int64_t kCount = 1 << 16;
  for (const Operator& op : Operators()) {
    if (op.op != Op::kExp && op.op != Op::kLog && op.op != Op::kSigmoid && op.op != Op::kTanh) continue;
    std::vector<float> x(kCount), dst(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      // Every magnitude from denormals up, both signs: bit patterns in equal steps.
      const auto bits = static_cast<uint32_t>(i) * 65521u;
      const float value = std::bit_cast<float>(bits);
      x[static_cast<size_t>(i)] = op.op == Op::kLog ? std::abs(value) : value;
    }
    const Operand operands[] = {{x.data(), kCount}, {x.data(), kCount}, {dst.data(), kCount}};
    RunElementwise(Single(op, kCount), 1, operands, nullptr, pool, false);
    int64_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = op.formula(static_cast<double>(x[i]), 0, 0);
      const bool agrees = Agrees(dst[i], want, 4e-7);
      if (!agrees && wrong++ < 3) ADD_FAILURE() << op.name << "(" << x[i] << ") = " << dst[i] << ", want " << want;
    }
    EXPECT_EQ(wrong, 0) << op.name;
  }
}

TEST(Elementwise, GroupsPassTemporariesAndOutputsOn) {
  // An LSTM cell: i, o, u, f are column blocks of one matrix; c and h are written, h reads what c wrote.
  ThreadPool pool(1);
  for (const int64_t width : {1, 16, 63, 700}) {
    constexpr int64_t kRows = 9;
    std::vector<float> gates = Uniform(kRows * 4 * width, 1);
    std::vector<float> bias = Uniform(4 * width, 2);
    Rows2d child(Addressing::kIndexed, kRows, width, 3);
    Rows2d h(Addressing::kIndexed, kRows, width, 4, true);
    std::vector<float> c(static_cast<size_t>(kRows * width));
    std::vector<Operand> operands;
    for (int64_t g = 0; g < 4; ++g) operands.push_back({gates.data() + g * width, 4 * width});
    for (int64_t g = 0; g < 4; ++g) operands.push_back({bias.data() + g * width, 0});
    operands.push_back(child.operand());
    operands.push_back({c.data(), width});
    operands.push_back(h.operand());
    ElementwiseProgram program{.inputs = 9, .outputs = 2, .temporaries = 4, .width = width, .steps = {}};
    const auto step = [&](Op op, int dst, int a, int b = 0) {
      program.steps.push_back(
          {.op = op, .dst = static_cast<int16_t>(dst), .a = static_cast<int16_t>(a), .b = static_cast<int16_t>(b)});
    };
    for (int g = 0; g < 4; ++g) step(Op::kAdd, 11 + g, g, 4 + g);
    for (int g = 0; g < 4; ++g) step(g == 2 ? Op::kTanh : Op::kSigmoid, 11 + g, 11 + g);
    step(Op::kMultiply, 11, 11, 13);
    step(Op::kMultiply, 14, 14, 8);
    step(Op::kAdd, 9, 11, 14);
    step(Op::kTanh, 10, 9);
    step(Op::kMultiply, 10, 10, 12);
    RunElementwise(program, kRows, operands.data(), nullptr, pool, false);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        const auto gate = [&](int64_t g) {
          return static_cast<double>(gates[static_cast<size_t>((row * 4 + g) * width + column)]) +
                 static_cast<double>(bias[static_cast<size_t>(g * width + column)]);
        };
        const double cell = SigmoidOf(gate(0)) * std::tanh(gate(2)) + SigmoidOf(gate(3)) * child.At(row, column);
        ASSERT_NEAR(c[static_cast<size_t>(row * width + column)], cell, 1e-6);
        if (h.left_out(row)) continue;
        ASSERT_NEAR(h.At(row, column), std::tanh(cell) * SigmoidOf(gate(1)), 1e-6);
      }
    }
  }
}

TEST(Elementwise, DropoutDrawsTheBitsOfDropoutKeep) {
  ThreadPool pool(1);
  constexpr uint32_t kThreshold = 0x50000000u;
  for (const int64_t width : {3, 700, 1500}) {
    constexpr int64_t kRows = 5;
    std::vector<float> x = Uniform(kRows * width, 1, 1, 2);
    x[0] = kNan;
    std::vector<float> y(x.size());
    const uint64_t keys[kRows] = {1, 2, 3, 1, ~uint64_t{0}};
    ElementwiseProgram program{.inputs = 1, .outputs = 1, .temporaries = 0, .width = width, .steps = {}};
    program.steps.push_back(
        {.op = Op::kDropout, .dst = 1, .a = 0, .scalar = 1.5f, .salt = 99, .threshold = kThreshold});
    const Operand operands[] = {{x.data(), width}, {y.data(), width}};
    RunElementwise(program, kRows, operands, keys, pool, false);
    int64_t kept = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        const auto i = static_cast<size_t>(row * width + column);
        const bool keep = DropoutKeep(HashCounter(keys[row], 99), static_cast<uint32_t>(column), kThreshold);
        kept += keep;
        ASSERT_TRUE(Agrees(y[i], keep ? static_cast<double>(x[i]) * 1.5 : 0, 1e-7)) << row << ", " << column;
      }
    }
    const double share = static_cast<double>(kept) / static_cast<double>(kRows * width);
    if (width == 1500) {
      EXPECT_NEAR(share, 1 - 0x5p-4, 0.03);
    }
  }
}

TEST(Elementwise, DropoutEdgesKeepAllAndDropNearlyAll) {
  ThreadPool pool(1);
  std::vector<float> x(1000, 1.0f), y(1000);
  const Operand operands[] = {{x.data(), 1000}, {y.data(), 1000}};
  const uint64_t key = 5;
  for (const uint32_t threshold : {0u, 0xFFFFFFFFu}) {
    ElementwiseProgram program{.inputs = 1, .outputs = 1, .temporaries = 0, .width = 1000, .steps = {}};
    program.steps.push_back({.op = Op::kDropout, .dst = 1, .a = 0, .scalar = 1.0f, .threshold = threshold});
    RunElementwise(program, 1, operands, &key, pool, false);
    EXPECT_EQ(std::count(y.begin(), y.end(), 1.0f), threshold == 0 ? 1000 : 0);
  }
}

TEST(Elementwise, ExpandRepeatsTheSingleFloatOfARow) {
  ThreadPool pool(1);
  for (const int64_t width : {1, 3, 700}) {
    Rows2d scale(Addressing::kIndexed, 7, 1, 1);
    Rows2d x(Addressing::kStrided, 7, width, 2);
    Rows2d dst(Addressing::kStrided, 7, width, 3);
    ElementwiseProgram program{.inputs = 2, .outputs = 1, .temporaries = 1, .width = width, .steps = {}};
    program.steps.push_back({.op = Op::kExpand, .dst = 3, .a = 0});
    program.steps.push_back({.op = Op::kMultiply, .dst = 2, .a = 3, .b = 1});
    const Operand operands[] = {scale.operand(), x.operand(), dst.operand()};
    RunElementwise(program, 7, operands, nullptr, pool, false);
    for (int64_t row = 0; row < 7; ++row) {
      for (int64_t column = 0; column < width; ++column) {
        ASSERT_FLOAT_EQ(static_cast<float>(dst.At(row, column)),
                        static_cast<float>(scale.At(row, 0)) * static_cast<float>(x.At(row, column)));
      }
    }
  }
}

TEST(Elementwise, InPlaceOutputsWork) {
  ThreadPool pool(1);
  std::vector<float> x = Uniform(5 * 77, 1);
  const std::vector<float> before = x;
  ElementwiseProgram program{.inputs = 1, .outputs = 1, .temporaries = 0, .width = 77, .steps = {}};
  program.steps.push_back({.op = Op::kScale, .dst = 1, .a = 0, .scalar = 2.0f});
  program.steps.push_back({.op = Op::kAdd, .dst = 1, .a = 1, .b = 1});
  const Operand operands[] = {{x.data(), 77}, {x.data(), 77}};
  RunElementwise(program, 5, operands, nullptr, pool, false);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], before[i] * 4);
}

TEST(Elementwise, ManyTemporariesFitByNarrowerTiles) {
  ThreadPool pool(1);
  constexpr int kTemporaries = kMaxElementwiseSlots - 2;
  constexpr int64_t kWidth = 333;
  std::vector<float> x = Uniform(2 * kWidth, 1), y(x.size());
  ElementwiseProgram program{.inputs = 1, .outputs = 1, .temporaries = kTemporaries, .width = kWidth, .steps = {}};
  program.steps.push_back({.op = Op::kCopy, .dst = 2, .a = 0});
  for (int i = 1; i < kTemporaries; ++i) {
    program.steps.push_back(
        {.op = Op::kAdd, .dst = static_cast<int16_t>(2 + i), .a = static_cast<int16_t>(1 + i), .b = 0});
  }
  program.steps.push_back({.op = Op::kCopy, .dst = 1, .a = 1 + kTemporaries});
  const Operand operands[] = {{x.data(), kWidth}, {y.data(), kWidth}};
  RunElementwise(program, 2, operands, nullptr, pool, false);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], kTemporaries * x[i], 1e-2);
}

TEST(Elementwise, ThreadsAndLayoutsGiveTheSameBits) {
  constexpr int64_t kRows = 400, kWidth = 101;
  ElementwiseProgram program{.inputs = 2, .outputs = 1, .temporaries = 1, .width = kWidth, .steps = {}};
  program.steps.push_back({.op = Op::kSigmoid, .dst = 3, .a = 0});
  program.steps.push_back({.op = Op::kTanh, .dst = 2, .a = 1});
  program.steps.push_back({.op = Op::kMultiply, .dst = 2, .a = 2, .b = 3});
  std::vector<float> x = Uniform(kRows * (kWidth + 2), 1), y = Uniform(kRows * kWidth, 2);
  for (const int64_t ld : {kWidth, kWidth + 2}) {
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      std::vector<float> dst(static_cast<size_t>(kRows * kWidth));
      const Operand operands[] = {{x.data(), ld}, {y.data(), kWidth}, {dst.data(), kWidth}};
      RunElementwise(program, kRows, operands, nullptr, pool, true);
      if (first.empty()) first = dst;
      EXPECT_TRUE(SameBits(dst, first)) << threads << " threads, ld " << ld;
    }
    // Row by row through an index: the long row of the dense case must not show.
    std::vector<int32_t> identity(static_cast<size_t>(kRows));
    for (size_t i = 0; i < identity.size(); ++i) identity[i] = static_cast<int32_t>(i);
    ThreadPool pool(1);
    std::vector<float> dst(first.size());
    const Operand operands[] = {{x.data(), ld, identity.data()}, {y.data(), kWidth}, {dst.data(), kWidth}};
    RunElementwise(program, kRows, operands, nullptr, pool, true);
    EXPECT_TRUE(SameBits(dst, first));
  }
}

TEST(Elementwise, MalformedProgramsAreRefused) {
  ThreadPool pool(1);
  float x = 0, y = 0;
  const Operand operands[] = {{&x, 1}, {&y, 1}};
  const auto run = [&](ElementwiseStep step, int32_t temporaries = 0) {
    const ElementwiseProgram program{
        .inputs = 1, .outputs = 1, .temporaries = temporaries, .width = 1, .steps = {step}};
    RunElementwise(program, 1, operands, nullptr, pool, false);
  };
  EXPECT_THROW(run({.op = Op::kCopy, .dst = 0, .a = 0}), std::logic_error);
  EXPECT_THROW(run({.op = Op::kCopy, .dst = 2, .a = 0}), std::logic_error);
  EXPECT_THROW(run({.op = Op::kCopy, .dst = 1, .a = 7}), std::logic_error);
  EXPECT_THROW(run({.op = Op::kAdd, .dst = 1, .a = 0, .b = -1}), std::logic_error);
  EXPECT_THROW(run({.op = Op::kExpand, .dst = 1, .a = 1}), std::logic_error);
  EXPECT_THROW(run({.op = Op::kDropout, .dst = 1, .a = 0}), std::logic_error);
  EXPECT_THROW(run({.op = Op::kCopy, .dst = 1, .a = 0}, kMaxElementwiseSlots), std::logic_error);
  EXPECT_NO_THROW(run({.op = Op::kCopy, .dst = 1, .a = 0}));
}

}  // namespace
}  // namespace cavs::cpu
