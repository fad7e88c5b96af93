// Vector loops over one row, the bricks of vertex/kernels/rows.h; chosen once for the CPU that runs.
#pragma once

#include <cstdint>

namespace cavs::cpu {

// Rows are `n` adjacent floats, n >= 0. Reductions add in an order that depends on n and the CPU only.
struct RowKernels {
  void (*add)(float* dst, const float* a, int64_t n);                           // dst += a
  void (*add_scaled)(float* dst, const float* a, float scale, int64_t n);       // dst += a * scale
  void (*scale)(float* dst, const float* a, float scale, int64_t n);            // dst = a * scale; dst may be a
  void (*subtract_scalar)(float* dst, const float* a, float value, int64_t n);  // dst = a - value; dst may be a
  void (*scaled_difference)(float* dst, const float* a, const float* b, float scale, int64_t n);  // (a - b) * scale
  void (*maximum)(float* dst, const float* a, int64_t n);  // dst = max(dst, a), NaN where either is
  // Where src attains `best` (or is NaN): dst = rest and rest = 0; elsewhere dst = 0.
  void (*claim)(float* dst, float* rest, const float* src, const float* best, int64_t n);
  void (*softmax_grad)(float* dx, const float* dy, const float* y, float mean, int64_t n);     // y * (dy - mean)
  void (*log_softmax_grad)(float* dx, const float* dy, const float* y, float sum, int64_t n);  // dy - exp(y) * sum
  float (*sum)(const float* a, int64_t n);
  float (*dot)(const float* a, const float* b, int64_t n);
  float (*squared_distance)(const float* a, const float* b, int64_t n);    // the sum of (a - b)^2
  float (*max)(const float* a, int64_t n);                                 // n > 0; unspecified when a NaN is among a
  float (*exp_sum)(const float* a, float shift, int64_t n);                // the sum of exp(a - shift)
  float (*exp_store)(float* dst, const float* a, float shift, int64_t n);  // dst = exp(a - shift); returns the sum
};

// Immutable; safe from any thread.
const RowKernels& Rows();

}  // namespace cavs::cpu
