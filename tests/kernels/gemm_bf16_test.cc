// Products of bf16 operands, against doubles on operands that were rounded the same way, and against f32.
#include <tuple>

#include "tests/kernels/kernel_test_util.h"
#include "vertex/kernels/gemm.h"

namespace cavs::cpu {
namespace {

struct Shape {
  int64_t k, n;
};

constexpr Shape kShapes[] = {{1, 1}, {3, 5}, {63, 16}, {64, 160}, {150, 3}, {350, 65}, {33, 47}};
constexpr int64_t kRows[] = {0, 1, 2, 7, 64, 65, 200, 600};

// Of a finite number, to nearest even.
double Rounded(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000));
}

// A sum over rounded and over exact terms, and the sum of the sizes of the terms.
struct Sum {
  void AddExact(double term) { rounded += term, exact += term, size += std::abs(term); }
  void AddProduct(double a, double b) {
    rounded += Rounded(a) * Rounded(b);
    exact += a * b;
    size += std::abs(a * b);
  }
  double rounded = 0, exact = 0, size = 1e-6;
};

// The largest differences of results, relative to the sizes of their terms.
struct Worst {
  void Add(double got, const Sum& want) {
    rounded = std::max(rounded, std::abs(got - want.rounded) / want.size);
    exact = std::max(exact, std::abs(got - want.exact) / want.size);
  }
  void Expect() const {
    EXPECT_LE(rounded, 1e-5);
    EXPECT_LE(exact, 2e-2);
  }
  double rounded = 0, exact = 0;
};

class GemmBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasFastBf16()) GTEST_SKIP() << kNoFastBf16;
  }
};

class GemmBf16Product : public GemmBf16, public testing::WithParamInterface<std::tuple<bool, bool, bool, bool>> {};

