// Vector exp, log, sigmoid and tanh with the special values of their `std::` namesakes. Per-target Highway code:
// include it only from a file that goes through hwy/foreach_target.h.
//
// All are branch free: sigmoid and tanh take one exponential and one division. Relative error stays below 4e-7, near
// zero and in the denormal range too.
#if defined(CAVS_VERTEX_KERNELS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAVS_VERTEX_KERNELS_CPU_MATH_INL_H_
#undef CAVS_VERTEX_KERNELS_CPU_MATH_INL_H_
#else
#define CAVS_VERTEX_KERNELS_CPU_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cavs::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// ln 2 in two parts: the high one has few enough bits for n * kLn2High to be exact for every exponent n.
inline constexpr float kLn2High = 0x1.62e4p-1f;
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kLog2E = 0x1.715476p+0f;

// y = n ln 2 + r with |r| <= ln(2) / 2 (1 + eps); n and expm1(r).
template <class D>
struct ReducedExp {
  hn::Vec<hn::Rebind<int32_t, D>> n;
  hn::Vec<D> expm1;
};

template <class D>
HWY_INLINE ReducedExp<D> ReduceExp(D d, hn::Vec<D> y) {
  const auto n = hn::NearestInt(hn::Mul(y, hn::Set(d, kLog2E)));
  const auto nf = hn::ConvertTo(d, n);
  const auto r = hn::NegMulAdd(nf, hn::Set(d, kLn2Low), hn::NegMulAdd(nf, hn::Set(d, kLn2High), y));
  // (expm1(r) - r) / r^2, interpolated at the Chebyshev nodes of the interval.
  auto q = hn::MulAdd(hn::Set(d, 0.00139262131f), r, hn::Set(d, 0.00836320315f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.0416665561f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.166665763f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.5f));
  return {n, hn::MulAdd(hn::Mul(r, r), q, r)};
}

// 2^n for n in [-126, 127].
template <class D>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, hn::Vec<hn::Rebind<int32_t, D>> n) {
  const hn::Rebind<int32_t, D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// exp(r) * 2^n, in two factors so that n may reach past the normal range on both sides; rounds once.
template <class D>
HWY_INLINE hn::Vec<D> ScaleExp(D d, const ReducedExp<D>& reduced) {
  const auto half = hn::ShiftRight<1>(reduced.n);
  const auto e = hn::Add(reduced.expm1, hn::Set(d, 1.0f));
  return hn::Mul(hn::Mul(e, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(reduced.n, half)));
}

// Comparisons with NaN are false, so the limits below let NaN through to the polynomial.
template <class D>
HWY_INLINE hn::Vec<D> AtLeast(D d, hn::Vec<D> x, float limit) {
  const auto bound = hn::Set(d, limit);
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
}

template <class D>
HWY_INLINE hn::Vec<D> Exp(D d, hn::Vec<D> x) {
  const auto top = hn::Set(d, 89.0f);  // exp(89) overflows, exp(-104) rounds to zero
  const auto clamped = AtLeast(d, hn::IfThenElse(hn::Gt(x, top), top, x), -104.0f);
  return ScaleExp(d, ReduceExp(d, clamped));
}

// With e = exp(-|x|) in (0, 1]: 1 / (1 + e) for x >= 0, e / (1 + e) below, which keeps the tiny values exact.
template <class D>
HWY_INLINE hn::Vec<D> Sigmoid(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto y = AtLeast(d, hn::Or(hn::Abs(x), hn::SignBit(d)), -104.0f);
  const auto e = ScaleExp(d, ReduceExp(d, y));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// With m = expm1(-2|x|) in (-1, 0]: |tanh(x)| = -m / (m + 2), which has no cancellation near zero.
template <class D>
HWY_INLINE hn::Vec<D> Tanh(D d, hn::Vec<D> x) {
  const auto y = AtLeast(d, hn::Or(hn::Abs(hn::Add(x, x)), hn::SignBit(d)), -40.0f);
  const auto reduced = ReduceExp(d, y);
  const auto scale = PowerOfTwo(d, reduced.n);
  const auto m = hn::MulAdd(scale, reduced.expm1, hn::Sub(scale, hn::Set(d, 1.0f)));
  const auto magnitude = hn::Div(hn::Neg(m), hn::Add(m, hn::Set(d, 2.0f)));
  return hn::Or(hn::Abs(magnitude), hn::And(x, hn::SignBit(d)));
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), by its series.
template <class D>
HWY_INLINE hn::Vec<D> Log(D d, hn::Vec<D> x) {
  const hn::Rebind<int32_t, D> di;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0f);
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto denormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const auto normal = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 0x1p24f)), x);
  const auto bits = hn::BitCast(di, normal);
  // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
  const auto root_half = hn::Set(di, 0x3F3504F3);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, root_half));
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const auto e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(denormal, hn::Set(d, 24.0f)));
  const auto s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const auto s2 = hn::Mul(s, s);
  auto q = hn::MulAdd(hn::Set(d, 2.0f / 9), s2, hn::Set(d, 2.0f / 7));
  q = hn::MulAdd(q, s2, hn::Set(d, 2.0f / 5));
  q = hn::MulAdd(q, s2, hn::Set(d, 2.0f / 3));
  const auto tail = hn::MulAdd(hn::Mul(s, s2), q, hn::Mul(e, hn::Set(d, kLn2Low)));
  const auto log = hn::MulAdd(e, hn::Set(d, kLn2High), hn::Add(hn::Add(s, s), tail));
  const auto positive = hn::And(hn::Gt(x, zero), hn::Lt(x, infinity));
  const auto special = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity),
                                      hn::IfThenElse(hn::Lt(x, zero), hn::NaN(d), x));  // NaN and inf are their own
  return hn::IfThenElse(positive, log, special);
}

}  // namespace cavs::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
