#include "vertex/compiler.h"

#include <algorithm>
#include <set>

namespace cavs {

std::shared_ptr<const Executable> Executable::Compile(const Program& forward, const Program* backward,
                                                      const PassOptions& options) {
  return Compiler(forward, backward, options).Run();
}

std::vector<TypeInputs> Executable::inputs() const {
  std::vector<TypeInputs> result(signature().types.size());
  for (size_t type = 0; type < result.size(); ++type) {
    const auto recurs = [&](const std::vector<FunctionSteps>& functions) {
      return !functions[type].phase(Phase::kRecurrent).empty();
    };
    result[type].recurrent = recurs(forward_types_) || recurs(backward_types_);
  }
  for (const Instruction& instruction : forward_.instructions) {
    if (instruction.space.type < 0) continue;
    TypeInputs& type = result[static_cast<size_t>(instruction.space.type)];
    if (instruction.op == Op::kPullRows) type.shareable = false;
    if (instruction.op != Op::kLookup) continue;
    const std::string& name = signature().columns[static_cast<size_t>(instruction.attributes.column)].name;
    if (std::find(type.id_columns.begin(), type.id_columns.end(), name) == type.id_columns.end()) {
      type.id_columns.push_back(name);
    }
  }
  return result;
}

const Nest* Executable::nest(int32_t buffer) const {
  const auto found = std::find_if(nests_.begin(), nests_.end(), [&](const Nest& n) { return n.buffer == buffer; });
  return found == nests_.end() ? nullptr : &*found;
}

Compiler::Compiler(const Program& forward, const Program* backward, const PassOptions& options)
    : options_(options), e_(new Executable()) {
  e_->forward_ = Partition(forward, options);
  e_->has_backward_ = backward != nullptr;
  if (backward != nullptr) e_->backward_ = Partition(*backward, options);
}

std::shared_ptr<const Executable> Compiler::Run() {
  const size_t values = ValueTotal();
  producer_.resize(values);
  uses_.resize(values);
  kept_.assign(values, 0);
  materialized_.assign(values, 0);
  e_->locations_.resize(values);
  const size_t types = e_->signature().types.size();
  e_->forward_types_.resize(types);
  e_->backward_types_.resize(types);
  ClassifyChannels();
  FindInputColumns();
  for (const bool backward : {false, true}) {
    if (backward && !e_->has_backward_) continue;
    MakeSections(backward);
    FindUses(backward);
  }
  for (const ValueId loss : e_->forward_.losses) kept_[static_cast<size_t>(loss)] = 1;
  for (const NamedValue& output : e_->forward_.outputs) kept_[static_cast<size_t>(output.value)] = 1;
  AliasPushes();
  PlaceValues();
  EmitSteps();
  if (options_.in_place) FindNests();
  CutIntoRuns();
  NarrowToBlocks();
  e_->liveness_ = {FindLifetimes(*e_, false), FindLifetimes(*e_, e_->has_backward_)};
  return e_;
}

size_t Compiler::ValueTotal() const {
  return std::max(e_->forward_.values.size(), e_->has_backward_ ? e_->backward_.values.size() : 0);
}

void Compiler::ClassifyChannels() {
  const size_t channels = e_->signature().channels.size();
  std::vector<std::set<int32_t>> types(channels);
  for (const Instruction& instruction : e_->forward_.instructions) {
    if (instruction.op == Op::kScatter || instruction.op == Op::kPush) {
      types[static_cast<size_t>(instruction.attributes.channel)].insert(instruction.space.type);
    }
  }
  for (size_t channel = 0; channel < channels; ++channel) {
    const std::vector<int32_t> members(types[channel].begin(), types[channel].end());
    auto& classes = e_->class_types_;
    const auto found = std::find(classes.begin(), classes.end(), members);
    e_->channel_class_.push_back(static_cast<int32_t>(found - classes.begin()));
    if (found == classes.end()) classes.push_back(members);
    e_->table_of_.push_back(static_cast<int32_t>(channel));
  }
}

void Compiler::FindInputColumns() {
  std::vector<std::set<int32_t>> columns(e_->signature().types.size());
  for (const Instruction& instruction : e_->forward_.instructions) {
    if (instruction.space.kind != Space::kInput || instruction.op != Op::kLookup) continue;
    columns[static_cast<size_t>(instruction.space.type)].insert(instruction.attributes.column);
  }
  for (const std::set<int32_t>& of_type : columns) e_->input_columns_.emplace_back(of_type.begin(), of_type.end());
}

// A push channel whose types push just what they scatter as one state is read from that state's table.
void Compiler::AliasPushes() {
  std::map<std::pair<int32_t, int32_t>, ValueId> published;  // (channel, type) -> value
  for (const Instruction& instruction : e_->forward_.instructions) {
    if (instruction.op == Op::kScatter || instruction.op == Op::kPush) {
      published[{instruction.attributes.channel, instruction.space.type}] = instruction.inputs[0];
    }
  }
  const auto& channels = e_->signature().channels;
  const auto equal = [&](int32_t push, int32_t state) {
    const std::vector<int32_t>& types = e_->class_types(e_->channel_class(push));
    return std::all_of(types.begin(), types.end(), [&](int32_t type) {
      return published[{push, type}] == published[{state, type}];
    });
  };
  for (int32_t push = 0; push < static_cast<int32_t>(channels.size()); ++push) {
    if (channels[static_cast<size_t>(push)].kind != ChannelKind::kPush) continue;
    for (int32_t state = 0; state < static_cast<int32_t>(channels.size()); ++state) {
      const bool same_class = e_->channel_class(push) == e_->channel_class(state);
      if (channels[static_cast<size_t>(state)].kind == ChannelKind::kState && same_class && equal(push, state)) {
        e_->table_of_[static_cast<size_t>(push)] = state;
        break;
      }
    }
  }
}

void Compiler::MakeSections(bool backward) {
  const Program& program = ProgramOf(backward);
  const int32_t types = static_cast<int32_t>(e_->signature().types.size());
  group_of_[backward ? 1 : 0].assign(program.instructions.size(), -1);
  // A type has a section for each phase and one for its inputs; the head has one, behind those of the types.
  constexpr size_t kPhases = 3, kOfType = kPhases + 1;
  std::vector<std::vector<int32_t>> members(static_cast<size_t>(types) * kOfType + 1);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const bool head = instruction.space.kind == Space::kHead;
    const bool inputs = instruction.space.kind == Space::kInput;
    const size_t section = head ? members.size() - 1
                                : static_cast<size_t>(instruction.space.type) * kOfType +
                                      (inputs ? kPhases : static_cast<size_t>(instruction.phase));
    members[section].push_back(static_cast<int32_t>(i));
  }
  for (size_t s = 0; s < members.size(); ++s) {
    Section section;
    section.backward = backward;
    if (s + 1 == members.size()) {
      section.steps = &(backward ? e_->backward_head_ : e_->forward_head_).steps;
    } else {
      FunctionSteps& function = (backward ? e_->backward_types_ : e_->forward_types_)[s / kOfType];
      section.steps = &(s % kOfType == kPhases ? function.inputs : function.phases[s % kOfType]).steps;
    }
    section.groups = OrderSection(program, members[s], options_.fusion);
    for (const Group& group : section.groups) {
      if (!group.fused) continue;
      for (const int32_t i : group.instructions) group_of_[backward ? 1 : 0][static_cast<size_t>(i)] = groups_;
      ++groups_;
    }
    sections_.push_back(std::move(section));
  }
}

void Compiler::FindUses(bool backward) {
  const Program& program = ProgramOf(backward);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const Site site{backward, static_cast<int32_t>(i)};
    if (instruction.output != kNoValue) producer_[static_cast<size_t>(instruction.output)] = site;
    for (const ValueId input : instruction.inputs) uses_[static_cast<size_t>(input)].push_back(site);
    if (instruction.op == Op::kMatMul) {
      const int32_t parameter = ValueOf(instruction.inputs[1]).parameter;
      auto& list = e_->multiplied_;
      if (std::find(list.begin(), list.end(), parameter) == list.end()) list.push_back(parameter);
    }
    e_->draws_ = e_->draws_ || instruction.op == Op::kDropout;
  }
}

}  // namespace cavs
