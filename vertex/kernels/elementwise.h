// Fused elementwise groups as data, and the CPU kernel that runs them.
//
// A group is a list of steps over slots. Slots [0, inputs) are input operands, [inputs, inputs + outputs) output
// operands, the rest temporaries that never leave the L1 cache. Steps run in order, row by row and tile by tile; a
// step may read whatever an earlier step of the group wrote. Every operator behaves as its formula in `std::`
// functions does at zeros of both signs, infinities, NaN and denormals; exp, log, sigmoid and tanh are within 4e-7
// relative error. Programs are immutable while they run; one program may run in many threads at once.
#pragma once

#include <cstdint>
#include <vector>

#include "cavs/base/thread_pool.h"
#include "vertex/kernels/operand.h"

namespace cavs {

enum class ElementwiseOp : uint8_t {
  kCopy,         // dst = a
  kFill,         // dst = scalar
  kAdd,          // dst = a + b
  kSubtract,     // dst = a - b
  kMultiply,     // dst = a * b
  kDivide,       // dst = a / b
  kScale,        // dst = a * scalar
  kSigmoid,      // dst = 1 / (1 + exp(-a))
  kTanh,         // dst = tanh(a)
  kRelu,         // dst = a < 0 ? 0 : a
  kExp,          // dst = exp(a)
  kLog,          // dst = log(a)
  kSqrt,         // dst = sqrt(a)
  kDropout,      // dst = DropoutKeep(HashCounter(row_keys[row], salt), column, threshold) ? a * scalar : 0
  kExpand,       // dst[column] = a[0]: a is an input operand of width 1
  kSigmoidGrad,  // dst = a * b * (1 - b): a is dy, b is y
  kTanhGrad,     // dst = a * (1 - b * b): a is dy, b is y
  kReluGrad,     // dst = b > 0 ? a : 0: a is dy, b is y
};

struct ElementwiseStep {
  ElementwiseOp op = ElementwiseOp::kCopy;
  int16_t dst = 0;
  int16_t a = 0;
  int16_t b = 0;           // read by operators of two operands only
  float scalar = 0;        // kFill, kScale; 1 / (1 - p) for kDropout
  uint64_t salt = 0;       // kDropout
  uint32_t threshold = 0;  // kDropout: p * 2^32
};

// At most kMaxElementwiseSlots slots in all; `width` is the number of columns of every slot but those that kExpand
// reads.
struct ElementwiseProgram {
  int32_t inputs = 0;
  int32_t outputs = 0;
  int32_t temporaries = 0;
  int64_t width = 0;
  std::vector<ElementwiseStep> steps;
};

inline constexpr int32_t kMaxElementwiseSlots = 256;

namespace cpu {

// Runs `program` over `rows` rows. `operands` holds the inputs, then the outputs, each [rows, width] ([rows, 1] where
// kExpand reads it); `row_keys` [rows] is read by kDropout only and may be nullptr without it. An output may be the
// same rows as an input, never shifted ones. Outputs are overwritten; an indexed output names each row at most once.
// `parallel` spreads blocks of rows over the pool; the answer is the same bits either way.
// Throws std::logic_error when the program is malformed (slot out of range, too many slots).
void RunElementwise(const ElementwiseProgram& program, int64_t rows, const Operand* operands, const uint64_t* row_keys,
                    ThreadPool& pool, bool parallel);

}  // namespace cpu
}  // namespace cavs
