#include "vertex/step_binding.h"

#include <algorithm>

namespace cavs {

StepBinding::StepBinding(const Executable* executable, const ParameterStore* parameters, const Placement* placement,
                         const MemoryPlan* memory)
    : executable_(*executable), parameters_(*parameters), placement_(*placement), memory_(*memory) {
  buffers_.resize(executable_.buffers().size());
  for (const bool backward : {false, true}) {
    const size_t side = backward ? 1 : 0;
    heads_[side] = Wrap(executable_.head(backward));
    if (backward && !executable_.has_backward()) continue;
    types_[side].resize(executable_.signature().types.size());
    for (size_t type = 0; type < types_[side].size(); ++type) {
      const FunctionSteps& function = executable_.function(backward, static_cast<int32_t>(type));
      for (size_t p = 0; p < function.phases.size(); ++p) types_[side][type].phases[p] = Wrap(function.phases[p]);
      types_[side][type].inputs = Wrap(function.inputs);
    }
  }
  int32_t number = 0;
  ForEachStep([&](BoundStep& bound) { bound.number = number++; });
}

BoundList StepBinding::Wrap(const StepList& list) const {
  BoundList result{&list, {}};
  for (const Step& step : list.steps) {
    const Program& program = step.backward ? executable_.backward() : executable_.forward();
    BoundStep& bound = result.steps.emplace_back();
    bound.step = &step;
    bound.instruction = &program.instructions[static_cast<size_t>(step.instruction)];
    bound.operands.resize(step.operands.size());
  }
  return result;
}

template <typename Visit>
void StepBinding::ForEachStep(const Visit& visit) {
  for (size_t side = 0; side < types_.size(); ++side) {
    for (BoundFunction& function : types_[side]) {
      for (BoundList& list : function.phases) {
        for (BoundStep& step : list.steps) visit(step);
      }
      for (BoundStep& step : function.inputs.steps) visit(step);
    }
    for (BoundStep& step : heads_[side].steps) visit(step);
  }
}

std::vector<const BoundStep*> StepBinding::steps() {
  std::vector<const BoundStep*> result;
  ForEachStep([&](const BoundStep& bound) { result.push_back(&bound); });
  return result;
}

void StepBinding::BindBuffers(float loss_scale) {
  loss_scale_ = loss_scale;
  for (size_t b = 0; b < buffers_.size(); ++b) {
    const Buffer& buffer = executable_.buffers()[b];
    buffers_[b] = IsOwned(buffer) ? BoundBuffer{memory_.data(b), buffer.width} : BindShared(buffer);
  }
  for (size_t n = 0; n < executable_.nests().size(); ++n) {
    const Nest& nest = executable_.nests()[n];
    const BoundBuffer& table = buffers_[static_cast<size_t>(nest.table)];
    float* const first = table.base + placement_.nest_row(static_cast<int32_t>(n)) * table.ld;
    buffers_[static_cast<size_t>(nest.buffer)] = {first, nest.slots * table.ld};
  }
}

// Parameters and constants are only ever read through an Operand.
StepBinding::BoundBuffer StepBinding::BindShared(const Buffer& buffer) {
  switch (buffer.kind) {
    case BufferKind::kParameter:
      return {const_cast<float*>(parameters_.values(buffer.id).data()), 0};
    case BufferKind::kConstant: {
      const bool own = buffer.id >= executable_.forward().value_count();
      const Program& program = own ? executable_.backward() : executable_.forward();
      return {const_cast<float*>(program.value(buffer.id).constant.data()), 0};
    }
    case BufferKind::kLossScale:
      return {&loss_scale_, 0};
    default:
      return {const_cast<float*>(placement_.column_rows(buffer).data()), buffer.width};
  }
}

void StepBinding::BindSteps(bool backward) {
  ForEachStep([&](BoundStep& bound) {
    if (bound.step->backward != backward) return;
    for (size_t i = 0; i < bound.operands.size(); ++i) {
      bound.operands[i] = Resolve(bound.step->operands[i], bound.step->spaces[i]);
    }
  });
}

Operand StepBinding::Resolve(const Location& location, const RowSpace& space) const {
  const Buffer& buffer = executable_.buffers()[static_cast<size_t>(location.buffer)];
  const BoundBuffer& bound = buffers_[static_cast<size_t>(location.buffer)];
  Operand operand{bound.base + location.column, bound.ld, nullptr};
  bool by_own_row = true;  // numbers of rows are those inside of the type
  if (location.index >= 0) {
    by_own_row = executable_.indices()[static_cast<size_t>(location.index)].kind == IndexKind::kEdgeParent;
    operand.index = placement_.index(location.index).data();
    if (buffer.kind == BufferKind::kParameter) operand.ld = parameters_.declaration(buffer.id).shape.columns();
  }
  const bool channel = buffer.kind == BufferKind::kChannel || buffer.kind == BufferKind::kChannelGradient;
  if (channel && by_own_row) {
    // An empty type may have no place in the table.
    const int32_t channel_class = executable_.channel_class(buffer.id);
    const int64_t first = std::max<int64_t>(0, placement_.base(channel_class, space.type));
    const std::vector<int32_t>& homes = placement_.homes(channel_class);
    if (buffer.kind == BufferKind::kChannelGradient || homes.empty()) {
      operand.base += first * bound.ld;
    } else {
      operand.index = homes.data() + first;
    }
  }
  return operand;
}

}  // namespace cavs
