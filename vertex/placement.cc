#include "vertex/placement.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/random.h"

namespace cavs {

namespace {

std::string Name(const GraphBatch& batch, int32_t vertex) {
  return fmt::format("example {}, vertex {}", batch.example(batch.graph_of(vertex)), batch.local_id(vertex));
}

}  // namespace

Placement::Placement(const Executable* executable) : executable_(executable) {
  const Signature& signature = executable->signature();
  type_total_ = static_cast<int64_t>(signature.types.size());
  indices_.resize(executable->indices().size());
  collected_.resize(executable->collections().size());
  homes_.resize(static_cast<size_t>(executable->class_count()));
  nests_.resize(executable->nests().size());
  column_rows_.resize(executable->buffers().size());
  labels_.resize(signature.columns.size());
  targets_.resize(signature.columns.size());
  keys_.resize(signature.types.size() * 2 + 1);
  inputs_.resize(signature.types.size());
  pushes_head_.assign(signature.types.size(), executable->head_channels().empty() ? 0 : 1);
  for (const int32_t channel : executable->head_channels()) {
    const std::vector<int32_t>& types = executable->class_types(executable->channel_class(channel));
    for (size_t t = 0; t < pushes_head_.size(); ++t) {
      if (!std::binary_search(types.begin(), types.end(), static_cast<int32_t>(t))) pushes_head_[t] = 0;
    }
  }
}

void Placement::Plan(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options,
                     const SharedVertices* shared) {
  batch_ = &batch;
  original_ = shared != nullptr ? shared->original : &batch;
  merged_ = shared != nullptr ? shared->merged : std::span<const int32_t>();
  schedule_ = &schedule;
  CheckTypes();
  CountRows();
  MapColumns();
  for (int32_t type = 0; type < type_total_; ++type) NumberInputs(type);
  CollectHeadRows(options.head);
  for (size_t i = 0; i < indices_.size(); ++i) FillIndex(executable_->indices()[i], &indices_[i]);
  for (size_t c = 0; c < collected_.size(); ++c) FillCollected(executable_->collections()[c], &collected_[c]);
  for (size_t i = 0; i < indices_.size(); ++i) MoveToHomes(executable_->indices()[i], &indices_[i]);
  FillHeadColumns();
  for (size_t b = 0; b < column_rows_.size(); ++b) {
    const Buffer& buffer = executable_->buffers()[b];
    if (buffer.kind == BufferKind::kColumn) FillColumnRows(buffer, &column_rows_[b]);
  }
  if (executable_->draws() && options.training) FillKeys(options.seed, options.step);
}

void Placement::CheckTypes() {
  const std::vector<TypeDeclaration>& types = executable_->signature().types;
  const int64_t vertices = batch_->vertex_count();
  for (int32_t v = 0; v < vertices; ++v) {
    const int32_t type = batch_->type(v);
    if (type < 0 || type >= type_total_) {
      ThrowInvalid("graph",
                   fmt::format("{}: expected a vertex type in [0, {}), got {}", Name(*batch_, v), type_total_, type));
    }
    const TypeDeclaration& declared = types[static_cast<size_t>(type)];
    const int64_t children = std::ssize(batch_->children(v));
    if (declared.children != kAnyArity && children != declared.children) {
      ThrowInvalid("graph", fmt::format("{}: expected {} children for type \"{}\", got {}", Name(*batch_, v),
                                        declared.children, declared.name, children));
    }
  }
}

void Placement::CountRows() {
  const int32_t classes = executable_->class_count();
  class_base_.assign(static_cast<size_t>(classes * type_total_), -1);
  class_rows_.assign(static_cast<size_t>(classes), 0);
  for (int32_t c = 0; c < classes; ++c) {
    for (const int32_t type : executable_->class_types(c)) {
      class_base_[static_cast<size_t>(c * type_total_ + type)] = class_rows_[static_cast<size_t>(c)];
      class_rows_[static_cast<size_t>(c)] += schedule_->rows(type);
    }
  }
  table_rows_ = class_rows_;
  for (int32_t c = 0; c < classes; ++c) NestClass(c);
  widest_task_.assign(static_cast<size_t>(type_total_), 0);
  for (const Task& task : schedule_->tasks()) {
    int64_t& widest = widest_task_[static_cast<size_t>(task.type)];
    widest = std::max(widest, task.count);
  }
}

// Nests of one type have their slots in the same rows, of different tables.
void Placement::NestClass(int32_t channel_class) {
  const auto c = static_cast<size_t>(channel_class);
  std::vector<int32_t>& homes = homes_[c];
  homes.clear();
  int64_t next = 0;
  const auto in_class = [&](const Nest& nest) { return nest.channel_class == channel_class; };
  if (std::none_of(executable_->nests().begin(), executable_->nests().end(), in_class)) return;
  homes.resize(static_cast<size_t>(class_rows(channel_class)), kNone);
  for (size_t n = 0; n < nests_.size(); ++n) {
    const Nest& nest = executable_->nests()[n];
    if (!in_class(nest)) continue;
    const auto same_type = [&](const Nest& other) { return in_class(other) && other.type == nest.type; };
    const auto first = std::find_if(executable_->nests().begin(), executable_->nests().end(), same_type);
    if (first != executable_->nests().begin() + static_cast<int64_t>(n)) {
      nests_[n] = nests_[static_cast<size_t>(first - executable_->nests().begin())];
      continue;
    }
    nests_[n] = {next, 0};
    for (const int32_t child : schedule_->edge_child(nest.type)) {
      const int64_t row = next++;
      const int64_t begin = child == kNone ? -1 : base(channel_class, batch_->type(child));
      int32_t* const home = begin < 0 ? nullptr : &homes[static_cast<size_t>(begin + schedule_->row_of_vertex(child))];
      if (home != nullptr && *home == kNone) {
        *home = static_cast<int32_t>(row);
      } else {
        ++nests_[n].copies;
      }
    }
  }
  for (int32_t& home : homes) {
    if (home == kNone) home = static_cast<int32_t>(next++);
  }
  table_rows_[c] = next;
  CAVS_CHECK(next <= INT32_MAX, "{} rows in the table of a state", next);
}

// Indices are made of rows of a class, which is what gradients are collected by.
void Placement::MoveToHomes(const IndexSpec& spec, std::vector<int32_t>* index) const {
  if (spec.channel_class < 0) return;
  const std::vector<int32_t>& homes = this->homes(spec.channel_class);
  if (homes.empty()) return;
  for (int32_t& row : *index) {
    if (row >= 0) row = homes[static_cast<size_t>(row)];
  }
}

int64_t Placement::rows(const Buffer& buffer, int32_t lanes) const {
  if (buffer.kind != BufferKind::kRows) {
    const int32_t channel_class = executable_->channel_class(buffer.id);
    const bool gradient = buffer.kind == BufferKind::kChannelGradient;
    return gradient ? class_rows(channel_class) : table_rows_[static_cast<size_t>(channel_class)];
  }
  return buffer.of_block ? lanes * rows(buffer.block, buffer.space) : rows(buffer.space);
}

int64_t Placement::rows(const BlockSize& block, const RowSpace& space) const {
  return std::min(block.rows, block.of_tasks ? widest_task_[static_cast<size_t>(space.type)] : rows(space));
}

int64_t Placement::rows(const RowSpace& space) const {
  switch (space.kind) {
    case Space::kVertex:
      return schedule_->rows(space.type);
    case Space::kEdge:
      return schedule_->edges(space.type);
    case Space::kInput:
      return std::ssize(inputs_[static_cast<size_t>(space.type)].first_row);
    case Space::kHead:
      return std::ssize(head_vertices_);
    default:
      return 1;
  }
}

int64_t Placement::base(int32_t channel_class, int32_t type) const {
  return class_base_[static_cast<size_t>(channel_class * type_total_ + type)];
}

const std::vector<int32_t>& Placement::index(const IndexSpec& spec) const {
  const auto& specs = executable_->indices();
  return indices_[static_cast<size_t>(std::find(specs.begin(), specs.end(), spec) - specs.begin())];
}

const std::vector<float>& Placement::column_rows(const Buffer& buffer) const {
  return column_rows_[static_cast<size_t>(&buffer - executable_->buffers().data())];
}

const std::vector<uint64_t>& Placement::keys(const RowSpace& space) const {
  if (space.kind == Space::kHead) return keys_.back();
  const int64_t edges = space.kind == Space::kEdge ? type_total_ : 0;
  return keys_[static_cast<size_t>(edges + space.type)];
}

std::pair<int64_t, int64_t> Placement::Origin(const RowSpace& space, int64_t row) const {
  const GraphBatch& batch = space.kind == Space::kHead ? *original_ : *batch_;
  int32_t vertex = kNone;
  if (space.kind == Space::kHead) {
    vertex = head_vertices_[static_cast<size_t>(row)];
  } else {
    if (space.kind == Space::kInput) row = inputs_[static_cast<size_t>(space.type)].first_row[static_cast<size_t>(row)];
    if (space.kind == Space::kEdge) row = schedule_->edge_parent(space.type)[static_cast<size_t>(row)];
    vertex = schedule_->vertex_of_row(space.type)[static_cast<size_t>(row)];
  }
  return {batch.example(batch.graph_of(vertex)), batch.local_id(vertex)};
}

void Placement::MapColumns() {
  const std::vector<ColumnDeclaration>& columns = executable_->signature().columns;
  const ColumnSet* mapped = nullptr;
  column_map_.resize(columns.size() * static_cast<size_t>(batch_->graph_count()));
  for (int64_t g = 0; g < batch_->graph_count(); ++g) {
    int32_t* map = column_map_.data() + static_cast<size_t>(g) * columns.size();
    const ColumnSet& set = batch_->graph(g).columns();
    if (&set == mapped) {
      std::copy_n(map - columns.size(), columns.size(), map);
      continue;
    }
    mapped = &set;
    for (size_t c = 0; c < columns.size(); ++c) {
      map[c] = set.Find(columns[c].name);
      if (map[c] == kNone) continue;
      const Column& given = set[map[c]];
      const bool ids = columns[c].use == ColumnUse::kIds;
      if (ids != (given.kind == ColumnKind::kIds) || (!ids && given.width != columns[c].limit)) {
        ThrowInvalid("graph",
                     fmt::format("example {}: expected column \"{}\" with {}, got {} of width {}", batch_->example(g),
                                 given.name, ids ? "ids" : fmt::format("rows of {} floats", columns[c].limit),
                                 given.kind == ColumnKind::kIds ? "ids" : "rows", given.width));
      }
    }
  }
}

// A label may be absent; what F pulls may be absent at single vertices only.
void Placement::RequireColumn(int32_t column, int32_t vertex) const {
  const std::vector<ColumnDeclaration>& columns = executable_->signature().columns;
  const size_t place = static_cast<size_t>(batch_->graph_of(vertex)) * columns.size() + static_cast<size_t>(column);
  if (column_map_[place] != kNone) return;
  const auto& type = executable_->signature().types[static_cast<size_t>(batch_->type(vertex))];
  ThrowInvalid("graph", fmt::format("{}: expected a column \"{}\", which type \"{}\" pulls, got a graph without it",
                                    Name(*batch_, vertex), columns[static_cast<size_t>(column)].name, type.name));
}

int32_t Placement::Id(const GraphBatch& batch, int32_t column, int32_t vertex) const {
  const int32_t g = batch.graph_of(vertex);
  const size_t columns = executable_->signature().columns.size();
  const int32_t mapped = column_map_[static_cast<size_t>(g) * columns + static_cast<size_t>(column)];
  if (mapped == kNone) return kNone;
  const int32_t id = batch.graph(g).ids(mapped)[static_cast<size_t>(batch.local_id(vertex))];
  const ColumnDeclaration& declared = executable_->signature().columns[static_cast<size_t>(column)];
  if (id >= declared.limit) {
    ThrowInvalid("graph", fmt::format("{}: expected \"{}\" in [0, {}), got {}", Name(batch, vertex), declared.name,
                                      declared.limit, id));
  }
  return id;
}

std::span<const float> Placement::Row(const GraphBatch& batch, int32_t column, int32_t vertex) const {
  const int32_t g = batch.graph_of(vertex);
  const size_t columns = executable_->signature().columns.size();
  const int32_t mapped = column_map_[static_cast<size_t>(g) * columns + static_cast<size_t>(column)];
  if (mapped == kNone) return {};
  return batch.graph(g).row(mapped, batch.local_id(vertex));
}

void Placement::NumberInputs(int32_t type) {
  const std::vector<int32_t>& columns = executable_->input_columns(type);
  Inputs& inputs = inputs_[static_cast<size_t>(type)];
  inputs.of_row.clear();
  inputs.first_row.clear();
  if (columns.empty()) return;
  tuples_.Clear(schedule_->rows(type));
  for (const int32_t vertex : schedule_->vertex_of_row(type)) {
    tuple_.clear();
    for (const int32_t column : columns) {
      RequireColumn(column, vertex);
      tuple_.push_back(Id(*batch_, column, vertex));
    }
    const int32_t input = tuples_.Number(tuple_);
    if (input == std::ssize(inputs.first_row)) inputs.first_row.push_back(static_cast<int32_t>(inputs.of_row.size()));
    inputs.of_row.push_back(input);
  }
}

bool Placement::IsLabelled(int32_t vertex) const {
  const Program& program = executable_->forward();
  if (program.head_columns.empty()) return true;
  return std::any_of(program.head_columns.begin(), program.head_columns.end(), [&](int32_t column) {
    const bool ids = program.signature->columns[static_cast<size_t>(column)].use == ColumnUse::kIds;
    return ids ? Id(*original_, column, vertex) != kNone : !Row(*original_, column, vertex).empty();
  });
}

void Placement::CollectHeadRows(HeadRows which) {
  head_vertices_.clear();
  for (int32_t v = 0; v < original_->vertex_count(); ++v) {
    if (pushes_head_[static_cast<size_t>(original_->type(v))] == 0) continue;
    const bool root = original_->parent_counts()[static_cast<size_t>(v)] == 0;
    if (which == HeadRows::kAll || (which == HeadRows::kRoots && root) ||
        (which == HeadRows::kLabelled && IsLabelled(v))) {
      head_vertices_.push_back(v);
    }
  }
}

int32_t Placement::TableRow(const IndexSpec& spec, int32_t child, int32_t parent) const {
  if (child == kNone) return kNone;
  const int32_t type = batch_->type(child);
  const int64_t first = base(spec.channel_class, type);
  if (first < 0) {
    const auto& types = executable_->signature().types;
    ThrowInvalid("graph",
                 fmt::format("{}: expected children of \"{}\" that scatter the state it gathers, got vertex {} of type "
                             "\"{}\", which does not",
                             Name(*batch_, parent), types[static_cast<size_t>(batch_->type(parent))].name,
                             batch_->local_id(child), types[static_cast<size_t>(type)].name));
  }
  return static_cast<int32_t>(first) + schedule_->row_of_vertex(child);
}

void Placement::FillIndex(const IndexSpec& spec, std::vector<int32_t>* index) {
  switch (spec.kind) {
    case IndexKind::kSlot: {
      const std::span<const int64_t> begin = schedule_->edge_begin(spec.type);
      const std::span<const int32_t> child = schedule_->edge_child(spec.type);
      const std::span<const int32_t> vertex = schedule_->vertex_of_row(spec.type);
      index->resize(vertex.size());
      for (size_t r = 0; r < vertex.size(); ++r) {
        (*index)[r] = TableRow(spec, child[static_cast<size_t>(begin[r] + spec.slot)], vertex[r]);
      }
      break;
    }
    case IndexKind::kEdge: {
      const std::span<const int32_t> child = schedule_->edge_child(spec.type);
      const std::span<const int32_t> parent = schedule_->edge_parent(spec.type);
      index->resize(child.size());
      for (size_t e = 0; e < child.size(); ++e) {
        (*index)[e] = TableRow(spec, child[e], schedule_->vertex_of_row(spec.type)[static_cast<size_t>(parent[e])]);
      }
      break;
    }
    case IndexKind::kEdgeParent: {
      const std::span<const int32_t> parent = schedule_->edge_parent(spec.type);
      index->assign(parent.begin(), parent.end());
      break;
    }
    case IndexKind::kHead: {
      index->resize(head_vertices_.size());
      for (size_t r = 0; r < head_vertices_.size(); ++r) {
        const int32_t vertex = Merged(head_vertices_[r]);
        (*index)[r] = TableRow(spec, vertex, vertex);
      }
      break;
    }
    case IndexKind::kIds:
    case IndexKind::kInputIds:
      FillIds(spec, index);
      break;
    case IndexKind::kInput:
      *index = inputs_[static_cast<size_t>(spec.type)].of_row;
      break;
    case IndexKind::kEdgeInput: {
      const std::vector<int32_t>& input = inputs_[static_cast<size_t>(spec.type)].of_row;
      const std::span<const int32_t> parent = schedule_->edge_parent(spec.type);
      index->resize(parent.size());
      for (size_t e = 0; e < parent.size(); ++e) (*index)[e] = input[static_cast<size_t>(parent[e])];
      break;
    }
  }
}

// A counting sort of the rows of all sources by the row that they are for.
void Placement::FillCollected(const Collection& collection, CollectedRows* rows) const {
  std::vector<int64_t>& begin = rows->begin;
  const int64_t count = collection.inputs_of >= 0 ? this->rows({Space::kInput, collection.inputs_of})
                                                  : class_rows(collection.channel_class);
  begin.assign(static_cast<size_t>(count) + 2, 0);
  // Counts two places ahead, so that filling turns the begin of a row into that of the next one.
  for (const int32_t source : collection.indices) {
    for (const int32_t row : index(source)) {
      if (row >= 0) ++begin[static_cast<size_t>(row) + 2];
    }
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  rows->references.resize(static_cast<size_t>(begin.back()));
  for (size_t source = 0; source < collection.indices.size(); ++source) {
    const std::vector<int32_t>& targets = index(collection.indices[source]);
    CAVS_CHECK(targets.size() <= INT32_MAX, "{} gradients for the rows of a state", targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] < 0) continue;
      int64_t& next = begin[static_cast<size_t>(targets[i]) + 1];
      rows->references[static_cast<size_t>(next++)] = {static_cast<int32_t>(source), static_cast<int32_t>(i)};
    }
  }
}

