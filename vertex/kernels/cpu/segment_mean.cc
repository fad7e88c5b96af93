#include <algorithm>

#include "vertex/kernels/rows.h"

namespace cavs::cpu {
namespace {

constexpr int64_t kRowsPerJob = 64;

// dst = src * factor; a missing source is a zero row, a missing destination is skipped.
void ScaleRow(float* dst, const float* src, float factor, int64_t width) {
  if (dst == nullptr) return;
  if (src == nullptr) {
    std::fill_n(dst, width, 0.0f);
    return;
  }
  for (int64_t j = 0; j < width; ++j) dst[j] = src[j] * factor;
}

}  // namespace

void SegmentMean(Operand dst, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width, ThreadPool& pool) {
  SegmentSum(dst, src, begin, rows, width, pool);
  ParallelFor(pool, rows, kRowsPerJob, [&](int64_t first, int64_t last, int) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t edges = begin[r + 1] - begin[r];
      if (edges > 1) ScaleRow(dst.Row(r), dst.Row(r), 1.0f / static_cast<float>(edges), width);
    }
  });
}

void SegmentMeanGrad(Operand dsrc, ConstOperand dy, const int64_t* begin, int64_t rows, int64_t width,
                     ThreadPool& pool) {
  ParallelFor(pool, rows, kRowsPerJob, [&](int64_t first, int64_t last, int) {
    for (int64_t r = first; r < last; ++r) {
      const float share = 1.0f / static_cast<float>(std::max<int64_t>(1, begin[r + 1] - begin[r]));
      for (int64_t e = begin[r]; e < begin[r + 1]; ++e) ScaleRow(dsrc.Row(e), dy.Row(r), share, width);
    }
  });
}

}  // namespace cavs::cpu
