#include "vertex/kernels/rows.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cavs/base/error.h"
#include "vertex/kernels/cpu/row_kernels.h"
#include "vertex/kernels/cpu/row_loops.h"

namespace cavs::cpu {
namespace {

void CopyRow(float* dst, const float* src, int64_t width) {
  std::memcpy(dst, src, static_cast<size_t>(width) * sizeof(float));
}

void ZeroRow(float* dst, int64_t width) { std::fill_n(dst, width, 0.0f); }

// Rows of several operands, by the number of their reference.
class ReferenceReader {
 public:
  ReferenceReader(const ConstOperand* operands, const RowReference* references)
      : operands_(operands), references_(references) {}

  const float* operator[](int64_t reference) const {
    return operands_[references_[reference].operand].Row(references_[reference].row);
  }

 private:
  const ConstOperand* operands_;
  const RowReference* references_;
};

// sum [width] = the sum of edges [begin, end), at least one, in order. Many edges are summed in blocks of blocks, as
// the error of one long chain of additions grows with its length: 100,000 children cost three digits.
template <typename Edges>
void SumEdges(const RowKernels& kernels, const Edges& edges, int64_t begin, int64_t end, int64_t width, float* sum) {
  constexpr int64_t kBlock = 64;
  if (end - begin <= kBlock) {
    CopyRow(sum, edges[begin], width);
    for (int64_t edge = begin + 1; edge < end; ++edge) kernels.add(sum, edges[edge], width);
    return;
  }
  float block[kBlockColumns], blocks[kBlockColumns];
  for (int64_t first = 0; first < width; first += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, width - first);
    ZeroRow(sum + first, columns);
    ZeroRow(blocks, columns);
    for (int64_t edge = begin; edge < end; edge += kBlock) {
      const int64_t last = std::min(end, edge + kBlock);
      CopyRow(block, edges[edge] + first, columns);
      for (int64_t next = edge + 1; next < last; ++next) kernels.add(block, edges[next] + first, columns);
      kernels.add(blocks, block, columns);
      const bool full = (last - begin) % (kBlock * kBlock) == 0;
      if (!full && last < end) continue;
      kernels.add(sum + first, blocks, columns);
      ZeroRow(blocks, columns);
    }
  }
}

}  // namespace

void CopyRows(Operand dst, ConstOperand src, int64_t rows, int64_t width, ThreadPool& pool) {
  if (width == 0) return;
  ForRows(pool, rows, width, [&](int64_t row) {
    float* const to = dst.Row(row);
    const float* const from = src.Row(row);
    if (to == nullptr || to == from) return;
    from != nullptr ? CopyRow(to, from, width) : ZeroRow(to, width);
  });
}

void SegmentSum(Operand dst, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader edges(src, width);
  ForRows(pool, rows, 2 * width, [&](int64_t row) {
    float* const sum = dst.Row(row);
    if (sum == nullptr) return;
    if (begin[row] == begin[row + 1]) return ZeroRow(sum, width);
    SumEdges(kernels, edges, begin[row], begin[row + 1], width, sum);
  });
}

void SumReferences(Operand dst, const ConstOperand* operands, const RowReference* references, const int64_t* begin,
                   int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const ReferenceReader reader(operands, references);
  ForRows(pool, rows, 3 * width, [&](int64_t row) {
    float* const sum = dst.Row(row);
    if (begin[row] == begin[row + 1]) return ZeroRow(sum, width);
    SumEdges(kernels, reader, begin[row], begin[row + 1], width, sum);
  });
}

void SegmentMax(Operand dst, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader edges(src, width);
  ForRows(pool, rows, 2 * width, [&](int64_t row) {
    float* const best = dst.Row(row);
    if (best == nullptr) return;
    if (begin[row] == begin[row + 1]) return ZeroRow(best, width);
    CopyRow(best, edges[begin[row]], width);
    for (int64_t edge = begin[row] + 1; edge < begin[row + 1]; ++edge) kernels.maximum(best, edges[edge], width);
  });
}

