// oneDNN matmul primitives and where a Gemm keeps them: a flat table per worker, looked up without allocating.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "hwy/aligned_allocator.h"
#include "vertex/kernels/precision.h"

namespace cavs::cpu {

// Sets the calling thread's OpenMP thread count to 1 and puts back what it was: a primitive keeps the count that it was
// created with, and must be executed with the same.
class SingleOpenMpThread {
 public:
  SingleOpenMpThread();
  ~SingleOpenMpThread();
  SingleOpenMpThread(const SingleOpenMpThread&) = delete;
  SingleOpenMpThread& operator=(const SingleOpenMpThread&) = delete;

 private:
  int saved_;
};

// Everything that a product C [m, n] = A [m, k] * packed B [k, n] depends on but its data. Leading dimensions count
// elements. With kBf16 A and B are bf16 as vertex/kernels/cpu/packing.h lays them out, and k a multiple of kBf16Terms.
struct MatmulKey {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  int64_t lda = 0;
  int64_t ldc = 0;
  bool bias = false;
  bool accumulate = false;
  Precision precision = Precision::kFp32;

  bool operator==(const MatmulKey&) const = default;
};

// B [k, n] in the panels of vertex/kernels/cpu/packing.h.
dnnl::memory::desc PanelDescriptor(int64_t k, int64_t n, Precision precision);
// How B [k, n] should be laid out to be multiplied fastest, for any m.
dnnl::memory::desc PackedDescriptor(const dnnl::engine& engine, int64_t k, int64_t n, Precision precision);

// A buffer that only grows.
class Scratch {
 public:
  // At least `bytes` bytes aligned to a cache line; the last answer is no longer valid after a larger one.
  void* Reserve(size_t bytes);
  // The same for `count` numbers.
  template <typename T>
  T* Elements(int64_t count) {
    return static_cast<T*>(Reserve(static_cast<size_t>(count) * sizeof(T)));
  }

 private:
  size_t size_ = 0;
  hwy::AlignedFreeUniquePtr<uint8_t[]> data_;
};

// A primitive with the memory objects of its arguments. Belongs to one worker.
class Matmul {
 public:
  Matmul(const dnnl::engine& engine, const MatmulKey& key);

  // C = A * B + bias, or C += with key.accumulate; `bias` [n] is read with key.bias only.
  void Execute(const dnnl::stream& stream, Scratch& scratch, const void* a, const void* b, const float* bias,
               float* c) const;

 private:
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, bias_, c_, scratchpad_;
  size_t scratchpad_bytes_ = 0;
};

// The primitives of one worker: open addressing over a power of two of slots, grown at half load.
class MatmulTable {
 public:
  explicit MatmulTable(const dnnl::engine& engine) : engine_(engine), stream_(engine) {}

  // The primitive for `key`, created on first use. Call under SingleOpenMpThread.
  const Matmul& Get(const MatmulKey& key);

  const dnnl::stream& stream() const { return stream_; }
  Scratch& scratch() { return scratch_; }

 private:
  struct Slot {
    MatmulKey key;
    std::unique_ptr<Matmul> matmul;
  };

  Slot& Find(const MatmulKey& key);
  void Grow();

  dnnl::engine engine_;
  dnnl::stream stream_;
  Scratch scratch_;
  std::vector<Slot> slots_ = std::vector<Slot>(64);
  size_t used_ = 0;
};

}  // namespace cavs::cpu
