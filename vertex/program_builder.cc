#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "vertex/builder.h"

namespace cavs {
namespace {

// 4 TiB of f32.
constexpr int64_t kMostElements = int64_t{1} << 40;

}  // namespace
namespace {

void RequireState(Op op, const Signature& signature, const State& state) {
  const auto count = std::ssize(signature.channels);
  const bool known = state.channel >= 0 && state.channel < count &&
                     signature.channels[static_cast<size_t>(state.channel)].kind == ChannelKind::kState;
  if (!known) ThrowInvalid(OpName(op), "expected a state of this model, got another or an empty one");
}

}  // namespace

const Shape& Expression::shape() const { return builder_->value(id_).shape; }

Expression Vertex::Pull(const Expression& table, std::string_view column) {
  if (table.builder() != builder_) {
    ThrowInvalid("pull", fmt::format("expected a lookup table of this model for column \"{}\", got {}", column,
                                     table.builder() == nullptr ? "an empty expression" : "one of another"));
  }
  const Value& value = builder_->value(table.id());
  if (value.space.kind != Space::kParameter || !builder_->signature().parameters[size_t(value.parameter)].is_lookup) {
    ThrowInvalid("pull",
                 fmt::format("expected a lookup table for column \"{}\", got {}", column, table.shape().ToString()));
  }
  const Shape shape = table.shape();
  Attributes attributes;
  attributes.column = builder_->ColumnIndex(column, ColumnUse::kIds, shape.rows());
  return builder_->Emit(Op::kLookup, {Space::kVertex, type_}, Shape::Vector(shape.columns()), {table}, attributes);
}

Expression Vertex::PullRow(std::string_view column, int64_t width) {
  Attributes attributes;
  attributes.column = builder_->ColumnIndex(column, ColumnUse::kRows, width);
  return builder_->Emit(Op::kPullRows, {Space::kVertex, type_}, Shape::Vector(width), {}, attributes);
}

Expression Vertex::Gather(int slot, const State& state) {
  RequireState(Op::kGather, builder_->signature(), state);
  const TypeDeclaration& type = builder_->signature().types[static_cast<size_t>(type_)];
  if (slot < 0 || slot >= type.children) {
    ThrowInvalid(
        "gather",
        type.children == kAnyArity
            ? fmt::format("expected GatherAll for type \"{}\", which has any number of children, got child {}",
                          type.name, slot)
            : fmt::format("expected a child of type \"{}\" in [0, {}), got {}", type.name, type.children, slot));
  }
  Attributes attributes;
  attributes.channel = state.channel;
  attributes.slot = slot;
  return builder_->Emit(Op::kGather, {Space::kVertex, type_}, state.shape, {}, attributes);
}

Expression Vertex::GatherAll(const State& state) {
  RequireState(Op::kGatherAll, builder_->signature(), state);
  Attributes attributes;
  attributes.channel = state.channel;
  return builder_->Emit(Op::kGatherAll, {Space::kEdge, type_}, state.shape, {}, attributes);
}

void Vertex::Scatter(const State& state, const Expression& x) {
  RequireState(Op::kScatter, builder_->signature(), state);
  Attributes attributes;
  attributes.channel = state.channel;
  builder_->EmitSink(Op::kScatter, {Space::kVertex, type_}, x, attributes);
}

void Vertex::Push(std::string_view name, const Expression& x) {
  if (x.builder() == nullptr) ThrowInvalid("push", "expected an expression of a model, got an empty one");
  Attributes attributes;
  attributes.channel = builder_->PushChannel(name, x.shape());
  builder_->EmitSink(Op::kPush, {Space::kVertex, type_}, x, attributes);
}

void VertexType::Define(const std::function<void(Vertex&)>& function) { builder_->Define(index_, function); }

ProgramBuilder::ProgramBuilder() = default;
ProgramBuilder::~ProgramBuilder() = default;

Expression ProgramBuilder::Parameter(std::string_view name, const Shape& shape, Initializer initializer) {
  if (shape.rows() <= 0 || shape.columns() <= 0) {
    ThrowInvalid("parameter", fmt::format("expected positive dimensions for \"{}\", got {}", name, shape.ToString()));
  }
  if (shape.rows() > kMostElements / shape.columns()) {
    ThrowInvalid("parameter",
                 fmt::format("expected at most {} elements for \"{}\", got {}", kMostElements, name, shape.ToString()));
  }
  for (const ParameterDeclaration& other : signature_.parameters) {
    if (other.name == name) ThrowInvalid("parameter", fmt::format("expected a new name, got \"{}\" twice", name));
  }
  if (initializer.kind == Initializer::Kind::kValues && std::ssize(initializer.values) != shape.width()) {
    ThrowInvalid("parameter", fmt::format("expected {} initial values for \"{}\", got {}", shape.width(), name,
                                          initializer.values.size()));
  }
  Value value;
  value.space = {Space::kParameter, -1};
  value.shape = shape;
  value.parameter = static_cast<int32_t>(signature_.parameters.size());
  signature_.parameters.push_back({std::string(name), shape, false, false, std::move(initializer)});
  values_.push_back(std::move(value));
  return {this, static_cast<ValueId>(values_.size() - 1)};
}

Expression ProgramBuilder::Lookup(std::string_view name, int64_t entries, int64_t width, Initializer initializer) {
  const Expression table = Parameter(name, Shape::Matrix(entries, width), std::move(initializer));
  signature_.parameters.back().is_lookup = true;
  return table;
}

void ProgramBuilder::Freeze(const Expression& parameter) {
  const int32_t index = parameter.builder() == this ? value(parameter.id()).parameter : -1;
  if (index < 0) ThrowInvalid("freeze", "expected a parameter of this model, got another value");
  signature_.parameters[static_cast<size_t>(index)].frozen = true;
}

State ProgramBuilder::DeclareState(std::string_view name, const Shape& shape) {
  for (const ChannelDeclaration& other : signature_.channels) {
    if (other.kind == ChannelKind::kState && other.name == name) {
      ThrowInvalid("state", fmt::format("expected a new name, got \"{}\" twice", name));
    }
  }
  if (shape.width() <= 0) {
    ThrowInvalid("state", fmt::format("expected positive dimensions for \"{}\", got {}", name, shape.ToString()));
  }
  signature_.channels.push_back({std::string(name), shape, ChannelKind::kState});
  return {static_cast<int32_t>(signature_.channels.size() - 1), shape};
}

VertexType ProgramBuilder::DeclareType(std::string_view name, int32_t children) {
  if (children < kAnyArity) {
    ThrowInvalid("vertex type",
                 fmt::format("expected a number of children or kAnyArity for \"{}\", got {}", name, children));
  }
  for (const TypeDeclaration& other : signature_.types) {
    if (other.name == name) ThrowInvalid("vertex type", fmt::format("expected a new name, got \"{}\" twice", name));
  }
  signature_.types.push_back({std::string(name), children});
  functions_.emplace_back();
  defined_.push_back(false);
  return {this, static_cast<int32_t>(signature_.types.size() - 1)};
}

Expression ProgramBuilder::Constant(std::vector<float> row) {
  if (row.empty()) ThrowInvalid("constant", "expected at least one number, got none");
  Value value;
  value.space = {Space::kConstant, -1};
  value.shape = Shape::Vector(static_cast<int64_t>(row.size()));
  value.constant = std::move(row);
  values_.push_back(std::move(value));
  return {this, static_cast<ValueId>(values_.size() - 1)};
}

Expression ProgramBuilder::Pushed(std::string_view name) {
  for (size_t i = 0; i < signature_.channels.size(); ++i) {
    const ChannelDeclaration& channel = signature_.channels[i];
    if (channel.kind != ChannelKind::kPush || channel.name != name) continue;
    Attributes attributes;
    attributes.channel = static_cast<int32_t>(i);
    const Shape shape = channel.shape;
    return Emit(Op::kPushed, {Space::kHead, -1}, shape, {}, attributes);
  }
  ThrowInvalid("pushed", fmt::format("expected a name that a vertex type has pushed, got \"{}\"", name));
}

Label ProgramBuilder::DeclareLabel(std::string_view name, int64_t classes) {
  const Label label{ColumnIndex(name, ColumnUse::kIds, classes)};
  head_columns_.push_back(label.column);
  return label;
}

Label ProgramBuilder::DeclareTarget(std::string_view name, int64_t width) {
  const Label label{ColumnIndex(name, ColumnUse::kRows, width)};
  head_columns_.push_back(label.column);
  return label;
}

void ProgramBuilder::AddLoss(const Expression& loss) {
  if (loss.builder() != this || value(loss.id()).space.kind != Space::kHead || loss.shape().width() != 1) {
    ThrowInvalid("loss", fmt::format("expected [1] for each row of the head, got {}",
                                     loss.builder() == this ? loss.shape().ToString() : "a value of another model"));
  }
  losses_.push_back(loss.id());
}

void ProgramBuilder::AddOutput(std::string_view name, const Expression& output) {
  if (output.builder() != this || value(output.id()).space.kind != Space::kHead) {
    ThrowInvalid("output", fmt::format("expected a value of the head for \"{}\"", name));
  }
  outputs_.push_back({std::string(name), output.id()});
}

// A function that throws leaves nothing of itself behind.
void ProgramBuilder::Define(int32_t type, const std::function<void(Vertex&)>& function) {
  const auto index = static_cast<size_t>(type);
  if (defined_[index]) {
    ThrowInvalid("define",
                 fmt::format("expected one function for type \"{}\", got a second", signature_.types[index].name));
  }
  try {
    Vertex vertex(this, type);
    function(vertex);
  } catch (...) {
    functions_[index].clear();
    throw;
  }
  defined_[index] = true;
}

std::set<int32_t> ProgramBuilder::ChannelsOf(ValueId value) const {
  std::set<ValueId> reached = {value};
  std::set<int32_t> channels;
  for (size_t i = head_.size(); i-- > 0;) {
    const Instruction& instruction = head_[i];
    if (!reached.contains(instruction.output)) continue;
    reached.insert(instruction.inputs.begin(), instruction.inputs.end());
    if (instruction.op == Op::kPushed) channels.insert(instruction.attributes.channel);
  }
  return channels;
}

bool ProgramBuilder::PushedTogether(const std::vector<int32_t>& channels) const {
  return std::any_of(functions_.begin(), functions_.end(), [&](const std::vector<Instruction>& function) {
    return std::all_of(channels.begin(), channels.end(), [&](int32_t channel) {
      return std::any_of(function.begin(), function.end(), [&](const Instruction& instruction) {
        return instruction.op == Op::kPush && instruction.attributes.channel == channel;
      });
    });
  });
}

std::vector<int32_t> ProgramBuilder::HeadChannels() const {
  std::set<int32_t> channels;
  for (const ValueId loss : losses_) channels.merge(ChannelsOf(loss));
  for (const NamedValue& output : outputs_) channels.merge(ChannelsOf(output.value));
  std::vector<int32_t> result(channels.begin(), channels.end());
  if (result.empty() || PushedTogether(result)) return result;
  std::vector<std::string> names;
  names.reserve(result.size());
  for (const int32_t channel : result) names.push_back(signature_.channels[static_cast<size_t>(channel)].name);
  ThrowInvalid("build", fmt::format("expected a vertex type that pushes all that the head reads, {}; got none",
                                    fmt::join(names, ", ")));
}

Program ProgramBuilder::Build() const {
  Program program;
  for (size_t type = 0; type < defined_.size(); ++type) {
    if (!defined_[type]) {
      ThrowInvalid("build",
                   fmt::format("expected a function for vertex type \"{}\", got none", signature_.types[type].name));
    }
    program.instructions.insert(program.instructions.end(), functions_[type].begin(), functions_[type].end());
  }
  program.instructions.insert(program.instructions.end(), head_.begin(), head_.end());
  program.signature = std::make_shared<const Signature>(signature_);
  program.values = values_;
  program.losses = losses_;
  program.outputs = outputs_;
  program.head_channels = HeadChannels();
  program.head_columns = head_columns_;
  return program;
}

Expression ProgramBuilder::Emit(Op op, RowSpace space, const Shape& shape, const std::vector<Expression>& inputs,
                                Attributes attributes) {
  Instruction instruction;
  instruction.op = op;
  instruction.space = space;
  instruction.attributes = std::move(attributes);
  for (const Expression& input : inputs) {
    if (input.builder() != this)
      ThrowInvalid(std::string(OpName(op)), "expected operands of one model, got two models");
    instruction.inputs.push_back(input.id());
  }
  Value value;
  value.space = space;
  value.shape = shape;
  values_.push_back(std::move(value));
  instruction.output = static_cast<ValueId>(values_.size() - 1);
  const ValueId output = instruction.output;
  (space.kind == Space::kHead ? head_ : functions_[static_cast<size_t>(space.type)]).push_back(std::move(instruction));
  return {this, output};
}

void ProgramBuilder::EmitSink(Op op, RowSpace space, const Expression& input, Attributes attributes) {
  const ChannelDeclaration& channel = signature_.channels[static_cast<size_t>(attributes.channel)];
  const std::string where(OpName(op));
  if (input.builder() != this || value(input.id()).space != space) {
    ThrowInvalid(where, fmt::format("expected a value of a vertex of type \"{}\" for \"{}\", got another",
                                    signature_.types[static_cast<size_t>(space.type)].name, channel.name));
  }
  if (input.shape() != channel.shape) {
    ThrowInvalid(where, fmt::format("expected {} for \"{}\", got {}", channel.shape.ToString(), channel.name,
                                    input.shape().ToString()));
  }
  std::vector<Instruction>& function = functions_[static_cast<size_t>(space.type)];
  for (const Instruction& other : function) {
    if (other.op == op && other.attributes.channel == attributes.channel) {
      ThrowInvalid(where, fmt::format("expected \"{}\" once in type \"{}\", got it twice", channel.name,
                                      signature_.types[static_cast<size_t>(space.type)].name));
    }
  }
  Instruction instruction;
  instruction.op = op;
  instruction.space = space;
  instruction.inputs = {input.id()};
  instruction.attributes = std::move(attributes);
  function.push_back(std::move(instruction));
}

const Value& ProgramBuilder::value(ValueId id) const { return values_[static_cast<size_t>(id)]; }

int32_t ProgramBuilder::ColumnIndex(std::string_view name, ColumnUse use, int64_t limit) {
  for (size_t i = 0; i < signature_.columns.size(); ++i) {
    const ColumnDeclaration& column = signature_.columns[i];
    if (column.name != name) continue;
    if (column.use != use || column.limit != limit) {
      ThrowInvalid("column", fmt::format("expected \"{}\" with {} {} as before, got {} {}", name, column.limit,
                                         column.use == ColumnUse::kIds ? "ids" : "floats", limit,
                                         use == ColumnUse::kIds ? "ids" : "floats"));
    }
    return static_cast<int32_t>(i);
  }
  if (limit > std::numeric_limits<int32_t>::max()) {
    ThrowInvalid("column", fmt::format("expected a size below 2^31 for \"{}\", got {}", name, limit));
  }
  if (limit <= 0) ThrowInvalid("column", fmt::format("expected a positive size for \"{}\", got {}", name, limit));
  signature_.columns.push_back({std::string(name), use, limit});
  return static_cast<int32_t>(signature_.columns.size() - 1);
}

int32_t ProgramBuilder::PushChannel(std::string_view name, const Shape& shape) {
  for (size_t i = 0; i < signature_.channels.size(); ++i) {
    if (signature_.channels[i].kind == ChannelKind::kPush && signature_.channels[i].name == name)
      return static_cast<int32_t>(i);
  }
  signature_.channels.push_back({std::string(name), shape, ChannelKind::kPush});
  return static_cast<int32_t>(signature_.channels.size() - 1);
}

uint64_t ProgramBuilder::NextSalt() { return ++salts_; }

}  // namespace cavs
