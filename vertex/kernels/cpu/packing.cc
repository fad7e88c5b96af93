#include "vertex/kernels/cpu/packing.h"

#include <algorithm>
#include <bit>

// SSSE3 and AVX3_DL would add code size and no speed next to SSE4 and AVX3.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vertex/kernels/cpu/packing.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cavs::cpu::HWY_NAMESPACE {
namespace {

// Some terms for all panels, then the next ones: a panel at a time would read each page of B once for every panel.
void PackF32(const float* src, int64_t ld, int64_t k, int64_t n, float* dst) {
  const int64_t padded = PadTo(kF32Terms, k);
  for (int64_t term = 0; term < padded; term += kF32Terms) {
    for (int64_t first = 0; first < n; first += kF32Panel) {
      float* out = dst + first * padded + term * kF32Panel;
      for (int64_t row = term; row < term + kF32Terms; ++row, out += kF32Panel) {
        const int64_t columns = row < k ? std::min(kF32Panel, n - first) : 0;
        if (columns > 0) std::copy_n(src + row * ld + first, columns, out);
        std::fill(out + columns, out + kF32Panel, 0.0f);
      }
    }
  }
}

#if HWY_TARGET == HWY_SCALAR

// One element at a time, for processors without vectors: it says what the vector forms compute.
Bf16 Round(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<Bf16>((bits | 0x00400000) >> 16);
  return static_cast<Bf16>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

void Convert(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < PadTerms(columns); ++i) *dst++ = i < columns ? Round(src[row * ld + i]) : Bf16{0};
  }
}

void Transpose(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst) {
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t i = 0; i < PadTerms(rows); ++i) *dst++ = i < rows ? Round(src[i * ld + column]) : Bf16{0};
  }
}

void PackStrided(const float* src, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, int64_t panel,
                 Bf16* dst) {
  for (int64_t first = 0; first < n; first += panel) {
    for (int64_t term = 0; term < PadTerms(k); term += 2) {
      for (int64_t i = 0; i < 2 * panel; ++i) {
        const int64_t row = term + i % 2, column = first + i / 2;
        *dst++ = row < k && column < n ? Round(src[row * row_stride + column * column_stride]) : Bf16{0};
      }
    }
  }
}

void Pack(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst) {
  PackStrided(src, ld, 1, k, n, panel, dst);
}

void PackTransposed(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst) {
  PackStrided(src, 1, ld, k, n, panel, dst);
}

void PackF32Transposed(const float* src, int64_t ld, int64_t k, int64_t n, float* dst) {
  const int64_t padded = PadTo(kF32Terms, k);
  for (int64_t first = 0; first < n; first += kF32Panel) {
    for (int64_t row = 0; row < padded; ++row) {
      for (int64_t column = first; column < first + kF32Panel; ++column) {
        *dst++ = row < k && column < n ? src[column * ld + row] : 0.0f;
      }
    }
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Two adjacent bf16 are one 32-bit word, the first in its lower half: what is moved and transposed here are words.
using WordTag = hn::CappedTag<uint32_t, 16>;
using Words = hn::Vec<WordTag>;

int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(WordTag())); }

// The bf16 nearest to each float in the upper half of its word; the lower half is unspecified.
HWY_INLINE Words Round(Words bits) {
  const WordTag d;
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(d, 0x00400000));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7FFFFFFF)), hn::Set(d, 0x7F800000));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

HWY_INLINE Words Join(Words first, Words second) {
  return hn::Or(hn::ShiftRight<16>(Round(first)), hn::And(Round(second), hn::Set(WordTag(), 0xFFFF0000)));
}

HWY_INLINE Words LoadBits(const float* from) { return hn::LoadU(WordTag(), reinterpret_cast<const uint32_t*>(from)); }

// Words of 2 * Lanes() adjacent floats.
HWY_INLINE Words LoadAdjacent(const float* from) {
  const WordTag d;
  const Words a = LoadBits(from), b = LoadBits(from + Lanes());
  return Join(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
}

// Words of floats one below the other.
HWY_INLINE Words LoadStacked(const float* upper, const float* lower) { return Join(LoadBits(upper), LoadBits(lower)); }

// dst[j * stride + i] = lane j of the i-th of four vectors, for the first `lanes` lanes.
HWY_INLINE void StoreTransposed(Words v0, Words v1, Words v2, Words v3, uint32_t* dst, int64_t stride, int64_t lanes) {
  const WordTag d;
  const hn::CappedTag<uint32_t, 4> block;
  const hn::Repartition<uint64_t, WordTag> wide;
  const auto as_wide = [wide](Words v) HWY_ATTR { return hn::BitCast(wide, v); };
  const auto low01 = as_wide(hn::InterleaveLower(d, v0, v1)), high01 = as_wide(hn::InterleaveUpper(d, v0, v1));
  const auto low23 = as_wide(hn::InterleaveLower(d, v2, v3)), high23 = as_wide(hn::InterleaveUpper(d, v2, v3));
  // Four words for each lane; lanes 4 * b + i are in block b of the i-th vector.
  HWY_ALIGN uint32_t lines[4 * 16];
  hn::Store(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, lines);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, lines + 16);
  hn::Store(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, lines + 32);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, lines + 48);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    hn::StoreU(hn::Load(block, lines + lane % 4 * 16 + lane / 4 * 4), block, dst + lane * stride);
  }
}

// `rows` x `columns` floats at `src`, surrounded by zeros where there are fewer than the kernels read: at most 32 x 32.
struct Window {
  const float* Cover(const float* src, int64_t* ld, int64_t rows, int64_t columns, int64_t all_rows,
                     int64_t all_columns) {
    if (rows == all_rows && columns == all_columns) return src;
    std::fill_n(values, all_rows * kBf16Terms, 0.0f);
    for (int64_t row = 0; row < rows; ++row) std::copy_n(src + row * *ld, columns, values + row * kBf16Terms);
    *ld = kBf16Terms;
    return values;
  }
  HWY_ALIGN float values[kBf16Terms * kBf16Terms];
};

