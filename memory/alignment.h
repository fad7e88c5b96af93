// Arithmetic on byte counts. All sizes and offsets are signed 64-bit; alignments are powers of two.
#pragma once

#include <cstdint>

namespace cavs {

// Every tensor starts at a multiple of this: a cache line, and the widest vector register.
inline constexpr int64_t kAlignment = 64;

// The smallest multiple of `alignment` that is >= bytes. Requires 0 <= bytes <= INT64_MAX - alignment.
constexpr int64_t AlignUp(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) & ~(alignment - 1); }

}  // namespace cavs
