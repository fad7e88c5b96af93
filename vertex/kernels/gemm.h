// Matrix products of the CPU backend: x * W, dy * W^T and x^T * dy in f32 or on bf16 operands, on oneDNN.
//
// Rows run in chunks of 64 and one exact remainder (no row is ever added), each chunk one job on the pool and each
// job one OpenMP thread: answers do not depend on the number of threads, and the caller's OpenMP setting is kept.
// A PackedWeights is read-only once packed and may be shared by any number of Gemm objects in any number of threads;
// a Gemm belongs to one Session, is used by one thread at a time, and holds primitives and scratch memory.
// Zero rows, k = 0 and n = 0 are legal: k = 0 gives the bias, or zeros.
// In bf16 (vertex/precision.h) finite operands above the largest bf16 round to infinity, and the processor takes
// operands that are denormals for zeros. Plain products are f32 always: rows too few to pack weights for are too few to
// convert them for, and are computed more exactly than was asked.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cavs/base/thread_pool.h"
#include "vertex/kernels/precision.h"

namespace cavs::cpu {

// The instructions by which this processor multiplies bf16, "AMX" or "AVX512_BF16"; empty where it has none.
std::string_view Bf16InstructionSet();
// Whether products may be asked for in bf16; where not, asking throws std::logic_error.
inline bool HasFastBf16() { return !Bf16InstructionSet().empty(); }
inline constexpr std::string_view kNoFastBf16 =
    "this processor does not multiply bf16: it has neither AMX nor AVX512_BF16";

// Row-major matrices: row r starts at data + r * ld, ld >= columns. They own nothing.
struct ConstMatrix {
  const float* data = nullptr;
  int64_t ld = 0;
};
struct Matrix {
  float* data = nullptr;
  int64_t ld = 0;
};

// The forms of a [k, n] parameter that the products read fastest.
class PackedWeights {
 public:
  enum class Forms : uint8_t { kForward, kForwardAndTransposed };

  PackedWeights(int64_t k, int64_t n, Forms forms = Forms::kForwardAndTransposed,
                Precision precision = Precision::kFp32);
  ~PackedWeights();
  PackedWeights(PackedWeights&&) noexcept;
  PackedWeights& operator=(PackedWeights&&) noexcept;
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  // Packs the row-major values `w` [k, n] over what was packed before. Not while another thread multiplies by these.
  void Pack(const float* w, int64_t ld);

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  Precision precision() const { return precision_; }
  bool packed() const;
  // Bytes held by the packed forms.
  int64_t bytes() const;

 private:
  friend class Gemm;
  struct Impl;
  int64_t k_;
  int64_t n_;
  Precision precision_;
  std::unique_ptr<Impl> impl_;
};

class Gemm {
 public:
  // `pool` must outlive the Gemm.
  explicit Gemm(ThreadPool& pool);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  // dst [rows, n] = x [rows, k] * W + bias, or dst [rows, k] = x [rows, n] * W^T + bias when `transpose_weights`.
  // `bias` has a value per column of dst, nullptr means none; with `accumulate` the product (and bias) is added into
  // dst. dst overlaps neither x nor the weights. The precision is that of the packed weights. Throws std::logic_error
  // when W was not packed in the form asked for.
  void Multiply(int64_t rows, ConstMatrix x, const PackedWeights& w, bool transpose_weights, const float* bias,
                bool accumulate, Matrix dst);

  // The same from a row-major W [k, n]: for products of so few rows that packing W would not pay.
  void MultiplyPlain(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix w, bool transpose_weights,
                     const float* bias, bool accumulate, Matrix dst);

  // dst [k, n] = x^T * dy, x [rows, k], dy [rows, n]; added into dst with `accumulate`. Jobs are fixed blocks of
  // dst, in bf16 for each block of rows. rows = 0 gives zeros (or leaves dst as it is).
  void MultiplyTransposed(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix dy, bool accumulate,
                          Matrix dst, Precision precision = Precision::kFp32);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The rate in GFLOP/s of [m, k] * packed [k, n] on all threads of `pool`: the best of the runs that fit in `seconds`.
double MeasureGemmRate(int64_t m, int64_t k, int64_t n, ThreadPool& pool, double seconds,
                       Precision precision = Precision::kFp32);

}  // namespace cavs::cpu