void SegmentMaxGrad(Operand dsrc, ConstOperand dy, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width,
                    ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader edges(src, width);
  const RowReader gradients(dy, width);
  ForRows(pool, rows, 4 * width, [&](int64_t row) {
    const int64_t end = begin[row + 1];
    float best[kBlockColumns], rest[kBlockColumns], discarded[kBlockColumns];
    for (int64_t first = 0; begin[row] < end && first < width; first += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, width - first);
      CopyRow(rest, gradients[row] + first, columns);
      CopyRow(best, edges[begin[row]] + first, columns);
      for (int64_t edge = begin[row] + 1; edge < end; ++edge) kernels.maximum(best, edges[edge] + first, columns);
      for (int64_t edge = begin[row]; edge < end; ++edge) {
        float* const out = dsrc.Row(edge);
        kernels.claim(out != nullptr ? out + first : discarded, rest, edges[edge] + first, best, columns);
      }
    }
  });
}

void RowSum(Operand dst, ConstOperand src, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader values(src, width);
  ForRows(pool, rows, width, [&](int64_t row) {
    if (float* const out = dst.Row(row)) *out = kernels.sum(values[row], width);
  });
}

void Outer(Operand z, ConstOperand x, ConstOperand y, int64_t rows, int64_t a, int64_t b, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader left(x, a);
  const RowReader right(y, b);
  ForRows(pool, rows, a * b, [&](int64_t row) {
    float* const out = z.Row(row);
    for (int64_t i = 0; out != nullptr && i < a; ++i) kernels.scale(out + i * b, right[row], left[row][i], b);
  });
}

void OuterGradX(Operand dx, ConstOperand dz, ConstOperand y, int64_t rows, int64_t a, int64_t b, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader gradients(dz, a * b);
  const RowReader right(y, b);
  ForRows(pool, rows, a * b, [&](int64_t row) {
    float* const out = dx.Row(row);
    for (int64_t i = 0; out != nullptr && i < a; ++i) out[i] = kernels.dot(gradients[row] + i * b, right[row], b);
  });
}

void OuterGradY(Operand dy, ConstOperand dz, ConstOperand x, int64_t rows, int64_t a, int64_t b, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader gradients(dz, a * b);
  const RowReader left(x, a);
  ForRows(pool, rows, a * b, [&](int64_t row) {
    float* const out = dy.Row(row);
    if (out == nullptr) return;
    ZeroRow(out, b);
    for (int64_t i = 0; i < a; ++i) kernels.add_scaled(out, gradients[row] + i * b, left[row][i], b);
  });
}

void ColumnSum(float* dst, ConstOperand src, int64_t rows, int64_t width, bool accumulate, ThreadPool& pool) {
  // Sums of sums: the rounding error grows with the root of what a plain running sum has.
  constexpr int64_t kRunRows = 64;
  const RowKernels& kernels = Rows();
  ForColumns(pool, rows, width, [&](int64_t first, int64_t columns) {
    float* const total = dst + first;
    if (!accumulate) ZeroRow(total, columns);
    float run[kBlockColumns];
    for (int64_t begin = 0; begin < rows; begin += kRunRows) {
      ZeroRow(run, columns);
      for (int64_t row = begin; row < std::min(rows, begin + kRunRows); ++row) {
        if (const float* const values = src.Row(row)) kernels.add(run, values + first, columns);
      }
      kernels.add(total, run, columns);
    }
  });
}

void MergeSparseRows(const int32_t* ids, ConstOperand grads, int64_t count, int64_t width, ThreadPool& pool,
                     SparseRows* out) {
  // Sorted by id, then by position: the order of the sums is the order of the positions.
  CAVS_CHECK(count <= INT32_MAX, "{} sparse rows", count);
  std::vector<uint64_t> order;
  order.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] >= 0) order.push_back(static_cast<uint64_t>(ids[i]) << 32 | static_cast<uint64_t>(i));
  }
  std::sort(order.begin(), order.end());
  std::vector<int64_t> begin;
  std::vector<int32_t> positions(order.size());
  out->ids.clear();
  for (size_t i = 0; i < order.size(); ++i) {
    const auto id = static_cast<int32_t>(order[i] >> 32);
    const auto position = static_cast<int32_t>(order[i] & UINT32_MAX);
    positions[i] = grads.index != nullptr ? grads.index[position] : position;
    if (i > 0 && out->ids.back() == id) continue;
    out->ids.push_back(id);
    begin.push_back(static_cast<int64_t>(i));
  }
  begin.push_back(static_cast<int64_t>(order.size()));
  const auto rows = static_cast<int64_t>(out->ids.size());
  out->rows.resize(static_cast<size_t>(rows * width));
  SegmentSum({out->rows.data(), width, nullptr}, {grads.base, grads.ld, positions.data()}, begin.data(), rows, width,
             pool);
}

}  // namespace cavs::cpu
