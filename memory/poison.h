// Tells AddressSanitizer which bytes of a larger allocation no tensor owns now; nothing at all in other builds.
// For memory of the host only. Thread-safe for disjoint bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cavs {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPoisons = true;
// Bytes that stay forbidden behind each tensor, so that the neighbour does not hide an overrun.
inline constexpr int64_t kRedZone = 64;
inline void Poison(const void* data, int64_t bytes) { __asan_poison_memory_region(data, static_cast<size_t>(bytes)); }
inline void Unpoison(const void* data, int64_t bytes) {
  __asan_unpoison_memory_region(data, static_cast<size_t>(bytes));
}
#else
inline constexpr bool kPoisons = false;
inline constexpr int64_t kRedZone = 0;
inline void Poison(const void* /*data*/, int64_t /*bytes*/) {}
inline void Unpoison(const void* /*data*/, int64_t /*bytes*/) {}
#endif

}  // namespace cavs