uint32_t* AsWords(Bf16* dst) { return reinterpret_cast<uint32_t*>(dst); }

void Convert(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst) {
  const WordTag d;
  const int64_t lanes = Lanes();
  Window window;
  uint32_t* out = AsWords(dst);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t first = 0; first < columns; first += kBf16Terms) {
      int64_t unused = ld;
      const float* const in =
          window.Cover(src + row * ld + first, &unused, 1, std::min(kBf16Terms, columns - first), 1, kBf16Terms);
      for (int64_t i = 0; i < kBf16Terms / 2; i += lanes) hn::StoreU(LoadAdjacent(in + 2 * i), d, out + i);
      out += kBf16Terms / 2;
    }
  }
}

void Transpose(const float* src, int64_t ld, int64_t rows, int64_t columns, Bf16* dst) {
  constexpr int64_t kRows = 8;
  const int64_t lanes = Lanes();
  const int64_t padded = PadTerms(rows);
  Window window;
  for (int64_t column = 0; column < columns; column += lanes) {
    const int64_t width = std::min(lanes, columns - column);
    uint32_t* const out = AsWords(dst + column * padded);
    for (int64_t row = 0; row < padded; row += kRows) {
      int64_t step = ld;
      const float* const in =
          window.Cover(src + row * ld + column, &step, std::clamp<int64_t>(rows - row, 0, kRows), width, kRows, lanes);
      StoreTransposed(LoadStacked(in, in + step), LoadStacked(in + 2 * step, in + 3 * step),
                      LoadStacked(in + 4 * step, in + 5 * step), LoadStacked(in + 6 * step, in + 7 * step),
                      out + row / 2, padded / 2, width);
    }
  }
}

void Pack(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst) {
  const WordTag d;
  const int64_t lanes = Lanes();
  Window window;
  uint32_t* out = AsWords(dst);
  for (int64_t first = 0; first < n; first += panel) {
    for (int64_t row = 0; row < PadTerms(k); row += 2) {
      for (int64_t i = 0; i < panel; i += lanes) {
        int64_t step = ld;
        const float* const in = window.Cover(src + row * ld + first + i, &step, std::clamp<int64_t>(k - row, 0, 2),
                                             std::clamp<int64_t>(n - first - i, 0, lanes), 2, lanes);
        hn::StoreU(LoadStacked(in, in + step), d, out + i);
      }
      out += panel;
    }
  }
}

void PackTransposed(const float* src, int64_t ld, int64_t k, int64_t n, int64_t panel, Bf16* dst) {
  constexpr int64_t kRows = 4;
  const int64_t lanes = Lanes();
  Window window;
  uint32_t* out = AsWords(dst);
  for (int64_t first = 0; first < n; first += panel) {
    for (int64_t term = 0; term < k; term += 2 * lanes) {
      for (int64_t i = 0; i < panel; i += kRows) {
        int64_t step = ld;
        const float* const in =
            window.Cover(src + (first + i) * ld + term, &step, std::clamp<int64_t>(n - first - i, 0, kRows),
                         std::min(2 * lanes, k - term), kRows, 2 * lanes);
        StoreTransposed(LoadAdjacent(in), LoadAdjacent(in + step), LoadAdjacent(in + 2 * step),
                        LoadAdjacent(in + 3 * step), out + term / 2 * panel + i, panel, lanes);
      }
    }
    // Blocks end at 32 terms, vectors may end before.
    const int64_t written = (k + 2 * lanes - 1) / (2 * lanes) * lanes;
    std::fill(out + written * panel, out + PadTerms(k) / 2 * panel, 0u);
    out += PadTerms(k) / 2 * panel;
  }
}

void PackF32Transposed(const float* src, int64_t ld, int64_t k, int64_t n, float* dst) {
  constexpr int64_t kRows = 4;
  const int64_t lanes = Lanes();
  const int64_t padded = PadTo(kF32Terms, k);
  Window window;
  uint32_t* out = reinterpret_cast<uint32_t*>(dst);
  for (int64_t first = 0; first < n; first += kF32Panel) {
    for (int64_t term = 0; term < padded; term += lanes) {
      for (int64_t i = 0; i < kF32Panel; i += kRows) {
        int64_t step = ld;
        const float* const in =
            window.Cover(src + (first + i) * ld + term, &step, std::clamp<int64_t>(n - first - i, 0, kRows),
                         std::clamp<int64_t>(k - term, 0, lanes), kRows, lanes);
        StoreTransposed(LoadBits(in), LoadBits(in + step), LoadBits(in + 2 * step), LoadBits(in + 3 * step),
                        out + term * kF32Panel + i, kF32Panel, lanes);
      }
    }
    out += padded * kF32Panel;
  }
}

#endif  // HWY_TARGET

const PackingKernels* Table() {
  static constexpr PackingKernels kTable = {.convert = Convert,
                                            .transpose = Transpose,
                                            .pack = Pack,
                                            .pack_transposed = PackTransposed,
                                            .pack_f32 = PackF32,
                                            .pack_f32_transposed = PackF32Transposed};
  return &kTable;
}

}  // namespace
}  // namespace cavs::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cavs::cpu {

HWY_EXPORT(Table);

const PackingKernels& Packing() {
  static const PackingKernels& kernels = *HWY_DYNAMIC_DISPATCH(Table)();
  return kernels;
}

}  // namespace cavs::cpu
#endif
