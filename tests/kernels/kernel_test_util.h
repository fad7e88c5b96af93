// Shared by the kernel tests: sizes, random operands of every addressing mode, and comparison with doubles.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cavs/base/random.h"
#include "vertex/kernels/operand.h"

namespace cavs::cpu {

inline constexpr int64_t kRowCounts[] = {0, 1, 2, 7, 64, 65, 200};
inline constexpr int64_t kWidths[] = {1, 3, 16, 63, 150, 700};
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

inline std::vector<float> Uniform(int64_t count, uint64_t stream, double low = -2, double high = 2) {
  CounterRandom random(17, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(low + (high - low) * random.Uniform());
  return values;
}

enum class Addressing { kDense, kStrided, kIndexed, kBroadcast };

inline std::string Name(Addressing addressing) {
  constexpr const char* kNames[] = {"dense", "strided", "indexed", "broadcast"};
  return kNames[static_cast<int>(addressing)];
}

// The memory of an operand of `rows` rows. Indexed ones permute their rows (reads may repeat some) and leave some out.
class Rows2d {
 public:
  Rows2d(Addressing addressing, int64_t rows, int64_t width, uint64_t stream, bool written = false, double low = -2,
         double high = 2)
      : ld_(addressing == Addressing::kDense ? width : width + 5) {
    values_ = Uniform(std::max<int64_t>(rows, 1) * ld_ + 3, stream, low, high);
    if (addressing == Addressing::kBroadcast) ld_ = 0;
    if (addressing != Addressing::kIndexed) return;
    CounterRandom random(23, stream);
    for (int64_t row = 0; row < rows; ++row) index_.push_back(static_cast<int32_t>(row));
    Shuffle(std::span<int32_t>(index_), random);
    for (size_t i = 0; i < index_.size(); ++i) {
      if (i % 5 == 3) index_[i] = -1;
      if (!written && i % 7 == 6) index_[i] = index_[i - 1];
    }
  }

  Operand operand() { return {values_.data(), ld_, index_.empty() ? nullptr : index_.data()}; }
  const std::vector<float>& values() const { return values_; }
  std::vector<float>& values() { return values_; }
  bool left_out(int64_t row) const { return !index_.empty() && index_[static_cast<size_t>(row)] < 0; }

  // The value at a row and column of the operand: zero where the row is left out.
  double At(int64_t row, int64_t column) const {
    if (left_out(row)) return 0;
    const int64_t r = index_.empty() ? row : index_[static_cast<size_t>(row)];
    return static_cast<double>(values_[static_cast<size_t>(r * ld_ + column)]);
  }

 private:
  int64_t ld_;
  std::vector<float> values_;
  std::vector<int32_t> index_;
};

// Copies `now` into `expected` (the values before) at the places of the operand; what then differs was written astray.
inline int64_t WrittenOutside(const Rows2d& now, const std::vector<float>& before, Operand operand, int64_t rows,
                              int64_t width) {
  std::vector<float> expected = before;
  for (int64_t row = 0; row < rows; ++row) {
    if (now.left_out(row)) continue;
    const int64_t offset = operand.Row(row) - operand.base;
    std::copy_n(now.values().begin() + offset, width, expected.begin() + offset);
  }
  int64_t astray = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    astray += std::bit_cast<uint32_t>(expected[i]) != std::bit_cast<uint32_t>(now.values()[i]);
  }
  return astray;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); });
}

// Equal as values of std:: functions go: NaN to NaN, infinities and zeros with their signs, others within `relative`,
// or within half of the smallest denormal and a bit when the result is a denormal.
inline bool Agrees(float got, double want, double relative) {
  if (std::isnan(want)) return std::isnan(got);
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || rounded == 0) {
    return got == rounded && std::signbit(got) == std::signbit(rounded);
  }
  return std::abs(static_cast<double>(got) - want) <= relative * std::abs(want) + 1.01 * static_cast<double>(kDenormal);
}

}  // namespace cavs::cpu
