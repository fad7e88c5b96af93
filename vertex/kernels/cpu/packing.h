// Operands of products in the layouts that oneDNN multiplies fastest, in bf16 and in f32. Conversion to bf16 rounds to
// nearest, ties to even; NaN stays NaN.
//
// A left operand is row-major, a right operand B [k, n] lies in panels. In f32 these have 64 columns, and a row for
// each term. In bf16 they have PanelWidth(n) columns, and blocks of 32 terms, each of 16 rows of pairs: element (2p +
// i, c) of a block is at [p][c][i]. Terms are padded to a multiple of 16 (f32) or 32 (bf16), and columns to whole
// panels, with zeros. All functions overwrite their results, padding included, and may run in any thread.
#pragma once

#include <cstdint>

namespace cavs::cpu {

// The bits of a bf16: the upper half of a float.
using Bf16 = uint16_t;

// Sums over terms are padded to a multiple of these.
inline constexpr int64_t kBf16Terms = 32;
inline constexpr int64_t kF32Terms = 16;
// Columns of a panel in f32.
inline constexpr int64_t kF32Panel = 64;

constexpr int64_t PadTo(int64_t multiple, int64_t size) { return (size + multiple - 1) / multiple * multiple; }
// The terms of a sum in bf16, padded.
constexpr int64_t PadTerms(int64_t terms) { return PadTo(kBf16Terms, terms); }
// Columns of a panel of a right operand of n columns in bf16.
constexpr int64_t PanelWidth(int64_t n) { return n > 48 ? 64 : PadTo(16, n); }
// Elements of a right operand [k, n] in bf16.
constexpr int64_t PanelElements(int64_t k, int64_t n) { return n == 0 ? 0 : PadTerms(k) * PadTo(PanelWidth(n), n); }

struct PackingKernels {
  // dst [rows, PadTerms(columns)] = src [rows, columns].
  void (*convert)(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst);
  // dst [columns, PadTerms(rows)] = the transpose of src [rows, columns].
  void (*transpose)(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst);
  // dst = the right operand src [k, n], or n of its columns from a whole panel on, in panels of `panel` columns.
  void (*pack)(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst);
  // The same of the right operand [k, n] that is the transpose of src [n, k].
  void (*pack_transposed)(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst);
  // Both in f32.
  void (*pack_f32)(const float* src, int64_t ld, int64_t k, int64_t n, float* dst);
  void (*pack_f32_transposed)(const float* src, int64_t ld, int64_t k, int64_t n, float* dst);
};

// Immutable; safe from any thread.
const PackingKernels& Packing();

}  // namespace cavs::cpu
