// CustomOperator: an operator that a user registers from outside of the library .
// It maps whole rows to whole rows: shape rule, CPU kernel, gradient kernel, and a double-precision reference of both,
// against which `cavs verify` and the tests check it like any built-in operator.
// Immutable once it is used in a Program; its functions are called from several threads and must not share state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "memory/shape.h"
#include "vertex/kernels/operand.h"

namespace cavs {

struct CustomOperator {
  std::string name;
  int inputs = 1;  // number of row operands

  // Shape of one row of the result. Throws std::invalid_argument when the shapes do not fit.
  std::function<Shape(std::span<const Shape> x)> infer;

  // Overwrites y, `rows` rows. Row r of operand k is x_shapes[k].width() floats at x[k].base + r * x[k].ld; operands
  // carry no index. y and dx below may have rows of another stride than their width.
  std::function<void(int64_t rows, std::span<const ConstOperand> x, std::span<const Shape> x_shapes, Operand y)>
      forward;

  // Overwrites dx, the gradient with respect to operand `slot`, `rows` rows, given dy and the result y.
  std::function<void(int slot, int64_t rows, ConstOperand dy, ConstOperand y, std::span<const ConstOperand> x,
                     std::span<const Shape> x_shapes, Operand dx)>
      backward;

  // The same for one row, in double precision.
  std::function<void(std::span<const double* const> x, std::span<const Shape> x_shapes, double* y)> reference;
  std::function<void(int slot, const double* dy, const double* y, std::span<const double* const> x,
                     std::span<const Shape> x_shapes, double* dx)>
      reference_gradient;
};

}  // namespace cavs
