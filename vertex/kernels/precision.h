// Precision: what the operands of matrix products are rounded to.
// With kBf16 both operands are rounded to bf16 (to nearest, ties to even; NaN stays NaN), while their products, the
// sums of these and all results are f32, as are the parameters, their gradients and everything that is no product.
// Value type and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cavs/base/error.h"

namespace cavs {

enum class Precision : uint8_t { kFp32, kBf16 };

// "fp32" or "bf16".
constexpr std::string_view PrecisionName(Precision precision) {
  return precision == Precision::kBf16 ? "bf16" : "fp32";
}

// Throws std::invalid_argument naming the choices.
inline Precision ParsePrecision(std::string_view name) {
  if (name == PrecisionName(Precision::kFp32)) return Precision::kFp32;
  if (name == PrecisionName(Precision::kBf16)) return Precision::kBf16;
  ThrowInvalid("precision", "expected one of fp32, bf16, got '" + std::string(name) + "'");
}

}  // namespace cavs
