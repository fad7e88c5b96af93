#include "vertex/merging_draft.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {
namespace {

// "[a b; c d]", rows from top to bottom.
std::string NameOf(std::span<const ParameterDeclaration> parameters, std::vector<ParameterPart> parts) {
  std::sort(parts.begin(), parts.end(), [](const ParameterPart& a, const ParameterPart& b) {
    return std::tie(a.row, a.column) < std::tie(b.row, b.column);
  });
  std::string name = "[";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) name += parts[i].row == parts[i - 1].row ? " " : "; ";
    name += parameters[static_cast<size_t>(parts[i].parameter)].name;
  }
  return name + "]";
}

}  // namespace

MergingDraft::MergingDraft(Program program, const PassOptions& options)
    : program_(std::move(program)), options_(options), parameters_(program_.signature->parameters) {
  Learn();
}

void MergingDraft::Learn() {
  phases_.clear();
  producers_.assign(program_.values.size(), -1);
  uses_.assign(program_.values.size(), {});
  use_counts_.assign(parameters_.size(), 0);
  kept_.assign(program_.values.size(), 0);
  const Program partitioned = Partition(program_, options_);
  phases_.reserve(partitioned.instructions.size());
  for (const Instruction& instruction : partitioned.instructions) {
    const auto number = static_cast<int32_t>(phases_.size());
    phases_.push_back(instruction.phase);
    if (instruction.output != kNoValue) producers_[static_cast<size_t>(instruction.output)] = number;
    for (const ValueId input : instruction.inputs) {
      uses_[static_cast<size_t>(input)].push_back(number);
      const int32_t id = program_.value(input).parameter;
      if (id >= 0) ++use_counts_[static_cast<size_t>(id)];
    }
  }
  for (const ValueId loss : program_.losses) kept_[static_cast<size_t>(loss)] = 1;
  for (const NamedValue& output : program_.outputs) kept_[static_cast<size_t>(output.value)] = 1;
}

bool MergingDraft::IsReadOnce(ValueId value) const {
  return uses(value).size() == 1 && kept_[static_cast<size_t>(value)] == 0;
}

bool MergingDraft::IsProduct(int32_t i) const {
  return i >= 0 && instruction(i).op == Op::kMatMul && !instruction(i).attributes.transposed &&
         !parameter(WeightsOf(i)).is_lookup;
}

int32_t MergingDraft::WeightsOf(int32_t product) const {
  return program_.value(instruction(product).inputs[1]).parameter;
}

std::vector<ParameterGroup> MergingDraft::GroupParameters(std::span<const std::vector<int32_t>> places) const {
  std::map<int32_t, std::vector<int32_t>> places_of;
  for (size_t place = 0; place < places.size(); ++place) {
    for (const int32_t id : places[place]) places_of[id].push_back(static_cast<int32_t>(place));
  }
  std::map<std::vector<int32_t>, std::vector<int32_t>> together;
  for (const auto& [id, where] : places_of) {
    const bool once_each = std::adjacent_find(where.begin(), where.end()) == where.end();
    if (once_each && std::ssize(where) == use_count(id)) together[where].push_back(id);
  }
  std::vector<ParameterGroup> groups;
  for (auto& [where, ids] : together) {
    if (ids.size() > 1) groups.push_back({std::move(ids), where});
  }
  return groups;
}

ValueId MergingDraft::NewValue(const RowSpace& space, const Shape& shape) {
  program_.values.push_back({.space = space, .shape = shape, .parameter = -1, .constant = {}});
  return program_.value_count() - 1;
}

ValueId MergingDraft::NewParameter(const Shape& shape, std::span<const ParameterPart> parts) {
  ParameterDeclaration merged;
  merged.shape = shape;
  merged.frozen = parameter(parts.front().parameter).frozen;
  for (const ParameterPart& part : parts) {
    const std::vector<ParameterPart>& inner = parameter(part.parameter).parts;
    if (inner.empty()) merged.parts.push_back(part);
    for (const ParameterPart& p : inner)
      merged.parts.push_back({p.parameter, part.row + p.row, part.column + p.column});
  }
  merged.name = NameOf(parameters_, merged.parts);
  const ValueId value = NewValue({Space::kParameter, -1}, shape);
  program_.values.back().parameter = static_cast<int32_t>(parameters_.size());
  parameters_.push_back(std::move(merged));
  return value;
}

void MergingDraft::Apply(Edits edits) {
  std::vector<Instruction> instructions;
  for (int32_t i = 0; i < instruction_count(); ++i) {
    const auto edit = edits.find(i);
    if (edit == edits.end()) {
      instructions.push_back(std::move(program_.instructions[static_cast<size_t>(i)]));
    } else {
      for (Instruction& instruction : edit->second) instructions.push_back(std::move(instruction));
    }
  }
  program_.instructions = std::move(instructions);
  Learn();
}

// A merged sum whose parameter became a part of merged gates is read no more: its value is none then.
Program MergingDraft::Finish() {
  const size_t declared = program_.signature->parameters.size();
  auto signature = std::make_shared<Signature>(*program_.signature);
  for (Value& value : program_.values) {
    if (value.parameter < static_cast<int32_t>(declared)) continue;
    if (use_count(value.parameter) == 0) {
      value = {};
      continue;
    }
    signature->parameters.push_back(parameter(value.parameter));
    value.parameter = static_cast<int32_t>(signature->parameters.size()) - 1;
  }
  if (signature->parameters.size() > declared) program_.signature = std::move(signature);
  return std::move(program_);
}

}  // namespace cavs
