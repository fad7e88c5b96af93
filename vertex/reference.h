// Double-precision references: what every operator that maps rows to rows computes, for one row at a time.
// They are written for reading and share nothing with the kernels; the Interpreter and the operator tests rest on
// them. Operators that move rows (gathers, scatters, sums over children, parameter gradients) have no reference here:
// the Interpreter does what they say.
// Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <span>

#include "memory/shape.h"
#include "vertex/program.h"

namespace cavs {

// One row of an instruction. `x` has a row of each operand; of a parameter or constant, all of it.
struct ReferenceRow {
  std::span<const std::span<const double>> x;
  std::span<const Shape> shapes;  // of the operands
  std::span<double> y;            // overwritten; never overlaps an operand
  const Attributes& attributes;
  int32_t label = -1;              // kCrossEntropy and its gradient; -1: none
  std::span<const double> target;  // kSquaredError, kKlDivergence and their gradients; empty: none
  bool training = false;           // kDropout is the identity when false
  uint64_t row_key = 0;            // kDropout: stands for (seed, step, example, vertex)
};

using ReferenceFunction = void (*)(const ReferenceRow& row);

// Null for operators that move rows. The function throws std::invalid_argument for a custom operator that has no
// reference, std::logic_error when an operand has the wrong width.
ReferenceFunction FindReference(Op op);

}  // namespace cavs
