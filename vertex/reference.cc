#include "vertex/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "vertex/operator.h"

namespace cavs {
namespace {

using Row = std::span<const double>;

template <typename Formula>
void Map(const ReferenceRow& row, Formula formula) {
  const Row x = row.x[0];
  CAVS_CHECK(x.size() == row.y.size());
  for (size_t i = 0; i < x.size(); ++i) row.y[i] = formula(x[i]);
}

template <typename Formula>
void Map2(const ReferenceRow& row, Formula formula) {
  const Row a = row.x[0];
  const Row b = row.x[1];
  CAVS_CHECK(a.size() == row.y.size() && b.size() == row.y.size());
  for (size_t i = 0; i < a.size(); ++i) row.y[i] = formula(a[i], b[i]);
}

double Total(Row x) {
  double total = 0;
  for (const double value : x) total += value;
  return total;
}

// log sum_i exp(x_i), shifted by the maximum.
double LogSumExp(Row x) {
  const double top = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (const double value : x) total += std::exp(value - top);
  return top + std::log(total);
}

// y_j = sum_i x_i W_ij + b_j; of W^T: y_i = sum_j x_j W_ij + b_i.
void MatMul(const ReferenceRow& row) {
  const Row x = row.x[0];
  const Row w = row.x[1];
  const bool transposed = row.attributes.transposed;
  const size_t rows = static_cast<size_t>(row.shapes[1].rows());
  const size_t columns = static_cast<size_t>(row.shapes[1].columns());
  CAVS_CHECK(x.size() == (transposed ? columns : rows) && row.y.size() == (transposed ? rows : columns));
  if (row.x.size() > 2) {
    std::copy(row.x[2].begin(), row.x[2].end(), row.y.begin());
  } else {
    std::fill(row.y.begin(), row.y.end(), 0.0);
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      if (transposed) {
        row.y[i] += x[j] * w[i * columns + j];
      } else {
        row.y[j] += x[i] * w[i * columns + j];
      }
    }
  }
}

// z_ij = x_i y_j, row-major.
void Outer(const ReferenceRow& row) {
  const Row x = row.x[0];
  const Row y = row.x[1];
  CAVS_CHECK(row.y.size() == x.size() * y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < y.size(); ++j) row.y[i * y.size() + j] = x[i] * y[j];
  }
}

// dx_i = sum_j dz_ij y_j.
void OuterGradLeft(const ReferenceRow& row) {
  const Row dz = row.x[0];
  const Row y = row.x[1];
  CAVS_CHECK(dz.size() == row.y.size() * y.size());
  for (size_t i = 0; i < row.y.size(); ++i) {
    row.y[i] = 0;
    for (size_t j = 0; j < y.size(); ++j) row.y[i] += dz[i * y.size() + j] * y[j];
  }
}

// dy_j = sum_i dz_ij x_i.
void OuterGradRight(const ReferenceRow& row) {
  const Row dz = row.x[0];
  const Row x = row.x[1];
  CAVS_CHECK(dz.size() == row.y.size() * x.size());
  for (size_t j = 0; j < row.y.size(); ++j) {
    row.y[j] = 0;
    for (size_t i = 0; i < x.size(); ++i) row.y[j] += dz[i * row.y.size() + j] * x[i];
  }
}

// y = x / (1 - p) where the draw keeps the column, else 0.
void Dropout(const ReferenceRow& row) {
  const double rate = row.attributes.scalar;
  const uint64_t key = HashCounter(row.row_key, row.attributes.salt);
  const auto threshold = static_cast<uint32_t>(rate * 0x1.0p32);
  for (size_t i = 0; i < row.y.size(); ++i) {
    const bool keep = !row.training || DropoutKeep(key, static_cast<uint32_t>(i), threshold);
    row.y[i] = keep ? row.x[0][i] / (row.training ? 1 - rate : 1.0) : 0.0;
  }
}

// y_i = x, the one value of the operand.
void Expand(const ReferenceRow& row) {
  CAVS_CHECK(row.x[0].size() == 1);
  std::fill(row.y.begin(), row.y.end(), row.x[0][0]);
}

