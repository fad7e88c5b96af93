// Helpers of the tests that pin a model's formula by a case computed in double precision: small, distinct values for
// all parameters, and vectors of doubles.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/model.h"

namespace cavs {

using DoubleRow = std::vector<double>;

inline double SigmoidOf(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Gives every parameter values that depend on its name and the place alone.
inline void SetSmallValues(Model* model) {
  for (int32_t p = 0; p < model->parameters().count(); ++p) {
    const std::string name = model->parameters().declaration(p).name;
    double phase = 0;
    for (const char c : name) phase = phase * 1.7 + c;
    std::vector<float> values(static_cast<size_t>(model->parameters().declaration(p).shape.width()));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(0.7 * std::sin(static_cast<double>(i) * 1.3 + phase));
    }
    model->Set(name, values);
  }
}

// Row `row` of a parameter of `columns` columns.
inline DoubleRow RowOf(const Model& model, std::string_view name, int64_t row, int64_t columns) {
  const std::vector<float> values = model.Get(name);
  const auto begin = values.begin() + row * columns;
  return {begin, begin + columns};
}

// x W, for W of `columns` columns.
inline DoubleRow Product(const Model& model, const DoubleRow& x, std::string_view weights, int64_t columns) {
  DoubleRow y(static_cast<size_t>(columns), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    const DoubleRow row = RowOf(model, weights, static_cast<int64_t>(i), columns);
    for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * row[j];
  }
  return y;
}

inline DoubleRow Plus(DoubleRow x, const DoubleRow& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return x;
}

inline DoubleRow Bias(const Model& model, std::string_view name) {
  const std::vector<float> values = model.Get(name);
  return {values.begin(), values.end()};
}

inline double LogSumExp(const DoubleRow& x) {
  double sum = 0;
  for (const double value : x) sum += std::exp(value);
  return std::log(sum);
}

}  // namespace cavs
