#include <algorithm>
#include <cmath>

#include "cavs/base/error.h"
#include "vertex/kernels/cpu/row_kernels.h"
#include "vertex/kernels/cpu/row_loops.h"
#include "vertex/kernels/rows.h"

namespace cavs::cpu {
namespace {

constexpr int64_t kExpCost = 4;  // an exponential costs about as much as touching this many floats

void CheckLabel(int32_t label, int64_t classes) {
  CAVS_CHECK(label >= -1 && label < classes, "label {} of {} classes", label, classes);
}

}  // namespace

void Softmax(Operand y, ConstOperand x, int64_t rows, int64_t width, ThreadPool& pool) {
  if (width == 0) return;
  const RowKernels& kernels = Rows();
  const RowReader inputs(x, width);
  ForRows(pool, rows, kExpCost * width, [&](int64_t row) {
    float* const out = y.Row(row);
    if (out == nullptr) return;
    const float* const in = inputs[row];
    const float sum = kernels.exp_store(out, in, kernels.max(in, width), width);
    kernels.scale(out, out, 1.0f / sum, width);
  });
}

void LogSoftmax(Operand y, ConstOperand x, int64_t rows, int64_t width, ThreadPool& pool) {
  if (width == 0) return;
  const RowKernels& kernels = Rows();
  const RowReader inputs(x, width);
  ForRows(pool, rows, kExpCost * width, [&](int64_t row) {
    float* const out = y.Row(row);
    if (out == nullptr) return;
    const float* const in = inputs[row];
    const float max = kernels.max(in, width);
    const float log_sum = std::log(kernels.exp_sum(in, max, width));
    // Two steps: max + log_sum would lose the low bits of log_sum next to a large max.
    kernels.subtract_scalar(out, in, max, width);
    kernels.subtract_scalar(out, out, log_sum, width);
  });
}

void SoftmaxGrad(Operand dx, ConstOperand dy, ConstOperand y, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader gradients(dy, width);
  const RowReader outputs(y, width);
  ForRows(pool, rows, 2 * width, [&](int64_t row) {
    float* const out = dx.Row(row);
    if (out == nullptr) return;
    const float mean = kernels.dot(gradients[row], outputs[row], width);
    kernels.softmax_grad(out, gradients[row], outputs[row], mean, width);
  });
}

void LogSoftmaxGrad(Operand dx, ConstOperand dy, ConstOperand y, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader gradients(dy, width);
  const RowReader outputs(y, width);
  ForRows(pool, rows, kExpCost * width, [&](int64_t row) {
    float* const out = dx.Row(row);
    if (out == nullptr) return;
    kernels.log_softmax_grad(out, gradients[row], outputs[row], kernels.sum(gradients[row], width), width);
  });
}

void CrossEntropy(Operand loss, ConstOperand logits, const int32_t* labels, int64_t rows, int64_t classes,
                  ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader inputs(logits, classes);
  ForRows(pool, rows, kExpCost * classes, [&](int64_t row) {
    const int32_t label = labels[row];
    CheckLabel(label, classes);
    float* const out = loss.Row(row);
    if (out == nullptr) return;
    *out = 0;
    if (label < 0) return;
    const float* const in = inputs[row];
    const float max = kernels.max(in, classes);
    *out = std::log(kernels.exp_sum(in, max, classes)) + (max - in[label]);
  });
}

void CrossEntropyGrad(Operand dlogits, ConstOperand dloss, ConstOperand logits, const int32_t* labels, int64_t rows,
                      int64_t classes, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader inputs(logits, classes);
  const RowReader gradients(dloss, 1);
  ForRows(pool, rows, kExpCost * classes, [&](int64_t row) {
    const int32_t label = labels[row];
    CheckLabel(label, classes);
    float* const out = dlogits.Row(row);
    if (out == nullptr) return;
    if (label < 0) {
      std::fill_n(out, classes, 0.0f);
      return;
    }
    const float* const in = inputs[row];
    const float sum = kernels.exp_store(out, in, kernels.max(in, classes), classes);
    // softmax - 1 of the label without cancellation: minus the share of the other classes.
    const float others = kernels.sum(out, label) + kernels.sum(out + label + 1, classes - label - 1);
    const float scale = *gradients[row] / sum;
    kernels.scale(out, out, scale, classes);
    out[label] = -others * scale;
  });
}

void SquaredError(Operand loss, ConstOperand x, ConstOperand t, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader values(x, width);
  const RowReader targets(t, width);
  ForRows(pool, rows, 2 * width, [&](int64_t row) {
    if (float* const out = loss.Row(row)) *out = 0.5f * kernels.squared_distance(values[row], targets[row], width);
  });
}

void SquaredErrorGrad(Operand dx, ConstOperand dloss, ConstOperand x, ConstOperand t, int64_t rows, int64_t width,
                      ThreadPool& pool) {
  const RowKernels& kernels = Rows();
  const RowReader values(x, width);
  const RowReader targets(t, width);
  const RowReader gradients(dloss, 1);
  ForRows(pool, rows, 2 * width, [&](int64_t row) {
    if (float* const out = dx.Row(row)) {
      kernels.scaled_difference(out, values[row], targets[row], *gradients[row], width);
    }
  });
}

void KlDivergence(Operand loss, ConstOperand x, ConstOperand t, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowReader values(x, width);
  const RowReader targets(t, width);
  ForRows(pool, rows, kExpCost * width, [&](int64_t row) {
    float* const out = loss.Row(row);
    if (out == nullptr) return;
    const float* const in = values[row];
    const float* const target = targets[row];
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      if (target[i] > 0) sum += double{target[i]} * (std::log(double{target[i]}) - double{in[i]});
    }
    *out = static_cast<float>(sum);
  });
}

void KlDivergenceGrad(Operand dx, ConstOperand dloss, ConstOperand t, int64_t rows, int64_t width, ThreadPool& pool) {
  const RowReader targets(t, width);
  const RowReader gradients(dloss, 1);
  ForRows(pool, rows, 2 * width, [&](int64_t row) {
    float* const out = dx.Row(row);
    if (out == nullptr) return;
    const float* const target = targets[row];
    const float gradient = *gradients[row];
    for (int64_t i = 0; i < width; ++i) out[i] = target[i] > 0 ? -target[i] * gradient : 0.0f;
  });
}

}  // namespace cavs::cpu
