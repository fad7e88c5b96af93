// The vector loops behind RunElementwise: one function per operator, chosen once for the CPU that runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "vertex/kernels/elementwise.h"

namespace cavs::cpu {

// One step over `count` adjacent floats. dst may be a or b. `key` and `column` (of the first float) serve dropout.
struct StepArguments {
  float* dst;
  const float* a;
  const float* b;
  size_t count;
  float scalar;
  uint32_t threshold;
  uint32_t column;
  uint64_t key;
};

using StepFunction = void (*)(const StepArguments&);
using StepTable = std::array<StepFunction, static_cast<size_t>(ElementwiseOp::kReluGrad) + 1>;

// Indexed by ElementwiseOp. Immutable; safe from any thread.
const StepTable& StepFunctions();

}  // namespace cavs::cpu