TEST_P(GemmBf16Product, MatchesRoundedDoubles) {
  const auto [strided, transposed, with_bias, accumulate] = GetParam();
  ThreadPool pool(2);
  Gemm gemm(pool);
  const Addressing mode = strided ? Addressing::kStrided : Addressing::kDense;
  for (const Shape& shape : kShapes) {
    const int64_t terms = transposed ? shape.n : shape.k, columns = transposed ? shape.k : shape.n;
    const int64_t ldw = shape.n + 3;
    const std::vector<float> w = Uniform(shape.k * ldw, 1), bias = Uniform(columns, 2);
    const float* const b = with_bias ? bias.data() : nullptr;
    PackedWeights packed(shape.k, shape.n, PackedWeights::Forms::kForwardAndTransposed, Precision::kBf16);
    packed.Pack(w.data(), ldw);
    for (const int64_t rows : kRows) {
      SCOPED_TRACE(testing::Message() << rows << " rows, W [" << shape.k << ", " << shape.n << "]");
      Rows2d x(mode, rows, terms, 3), dst(mode, rows, columns, 4);
      const Rows2d old = dst;
      gemm.Multiply(rows, {x.operand().base, x.operand().ld}, packed, transposed, b, accumulate,
                    {dst.operand().base, dst.operand().ld});
      Worst worst;
      for (int64_t r = 0; r<rows; r += rows> 100 ? 7 : 1) {
        for (int64_t c = 0; c < columns; ++c) {
          Sum want;
          if (accumulate) want.AddExact(old.At(r, c));
          if (b != nullptr) want.AddExact(static_cast<double>(b[c]));
          for (int64_t i = 0; i < terms; ++i) {
            const auto weight = static_cast<size_t>(transposed ? c * ldw + i : i * ldw + c);
            want.AddProduct(x.At(r, i), static_cast<double>(w[weight]));
          }
          worst.Add(dst.At(r, c), want);
        }
      }
      worst.Expect();
      EXPECT_EQ(WrittenOutside(dst, old.values(), dst.operand(), rows, columns), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmBf16Product,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool(), testing::Bool()));

// 600 rows are more than are added at once.
TEST_F(GemmBf16, ParameterGradientsMatchRoundedDoubles) {
  ThreadPool pool(2);
  Gemm gemm(pool);
  for (const Shape& shape : {Shape{1, 1}, Shape{16, 63}, Shape{50, 301}, Shape{300, 5}}) {
    for (const int64_t rows : kRows) {
      for (const bool strided : {false, true}) {
        for (const bool accumulate : {false, true}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, [" << shape.k << ", " << shape.n << "]");
          const Addressing mode = strided ? Addressing::kStrided : Addressing::kDense;
          Rows2d x(mode, rows, shape.k, 1), dy(mode, rows, shape.n, 2), dw(mode, shape.k, shape.n, 3);
          const Rows2d old = dw;
          gemm.MultiplyTransposed(rows, shape.k, shape.n, {x.operand().base, x.operand().ld},
                                  {dy.operand().base, dy.operand().ld}, accumulate,
                                  {dw.operand().base, dw.operand().ld}, Precision::kBf16);
          Worst worst;
          for (int64_t i = 0; i<shape.k; i += shape.k> 40 ? 9 : 1) {
            for (int64_t j = 0; j < shape.n; ++j) {
              Sum want;
              if (accumulate) want.AddExact(old.At(i, j));
              for (int64_t r = 0; r < rows; ++r) want.AddProduct(x.At(r, i), dy.At(r, j));
              worst.Add(dw.At(i, j), want);
            }
          }
          worst.Expect();
          EXPECT_EQ(WrittenOutside(dw, old.values(), dw.operand(), shape.k, shape.n), 0);
        }
      }
    }
  }
}

TEST_F(GemmBf16, EmptyProductsGiveTheBias) {
  ThreadPool pool(1);
  Gemm gemm(pool);
  const float bias[3] = {1, 2, 3};
  const float x = 0;
  PackedWeights nothing(0, 3, PackedWeights::Forms::kForwardAndTransposed, Precision::kBf16);
  nothing.Pack(nullptr, 3);
  EXPECT_EQ(nothing.bytes(), 0);
  std::vector<float> dst = {9, 9, 9, 9, 9, 9};
  gemm.Multiply(2, {&x, 1}, nothing, false, bias, false, {dst.data(), 3});
  EXPECT_EQ(dst, (std::vector<float>{1, 2, 3, 1, 2, 3}));
}

TEST_F(GemmBf16, RepackingReplacesTheWeights) {
  ThreadPool pool(1);
  Gemm gemm(pool);
  PackedWeights packed(2, 2, PackedWeights::Forms::kForward, Precision::kBf16);
  const float first[] = {1, 2, 3, 4}, second[] = {5, 6, 0, 7, 8, 0}, x[] = {1, 10};
  packed.Pack(first, 2);
  packed.Pack(second, 3);
  float y[2];
  gemm.Multiply(1, {x, 2}, packed, false, nullptr, false, {y, 2});
  EXPECT_EQ(y[0], 75);
  EXPECT_EQ(y[1], 86);
  EXPECT_THROW(gemm.Multiply(1, {x, 2}, packed, true, nullptr, false, {y, 2}), std::logic_error);
}

TEST_F(GemmBf16, SpecialValuesReachTheirRowsOnly) {
  ThreadPool pool(1);
  Gemm gemm(pool);
  const std::vector<float> w(8 * 4, 1.0f);
  PackedWeights packed(8, 4, PackedWeights::Forms::kForward, Precision::kBf16);
  packed.Pack(w.data(), 4);
  std::vector<float> x(4 * 8, 1.0f), y(4 * 4);
  x[8] = kNan;
  x[17] = kInfinity;
  std::fill_n(x.begin() + 24, 8, 1e-40f);  // denormals count as zeros
  gemm.Multiply(4, {x.data(), 8}, packed, false, nullptr, false, {y.data(), 4});
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(y[c], 8);
    EXPECT_TRUE(std::isnan(y[4 + c]));
    EXPECT_EQ(y[8 + c], kInfinity);
    EXPECT_EQ(y[12 + c], 0);
  }
}

TEST_F(GemmBf16, ThreadsDoNotChangeBits) {
  constexpr int64_t kTestRows = 600, kTerms = 300, kColumns = 333;
  const std::vector<float> x = Uniform(kTestRows * kTerms, 1), w = Uniform(kTerms * kColumns, 2),
                           dy = Uniform(kTestRows * kColumns, 3);
  PackedWeights packed(kTerms, kColumns, PackedWeights::Forms::kForwardAndTransposed, Precision::kBf16);
  packed.Pack(w.data(), kColumns);
  std::vector<float> expected;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    Gemm gemm(pool);
    std::vector<float> results(kTestRows * (kColumns + kTerms) + kTerms * kColumns);
    float* const y = results.data();
    float* const dx = y + kTestRows * kColumns;
    float* const dw = dx + kTestRows * kTerms;
    gemm.Multiply(kTestRows, {x.data(), kTerms}, packed, false, nullptr, false, {y, kColumns});
    gemm.Multiply(kTestRows, {dy.data(), kColumns}, packed, true, nullptr, false, {dx, kTerms});
    gemm.MultiplyTransposed(kTestRows, kTerms, kColumns, {x.data(), kTerms}, {dy.data(), kColumns}, false,
                            {dw, kColumns}, Precision::kBf16);
    if (threads == 1) expected = results;
    EXPECT_TRUE(SameBits(results, expected)) << threads << " threads";
  }
}

TEST_F(GemmBf16, MeasuresARate) {
  ThreadPool pool(1);
  EXPECT_GT(MeasureGemmRate(64, 128, 128, pool, 0.01, Precision::kBf16), 0.1);
}

TEST(Precision, NamesAreParsedAndOthersRefused) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    EXPECT_EQ(ParsePrecision(PrecisionName(precision)), precision);
  }
  EXPECT_THROW(ParsePrecision("fp16"), std::invalid_argument);
}

}  // namespace
}  // namespace cavs::cpu
