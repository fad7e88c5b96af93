#include <cmath>
#include <map>

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

  Slot Input(const Location& location, int64_t width, const RowSpace& space) {
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
  std::vector<RowSpace> input_spaces;
  int32_t temporaries = 0;

 private:
  std::vector<int32_t> free_;
};

// The elementwise step of an instruction, but for its slots.
ElementwiseStep StepOf(const Instruction& instruction) {
  ElementwiseStep step;
  step.op = ElementwiseOf(instruction.op);
  step.scalar = static_cast<float>(instruction.attributes.scalar);
  if (instruction.op == Op::kDropout) {
    const double rate = instruction.attributes.scalar;
    step.scalar = static_cast<float>(1.0 / (1.0 - rate));
    step.threshold = static_cast<uint32_t>(std::floor(rate * 4294967296.0));
    step.salt = instruction.attributes.salt;
  }
  return step;
}

// A member of a group, with slots that are numbered when all members are known.
struct Draft {
  const Instruction* instruction;
  SlotTable::Slot dst, a, b;
};

}  // namespace

// Where a scatter or push writes; not valid when the value is computed there already.
Location Compiler::SinkTarget(const Instruction& instruction) {
  const int32_t channel = instruction.attributes.channel;
  const Location table{ChannelBuffer(BufferKind::kChannel, e_->table_of(channel)), 0, -1};
  const bool alias = e_->table_of(channel) != channel;
  return alias || e_->location(instruction.inputs[0]) == table ? Location{} : table;
}

// Turns the members of one group into a fused program. Values that live inside of the group alone become temporaries,
// which are free again after their last use.
class Compiler::GroupEmitter {
 public:
  GroupEmitter(Compiler* compiler, const Section& section, const Group& group)
      : compiler_(*compiler), section_(section), group_(group) {
    for (size_t i = 0; i < group.instructions.size(); ++i) {
      for (const ValueId input : At(i).inputs) last_use_[input] = i;
    }
  }

  void Run() {
    for (size_t i = 0; i < group_.instructions.size(); ++i) AddMember(i);
    if (!drafts_.empty()) section_.steps->push_back(MakeStep());
  }

 private:
  const Instruction& At(size_t member) const { return compiler_.At({section_.backward, group_.instructions[member]}); }

  void AddMember(size_t member) {
    const Instruction& instruction = At(member);
    const bool sink = instruction.output == kNoValue;
    const Location target = sink ? compiler_.SinkTarget(instruction) : compiler_.e_->location(instruction.output);
    if (sink && !target.valid()) return;
    Draft draft{&instruction, {}, Operand(instruction.inputs[0]), {}};
    draft.b = instruction.inputs.size() > 1 ? Operand(instruction.inputs[1]) : draft.a;
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      const ValueId input = instruction.inputs[k];
      const bool repeated = k == 1 && input == instruction.inputs[0];
      if (!repeated && last_use_[input] == member && made_.contains(input)) slots_.Release(made_.at(input));
    }
    draft.dst = target.valid() ? slots_.Output(target) : slots_.Temporary();
    if (!sink) made_[instruction.output] = draft.dst;
    draws_ = draws_ || instruction.op == Op::kDropout;
    drafts_.push_back(draft);
  }

  SlotTable::Slot Operand(ValueId value) {
    const auto here = made_.find(value);
    if (here != made_.end()) return here->second;
    return slots_.Input(compiler_.e_->location(value), compiler_.WidthOf(value), compiler_.ValueOf(value).space);
  }

  Step MakeStep() const {
    Step step;
    step.kind = StepKind::kGroup;
    step.backward = section_.backward;
    step.instruction = group_.instructions[0];
    step.space = At(0).space;
    step.draws = draws_;
    const Instruction& first = *drafts_[0].instruction;
    step.group.width = compiler_.WidthOf(first.output != kNoValue ? first.output : first.inputs[0]);
    step.group.inputs = static_cast<int32_t>(slots_.inputs.size());
    step.group.outputs = static_cast<int32_t>(slots_.outputs.size());
    step.group.temporaries = slots_.temporaries;
    for (const Draft& draft : drafts_) {
      ElementwiseStep s = StepOf(*draft.instruction);
      s.dst = slots_.Number(draft.dst);
      s.a = slots_.Number(draft.a);
      s.b = slots_.Number(draft.b);
      step.group.steps.push_back(s);
    }
    if (draws_) {
      step.group_without_dropout = step.group;
      for (ElementwiseStep& s : step.group_without_dropout.steps) {
        if (s.op == ElementwiseOp::kDropout) s.op = ElementwiseOp::kCopy;
      }
    }
    step.inputs = step.group.inputs;
    step.operands = slots_.inputs;
    step.operands.insert(step.operands.end(), slots_.outputs.begin(), slots_.outputs.end());
    step.widths = slots_.input_widths;
    step.widths.resize(step.operands.size(), step.group.width);
    step.spaces = slots_.input_spaces;
    step.spaces.resize(step.operands.size(), step.space);
    return step;
  }

  Compiler& compiler_;
  const Section& section_;
  const Group& group_;
  std::map<ValueId, size_t> last_use_;  // member
  SlotTable slots_;
  std::map<ValueId, SlotTable::Slot> made_;
  std::vector<Draft> drafts_;
  bool draws_ = false;
};

void Compiler::EmitGroup(const Section& section, const Group& group) { GroupEmitter(this, section, group).Run(); }

}  // namespace cavs
