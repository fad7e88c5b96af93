#include "backprop/optimizer_kernels.h"

// SSSE3 and AVX3_DL would add code size and no speed next to SSE4 and AVX3.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backprop/optimizer_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cavs::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, i) for whole vectors of [0, count), then one element at a time: the tail is rounded like the rest.
template <class Body>
HWY_INLINE void ForEachVector(int64_t count, Body body) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(d, i);
  for (; i < count; ++i) body(hn::CappedTag<float, 1>(), i);
}

// Every product below ends in a fused multiply-add or is used alone, so that the compiler has nothing to contract.
template <class D>
HWY_INLINE hn::Vec<D> Decayed(D d, const UpdateScalars& s, const float* gradient, const float* values) {
  const auto scaled = hn::Mul(hn::Set(d, s.gradient_scale), hn::LoadU(d, gradient));
  return hn::MulAdd(hn::Set(d, s.decay), hn::LoadU(d, values), scaled);
}

void SgdUpdate(const UpdateScalars& s, int64_t count, const float* gradient, float* values, float*, float*) {
  ForEachVector(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = Decayed(d, s, gradient + i, values + i);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.rate), g, hn::LoadU(d, values + i)), d, values + i);
  });
}

void MomentumUpdate(const UpdateScalars& s, int64_t count, const float* gradient, float* values, float* first, float*) {
  ForEachVector(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = Decayed(d, s, gradient + i, values + i);
    const auto velocity = hn::MulAdd(hn::Set(d, s.keep_first), hn::LoadU(d, first + i), g);
    hn::StoreU(velocity, d, first + i);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.rate), velocity, hn::LoadU(d, values + i)), d, values + i);
  });
}

void AdagradUpdate(const UpdateScalars& s, int64_t count, const float* gradient, float* values, float* first, float*) {
  ForEachVector(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = Decayed(d, s, gradient + i, values + i);
    const auto sum = hn::MulAdd(g, g, hn::LoadU(d, first + i));
    hn::StoreU(sum, d, first + i);
    const auto step = hn::Div(hn::Mul(hn::Set(d, s.rate), g), hn::Add(hn::Sqrt(sum), hn::Set(d, s.epsilon)));
    hn::StoreU(hn::Sub(hn::LoadU(d, values + i), step), d, values + i);
  });
}

void AdamUpdate(const UpdateScalars& s, int64_t count, const float* gradient, float* values, float* first,
                float* second) {
  ForEachVector(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto g = Decayed(d, s, gradient + i, values + i);
    const auto added_first = hn::Mul(hn::Set(d, s.add_first), g);
    const auto added_second = hn::Mul(hn::Mul(hn::Set(d, s.add_second), g), g);
    const auto mean = hn::MulAdd(hn::Set(d, s.keep_first), hn::LoadU(d, first + i), added_first);
    const auto square = hn::MulAdd(hn::Set(d, s.keep_second), hn::LoadU(d, second + i), added_second);
    hn::StoreU(mean, d, first + i);
    hn::StoreU(square, d, second + i);
    const auto root = hn::MulAdd(hn::Set(d, s.root_scale), hn::Sqrt(square), hn::Set(d, s.epsilon));
    const auto step = hn::Div(hn::Mul(hn::Set(d, s.rate), mean), root);
    hn::StoreU(hn::Sub(hn::LoadU(d, values + i), step), d, values + i);
  });
}

double SumOfSquares(int64_t count, const float* x) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(half, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(half, x + i + lanes));
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

const OptimizerKernels* Table() {
  static constexpr OptimizerKernels kTable = {SgdUpdate, MomentumUpdate, AdagradUpdate, AdamUpdate, SumOfSquares};
  return &kTable;
}

}  // namespace
}  // namespace cavs::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cavs::cpu {

HWY_EXPORT(Table);

const OptimizerKernels& FindOptimizerKernels() {
  static const OptimizerKernels& table = *HWY_DYNAMIC_DISPATCH(Table)();
  return table;
}

}  // namespace cavs::cpu
#endif