// y_i = exp(x_i) / sum_j exp(x_j).
void Softmax(const ReferenceRow& row) {
  const double normalizer = LogSumExp(row.x[0]);
  Map(row, [=](double x) { return std::exp(x - normalizer); });
}

// y_i = x_i - log sum_j exp(x_j).
void LogSoftmax(const ReferenceRow& row) {
  const double normalizer = LogSumExp(row.x[0]);
  Map(row, [=](double x) { return x - normalizer; });
}

// dx_i = y_i (dy_i - sum_j dy_j y_j).
void SoftmaxGrad(const ReferenceRow& row) {
  double dot = 0;
  for (size_t i = 0; i < row.y.size(); ++i) dot += row.x[0][i] * row.x[1][i];
  Map2(row, [=](double dy, double y) { return y * (dy - dot); });
}

// dx_i = dy_i - exp(y_i) sum_j dy_j.
void LogSoftmaxGrad(const ReferenceRow& row) {
  const double total = Total(row.x[0]);
  Map2(row, [=](double dy, double y) { return dy - std::exp(y) * total; });
}

void Concat(const ReferenceRow& row) {
  auto end = row.y.begin();
  for (const Row part : row.x) {
    CAVS_CHECK(row.y.end() - end >= std::ssize(part));
    end = std::copy(part.begin(), part.end(), end);
  }
  CAVS_CHECK(end == row.y.end());
}

// y = x[begin, begin + width).
void Slice(const ReferenceRow& row) {
  const Row part = row.x[0].subspan(static_cast<size_t>(row.attributes.begin), row.y.size());
  std::copy(part.begin(), part.end(), row.y.begin());
}

// y = log sum_j exp(x_j) - x_label; 0 without a label.
void CrossEntropy(const ReferenceRow& row) {
  row.y[0] = row.label < 0 ? 0.0 : LogSumExp(row.x[0]) - row.x[0][static_cast<size_t>(row.label)];
}

// dx_i = (softmax(x)_i - [i = label]) dy; 0 without a label.
void CrossEntropyGrad(const ReferenceRow& row) {
  const Row x = row.x[0];
  const double dy = row.x[1][0];
  const double normalizer = LogSumExp(x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double one_hot = static_cast<int64_t>(i) == row.label ? 1.0 : 0.0;
    row.y[i] = row.label < 0 ? 0.0 : (std::exp(x[i] - normalizer) - one_hot) * dy;
  }
}

// y = 1/2 sum_i (x_i - t_i)^2; 0 without a target.
void SquaredError(const ReferenceRow& row) {
  row.y[0] = 0;
  for (size_t i = 0; i < row.target.size(); ++i) {
    const double difference = row.x[0][i] - row.target[i];
    row.y[0] += 0.5 * difference * difference;
  }
}

// dx_i = (x_i - t_i) dy; 0 without a target.
void SquaredErrorGrad(const ReferenceRow& row) {
  for (size_t i = 0; i < row.y.size(); ++i) {
    row.y[i] = row.target.empty() ? 0.0 : (row.x[0][i] - row.target[i]) * row.x[1][0];
  }
}

// y = sum_i t_i (log t_i - x_i) over the t_i above 0; 0 without a target.
void KlDivergence(const ReferenceRow& row) {
  row.y[0] = 0;
  for (size_t i = 0; i < row.target.size(); ++i) {
    const double t = row.target[i];
    if (t > 0) row.y[0] += t * (std::log(t) - row.x[0][i]);
  }
}

// dx_i = -t_i dy where t_i is above 0, else 0.
void KlDivergenceGrad(const ReferenceRow& row) {
  for (size_t i = 0; i < row.y.size(); ++i) {
    row.y[i] = row.target.empty() ? 0.0 : -std::max(row.target[i], 0.0) * row.x[0][0];
  }
}

std::vector<const double*> Pointers(std::span<const Row> rows) {
  std::vector<const double*> pointers;
  pointers.reserve(rows.size());
  for (const Row row : rows) pointers.push_back(row.data());
  return pointers;
}

