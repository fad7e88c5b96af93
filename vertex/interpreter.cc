#include "vertex/interpreter.h"

#include <algorithm>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/random.h"

namespace cavs {
namespace {

std::span<const double> RowOf(const std::vector<double>& rows, int64_t row, int64_t width) {
  return std::span(rows).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
}

std::span<double> RowOf(std::vector<double>& rows, int64_t row, int64_t width) {
  return std::span(rows).subspan(static_cast<size_t>(row * width), static_cast<size_t>(width));
}

}  // namespace

Interpreter::Interpreter(const Program& f, const Program* df, const ParameterStore& parameters) : f_(f) {
  if (df != nullptr) df_ = *df;
  forward_ = Group(f_);
  if (df != nullptr) backward_ = Group(df_);
  value_table_ = df != nullptr ? &df_.values : &f_.values;
  const size_t types = f_.signature->types.size();
  const std::vector<char> none(f_.signature->channels.size(), 0);
  type_scatters_.assign(types, none);
  type_pushes_.assign(types, none);
  for (const Instruction& instruction : f_.instructions) {
    const auto type = static_cast<size_t>(instruction.space.type);
    const auto channel = static_cast<size_t>(instruction.attributes.channel);
    if (instruction.op == Op::kScatter) type_scatters_[type][channel] = 1;
    if (instruction.op == Op::kPush) type_pushes_[type][channel] = 1;
  }
  for (int32_t i = 0; i < parameters.layout().total(); ++i) {
    const std::vector<float> values = parameters.Get(i);
    parameters_.emplace_back(values.begin(), values.end());
    gradients_.emplace_back(values.size(), 0.0);
  }
}

Interpreter::Functions Interpreter::Group(const Program& program) {
  Functions functions;
  functions.types.resize(program.signature->types.size());
  for (const Instruction& instruction : program.instructions) {
    const bool head = instruction.space.kind == Space::kHead;
    Function& function = head ? functions.head : functions.types[static_cast<size_t>(instruction.space.type)];
    function.push_back(&instruction);
  }
  return functions;
}

void Interpreter::Forward(const GraphBatch& batch, const RunOptions& options) {
  batch_ = &batch;
  options_ = options;
  CheckGraphs();
  BindColumns();
  NumberRows();
  Sort();
  FindHeadRows(options.head);
  values_.assign(value_table_->size(), {});
  AllocateRows(0, static_cast<ValueId>(f_.values.size()));
  channels_.clear();
  for (const ChannelDeclaration& channel : f_.signature->channels) {
    channels_.emplace_back(static_cast<size_t>(batch.vertex_count() * channel.shape.width()), 0.0);
  }
  for (const int32_t vertex : order_) RunVertex(forward_.types[static_cast<size_t>(batch.type(vertex))], vertex);
  RunHead(forward_.head);
}

void Interpreter::Backward() {
  CAVS_CHECK(batch_ != nullptr && df_.is_backward());
  AllocateRows(df_.first_own_value, static_cast<ValueId>(df_.values.size()));
  channel_gradients_ = channels_;
  for (std::vector<double>& gradient : channel_gradients_) std::fill(gradient.begin(), gradient.end(), 0.0);
  for (std::vector<double>& gradient : gradients_) std::fill(gradient.begin(), gradient.end(), 0.0);
  RunHead(backward_.head);
  for (auto vertex = order_.rbegin(); vertex != order_.rend(); ++vertex) {
    RunVertex(backward_.types[static_cast<size_t>(batch_->type(*vertex))], *vertex);
  }
}

double Interpreter::loss() const {
  double total = 0;
  for (size_t i = 0; i < f_.losses.size(); ++i) {
    for (const double row : loss_rows(i)) total += row;
  }
  return total;
}

std::span<const double> Interpreter::output(size_t output) const {
  return values_[static_cast<size_t>(f_.outputs[output].value)];
}

std::span<const double> Interpreter::loss_rows(size_t loss) const {
  return values_[static_cast<size_t>(f_.losses[loss])];
}

std::span<const double> Interpreter::state(int32_t channel, int32_t vertex) const {
  const auto index = static_cast<size_t>(channel);
  if (type_scatters_[static_cast<size_t>(batch_->type(vertex))][index] == 0) return {};
  return RowOf(channels_[index], vertex, f_.signature->channels[index].shape.width());
}

void Interpreter::CheckGraphs() const {
  const auto types = static_cast<int64_t>(f_.signature->types.size());
  if (batch_->type_count() > types) {
    ThrowInvalid("forward", fmt::format("expected vertex types below {}, got {}", types, batch_->type_count() - 1));
  }
  for (int32_t vertex = 0; vertex < batch_->vertex_count(); ++vertex) CheckChildren(vertex);
}

void Interpreter::CheckChildren(int32_t vertex) const {
  const auto type = static_cast<size_t>(batch_->type(vertex));
  const TypeDeclaration& declaration = f_.signature->types[type];
  const std::span<const int32_t> children = batch_->children(vertex);
  if (declaration.children != kAnyArity && declaration.children != std::ssize(children)) {
    ThrowInvalid("forward", fmt::format("expected {} children at vertex {} of example {}, which is a \"{}\", got {}",
                                        declaration.children, batch_->local_id(vertex),
                                        batch_->example(batch_->graph_of(vertex)), declaration.name, children.size()));
  }
  for (const Instruction* instruction : forward_.types[type]) {
    const auto channel = static_cast<size_t>(instruction->attributes.channel);
    for (size_t slot = 0; slot < children.size(); ++slot) {
      const bool reads = instruction->op == Op::kGatherAll ||
                         (instruction->op == Op::kGather && instruction->attributes.slot == static_cast<int32_t>(slot));
      if (!reads || children[slot] == kNone) continue;
      const auto child_type = static_cast<size_t>(batch_->type(children[slot]));
      if (type_scatters_[child_type][channel] != 0) continue;
      ThrowInvalid("forward",
                   fmt::format("expected child {} of vertex {} of example {} to scatter \"{}\", got a \"{}\"", slot,
                               batch_->local_id(vertex), batch_->example(batch_->graph_of(vertex)),
                               f_.signature->channels[channel].name, f_.signature->types[child_type].name));
    }
  }
}

void Interpreter::BindColumns() {
  columns_.clear();
  columns_of_graph_.clear();
  std::vector<char> required(f_.signature->columns.size(), 1);
  for (const int32_t column : f_.head_columns) required[static_cast<size_t>(column)] = 0;
  for (int64_t graph = 0; graph < batch_->graph_count(); ++graph) {
    const ColumnSet& set = batch_->graph(graph).columns();
    size_t known = 0;
    while (known < columns_.size() && columns_[known].set != &set) ++known;
    columns_of_graph_.push_back(known);
    if (known < columns_.size()) continue;
    Columns bound{&set, {}};
    for (size_t i = 0; i < required.size(); ++i) {
      const ColumnDeclaration& declaration = f_.signature->columns[i];
      const int column = set.Find(declaration.name);
      if (column == kNone && required[i] != 0) {
        ThrowInvalid("forward", fmt::format("expected a column \"{}\" in example {}, got none", declaration.name,
                                            batch_->example(graph)));
      }
      bound.graph_column.push_back(column);
    }
    columns_.push_back(std::move(bound));
  }
}

void Interpreter::NumberRows() {
  const auto vertices = static_cast<size_t>(batch_->vertex_count());
  row_of_vertex_.resize(vertices);
  first_edge_.resize(vertices);
  type_rows_.assign(f_.signature->types.size(), 0);
  type_edges_.assign(f_.signature->types.size(), 0);
  for (size_t vertex = 0; vertex < vertices; ++vertex) {
    const auto v = static_cast<int64_t>(vertex);
    const auto type = static_cast<size_t>(batch_->type(v));
    row_of_vertex_[vertex] = type_rows_[type]++;
    first_edge_[vertex] = type_edges_[type];
    type_edges_[type] += std::ssize(batch_->children(v));
  }
}

void Interpreter::Sort() {
  const std::span<const int32_t> counts = batch_->parent_counts();
  std::vector<int32_t> waiting_parents(counts.begin(), counts.end());
  order_.clear();
  for (int32_t vertex = 0; vertex < batch_->vertex_count(); ++vertex) {
    if (waiting_parents[static_cast<size_t>(vertex)] == 0) order_.push_back(vertex);
  }
  // Kahn's algorithm from the roots: order_ is its queue. Then children come after parents, so it is reversed.
  for (size_t next = 0; next < order_.size(); ++next) {
    for (const int32_t child : batch_->children(order_[next])) {
      if (child != kNone && --waiting_parents[static_cast<size_t>(child)] == 0) order_.push_back(child);
    }
  }
  CAVS_CHECK(std::ssize(order_) == batch_->vertex_count());
  std::reverse(order_.begin(), order_.end());
}

void Interpreter::FindHeadRows(HeadRows rows) {
  head_vertices_.clear();
  if (forward_.head.empty()) return;
  for (int32_t vertex = 0; vertex < batch_->vertex_count(); ++vertex) {
    if (!Pushes(batch_->type(vertex))) continue;
    const bool is_root = batch_->parent_counts()[static_cast<size_t>(vertex)] == 0;
    const bool runs = rows == HeadRows::kAll || (rows == HeadRows::kRoots && is_root) ||
                      (rows == HeadRows::kLabelled && Labelled(vertex));
    if (runs) head_vertices_.push_back(vertex);
  }
}

bool Interpreter::Pushes(int32_t type) const {
  const std::vector<char>& pushes = type_pushes_[static_cast<size_t>(type)];
  return std::all_of(f_.head_channels.begin(), f_.head_channels.end(),
                     [&](int32_t channel) { return pushes[static_cast<size_t>(channel)] != 0; });
}

bool Interpreter::Labelled(int32_t vertex) const {
  if (f_.head_columns.empty()) return true;
  return std::any_of(f_.head_columns.begin(), f_.head_columns.end(), [&](int32_t column) {
    return f_.signature->columns[static_cast<size_t>(column)].use == ColumnUse::kIds
               ? Id(column, vertex) != kNone
               : !FloatRow(column, vertex).empty();
  });
}

int64_t Interpreter::RowCount(const RowSpace& space) const {
  switch (space.kind) {
    case Space::kVertex:
    case Space::kInput:
      return type_rows_[static_cast<size_t>(space.type)];
    case Space::kEdge:
      return type_edges_[static_cast<size_t>(space.type)];
    case Space::kHead:
      return std::ssize(head_vertices_);
    case Space::kConstant:
      return 1;
    case Space::kParameter:
    case Space::kBlock:
      return 0;
  }
  return 0;
}

void Interpreter::AllocateRows(ValueId begin, ValueId end) {
  for (auto id = static_cast<size_t>(begin); id < static_cast<size_t>(end); ++id) {
    const Value& value = (*value_table_)[id];
    values_[id].assign(static_cast<size_t>(RowCount(value.space) * value.shape.width()), 0.0);
    if (value.space.kind == Space::kConstant) values_[id].assign(value.constant.begin(), value.constant.end());
  }
}

std::span<const double> Interpreter::Operand(ValueId id, int64_t row) const {
  const Value& value = (*value_table_)[static_cast<size_t>(id)];
  if (value.space.kind == Space::kParameter) return parameters_[static_cast<size_t>(value.parameter)];
  if (value.space.kind == Space::kConstant) return values_[static_cast<size_t>(id)];
  return RowOf(values_[static_cast<size_t>(id)], row, value.shape.width());
}

std::span<double> Interpreter::Result(const Instruction& instruction, int64_t row) {
  const auto id = static_cast<size_t>(instruction.output);
  return RowOf(values_[id], row, (*value_table_)[id].shape.width());
}

std::span<double> Interpreter::ChannelRow(std::vector<std::vector<double>>& channels, int32_t channel,
                                          int32_t vertex) const {
  const auto index = static_cast<size_t>(channel);
  return RowOf(channels[index], vertex, f_.signature->channels[index].shape.width());
}

int32_t Interpreter::Child(const Site& site, int64_t slot) const {
  return batch_->children(site.vertex)[static_cast<size_t>(slot)];
}

int32_t Interpreter::Id(int32_t column, int32_t vertex) const {
  const int32_t graph = batch_->graph_of(vertex);
  const Columns& columns = columns_[columns_of_graph_[static_cast<size_t>(graph)]];
  const int32_t graph_column = columns.graph_column[static_cast<size_t>(column)];
  if (graph_column == kNone) return kNone;
  const int32_t local = batch_->local_id(vertex);
  const int32_t id = batch_->graph(graph).ids(graph_column)[static_cast<size_t>(local)];
  const ColumnDeclaration& declaration = f_.signature->columns[static_cast<size_t>(column)];
  if (id >= declaration.limit) {
    ThrowInvalid("forward", fmt::format("expected \"{}\" below {} at vertex {} of example {}, got {}", declaration.name,
                                        declaration.limit, local, batch_->example(graph), id));
  }
  return id;
}

std::span<const float> Interpreter::FloatRow(int32_t column, int32_t vertex) const {
  const int32_t graph = batch_->graph_of(vertex);
  const Columns& columns = columns_[columns_of_graph_[static_cast<size_t>(graph)]];
  const int32_t graph_column = columns.graph_column[static_cast<size_t>(column)];
  if (graph_column == kNone) return {};
  return batch_->graph(graph).row(graph_column, batch_->local_id(vertex));
}

uint64_t Interpreter::RowKey(const Site& site) const {
  const auto example = static_cast<uint64_t>(batch_->example(batch_->graph_of(site.vertex)));
  const auto local = static_cast<uint64_t>(batch_->local_id(site.vertex));
  const uint64_t key = HashCounter(options_.seed, options_.step, example, local);
  return site.slot < 0 ? key : HashCounter(key, static_cast<uint64_t>(site.slot));
}

}  // namespace cavs
