// CPU kernels that look at whole rows: gathers, segment and row reductions, softmax, losses, sparse gradients.
//
// Operands are [rows, width] with an optional row index (operand.h): -1 reads as a zero row and is skipped when
// written. Unless stated otherwise outputs are overwritten, overlap no input, and name each row at most once. Work is
// cut into blocks of a fixed size and reductions run in a fixed order, so answers are the same bits for every number
// of threads. Non-finite values behave as the formula does in `std::` functions. All functions may run in many threads
// at once on distinct outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "cavs/base/thread_pool.h"
#include "vertex/kernels/operand.h"
#include "vertex/kernels/sparse_rows.h"

namespace cavs::cpu {

// dst[r] = src[r]. A row of dst may be a row of src: its own source, or one that no row of dst is copied from.
void CopyRows(Operand dst, ConstOperand src, int64_t rows, int64_t width, ThreadPool& pool);

// dst[r] = the sum of src[e] over the edges e in [begin[r], begin[r + 1]), in order and, where they are many, in blocks
// of 64; none gives zeros. src is addressed by edge, begin is [rows + 1] and need not start at 0.
void SegmentSum(Operand dst, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width, ThreadPool& pool);

// A row of one of several operands, which must have it: an index of the operand may not leave it out.
struct RowReference {
  int32_t operand;
  int32_t row;
};

// dst[r] = the sum of the rows that the references [begin[r], begin[r + 1]) name, in order and in blocks like those of
// SegmentSum; none gives zeros. Overwrites dst, which has no index; begin is [rows + 1] and need not start at 0.
void SumReferences(Operand dst, const ConstOperand* operands, const RowReference* references, const int64_t* begin,
                   int64_t rows, int64_t width, ThreadPool& pool);

// dst[r] = the mean of src[e] over the edges of r; none gives zeros.
void SegmentMean(Operand dst, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width, ThreadPool& pool);
// The gradient of SegmentMean: dsrc[e] = dy[r] / (number of edges of r). dsrc is addressed by edge.
void SegmentMeanGrad(Operand dsrc, ConstOperand dy, const int64_t* begin, int64_t rows, int64_t width,
                     ThreadPool& pool);

// dst[r] = the columnwise maximum of src[e] over the edges of r; none gives zeros, a NaN gives NaN.
void SegmentMax(Operand dst, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width, ThreadPool& pool);

// The gradient of SegmentMax: dsrc[e] = dy[r] in the columns where e is the first edge of r that attains the maximum,
// zero in the others. dsrc is addressed by edge.
void SegmentMaxGrad(Operand dsrc, ConstOperand dy, ConstOperand src, const int64_t* begin, int64_t rows, int64_t width,
                    ThreadPool& pool);

// y[r] = softmax(x[r]) and log(softmax(x[r])), shifted by the maximum so that finite rows neither overflow nor give
// NaN. y may be x.
void Softmax(Operand y, ConstOperand x, int64_t rows, int64_t width, ThreadPool& pool);
void LogSoftmax(Operand y, ConstOperand x, int64_t rows, int64_t width, ThreadPool& pool);

// dx = y * (dy - sum(dy * y)), from y = softmax(x). dx may be dy.
void SoftmaxGrad(Operand dx, ConstOperand dy, ConstOperand y, int64_t rows, int64_t width, ThreadPool& pool);
// dx = dy - exp(y) * sum(dy), from y = log(softmax(x)). dx may be dy.
void LogSoftmaxGrad(Operand dx, ConstOperand dy, ConstOperand y, int64_t rows, int64_t width, ThreadPool& pool);

// dst [rows, 1]: dst[r] = the sum of src[r] over its columns.
void RowSum(Operand dst, ConstOperand src, int64_t rows, int64_t width, ThreadPool& pool);

// z [rows, a * b]: z[r][i * b + j] = x[r][i] * y[r][j], for x [rows, a] and y [rows, b].
void Outer(Operand z, ConstOperand x, ConstOperand y, int64_t rows, int64_t a, int64_t b, ThreadPool& pool);
// dx[r][i] = the sum over j of dz[r][i * b + j] * y[r][j].
void OuterGradX(Operand dx, ConstOperand dz, ConstOperand y, int64_t rows, int64_t a, int64_t b, ThreadPool& pool);
// dy[r][j] = the sum over i of dz[r][i * b + j] * x[r][i].
void OuterGradY(Operand dy, ConstOperand dz, ConstOperand x, int64_t rows, int64_t a, int64_t b, ThreadPool& pool);

// dst [width] = the sum of src over its rows; added into dst with `accumulate`.
void ColumnSum(float* dst, ConstOperand src, int64_t rows, int64_t width, bool accumulate, ThreadPool& pool);

// loss [rows, 1]: loss[r] = log(sum(exp(logits[r]))) - logits[r][labels[r]], 0 where labels[r] is -1 (no label).
// Throws std::logic_error when a label is not in [-1, classes).
void CrossEntropy(Operand loss, ConstOperand logits, const int32_t* labels, int64_t rows, int64_t classes,
                  ThreadPool& pool);
// dlogits[r] = (softmax(logits[r]) - onehot(labels[r])) * dloss[r], exact zeros where labels[r] is -1. dlogits may be
// logits; dloss is [rows, 1].
void CrossEntropyGrad(Operand dlogits, ConstOperand dloss, ConstOperand logits, const int32_t* labels, int64_t rows,
                      int64_t classes, ThreadPool& pool);

// loss [rows, 1]: loss[r] = 0.5 * the sum over columns of (x - t)^2.
void SquaredError(Operand loss, ConstOperand x, ConstOperand t, int64_t rows, int64_t width, ThreadPool& pool);
// dx = (x - t) * dloss[r]. dx may be x.
void SquaredErrorGrad(Operand dx, ConstOperand dloss, ConstOperand x, ConstOperand t, int64_t rows, int64_t width,
                      ThreadPool& pool);

// loss [rows, 1]: loss[r] = the sum of t (log(t) - x) over the columns where t is above 0.
void KlDivergence(Operand loss, ConstOperand x, ConstOperand t, int64_t rows, int64_t width, ThreadPool& pool);
// dx = -max(t, 0) * dloss[r].
void KlDivergenceGrad(Operand dx, ConstOperand dloss, ConstOperand t, int64_t rows, int64_t width, ThreadPool& pool);

// out->ids = the distinct values of ids [count] without -1, ascending; out->rows = the rows of grads [count, width]
// summed per id as SegmentSum does, in the order of their positions. `out` keeps its memory between calls.
void MergeSparseRows(const int32_t* ids, ConstOperand grads, int64_t count, int64_t width, ThreadPool& pool,
                     SparseRows* out);

}  // namespace cavs::cpu
