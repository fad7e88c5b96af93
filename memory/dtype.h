// DType: what one element of a tensor is. bf16 is reserved: it has a name and a size, and no kernel yet.
// A value type; pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace cavs {

enum class DType : uint8_t { kF32, kI32, kBF16 };

// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) { return dtype == DType::kBF16 ? 2 : 4; }

// "f32", "i32" or "bf16".
constexpr std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kI32:
      return "i32";
    case DType::kBF16:
      return "bf16";
  }
  return "";
}

// The DType of a C++ type; defined for those that host code reads and writes.
template <typename T>
inline constexpr DType kDTypeOf = T::no_dtype_for_this_type;
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kI32;

}  // namespace cavs
