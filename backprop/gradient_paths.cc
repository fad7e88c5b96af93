#include "backprop/gradient_paths.h"

#include <algorithm>

namespace cavs {
namespace {

bool WritesChannel(Op op) { return op == Op::kScatter || op == Op::kPush; }

bool ReadsChannel(Op op) { return op == Op::kGather || op == Op::kGatherAll || op == Op::kPushed; }

}  // namespace

GradientPaths::GradientPaths(const Program& f)
    : depends_(f.values.size()),
      reaches_(f.values.size()),
      channel_depends_(f.signature->channels.size()),
      channel_reaches_(f.signature->channels.size()) {
  for (size_t i = 0; i < f.values.size(); ++i) {
    const Value& value = f.values[i];
    depends_[i] =
        value.space.kind == Space::kParameter && !f.signature->parameters[static_cast<size_t>(value.parameter)].frozen;
  }
  for (const ValueId loss : f.losses) reaches_[static_cast<size_t>(loss)] = true;
  // Each round settles one more channel or is the last.
  while (SpreadDependence(f)) continue;
  while (SpreadReach(f)) continue;
}

// One walk in order of execution; true when a channel changed, so that its readers must be visited again.
bool GradientPaths::SpreadDependence(const Program& f) {
  bool changed = false;
  for (const Instruction& instruction : f.instructions) {
    const auto channel = static_cast<size_t>(instruction.attributes.channel);
    const bool any = std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                                 [&](ValueId input) { return depends_[static_cast<size_t>(input)]; });
    if (WritesChannel(instruction.op)) {
      changed |= any && !channel_depends_[channel];
      channel_depends_[channel] = channel_depends_[channel] || any;
    } else if (instruction.output != kNoValue) {
      depends_[static_cast<size_t>(instruction.output)] =
          ReadsChannel(instruction.op) ? channel_depends_[channel] : any;
    }
  }
  return changed;
}

// The mirror image: one walk against the order of execution.
bool GradientPaths::SpreadReach(const Program& f) {
  bool changed = false;
  for (auto instruction = f.instructions.rbegin(); instruction != f.instructions.rend(); ++instruction) {
    const auto channel = static_cast<size_t>(instruction->attributes.channel);
    const bool writes = WritesChannel(instruction->op);
    const bool reached = writes ? channel_reaches_[channel]
                                : instruction->output != kNoValue && reaches_[static_cast<size_t>(instruction->output)];
    if (!reached) continue;
    if (ReadsChannel(instruction->op)) {
      changed |= !channel_reaches_[channel];
      channel_reaches_[channel] = true;
    }
    for (const ValueId input : instruction->inputs) reaches_[static_cast<size_t>(input)] = true;
  }
  return changed;
}

}  // namespace cavs
