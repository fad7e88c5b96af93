#include <algorithm>
#include <cmath>

#include "cavs/base/error.h"
#include "vertex/compiler.h"

namespace cavs {
namespace {

ElementwiseOp ElementwiseOf(Op op) {
  switch (op) {
    case Op::kAdd:
      return ElementwiseOp::kAdd;
    case Op::kSubtract:
      return ElementwiseOp::kSubtract;
    case Op::kMultiply:
      return ElementwiseOp::kMultiply;
    case Op::kDivide:
      return ElementwiseOp::kDivide;
    case Op::kScale:
      return ElementwiseOp::kScale;
    case Op::kSigmoid:
      return ElementwiseOp::kSigmoid;
    case Op::kTanh:
      return ElementwiseOp::kTanh;
    case Op::kRelu:
      return ElementwiseOp::kRelu;
    case Op::kExp:
      return ElementwiseOp::kExp;
    case Op::kLog:
      return ElementwiseOp::kLog;
    case Op::kSqrt:
      return ElementwiseOp::kSqrt;
    case Op::kDropout:
      return ElementwiseOp::kDropout;
    case Op::kExpand:
      return ElementwiseOp::kExpand;
    case Op::kSigmoidGrad:
      return ElementwiseOp::kSigmoidGrad;
    case Op::kTanhGrad:
      return ElementwiseOp::kTanhGrad;
    case Op::kReluGrad:
      return ElementwiseOp::kReluGrad;
    case Op::kScatter:
    case Op::kPush:
      return ElementwiseOp::kCopy;
    case Op::kGatherGrad:
    case Op::kGatherAllGrad:
    case Op::kPushedGrad:
      return ElementwiseOp::kAccumulate;
    default:
      break;
  }
  CAVS_CHECK(false, "{} is not elementwise", OpName(op));
  return ElementwiseOp::kCopy;
}

// Numbers the slots of one group: operands by location, results that stay inside of the group as reused temporaries.
class SlotTable {
 public:
  enum class Role : uint8_t { kInput, kOutput, kTemporary };
  struct Slot {
    Role role;
    int32_t number;
  };

  Slot Input(const Location& location, int64_t width, Space space) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == location && input_widths[i] == width) return {Role::kInput, static_cast<int32_t>(i)};
    }
    inputs.push_back(location);
    input_widths.push_back(width);
    input_spaces.push_back(space);
    return {Role::kInput, static_cast<int32_t>(inputs.size() - 1)};
  }
  Slot Output(const Location& location) {
    outputs.push_back(location);
    return {Role::kOutput, static_cast<int32_t>(outputs.size() - 1)};
  }
  Slot Temporary() {
    if (free_.empty()) return {Role::kTemporary, temporaries++};
    const int32_t number = free_.back();
    free_.pop_back();
    return {Role::kTemporary, number};
  }
  void Release(Slot slot) {
    if (slot.role == Role::kTemporary) free_.push_back(slot.number);
  }
  int16_t Number(Slot slot) const {
    size_t base = 0;
    if (slot.role != Role::kInput) base = inputs.size();
    if (slot.role == Role::kTemporary) base += outputs.size();
    return static_cast<int16_t>(base + static_cast<size_t>(slot.number));
  }

  std::vector<Location> inputs, outputs;
  std::vector<int64_t> input_widths;
  std::vector<Space> input_spaces;
  int32_t temporaries = 0;

 private:
  std::vector<int32_t> free_;
};

}  // namespace

void Compiler::EmitSteps() {
  for (const Section& section : sections_) {
    for (const Group& group : section.groups) {
      if (group.fused) {
        EmitGroup(section, group);
      } else {
        EmitPlain(section, {section.backward, group.instructions[0]});
      }
    }
  }
}

void Compiler::EmitPlain(const Section& section, Site site) {
  const Instruction& instruction = At(site);
  if (instruction.op == Op::kLookupGrad) {
    const Location rows = e_->location(instruction.inputs[0]);
    e_->lookup_gradients_.push_back({instruction.attributes.parameter, IndexOf(instruction), rows, instruction.space});
    IndexFor(IndexOf(instruction));
  } else if (instruction.op == Op::kConcat) {
    EmitConcat(section, site);
  } else if (instruction.output == kNoValue || Computes(instruction.output)) {
    EmitKernel(section, site);
  } else if (materialized_[static_cast<size_t>(instruction.output)] != 0) {
    EmitCopy(section, site, ViewOf(instruction), e_->location(instruction.output), WidthOf(instruction.output));
  }
}

void Compiler::EmitConcat(const Section& section, Site site) {
  const Instruction& instruction = At(site);
  Location slot = e_->location(instruction.output);
  for (const ValueId part : instruction.inputs) {
    if (e_->location(part) != slot) EmitCopy(section, site, e_->location(part), slot, WidthOf(part));
    slot.column += WidthOf(part);
  }
}

void Compiler::EmitCopy(const Section& section, Site site, const Location& from, const Location& to, int64_t width) {
  Step step;
  step.kind = StepKind::kCopy;
  step.backward = site.backward;
  step.instruction = site.instruction;
  step.space = At(site).space;
  step.operands = {from, to};
  step.inputs = 1;
  step.widths = {width, width};
  const bool shared = e_->buffers_[static_cast<size_t>(from.buffer)].kind == BufferKind::kConstant;
  step.spaces = {shared ? Space::kConstant : step.space.kind, step.space.kind};
  section.steps->push_back(std::move(step));
}

