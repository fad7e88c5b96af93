// From f32 to bf16, in the layouts that oneDNN multiplies fastest: rounding to nearest, ties to even; NaN stays NaN.
//
// A left operand is row-major, a right operand B [k, n] lies in panels of PanelWidth(n) columns, each of blocks of 32
// terms, each of 16 rows of pairs: element (2p + i, c) of a block is at [p][c][i]. Terms are padded to a multiple of 32
// and columns to whole panels, with zeros. All functions overwrite their results, padding included, and may run in
// any thread.
#pragma once

#include <cstdint>

namespace cavs::cpu {

// The bits of a bf16: the upper half of a float.
using Bf16 = uint16_t;

// Terms of a block; every sum over terms is padded to a multiple of it.
inline constexpr int64_t kBf16Terms = 32;

constexpr int64_t PadTerms(int64_t terms) { return (terms + kBf16Terms - 1) / kBf16Terms * kBf16Terms; }
// Columns of a panel of a right operand of n columns.
constexpr int64_t PanelWidth(int64_t n) { return n > 48 ? 64 : (n + 15) / 16 * 16; }
// Elements of a right operand [k, n].
constexpr int64_t PanelElements(int64_t k, int64_t n) {
  return n == 0 ? 0 : PadTerms(k) * ((n + PanelWidth(n) - 1) / PanelWidth(n) * PanelWidth(n));
}

struct Bf16Kernels {
  // dst [rows, PadTerms(columns)] = src [rows, columns].
  void (*convert)(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst);
  // dst [columns, PadTerms(rows)] = the transpose of src [rows, columns].
  void (*transpose)(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst);
  // dst = the right operand src [k, n], or n of its columns from a whole panel on, in panels of `panel` columns.
  void (*pack)(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst);
  // The same of the right operand [k, n] that is the transpose of src [n, k].
  void (*pack_transposed)(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst);
};

// Immutable; safe from any thread.
const Bf16Kernels& Bf16Conversions();

}  // namespace cavs::cpu
