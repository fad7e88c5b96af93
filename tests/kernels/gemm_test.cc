#include "vertex/kernels/gemm.h"

#include <omp.h>

#include <tuple>

#include "tests/kernels/kernel_test_util.h"

namespace cavs::cpu {
namespace {

enum class Form { kPacked, kPlain };

struct Shape {
  int64_t k, n;
};

constexpr Shape kShapes[] = {{1, 1}, {3, 5}, {63, 16}, {64, 160}, {150, 3}, {350, 65}};

// The largest difference to doubles, relative to the largest sum of absolute terms, of a product in memory with or
// without gaps between rows.
class GemmTest : public testing::TestWithParam<std::tuple<Form, bool, bool, bool, bool>> {};

TEST_P(GemmTest, MatchesDoubles) {
  const auto [form, strided, transposed, with_bias, accumulate] = GetParam();
  ThreadPool pool(2);
  Gemm gemm(pool);
  for (const Shape& shape : kShapes) {
    const int64_t terms = transposed ? shape.n : shape.k;
    const int64_t columns = transposed ? shape.k : shape.n;
    const int64_t ldw = shape.n + 3;
    const std::vector<float> w = Uniform(shape.k * ldw, 1);
    const std::vector<float> bias = Uniform(columns, 2);
    PackedWeights packed(shape.k, shape.n);
    packed.Pack(w.data(), ldw);
    for (const int64_t rows : kRowCounts) {
      const Addressing mode = strided ? Addressing::kStrided : Addressing::kDense;
      SCOPED_TRACE(testing::Message() << rows << " rows, W [" << shape.k << ", " << shape.n << "]");
      Rows2d x(mode, rows, terms, 3), dst(mode, rows, columns, 4);
      const Rows2d old = dst;
      const ConstMatrix in = {x.operand().base, x.operand().ld};
      const Matrix out = {dst.operand().base, dst.operand().ld};
      const float* const b = with_bias ? bias.data() : nullptr;
      if (form == Form::kPacked) {
        gemm.Multiply(rows, in, packed, transposed, b, accumulate, out);
      } else {
        gemm.MultiplyPlain(rows, shape.k, shape.n, in, {w.data(), ldw}, transposed, b, accumulate, out);
      }
      double worst = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          double want = (accumulate ? old.At(r, c) : 0) + (b != nullptr ? static_cast<double>(b[c]) : 0);
          double size = std::abs(want);
          for (int64_t i = 0; i < terms; ++i) {
            const auto weight = static_cast<size_t>(transposed ? c * ldw + i : i * ldw + c);
            const double term = x.At(r, i) * static_cast<double>(w[weight]);
            want += term;
            size += std::abs(term);
          }
          worst = std::max(worst, std::abs(dst.At(r, c) - want) / (size + 1e-6));
        }
      }
      EXPECT_LE(worst, 1e-6);
      EXPECT_EQ(WrittenOutside(dst, old.values(), dst.operand(), rows, columns), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmTest,
                         testing::Combine(testing::Values(Form::kPacked, Form::kPlain), testing::Bool(),
                                          testing::Bool(), testing::Bool(), testing::Bool()));

TEST(Gemm, ParameterGradientsMatchDoubles) {
  ThreadPool pool(2);
  Gemm gemm(pool);
  for (const Shape& shape : {Shape{1, 1}, Shape{16, 63}, Shape{150, 700}, Shape{600, 5}}) {
    for (const int64_t rows : kRowCounts) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, [" << shape.k << ", " << shape.n << "]");
        Rows2d x(Addressing::kStrided, rows, shape.k, 1), dy(Addressing::kStrided, rows, shape.n, 2);
        Rows2d dw(Addressing::kStrided, shape.k, shape.n, 3);
        const Rows2d old = dw;
        gemm.MultiplyTransposed(rows, shape.k, shape.n, {x.operand().base, x.operand().ld},
                                {dy.operand().base, dy.operand().ld}, accumulate, {dw.operand().base, dw.operand().ld});
        double worst = 0;
        for (int64_t i = 0; i < shape.k; ++i) {
          for (int64_t j = 0; j < shape.n; ++j) {
            double want = accumulate ? old.At(i, j) : 0;
            for (int64_t r = 0; r < rows; ++r) want += x.At(r, i) * dy.At(r, j);
            worst = std::max(worst, std::abs(dw.At(i, j) - want));
          }
        }
        EXPECT_LE(worst, 1e-4);
        EXPECT_EQ(WrittenOutside(dw, old.values(), dw.operand(), shape.k, shape.n), 0);
      }
    }
  }
}

TEST(Gemm, EmptyProductsGiveTheBias) {
  ThreadPool pool(1);
  Gemm gemm(pool);
  const float bias[3] = {1, 2, 3};
  const float x = 0;
  PackedWeights nothing(0, 3);
  nothing.Pack(nullptr, 3);
  std::vector<float> dst = {9, 9, 9, 9, 9, 9};
  gemm.Multiply(2, {&x, 1}, nothing, false, bias, false, {dst.data(), 3});
  EXPECT_EQ(dst, (std::vector<float>{1, 2, 3, 1, 2, 3}));
  gemm.MultiplyPlain(2, 0, 3, {&x, 1}, {&x, 3}, false, bias, true, {dst.data(), 3});
  EXPECT_EQ(dst, (std::vector<float>{2, 4, 6, 2, 4, 6}));
  gemm.Multiply(2, {&x, 1}, nothing, false, nullptr, true, {dst.data(), 3});
  EXPECT_EQ(dst, (std::vector<float>{2, 4, 6, 2, 4, 6}));
  gemm.Multiply(2, {&x, 1}, nothing, false, nullptr, false, {dst.data(), 3});
  EXPECT_EQ(dst, std::vector<float>(6, 0.0f));
  EXPECT_EQ(nothing.bytes(), 0);
}

TEST(Gemm, RepackingReplacesTheWeights) {
  ThreadPool pool(1);
  Gemm gemm(pool);
  const std::vector<float> first = Uniform(40 * 24, 1), second = Uniform(40 * 30, 2), x = Uniform(40, 3);
  PackedWeights packed(40, 24, PackedWeights::Forms::kForward);
  EXPECT_FALSE(packed.packed());
  std::vector<float> y(24);
  EXPECT_THROW(gemm.Multiply(1, {x.data(), 40}, packed, false, nullptr, false, {y.data(), 24}), std::logic_error);
  packed.Pack(first.data(), 24);
  packed.Pack(second.data(), 30);
  gemm.Multiply(1, {x.data(), 40}, packed, false, nullptr, false, {y.data(), 24});
  for (size_t c = 0; c < 24; ++c) {
    double want = 0;
    for (size_t i = 0; i < 40; ++i) want += static_cast<double>(x[i]) * static_cast<double>(second[i * 30 + c]);
    EXPECT_NEAR(y[c], want, 1e-4);
  }
  EXPECT_THROW(gemm.Multiply(1, {y.data(), 24}, packed, true, nullptr, false, {y.data(), 40}), std::logic_error);
}

TEST(Gemm, NonFiniteValuesReachTheirRowsAndColumnsOnly) {
  ThreadPool pool(1);
  Gemm gemm(pool);
  const std::vector<float> w(8 * 4, 1.0f);
  PackedWeights packed(8, 4);
  packed.Pack(w.data(), 4);
  std::vector<float> x(3 * 8, 1.0f), y(3 * 4);
  x[8] = kNan;
  x[17] = kInfinity;
  gemm.Multiply(3, {x.data(), 8}, packed, false, nullptr, false, {y.data(), 4});
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(y[c], 8);
    EXPECT_TRUE(std::isnan(y[4 + c]));
    EXPECT_EQ(y[8 + c], kInfinity);
  }
}

TEST(Gemm, KeepsTheCallersOpenMpSetting) {
  omp_set_num_threads(3);
  ThreadPool pool(1);
  Gemm gemm(pool);
  const std::vector<float> w = Uniform(64 * 64, 1);
  std::vector<float> y(64 * 64);
  PackedWeights packed(64, 64);
  packed.Pack(w.data(), 64);
  gemm.Multiply(64, {w.data(), 64}, packed, false, nullptr, false, {y.data(), 64});
  gemm.MultiplyTransposed(64, 64, 64, {w.data(), 64}, {w.data(), 64}, false, {y.data(), 64});
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST(Gemm, MeasuresARate) {
  ThreadPool pool(1);
  EXPECT_GT(MeasureGemmRate(64, 128, 128, pool, 0.01), 0.1);
}

}  // namespace
}  // namespace cavs::cpu
