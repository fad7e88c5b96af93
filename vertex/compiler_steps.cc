#include <algorithm>

#include "cavs/base/error.h"
#include "vertex/compiler.h"

namespace cavs {
namespace {

// Gradients for the rows that F gathered; the owner of the rows collects them.
bool SendsBack(Op op) { return op == Op::kGatherGrad || op == Op::kGatherAllGrad || op == Op::kPushedGrad; }

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
  if (SendsBack(instruction.op)) return;
  if (instruction.op == Op::kScatterGrad || instruction.op == Op::kPushGrad) return EmitCollection(section, site);
  if (instruction.op == Op::kSumVertices) return EmitSumOfVertices(section, site);
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
  step.spaces = {shared ? RowSpace{Space::kConstant, -1} : step.space, step.space};
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
    step.spaces.push_back(ValueOf(value).space);
  }
  section.steps->push_back(std::move(step));
}

void Compiler::EmitCollection(const Section& section, Site site) {
  const Instruction& instruction = At(site);
  const int32_t channel = instruction.attributes.channel;
  Step step;
  step.kind = StepKind::kCollect;
  step.backward = true;
  step.instruction = site.instruction;
  step.space = instruction.space;
  Collection collection{.channel_class = e_->channel_class(channel), .indices = {}};
  const auto add = [&](ValueId value) {
    step.operands.push_back(e_->location(value));
    step.widths.push_back(WidthOf(value));
    step.spaces.push_back(ValueOf(value).space);
  };
  for (const Instruction& sender : e_->backward_.instructions) {
    if (!SendsBack(sender.op) || sender.attributes.channel != channel) continue;
    add(sender.inputs[0]);
    collection.indices.push_back(IndexFor(IndexOf(sender)));
  }
  step.inputs = static_cast<int32_t>(step.operands.size());
  add(instruction.output);
  step.collection = CollectionFor(std::move(collection));
  section.steps->push_back(std::move(step));
}

void Compiler::EmitSumOfVertices(const Section& section, Site site) {
  const Instruction& instruction = At(site);
  Step step;
  step.kind = StepKind::kCollect;
  step.backward = true;
  step.instruction = site.instruction;
  step.space = instruction.space;
  step.inputs = 1;
  for (const ValueId value : {instruction.inputs[0], instruction.output}) {
    step.operands.push_back(e_->location(value));
    step.widths.push_back(WidthOf(value));
    step.spaces.push_back(ValueOf(value).space);
  }
  step.collection = CollectionFor({.inputs_of = instruction.space.type, .indices = {IndexFor(IndexOf(instruction))}});
  section.steps->push_back(std::move(step));
}

int32_t Compiler::CollectionFor(Collection collection) {
  auto& known = e_->collections_;
  const auto found = std::find(known.begin(), known.end(), collection);
  const auto number = static_cast<int32_t>(found - known.begin());
  if (found == known.end()) known.push_back(std::move(collection));
  return number;
}

}  // namespace cavs
