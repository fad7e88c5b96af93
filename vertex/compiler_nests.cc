#include <algorithm>

#include "vertex/compiler.h"

namespace cavs {

void Compiler::FindNests() {
  for (int32_t b = 0; b < static_cast<int32_t>(e_->buffers_.size()); ++b) {
    const std::optional<Nest> nest = NestOf(b);
    if (!nest || !IsMovable(nest->channel_class)) continue;
    const bool taken = std::any_of(e_->nests_.begin(), e_->nests_.end(), [&](const Nest& other) {
      return other.type == nest->type && other.table == nest->table;
    });
    if (!taken) e_->nests_.push_back(*nest);
  }
  ForEachList([&](StepList& list) {
    for (Step& step : list.steps) {
      const Nest* nest = step.kind == StepKind::kCopy ? e_->nest(step.operands[1].buffer) : nullptr;
      if (nest != nullptr) step.nest = static_cast<int32_t>(nest - e_->nests_.data());
    }
  });
}

// The nest that the buffer makes if it is written by copies alone, of one state of all children, each to the place of
// its slot.
std::optional<Nest> Compiler::NestOf(int32_t buffer) {
  const Buffer& rows = e_->buffers_[static_cast<size_t>(buffer)];
  if (rows.kind != BufferKind::kRows || rows.space.kind != Space::kVertex) return std::nullopt;
  Nest nest{.buffer = buffer, .type = rows.space.type};
  bool holds = true;
  const auto visit = [&](const Step& step) {
    for (size_t i = static_cast<size_t>(step.inputs); i < step.operands.size(); ++i) {
      if (step.operands[i].buffer == buffer) holds = holds && AddSlot(step, step.operands[i].column, &nest);
    }
  };
  ForEachList([&](StepList& list) { std::for_each(list.steps.begin(), list.steps.end(), visit); });
  const TypeDeclaration& type = e_->signature().types[static_cast<size_t>(nest.type)];
  if (!holds || nest.slots == 0 || nest.slots != type.children) return std::nullopt;
  if (rows.width != nest.slots * e_->buffers_[static_cast<size_t>(nest.table)].width) return std::nullopt;
  return nest;
}

// Adds a slot to the nest if the step copies a state of a child, the same one as for other slots, to where its slot
// belongs; whether it does.
bool Compiler::AddSlot(const Step& step, int64_t column, Nest* nest) {
  const Location& from = step.operands[0];
  if (step.kind != StepKind::kCopy || from.index < 0) return false;
  const IndexSpec& spec = e_->indices_[static_cast<size_t>(from.index)];
  const Buffer& table = e_->buffers_[static_cast<size_t>(from.buffer)];
  if (table.kind != BufferKind::kChannel || spec.kind != IndexKind::kSlot) return false;
  if (nest->table >= 0 && nest->table != from.buffer) return false;
  nest->table = from.buffer;
  nest->channel_class = spec.channel_class;
  ++nest->slots;
  return step.widths[0] == table.width && column == spec.slot * table.width;
}

// Whether all who use tables of a class can follow their rows through an index.
bool Compiler::IsMovable(int32_t channel_class) {
  const auto stays = [&](const Step& step, const Location& location) {
    const Buffer& table = e_->buffers_[static_cast<size_t>(location.buffer)];
    if (table.kind != BufferKind::kChannel || e_->channel_class(table.id) != channel_class) return false;
    if (location.index < 0) return step.kind != StepKind::kGroup && step.kind != StepKind::kCopy;
    return e_->indices_[static_cast<size_t>(location.index)].kind == IndexKind::kEdgeParent;
  };
  bool movable = true;
  ForEachList([&](StepList& list) {
    for (const Step& step : list.steps) {
      for (const Location& location : step.operands) movable = movable && !stays(step, location);
    }
  });
  return movable;
}

}  // namespace cavs
