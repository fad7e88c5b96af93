// CPU kernels of the optimizers: one pass over the values, gradients and moments of a stretch of a parameter.
// Results do not depend on where a parameter is cut into stretches. Pure functions of their arguments; stretches that
// do not overlap may be updated at the same time.
#pragma once

#include <cstdint>

namespace cavs::cpu {

// The numbers of one step. Every kernel begins with g = gradient_scale * gradient + decay * value.
struct UpdateScalars {
  float gradient_scale = 1;  // of clipping
  float decay = 0;
  float rate = 0;         // learning rate; of Adam, divided by 1 - beta1^t
  float keep_first = 0;   // momentum, or Adam's beta1
  float add_first = 0;    // 1 - beta1
  float keep_second = 0;  // beta2
  float add_second = 0;   // 1 - beta2
  float root_scale = 0;   // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

// Updates `count` values and their moments in place; moments that an optimizer does not have are null.
using UpdateKernel = void (*)(const UpdateScalars& scalars, int64_t count, const float* gradient, float* values,
                              float* first, float* second);

struct OptimizerKernels {
  UpdateKernel sgd;       // value -= rate g
  UpdateKernel momentum;  // first = keep_first first + g; value -= rate first
  UpdateKernel adagrad;   // first += g^2; value -= rate g / (sqrt(first) + epsilon)
  // first = keep_first first + add_first g; second = keep_second second + add_second g^2;
  // value -= rate first / (root_scale sqrt(second) + epsilon)
  UpdateKernel adam;
  // The sum of squares of `count` floats, in double precision: it overflows for no finite floats.
  double (*sum_of_squares)(int64_t count, const float* x);
};

// The kernels for this machine.
const OptimizerKernels& FindOptimizerKernels();

}  // namespace cavs::cpu