void Placement::FillIds(const IndexSpec& spec, std::vector<int32_t>* index) {
  const std::span<const int32_t> vertex = schedule_->vertex_of_row(spec.type);
  if (spec.kind == IndexKind::kInputIds) {
    const std::vector<int32_t>& rows = inputs_[static_cast<size_t>(spec.type)].first_row;
    index->resize(rows.size());
    for (size_t r = 0; r < rows.size(); ++r)
      (*index)[r] = Id(*batch_, spec.column, vertex[static_cast<size_t>(rows[r])]);
    return;
  }
  index->resize(vertex.size());
  for (size_t r = 0; r < vertex.size(); ++r) {
    RequireColumn(spec.column, vertex[r]);
    (*index)[r] = Id(*batch_, spec.column, vertex[r]);
  }
}

void Placement::FillHeadColumns() {
  for (const int32_t column : executable_->forward().head_columns) {
    const ColumnDeclaration& declared = executable_->signature().columns[static_cast<size_t>(column)];
    std::vector<int32_t>& labels = labels_[static_cast<size_t>(column)];
    labels.resize(head_vertices_.size());
    if (declared.use == ColumnUse::kIds) {
      for (size_t r = 0; r < labels.size(); ++r) labels[r] = Id(*original_, column, head_vertices_[r]);
      continue;
    }
    std::vector<float>& targets = targets_[static_cast<size_t>(column)];
    targets.assign(labels.size() * static_cast<size_t>(declared.limit), 0.0f);
    for (size_t r = 0; r < labels.size(); ++r) {
      const std::span<const float> row = Row(*original_, column, head_vertices_[r]);
      labels[r] = row.empty() ? kNone : static_cast<int32_t>(r);
      std::copy(row.begin(), row.end(), targets.begin() + static_cast<int64_t>(r) * declared.limit);
    }
  }
}

