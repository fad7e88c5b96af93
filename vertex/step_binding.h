// StepBinding: the steps of an Executable with the addresses of the present minibatch. Internal to vertex/.
// Steps are wrapped once; a minibatch binds its buffers first, then the steps of F, and those of dF when they are to
// run. Not thread-safe; bound steps are read by any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "vertex/executable.h"
#include "vertex/kernel_runner.h"
#include "vertex/memory_plan.h"
#include "vertex/parameters.h"
#include "vertex/placement.h"

namespace cavs {

// A StepList with its steps bound.
struct BoundList {
  const StepList* list = nullptr;
  std::vector<BoundStep> steps;
};

struct BoundFunction {
  std::array<BoundList, 3> phases;
  BoundList inputs;
  const BoundList& phase(Phase p) const { return phases[static_cast<size_t>(p)]; }
};

class StepBinding {
 public:
  // All must outlive the binding.
  StepBinding(const Executable* executable, const ParameterStore* parameters, const Placement* placement,
              const MemoryPlan* memory);

  // For the minibatch that `placement` and `memory` are planned for; the steps still have to be bound.
  void BindBuffers(float loss_scale);
  void BindSteps(bool backward);

  // By vertex type; none of dF in an Executable without it.
  const std::vector<BoundFunction>& types(bool backward) const { return types_[backward ? 1 : 0]; }
  const BoundList& head(bool backward) const { return heads_[backward ? 1 : 0]; }
  // All steps in order of functions, F before dF: by BoundStep::number.
  std::vector<const BoundStep*> steps();

  // Rows of `space` at a location.
  Operand Resolve(const Location& location, const RowSpace& space) const;

 private:
  // Where a buffer lies.
  struct BoundBuffer {
    float* base = nullptr;
    int64_t ld = 0;
  };
  BoundList Wrap(const StepList& list) const;
  BoundBuffer BindShared(const Buffer& buffer);
  // Calls visit(step) for every step, in order of functions.
  template <typename Visit>
  void ForEachStep(const Visit& visit);

  const Executable& executable_;
  const ParameterStore& parameters_;
  const Placement& placement_;
  const MemoryPlan& memory_;
  std::array<std::vector<BoundFunction>, 2> types_;  // of F, of dF
  std::array<BoundList, 2> heads_;
  std::vector<BoundBuffer> buffers_;
  float loss_scale_ = 1.0f;
};

}  // namespace cavs