void Compiler::EmitKernel(const Section& section, Site site) {
  const Instruction& instruction = At(site);
  Step step;
  step.backward = site.backward;
  step.instruction = site.instruction;
  step.space = instruction.space;
  step.inputs = static_cast<int32_t>(instruction.inputs.size());
  std::vector<ValueId> values = instruction.inputs;
  if (instruction.output != kNoValue) values.push_back(instruction.output);
  for (const ValueId value : values) {
    CAVS_CHECK(e_->location(value).valid(), "{} reads %{}, which has no rows", OpName(instruction.op), value);
    step.operands.push_back(e_->location(value));
    step.widths.push_back(WidthOf(value));
    step.spaces.push_back(ValueOf(value).space.kind);
  }
  section.steps->push_back(std::move(step));
}

// Where a sink of a group writes; not valid when the value is computed there already.
Location Compiler::SinkTarget(const Instruction& instruction) {
  const int32_t channel = instruction.attributes.channel;
  if (instruction.op == Op::kScatter || instruction.op == Op::kPush) {
    const Location table{ChannelBuffer(BufferKind::kChannel, e_->table_of(channel)), 0, -1};
    const bool alias = e_->table_of(channel) != channel;
    return alias || e_->location(instruction.inputs[0]) == table ? Location{} : table;
  }
  return {ChannelBuffer(BufferKind::kChannelGradient, channel), 0, IndexFor(IndexOf(instruction))};
}

void Compiler::EmitGroup(const Section& section, const Group& group) {
  Step step;
  step.kind = StepKind::kGroup;
  step.backward = section.backward;
  step.instruction = group.instructions[0];
  step.space = At({section.backward, group.instructions[0]}).space;

  std::map<ValueId, size_t> last_use;  // of values made here: position in the group
  for (size_t i = 0; i < group.instructions.size(); ++i) {
    for (const ValueId input : At({section.backward, group.instructions[i]}).inputs) last_use[input] = i;
  }
  SlotTable slots;
  std::map<ValueId, SlotTable::Slot> made;
  struct Draft {
    const Instruction* instruction;
    SlotTable::Slot dst, a, b;
  };
  std::vector<Draft> drafts;
  for (size_t i = 0; i < group.instructions.size(); ++i) {
    const Instruction& instruction = At({section.backward, group.instructions[i]});
    const bool sink = instruction.output == kNoValue;
    const Location target = sink ? SinkTarget(instruction) : e_->location(instruction.output);
    if (sink && !target.valid()) continue;
    SlotTable::Slot operands[2] = {};
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      const ValueId input = instruction.inputs[k];
      const auto here = made.find(input);
      operands[k] = here != made.end() ? here->second
                                       : slots.Input(e_->location(input), WidthOf(input), ValueOf(input).space.kind);
    }
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      const ValueId input = instruction.inputs[k];
      const bool repeated = k == 1 && input == instruction.inputs[0];
      if (!repeated && last_use[input] == i && made.contains(input)) slots.Release(made.at(input));
    }
    const SlotTable::Slot dst = target.valid() ? slots.Output(target) : slots.Temporary();
    if (!sink) made[instruction.output] = dst;
    drafts.push_back({&instruction, dst, operands[0], instruction.inputs.size() > 1 ? operands[1] : operands[0]});
    step.accumulates = step.accumulates || (sink && target.index >= 0);
    step.draws = step.draws || instruction.op == Op::kDropout;
  }
  if (drafts.empty()) return;

  step.group.inputs = static_cast<int32_t>(slots.inputs.size());
  step.group.outputs = static_cast<int32_t>(slots.outputs.size());
  step.group.temporaries = slots.temporaries;
  const Instruction& first = *drafts[0].instruction;
  step.group.width = WidthOf(first.output != kNoValue ? first.output : first.inputs[0]);
  for (const Draft& draft : drafts) {
    const Attributes& a = draft.instruction->attributes;
    ElementwiseStep s;
    s.op = ElementwiseOf(draft.instruction->op);
    s.dst = slots.Number(draft.dst);
    s.a = slots.Number(draft.a);
    s.b = slots.Number(draft.b);
    s.scalar = static_cast<float>(a.scalar);
    if (draft.instruction->op == Op::kDropout) {
      s.scalar = static_cast<float>(1.0 / (1.0 - a.scalar));
      s.threshold = static_cast<uint32_t>(std::floor(a.scalar * 4294967296.0));
      s.salt = a.salt;
    }
    step.group.steps.push_back(s);
  }
  step.inputs = step.group.inputs;
  step.operands = slots.inputs;
  step.operands.insert(step.operands.end(), slots.outputs.begin(), slots.outputs.end());
  step.widths = slots.input_widths;
  step.widths.resize(step.operands.size(), step.group.width);
  step.spaces = slots.input_spaces;
  step.spaces.resize(step.operands.size(), step.space.kind);
  section.steps->push_back(std::move(step));
}

}  // namespace cavs