void Placement::FillColumnRows(const Buffer& buffer, std::vector<float>* rows) {
  const std::span<const int32_t> vertex = schedule_->vertex_of_row(buffer.space.type);
  rows->assign(vertex.size() * static_cast<size_t>(buffer.width), 0.0f);
  for (size_t r = 0; r < vertex.size(); ++r) {
    RequireColumn(buffer.id, vertex[r]);
    const std::span<const float> row = Row(*batch_, buffer.id, vertex[r]);
    std::copy(row.begin(), row.end(), rows->begin() + static_cast<int64_t>(r) * buffer.width);
  }
}

void Placement::FillKeys(uint64_t seed, uint64_t step) {
  const auto key = [&](const GraphBatch& batch, int32_t v) {
    return HashCounter(seed, step, static_cast<uint64_t>(batch.example(batch.graph_of(v))),
                       static_cast<uint64_t>(batch.local_id(v)));
  };
  for (int32_t type = 0; type < type_total_; ++type) {
    const std::span<const int32_t> vertex = schedule_->vertex_of_row(type);
    std::vector<uint64_t>& rows = keys_[static_cast<size_t>(type)];
    rows.resize(vertex.size());
    for (size_t r = 0; r < vertex.size(); ++r) rows[r] = key(*batch_, vertex[r]);
    const std::span<const int32_t> parent = schedule_->edge_parent(type);
    const std::span<const int64_t> begin = schedule_->edge_begin(type);
    std::vector<uint64_t>& edges = keys_[static_cast<size_t>(type_total_ + type)];
    edges.resize(parent.size());
    for (size_t e = 0; e < parent.size(); ++e) {
      const size_t row = static_cast<size_t>(parent[e]);
      edges[e] = HashCounter(rows[row], static_cast<uint64_t>(static_cast<int64_t>(e) - begin[row]));
    }
  }
  keys_.back().resize(head_vertices_.size());
  for (size_t r = 0; r < head_vertices_.size(); ++r) keys_.back()[r] = key(*original_, head_vertices_[r]);
}

}  // namespace cavs
