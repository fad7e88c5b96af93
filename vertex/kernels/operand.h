// How a kernel addresses the rows of a matrix: base, leading dimension and an optional row index.
//
// Row r lies at `base + (index ? index[r] : r) * ld`; `ld` counts floats, 0 means that every row is the same one
// (broadcast). An index value of -1 is an exact zero row where the operand is read and a skipped row where it is
// written. An operand owns nothing: base and index must outlive the kernel call. The width of a row is the kernel's.
// Plain values: safe to copy and to read from several threads.
#pragma once

#include <cstdint>

namespace cavs {

template <typename T>
struct BasicOperand {
  T* base = nullptr;
  int64_t ld = 0;
  const int32_t* index = nullptr;

  // The operand whose row 0 is row `row` of this one.
  constexpr BasicOperand At(int64_t row) const {
    return index != nullptr ? BasicOperand{base, ld, index + row} : BasicOperand{base + row * ld, ld, nullptr};
  }
  // The operand whose column 0 is column `column` of this one; indices stay as they are.
  constexpr BasicOperand Columns(int64_t column) const { return {base + column, ld, index}; }
  // The address of row `row`; nullptr where the index says -1.
  constexpr T* Row(int64_t row) const {
    if (index == nullptr) return base + row * ld;
    return index[row] < 0 ? nullptr : base + index[row] * ld;
  }
  // Whether rows of `width` floats follow each other without gaps or index.
  constexpr bool Dense(int64_t width) const { return index == nullptr && ld == width; }

  // A writable operand can be read.
  constexpr operator BasicOperand<const T>() const { return {base, ld, index}; }  // NOLINT(google-explicit-constructor)
};

using Operand = BasicOperand<float>;
using ConstOperand = BasicOperand<const float>;

}  // namespace cavs
