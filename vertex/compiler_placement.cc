#include <algorithm>

#include "cavs/base/error.h"
#include "vertex/compiler.h"

namespace cavs {
namespace {

// Views are addresses of rows that exist already.
bool IsView(Op op) {
  switch (op) {
    case Op::kLookup:
    case Op::kPullRows:
    case Op::kGather:
    case Op::kGatherAll:
    case Op::kPushed:
    case Op::kToEdges:
    case Op::kToVertices:
    case Op::kSlice:
    case Op::kLossSeed:
    case Op::kScatterGrad:
    case Op::kPushGrad:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Compiler::PlaceValues() {
  for (ValueId id = 0; id < static_cast<ValueId>(ValueTotal()); ++id) {
    if (uses_[static_cast<size_t>(id)].empty()) continue;
    const Value& value = ValueOf(id);
    Location& location = e_->locations_[static_cast<size_t>(id)];
    if (value.space.kind == Space::kParameter) {
      location.buffer = BufferFor(BufferKind::kParameter, value.space, value.shape.width(), value.parameter);
    } else if (value.space.kind == Space::kConstant) {
      location.buffer = BufferFor(BufferKind::kConstant, value.space, value.shape.width(), id);
    }
  }
  PlaceScattered();
  for (const bool backward : {false, true}) {
    if (backward && !e_->has_backward_) continue;
    PlaceConcatenated(backward);
    PlaceRest(backward);
  }
}

// A scattered value is computed right in the table of its state.
void Compiler::PlaceScattered() {
  for (const Instruction& instruction : e_->forward_.instructions) {
    if (instruction.op != Op::kScatter && instruction.op != Op::kPush) continue;
    const int32_t channel = instruction.attributes.channel;
    const ValueId value = instruction.inputs[0];
    Location& location = e_->locations_[static_cast<size_t>(value)];
    const bool alias = e_->table_of(channel) != channel;
    if (!alias && Computes(value) && !location.valid()) location.buffer = ChannelBuffer(BufferKind::kChannel, channel);
  }
}

// The parts of a concatenation are computed right in its row. Outer ones first, so that inner ones find their place.
void Compiler::PlaceConcatenated(bool backward) {
  const Program& program = ProgramOf(backward);
  for (size_t i = program.instructions.size(); i-- > 0;) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.op != Op::kConcat) continue;
    Location& whole = e_->locations_[static_cast<size_t>(instruction.output)];
    if (!whole.valid()) whole = NewRows(instruction.output);
    int64_t column = whole.column;
    for (const ValueId part : instruction.inputs) {
      Location& location = e_->locations_[static_cast<size_t>(part)];
      const bool own = part >= program.first_own_value;
      const bool free = !location.valid() && ValueOf(part).space == instruction.space;
      if (own && free && (Computes(part) || IsIndexedView(part))) {
        location = {whole.buffer, column, -1};
        materialized_[static_cast<size_t>(part)] = IsIndexedView(part) ? 1 : 0;
      }
      column += WidthOf(part);
    }
  }
}

void Compiler::PlaceRest(bool backward) {
  for (const Instruction& instruction : ProgramOf(backward).instructions) {
    if (instruction.output == kNoValue) continue;
    Location& location = e_->locations_[static_cast<size_t>(instruction.output)];
    if (location.valid()) continue;
    if (Computes(instruction.output)) {
      if (NeedsMemory(instruction.output)) location = NewRows(instruction.output);
      continue;
    }
    location = ViewOf(instruction);
    const bool one_row = e_->buffers_[static_cast<size_t>(location.buffer)].kind == BufferKind::kLossScale;
    if ((location.index >= 0 || one_row) && NeedsRows(instruction.output)) {
      location = NewRows(instruction.output);
      materialized_[static_cast<size_t>(instruction.output)] = 1;
    }
  }
}

bool Compiler::Computes(ValueId id) const {
  const Site site = producer_[static_cast<size_t>(id)];
  return site.valid() && !IsView(At(site).op);
}

bool Compiler::IsIndexedView(ValueId id) const {
  const Site site = producer_[static_cast<size_t>(id)];
  if (!site.valid()) return false;
  const Op op = At(site).op;
  return op == Op::kLookup || op == Op::kGather || op == Op::kGatherAll || op == Op::kPushed || op == Op::kToEdges ||
         op == Op::kToVertices;
}

// Products, edge indices and operators from outside address rows by number alone; but an edge finds the parent's input.
bool Compiler::NeedsRows(ValueId id) const {
  const std::vector<Site>& uses = uses_[static_cast<size_t>(id)];
  const bool of_input = IsOfInput(e_->location(id));
  return std::any_of(uses.begin(), uses.end(), [&](Site use) {
    const Op op = At(use).op;
    return op == Op::kMatMul || op == Op::kMatMulGrad || (op == Op::kToEdges && !of_input) || op == Op::kCustom ||
           op == Op::kCustomGrad;
  });
}

bool Compiler::IsOfInput(const Location& location) const {
  return location.index >= 0 && e_->indices_[static_cast<size_t>(location.index)].kind == IndexKind::kInput;
}

bool Compiler::NeedsMemory(ValueId id) const {
  const Site site = producer_[static_cast<size_t>(id)];
  const int32_t group = GroupOf(site);
  if (group < 0 || kept_[static_cast<size_t>(id)] != 0) return true;
  const std::vector<Site>& uses = uses_[static_cast<size_t>(id)];
  return std::any_of(uses.begin(), uses.end(), [&](Site use) { return GroupOf(use) != group; });
}

Location Compiler::ViewOf(const Instruction& instruction) {
  const Attributes& a = instruction.attributes;
  const int64_t width = WidthOf(instruction.output);
  switch (instruction.op) {
    case Op::kLookup: {
      const Value& table = ValueOf(instruction.inputs[0]);
      const int32_t buffer = BufferFor(BufferKind::kParameter, table.space, table.shape.width(), table.parameter);
      return {buffer, 0, IndexFor(IndexOf(instruction))};
    }
    case Op::kPullRows:
      return {BufferFor(BufferKind::kColumn, instruction.space, width, a.column), 0, -1};
    case Op::kGather:
    case Op::kGatherAll:
    case Op::kPushed:
      return {ChannelBuffer(BufferKind::kChannel, e_->table_of(a.channel)), 0, IndexFor(IndexOf(instruction))};
    case Op::kToEdges: {
      Location location = e_->locations_[static_cast<size_t>(instruction.inputs[0])];
      IndexSpec index = IndexOf(instruction);
      if (IsOfInput(location)) index.kind = IndexKind::kEdgeInput;
      location.index = IndexFor(index);
      return location;
    }
    case Op::kToVertices: {
      Location location = e_->locations_[static_cast<size_t>(instruction.inputs[0])];
      location.index = IndexFor(IndexOf(instruction));
      return location;
    }
    case Op::kSlice: {
      Location location = e_->locations_[static_cast<size_t>(instruction.inputs[0])];
      location.column += a.begin;
      return location;
    }
    case Op::kLossSeed:
      return {BufferFor(BufferKind::kLossScale, {}, 1, -1), 0, -1};
    case Op::kScatterGrad:
    case Op::kPushGrad:
      return {ChannelBuffer(BufferKind::kChannelGradient, a.channel), 0, -1};
    default:
      break;
  }
  CAVS_CHECK(false, "{} is not a view", OpName(instruction.op));
  return {};
}

Location Compiler::NewRows(ValueId id) {
  e_->buffers_.push_back({BufferKind::kRows, ValueOf(id).space, WidthOf(id), id});
  return {static_cast<int32_t>(e_->buffers_.size() - 1), 0, -1};
}

int32_t Compiler::BufferFor(BufferKind kind, RowSpace space, int64_t width, int32_t id) {
  const auto key = std::make_tuple(kind, static_cast<int>(space.kind), space.type, id, width);
  const auto [entry, is_new] = buffer_ids_.emplace(key, static_cast<int32_t>(e_->buffers_.size()));
  if (is_new) e_->buffers_.push_back({kind, space, width, id});
  return entry->second;
}

int32_t Compiler::ChannelBuffer(BufferKind kind, int32_t channel) {
  return BufferFor(kind, {}, e_->signature().channels[static_cast<size_t>(channel)].shape.width(), channel);
}

int32_t Compiler::IndexFor(const IndexSpec& spec) {
  const auto found = std::find(e_->indices_.begin(), e_->indices_.end(), spec);
  if (found != e_->indices_.end()) return static_cast<int32_t>(found - e_->indices_.begin());
  e_->indices_.push_back(spec);
  return static_cast<int32_t>(e_->indices_.size() - 1);
}

IndexSpec Compiler::IndexOf(const Instruction& instruction) const {
  const Attributes& a = instruction.attributes;
  const int32_t type = instruction.space.type;
  IndexSpec spec{IndexKind::kSlot};
  switch (instruction.op) {
    case Op::kGather:
    case Op::kGatherGrad:
      spec = {IndexKind::kSlot, type, a.slot, e_->channel_class(a.channel), -1};
      break;
    case Op::kGatherAll:
    case Op::kGatherAllGrad:
      spec = {IndexKind::kEdge, type, -1, e_->channel_class(a.channel), -1};
      break;
    case Op::kPushed:
    case Op::kPushedGrad:
      spec = {IndexKind::kHead, -1, -1, e_->channel_class(a.channel), -1};
      break;
    case Op::kToEdges:
      spec = {IndexKind::kEdgeParent, type, -1, -1, -1};
      break;
    case Op::kToVertices:
    case Op::kSumVertices:
      spec = {IndexKind::kInput, type, -1, -1, -1};
      break;
    case Op::kLookup:
    case Op::kLookupGrad: {
      const bool inputs = instruction.space.kind == Space::kInput;
      spec = {inputs ? IndexKind::kInputIds : IndexKind::kIds, type, -1, -1, a.column};
      break;
    }
    default:
      CAVS_CHECK(false, "{} has no index", OpName(instruction.op));
  }
  return spec;
}

}  // namespace cavs
