#include "vertex/kernels/cpu/row_kernels.h"

#include <limits>

// SSSE3 and AVX3_DL would add code size and no speed next to SSE4 and AVX3.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vertex/kernels/cpu/row_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "vertex/kernels/cpu/loops-inl.h"
#include "vertex/kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cavs::cpu::HWY_NAMESPACE {
namespace {

size_t Size(int64_t n) { return static_cast<size_t>(n); }

void Add(float* dst, const float* a, int64_t n) {
  Map(dst, dst, a, Size(n), [](auto, auto sum, auto v) HWY_ATTR { return hn::Add(sum, v); });
}

void AddScaled(float* dst, const float* a, float scale, int64_t n) {
  Map(dst, dst, a, Size(n),
      [scale](auto d, auto sum, auto v) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, scale), sum); });
}

void Scale(float* dst, const float* a, float scale, int64_t n) {
  Map(dst, a, Size(n), [scale](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, scale)); });
}

void SubtractScalar(float* dst, const float* a, float value, int64_t n) {
  Map(dst, a, Size(n), [value](auto d, auto v) HWY_ATTR { return hn::Sub(v, hn::Set(d, value)); });
}

void ScaledDifference(float* dst, const float* a, const float* b, float scale, int64_t n) {
  Map(dst, a, b, Size(n),
      [scale](auto d, auto v, auto w) HWY_ATTR { return hn::Mul(hn::Sub(v, w), hn::Set(d, scale)); });
}

void Maximum(float* dst, const float* a, int64_t n) {
  Map(dst, dst, a, Size(n), [](auto, auto best, auto v) HWY_ATTR {
    const auto keep = hn::Or(hn::Ge(best, v), hn::IsNaN(best));
    return hn::IfThenElse(keep, best, v);
  });
}

void Claim(float* dst, float* rest, const float* src, const float* best, int64_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < Size(n); i += lanes) {
    const size_t count = HWY_MIN(lanes, Size(n) - i);
    const auto value = LoadPart(d, src + i, count);
    const auto claimed = hn::Or(hn::Eq(value, LoadPart(d, best + i, count)), hn::IsNaN(value));
    const auto gradient = LoadPart(d, rest + i, count);
    StorePart(hn::IfThenElseZero(claimed, gradient), d, dst + i, count);
    StorePart(hn::IfThenZeroElse(claimed, gradient), d, rest + i, count);
  }
}

void SoftmaxGrad(float* dx, const float* dy, const float* y, float mean, int64_t n) {
  Map(dx, dy, y, Size(n), [mean](auto d, auto g, auto v) HWY_ATTR { return hn::Mul(v, hn::Sub(g, hn::Set(d, mean))); });
}

void LogSoftmaxGrad(float* dx, const float* dy, const float* y, float sum, int64_t n) {
  Map(dx, dy, y, Size(n),
      [sum](auto d, auto g, auto v) HWY_ATTR { return hn::NegMulAdd(Exp(d, v), hn::Set(d, sum), g); });
}

float Sum(const float* a, int64_t n) {
  return SumOver(a, a, Size(n), [](auto, auto v, auto) HWY_ATTR { return v; });
}

float Dot(const float* a, const float* b, int64_t n) {
  return SumOver(a, b, Size(n), [](auto, auto v, auto w) HWY_ATTR { return hn::Mul(v, w); });
}

float SquaredDistance(const float* a, const float* b, int64_t n) {
  return SumOver(a, b, Size(n), [](auto, auto v, auto w) HWY_ATTR {
    const auto difference = hn::Sub(v, w);
    return hn::Mul(difference, difference);
  });
}

float MaxOf(const float* a, int64_t n) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto best = lowest;
  size_t i = 0;
  for (; i + lanes <= Size(n); i += lanes) best = hn::Max(best, hn::LoadU(d, a + i));
  if (i < Size(n)) {
    const size_t count = Size(n) - i;
    best = hn::Max(best, hn::IfThenElse(hn::FirstN(d, count), LoadPart(d, a + i, count), lowest));
  }
  return hn::GetLane(hn::MaxOfLanes(d, best));
}

float ExpSum(const float* a, float shift, int64_t n) {
  return SumOver(a, a, Size(n),
                 [shift](auto d, auto v, auto) HWY_ATTR { return Exp(d, hn::Sub(v, hn::Set(d, shift))); });
}

float ExpStore(float* dst, const float* a, float shift, int64_t n) {
  Map(dst, a, Size(n), [shift](auto d, auto v) HWY_ATTR { return Exp(d, hn::Sub(v, hn::Set(d, shift))); });
  return Sum(dst, n);
}

const RowKernels* Table() {
  static constexpr RowKernels kTable = {.add = Add,
                                        .add_scaled = AddScaled,
                                        .scale = Scale,
                                        .subtract_scalar = SubtractScalar,
                                        .scaled_difference = ScaledDifference,
                                        .maximum = Maximum,
                                        .claim = Claim,
                                        .softmax_grad = SoftmaxGrad,
                                        .log_softmax_grad = LogSoftmaxGrad,
                                        .sum = Sum,
                                        .dot = Dot,
                                        .squared_distance = SquaredDistance,
                                        .max = MaxOf,
                                        .exp_sum = ExpSum,
                                        .exp_store = ExpStore};
  return &kTable;
}

}  // namespace
}  // namespace cavs::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cavs::cpu {

HWY_EXPORT(Table);

const RowKernels& Rows() {
  static const RowKernels& kernels = *HWY_DYNAMIC_DISPATCH(Table)();
  return kernels;
}

}  // namespace cavs::cpu
#endif
