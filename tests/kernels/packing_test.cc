#include "vertex/kernels/cpu/packing.h"

#include <tuple>

#include "tests/kernels/kernel_test_util.h"

namespace cavs::cpu {
namespace {

constexpr int64_t kPadding = 7;
constexpr Bf16 kUnwritten = 0xABCD;

float AsFloat(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

// A matrix with gaps between its rows.
struct Source {
  Source(int64_t matrix_rows, int64_t matrix_columns)
      : rows(matrix_rows), columns(matrix_columns), values(Uniform(rows * ld() + 1, 1)) {}
  int64_t ld() const { return columns + 3; }
  float At(int64_t row, int64_t column) const {
    return row < rows && column < columns ? values[static_cast<size_t>(row * ld() + column)] : 0.0f;
  }
  int64_t rows, columns;
  std::vector<float> values;
};

// A bf16 has eight bits: the nearest one lies within 2^-8 of the value.
void ExpectNearest(Bf16 got, float want) { ASSERT_LE(std::abs(AsFloat(got) - want), std::abs(want) * 0x1p-8f); }

class OperandLayout : public testing::TestWithParam<std::tuple<int64_t, int64_t>> {
 protected:
  OperandLayout() : source_(std::get<0>(GetParam()), std::get<1>(GetParam())) {}

  std::vector<Bf16> Destination(int64_t elements) const {
    return std::vector<Bf16>(static_cast<size_t>(elements + kPadding), kUnwritten);
  }
  // What follows the result was left alone.
  static void ExpectEnd(const std::vector<Bf16>& dst) {
    for (size_t i = dst.size() - kPadding; i < dst.size(); ++i) EXPECT_EQ(dst[i], kUnwritten);
  }
  template <typename Want>
  static void ExpectPanels(const std::vector<Bf16>& dst, int64_t k, int64_t n, const Want& want) {
    const int64_t panel = PanelWidth(n);
    size_t i = 0;
    for (int64_t first = 0; first < n; first += panel) {
      for (int64_t term = 0; term < PadTerms(k); term += 2) {
        for (int64_t c = first; c < first + panel; ++c) {
          ExpectNearest(dst[i++], want(term, c));
          ExpectNearest(dst[i++], want(term + 1, c));
        }
      }
    }
    EXPECT_EQ(i + kPadding, dst.size());
    ExpectEnd(dst);
  }
  // With a guard behind the panels.
  static size_t PanelFloats(int64_t k, int64_t n) {
    return static_cast<size_t>(PadTo(kF32Terms, k) * PadTo(kF32Panel, n) + kPadding);
  }
  template <typename Want>
  static void ExpectF32Panels(const std::vector<float>& dst, int64_t k, int64_t n, const Want& want) {
    size_t i = 0;
    for (int64_t first = 0; first < n; first += kF32Panel) {
      for (int64_t term = 0; term < PadTo(kF32Terms, k); ++term) {
        for (int64_t c = first; c < first + kF32Panel; ++c, ++i) EXPECT_EQ(dst[i], want(term, c)) << term << " " << c;
      }
    }
    for (; i < dst.size(); ++i) EXPECT_EQ(dst[i], -1.0f);
  }

  Source source_;
};

TEST_P(OperandLayout, ConvertsRows) {
  const int64_t padded = PadTerms(source_.columns);
  std::vector<Bf16> dst = Destination(source_.rows * padded);
  Packing().convert(source_.values.data(), source_.ld(), source_.rows, source_.columns, dst.data());
  for (int64_t r = 0; r < source_.rows; ++r) {
    for (int64_t c = 0; c < padded; ++c) ExpectNearest(dst[static_cast<size_t>(r * padded + c)], source_.At(r, c));
  }
  ExpectEnd(dst);
}

TEST_P(OperandLayout, TransposesRows) {
  const int64_t padded = PadTerms(source_.rows);
  std::vector<Bf16> dst = Destination(source_.columns * padded);
  Packing().transpose(source_.values.data(), source_.ld(), source_.rows, source_.columns, dst.data());
  for (int64_t c = 0; c < source_.columns; ++c) {
    for (int64_t r = 0; r < padded; ++r) ExpectNearest(dst[static_cast<size_t>(c * padded + r)], source_.At(r, c));
  }
  ExpectEnd(dst);
}

TEST_P(OperandLayout, PacksPanels) {
  const int64_t k = source_.rows, n = source_.columns;
  std::vector<Bf16> dst = Destination(PanelElements(k, n));
  Packing().pack(source_.values.data(), source_.ld(), k, n, PanelWidth(n), dst.data());
  ExpectPanels(dst, k, n, [&](int64_t term, int64_t column) { return source_.At(term, column); });
}

TEST_P(OperandLayout, PacksPanelsOfTheTranspose) {
  const int64_t k = source_.columns, n = source_.rows;
  std::vector<Bf16> dst = Destination(PanelElements(k, n));
  Packing().pack_transposed(source_.values.data(), source_.ld(), k, n, PanelWidth(n), dst.data());
  ExpectPanels(dst, k, n, [&](int64_t term, int64_t column) { return source_.At(column, term); });
}

TEST_P(OperandLayout, PacksPanelsInF32) {
  const int64_t k = source_.rows, n = source_.columns;
  std::vector<float> dst(PanelFloats(k, n), -1.0f);
  Packing().pack_f32(source_.values.data(), source_.ld(), k, n, dst.data());
  ExpectF32Panels(dst, k, n, [&](int64_t term, int64_t column) { return source_.At(term, column); });
}

TEST_P(OperandLayout, PacksPanelsOfTheTransposeInF32) {
  const int64_t k = source_.columns, n = source_.rows;
  std::vector<float> dst(PanelFloats(k, n), -1.0f);
  Packing().pack_f32_transposed(source_.values.data(), source_.ld(), k, n, dst.data());
  ExpectF32Panels(dst, k, n, [&](int64_t term, int64_t column) { return source_.At(column, term); });
}

INSTANTIATE_TEST_SUITE_P(All, OperandLayout,
                         testing::Combine(testing::Values<int64_t>(1, 2, 7, 16, 33, 64, 150),
                                          testing::Values<int64_t>(1, 5, 16, 31, 48, 65, 200)));

TEST(Bf16, RoundsToNearestEvenAndKeepsSpecialValues) {
  const auto bits = [](uint32_t word) { return std::bit_cast<float>(word); };
  const std::tuple<float, Bf16> cases[] = {
      {0.0f, 0x0000},
      {-0.0f, 0x8000},
      {1.0f, 0x3F80},
      {bits(0x3F807FFF), 0x3F80},  // below the middle
      {bits(0x3F808000), 0x3F80},  // ties go to the even one,
      {bits(0x3F818000), 0x3F82},  // here upwards
      {bits(0xBF808001), 0xBF81},
      {std::numeric_limits<float>::max(), 0x7F80},
      {kInfinity, 0x7F80},
      {-kInfinity, 0xFF80},
      {bits(0x7F800001), 0x7FC0},  // a NaN that would lose its last bit
      {bits(0xFFFFFFFF), 0xFFFF},
      {bits(0x00400000), 0x0040},  // a denormal
      {kDenormal, 0x0000},
  };
  for (const auto& [value, want] : cases) {
    std::vector<Bf16> dst(kBf16Terms);
    Packing().convert(&value, 1, 1, 1, dst.data());
    EXPECT_EQ(dst[0], want) << value;
    Packing().transpose(&value, 1, 1, 1, dst.data());
    EXPECT_EQ(dst[0], want) << value;
  }
}

}  // namespace
}  // namespace cavs::cpu
