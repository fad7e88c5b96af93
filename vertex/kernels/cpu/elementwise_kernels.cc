#include "vertex/kernels/cpu/elementwise_kernels.h"

// SSSE3 and AVX3_DL would add code size and no speed next to SSE4 and AVX3.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vertex/kernels/cpu/elementwise_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"
#include "vertex/kernels/cpu/loops-inl.h"
#include "vertex/kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cavs::cpu::HWY_NAMESPACE {
namespace {

void CopyStep(const StepArguments& s) {
  if (s.dst != s.a) std::memcpy(s.dst, s.a, s.count * sizeof(float));
}

void FillStep(const StepArguments& s) {
  Generate(s.dst, s.count, [&](auto d) HWY_ATTR { return hn::Set(d, s.scalar); });
}

void ExpandStep(const StepArguments& s) {
  Generate(s.dst, s.count, [value = *s.a](auto d) HWY_ATTR { return hn::Set(d, value); });
}

void AddStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

void SubtractStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count, [](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, b); });
}

void MultiplyStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count, [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); });
}

void DivideStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count, [](auto, auto a, auto b) HWY_ATTR { return hn::Div(a, b); });
}

void ScaleStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [&](auto d, auto a) HWY_ATTR { return hn::Mul(a, hn::Set(d, s.scalar)); });
}

void SigmoidStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [](auto d, auto a) HWY_ATTR { return Sigmoid(d, a); });
}

void TanhStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [](auto d, auto a) HWY_ATTR { return Tanh(d, a); });
}

void ReluStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [](auto d, auto a) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(a, hn::Zero(d)), a); });
}

void ExpStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [](auto d, auto a) HWY_ATTR { return Exp(d, a); });
}

void LogStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [](auto d, auto a) HWY_ATTR { return Log(d, a); });
}

void SqrtStep(const StepArguments& s) {
  Map(s.dst, s.a, s.count, [](auto, auto a) HWY_ATTR { return hn::Sqrt(a); });
}

// The vector form of cavs::DropoutKeep, bit for bit.
void DropoutStep(const StepArguments& s) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> du;
  const auto low = hn::Set(du, static_cast<uint32_t>(s.key));
  const auto high = hn::Set(du, static_cast<uint32_t>(s.key >> 32));
  const auto lanes = hn::Set(du, static_cast<uint32_t>(hn::Lanes(d)));
  auto column = hn::Iota(du, s.column);
  Map(s.dst, s.a, s.count, [&](auto df, auto a) HWY_ATTR {
    auto x = hn::Add(hn::Mul(column, hn::Set(du, 0x9E3779B9u)), low);
    column = hn::Add(column, lanes);
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x85EBCA6Bu));
    x = hn::Xor(x, high);
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(du, 0xC2B2AE35u));
    x = hn::Xor(x, hn::ShiftRight<16>(x));
    // x >= threshold, as "the larger of both is x": targets without unsigned comparison have an unsigned maximum.
    const auto keep = hn::Eq(hn::Max(x, hn::Set(du, s.threshold)), x);
    return hn::IfThenElseZero(hn::RebindMask(df, keep), hn::Mul(a, hn::Set(df, s.scalar)));
  });
}

void SigmoidGradStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count,
      [](auto d, auto dy, auto y) HWY_ATTR { return hn::Mul(hn::Mul(dy, y), hn::Sub(hn::Set(d, 1.0f), y)); });
}

void TanhGradStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count,
      [](auto d, auto dy, auto y) HWY_ATTR { return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(d, 1.0f))); });
}

void ReluGradStep(const StepArguments& s) {
  Map(s.dst, s.a, s.b, s.count,
      [](auto d, auto dy, auto y) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy); });
}

const StepTable* Table() {
  static constexpr StepTable kTable = {CopyStep,  FillStep,    AddStep,    SubtractStep,    MultiplyStep, DivideStep,
                                       ScaleStep, SigmoidStep, TanhStep,   ReluStep,        ExpStep,      LogStep,
                                       SqrtStep,  DropoutStep, ExpandStep, SigmoidGradStep, TanhGradStep, ReluGradStep};
  return &kTable;
}

}  // namespace
}  // namespace cavs::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cavs::cpu {

HWY_EXPORT(Table);

const StepTable& StepFunctions() {
  static const StepTable& table = *HWY_DYNAMIC_DISPATCH(Table)();
  return table;
}

}  // namespace cavs::cpu
#endif
