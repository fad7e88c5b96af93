#include "vertex/grouping.h"

#include <algorithm>

#include "vertex/kernels/elementwise.h"

namespace cavs {
namespace {

// Every member of a group takes at most one slot for its result and two for its operands.
constexpr size_t kMaxGroup = kMaxElementwiseSlots / 4;

int64_t GroupWidth(const Program& program, const Instruction& instruction) {
  const ValueId value = instruction.output != kNoValue ? instruction.output : instruction.inputs[0];
  return program.value(value).shape.width();
}

class SectionOrder {
 public:
  SectionOrder(const Program& program, const std::vector<int32_t>& section, bool fusion)
      : program_(program), pending_(section), fusion_(fusion), waiting_(program.values.size(), 0) {
    for (const int32_t i : section) {
      if (At(i).output != kNoValue) waiting_[static_cast<size_t>(At(i).output)] = 1;
    }
  }

  std::vector<Group> Run() {
    while (!pending_.empty()) {
      if (!TakePlain()) TakeGroup();
    }
    return std::move(groups_);
  }

 private:
  const Instruction& At(int32_t i) const { return program_.instructions[static_cast<size_t>(i)]; }

  bool Ready(const Instruction& instruction) const {
    return std::none_of(instruction.inputs.begin(), instruction.inputs.end(),
                        [&](ValueId input) { return waiting_[static_cast<size_t>(input)] != 0; });
  }

  void Done(const Instruction& instruction) {
    if (instruction.output != kNoValue) waiting_[static_cast<size_t>(instruction.output)] = 0;
  }

  bool TakePlain() {
    const auto next = std::find_if(pending_.begin(), pending_.end(),
                                   [&](int32_t i) { return !JoinsGroup(At(i).op) && Ready(At(i)); });
    if (next == pending_.end()) return false;
    groups_.push_back({{*next}, false});
    Done(At(*next));
    pending_.erase(next);
    return true;
  }

  // Expand reads one float of a row in memory, so its operand must be finished before the group starts.
  bool MayJoin(const Instruction& instruction, const std::vector<ValueId>& made) const {
    if (!JoinsGroup(instruction.op) || !Ready(instruction)) return false;
    return instruction.op != Op::kExpand || std::find(made.begin(), made.end(), instruction.inputs[0]) == made.end();
  }

  void TakeGroup() {
    Group group;
    group.fused = true;
    std::vector<ValueId> made;
    std::vector<int32_t> left;
    const Instruction* first = nullptr;
    for (const int32_t i : pending_) {
      const Instruction& instruction = At(i);
      const bool full = group.instructions.size() >= (fusion_ ? kMaxGroup : 1);
      const bool joins = !full && MayJoin(instruction, made) &&
                         (first == nullptr || (instruction.space == first->space &&
                                               GroupWidth(program_, instruction) == GroupWidth(program_, *first)));
      if (!joins) {
        left.push_back(i);
        continue;
      }
      if (first == nullptr) first = &instruction;
      group.instructions.push_back(i);
      if (instruction.output != kNoValue) made.push_back(instruction.output);
      Done(instruction);
    }
    pending_ = std::move(left);
    groups_.push_back(std::move(group));
  }

  const Program& program_;
  std::vector<int32_t> pending_;
  bool fusion_;
  std::vector<char> waiting_;  // by value: made by a pending instruction
  std::vector<Group> groups_;
};

}  // namespace

bool JoinsGroup(Op op) {
  switch (op) {
    case Op::kScatter:
    case Op::kPush:
      return true;
    default:
      return IsElementwise(op);
  }
}

std::vector<Group> OrderSection(const Program& program, const std::vector<int32_t>& section, bool fusion) {
  return SectionOrder(program, section, fusion).Run();
}

}  // namespace cavs