void Custom(const ReferenceRow& row) {
  const CustomOperator& custom = *row.attributes.custom;
  if (!custom.reference) ThrowInvalid(custom.name, "expected a double-precision reference, got none");
  custom.reference(Pointers(row.x), row.shapes, row.y.data());
}

// Operands: dy, y, then those of the operator.
void CustomGrad(const ReferenceRow& row) {
  const CustomOperator& custom = *row.attributes.custom;
  if (!custom.reference_gradient) ThrowInvalid(custom.name, "expected a reference of the gradient, got none");
  const std::vector<const double*> x = Pointers(row.x);
  custom.reference_gradient(row.attributes.slot, x[0], x[1], std::span(x).subspan(2), row.shapes.subspan(2),
                            row.y.data());
}

constexpr std::pair<Op, ReferenceFunction> kReferences[] = {
    {Op::kMatMul, MatMul},
    {Op::kOuter, Outer},
    {Op::kAdd, [](const ReferenceRow& row) { Map2(row, [](double a, double b) { return a + b; }); }},
    {Op::kSubtract, [](const ReferenceRow& row) { Map2(row, [](double a, double b) { return a - b; }); }},
    {Op::kMultiply, [](const ReferenceRow& row) { Map2(row, [](double a, double b) { return a * b; }); }},
    {Op::kDivide, [](const ReferenceRow& row) { Map2(row, [](double a, double b) { return a / b; }); }},
    {Op::kScale, [](const ReferenceRow& row) { Map(row, [&](double x) { return x * row.attributes.scalar; }); }},
    {Op::kSigmoid, [](const ReferenceRow& row) { Map(row, [](double x) { return 1 / (1 + std::exp(-x)); }); }},
    {Op::kTanh, [](const ReferenceRow& row) { Map(row, [](double x) { return std::tanh(x); }); }},
    {Op::kRelu, [](const ReferenceRow& row) { Map(row, [](double x) { return x < 0 ? 0.0 : x; }); }},
    {Op::kExp, [](const ReferenceRow& row) { Map(row, [](double x) { return std::exp(x); }); }},
    {Op::kLog, [](const ReferenceRow& row) { Map(row, [](double x) { return std::log(x); }); }},
    {Op::kSqrt, [](const ReferenceRow& row) { Map(row, [](double x) { return std::sqrt(x); }); }},
    {Op::kDropout, Dropout},
    {Op::kExpand, Expand},
    {Op::kSoftmax, Softmax},
    {Op::kLogSoftmax, LogSoftmax},
    {Op::kSum, [](const ReferenceRow& row) { row.y[0] = Total(row.x[0]); }},
    {Op::kConcat, Concat},
    {Op::kSlice, Slice},
    {Op::kCrossEntropy, CrossEntropy},
    {Op::kSquaredError, SquaredError},
    {Op::kKlDivergence, KlDivergence},
    {Op::kCustom, Custom},
    {Op::kSigmoidGrad,
     [](const ReferenceRow& row) { Map2(row, [](double dy, double y) { return dy * y * (1 - y); }); }},
    {Op::kTanhGrad, [](const ReferenceRow& row) { Map2(row, [](double dy, double y) { return dy * (1 - y * y); }); }},
    {Op::kReluGrad, [](const ReferenceRow& row) { Map2(row, [](double dy, double y) { return y > 0 ? dy : 0.0; }); }},
    {Op::kSoftmaxGrad, SoftmaxGrad},
    {Op::kLogSoftmaxGrad, LogSoftmaxGrad},
    {Op::kOuterGradLeft, OuterGradLeft},
    {Op::kOuterGradRight, OuterGradRight},
    {Op::kCrossEntropyGrad, CrossEntropyGrad},
    {Op::kSquaredErrorGrad, SquaredErrorGrad},
    {Op::kKlDivergenceGrad, KlDivergenceGrad},
    {Op::kCustomGrad, CustomGrad},
};

constexpr auto kReferenceOf = [] {
  std::array<ReferenceFunction, kOpCount> table{};
  for (const auto& [op, function] : kReferences) table[static_cast<size_t>(op)] = function;
  return table;
}();

}  // namespace

ReferenceFunction FindReference(Op op) { return kReferenceOf[static_cast<size_t>(op)]; }

}  // namespace cavs
