// Loops of vectors over float arrays of any length: the tail is a partial vector that touches no memory past the end.
// Per-target Highway code: include it only from a file that goes through hwy/foreach_target.h.
#if defined(CAVS_VERTEX_KERNELS_CPU_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAVS_VERTEX_KERNELS_CPU_LOOPS_INL_H_
#undef CAVS_VERTEX_KERNELS_CPU_LOOPS_INL_H_
#else
#define CAVS_VERTEX_KERNELS_CPU_LOOPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cavs::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

// The first `count` floats at `p`, zeros behind them.
HWY_INLINE FloatVec LoadPart(FloatTag d, const float* p, size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(buffer, p, count * sizeof(float));
  return hn::Load(d, buffer);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#endif
}

// Writes the first `count` lanes to `p`.
HWY_INLINE void StorePart(FloatVec v, FloatTag d, float* p, size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, count * sizeof(float));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#endif
}

// dst[i] = f(d).
template <class F>
HWY_INLINE void Generate(float* dst, size_t n, F f) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d), d, dst + i);
  if (i < n) StorePart(f(d), d, dst + i, n - i);
}

// dst[i] = f(d, a[i]).
template <class F>
HWY_INLINE void Map(float* dst, const float* a, size_t n, F f) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, a + i)), d, dst + i);
  if (i < n) StorePart(f(d, LoadPart(d, a + i, n - i)), d, dst + i, n - i);
}

// dst[i] = f(d, a[i], b[i]).
template <class F>
HWY_INLINE void Map(float* dst, const float* a, const float* b, size_t n, F f) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, dst + i);
  if (i < n) StorePart(f(d, LoadPart(d, a + i, n - i), LoadPart(d, b + i, n - i)), d, dst + i, n - i);
}

// The sum of f(d, a[i], b[i]) in two accumulators of a vector each.
template <class F>
HWY_INLINE float SumOver(const float* a, const float* b, size_t n, F f) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = hn::Add(even, f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)));
    odd = hn::Add(odd, f(d, hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes)));
  }
  if (i + lanes <= n) {
    even = hn::Add(even, f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)));
    i += lanes;
  }
  if (i < n) {
    const auto term = f(d, LoadPart(d, a + i, n - i), LoadPart(d, b + i, n - i));
    odd = hn::Add(odd, hn::IfThenElseZero(hn::FirstN(d, n - i), term));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

}  // namespace cavs::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
