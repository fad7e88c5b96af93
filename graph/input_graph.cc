#include "graph/input_graph.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {

namespace {

constexpr std::string_view kWhere = "graph";
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();  // vertices, edges and rows of one graph

void CheckSizes(const GraphParts& parts) {
  const int64_t vertices = std::ssize(parts.types);
  const int64_t edges = std::ssize(parts.children);
  if (vertices == 0) ThrowInvalid(kWhere, "expected at least one vertex, got an empty graph");
  if (vertices >= kMaxCount || edges >= kMaxCount) {
    ThrowInvalid(kWhere,
                 fmt::format("expected fewer than {} vertices and edges, got {} and {}", kMaxCount, vertices, edges));
  }
  const auto& begin = parts.child_begin;
  if (std::ssize(begin) != vertices + 1) {
    ThrowInvalid(
        kWhere, fmt::format("expected {} child offsets for {} vertices, got {}", vertices + 1, vertices, begin.size()));
  }
  if (begin.front() != 0 || begin.back() != edges || !std::is_sorted(begin.begin(), begin.end())) {
    ThrowInvalid(kWhere,
                 fmt::format("expected child offsets that ascend from 0 to {}, got {} to {}{}", edges, begin.front(),
                             begin.back(), std::is_sorted(begin.begin(), begin.end()) ? "" : ", not ascending"));
  }
}

// Checks types and edges one by one; returns whether every child has a lower id than its parents.
bool CheckVertices(const GraphParts& parts) {
  const int64_t vertices = std::ssize(parts.types);
  bool children_first = true;
  for (int64_t v = 0; v < vertices; ++v) {
    const int32_t type = parts.types[static_cast<size_t>(v)];
    if (type < 0 || type >= kMaxVertexTypes) {
      ThrowInvalid(kWhere, fmt::format("expected the type of vertex {} in [0, {}), got {}", v, kMaxVertexTypes, type));
    }
    const int64_t begin = parts.child_begin[static_cast<size_t>(v)];
    const int64_t end = parts.child_begin[static_cast<size_t>(v) + 1];
    for (int64_t edge = begin; edge < end; ++edge) {
      const int32_t child = parts.children[static_cast<size_t>(edge)];
      if (child < kNone || child >= vertices) {
        ThrowInvalid(kWhere, fmt::format("expected child {} of vertex {} in [0, {}) or {} for none, got {}",
                                         edge - begin, v, vertices, kNone, child));
      }
      if (child == v) {
        ThrowInvalid(kWhere,
                     fmt::format("expected no self loop, got vertex {} as child {} of itself", v, edge - begin));
      }
      children_first = children_first && child < v;
    }
  }
  return children_first;
}

constexpr int64_t kMaxShown = 20;  // ids of a cycle that are listed

// `path` leads from a vertex down to one that has the first as a child.
[[noreturn]] void ThrowCycle(std::span<int32_t> path) {
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::string text;
  for (int64_t i = 0; i < std::min(std::ssize(path), kMaxShown); ++i) {
    text += fmt::format("{} -> ", path[static_cast<size_t>(i)]);
  }
  if (std::ssize(path) > kMaxShown) text += fmt::format("({} more) -> ", std::ssize(path) - kMaxShown);
  ThrowInvalid(kWhere, fmt::format("expected an acyclic graph, got cycle {}{}", text, path.front()));
}

// What CheckAcyclic keeps for a vertex instead of its next edge.
constexpr int64_t kUnseen = -1;
constexpr int64_t kDone = -2;

// Depth-first walk with a stack of its own, so that depth costs no call stack. The stack is the path that is walked,
// and a child that lies on it closes a cycle.
void CheckAcyclic(const GraphParts& parts) {
  std::vector<int64_t> next_edge(parts.types.size(), kUnseen);
  std::vector<int32_t> path;
  const auto enter = [&](int32_t v) {
    next_edge[static_cast<size_t>(v)] = parts.child_begin[static_cast<size_t>(v)];
    path.push_back(v);
  };
  for (int32_t start = 0; start < std::ssize(parts.types); ++start) {
    if (next_edge[static_cast<size_t>(start)] == kUnseen) enter(start);
    while (!path.empty()) {
      const auto v = static_cast<size_t>(path.back());
      if (next_edge[v] == parts.child_begin[v + 1]) {
        next_edge[v] = kDone;
        path.pop_back();
        continue;
      }
      const int32_t child = parts.children[static_cast<size_t>(next_edge[v]++)];
      if (child == kNone || next_edge[static_cast<size_t>(child)] == kDone) continue;
      if (next_edge[static_cast<size_t>(child)] != kUnseen) {
        const auto closed = std::find(path.begin(), path.end(), child);
        ThrowCycle({closed, path.end()});
      }
      enter(child);
    }
  }
}

void CheckColumn(const Column& column, const GraphParts::ColumnValues& values, int64_t vertices) {
  if (std::ssize(values.ids) != vertices) {
    ThrowInvalid(kWhere, fmt::format("expected {} values in column '{}', one per vertex, got {}", vertices, column.name,
                                     values.ids.size()));
  }
  int64_t limit = column.id_limit > 0 ? column.id_limit : kMaxCount + 1;
  if (column.kind == ColumnKind::kRows) {
    if (std::ssize(values.rows) % column.width != 0 || std::ssize(values.rows) / column.width >= kMaxCount) {
      ThrowInvalid(kWhere, fmt::format("expected rows of {} floats in column '{}', got {} floats", column.width,
                                       column.name, values.rows.size()));
    }
    limit = std::ssize(values.rows) / column.width;
  } else if (!values.rows.empty()) {
    ThrowInvalid(kWhere,
                 fmt::format("expected no rows in id column '{}', got {} floats", column.name, values.rows.size()));
  }
  for (int64_t v = 0; v < vertices; ++v) {
    const int32_t id = values.ids[static_cast<size_t>(v)];
    if (id >= kNone && id < limit) continue;
    ThrowInvalid(kWhere,
                 fmt::format("expected the {} of vertex {} in column '{}' in [0, {}) or {} for none, got {}",
                             column.kind == ColumnKind::kRows ? "row" : "id", v, column.name, limit, kNone, id));
  }
}

void CheckColumns(const ColumnSet& columns, const GraphParts& parts) {
  if (std::ssize(parts.columns) != columns.size()) {
    ThrowInvalid(kWhere, fmt::format("expected values for {} columns, got {}", columns.size(), parts.columns.size()));
  }
  for (int i = 0; i < columns.size(); ++i) {
    CheckColumn(columns[i], parts.columns[static_cast<size_t>(i)], std::ssize(parts.types));
  }
}

std::shared_ptr<const ColumnSet> RequireColumns(std::shared_ptr<const ColumnSet> columns) {
  if (columns == nullptr) ThrowInvalid(kWhere, "expected a column set (it may have no columns), got null");
  return columns;
}

}  // namespace

ColumnSet::ColumnSet(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (int i = 0; i < size(); ++i) {
    const Column& column = (*this)[i];
    if (column.name.empty()) ThrowInvalid("columns", fmt::format("expected a name for column {}, got none", i));
    if (Find(column.name) != i) {
      ThrowInvalid("columns", fmt::format("expected distinct names, got '{}' twice", column.name));
    }
    if (column.width < 1 || (column.kind == ColumnKind::kIds && column.width != 1)) {
      ThrowInvalid("columns",
                   fmt::format("expected width {} for column '{}', got {}",
                               column.kind == ColumnKind::kIds ? "1" : "1 or more", column.name, column.width));
    }
    if (column.id_limit < 0) {
      ThrowInvalid("columns", fmt::format("expected an id limit of 0 or more for column '{}', got {}", column.name,
                                          column.id_limit));
    }
  }
}

int ColumnSet::Find(std::string_view name) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(), [&](const Column& c) { return c.name == name; });
  return found == columns_.end() ? kNone : static_cast<int>(found - columns_.begin());
}

std::shared_ptr<const ColumnSet> MakeColumns(std::vector<Column> columns) {
  return std::make_shared<const ColumnSet>(std::move(columns));
}

InputGraph::InputGraph(std::shared_ptr<const ColumnSet> columns, const GraphParts& parts)
    : columns_(RequireColumns(std::move(columns))) {
  CheckSizes(parts);
  children_first_ = CheckVertices(parts);
  if (!children_first_) CheckAcyclic(parts);
  CheckColumns(*columns_, parts);

  vertex_count_ = std::ssize(parts.types);
  edge_count_ = std::ssize(parts.children);
  std::vector<bool> has_parent(parts.types.size());
  for (const int32_t child : parts.children) {
    if (child != kNone) has_parent[static_cast<size_t>(child)] = true;
  }
  root_count_ = std::count(has_parent.begin(), has_parent.end(), false);

  ints_.reserve(static_cast<size_t>((2 + columns_->size()) * vertex_count_ + 1 + edge_count_ + root_count_));
  ints_.insert(ints_.end(), parts.types.begin(), parts.types.end());
  for (const int64_t begin : parts.child_begin) ints_.push_back(static_cast<int32_t>(begin));
  ints_.insert(ints_.end(), parts.children.begin(), parts.children.end());
  for (int32_t v = 0; v < vertex_count_; ++v) {
    if (!has_parent[static_cast<size_t>(v)]) ints_.push_back(v);
  }
  StoreColumns(parts);
}

void InputGraph::StoreColumns(const GraphParts& parts) {
  size_t floats = 0;
  for (const auto& values : parts.columns) {
    ints_.insert(ints_.end(), values.ids.begin(), values.ids.end());
    floats += values.rows.size();
  }
  if (floats == 0) return;
  floats_.reserve(floats);
  row_begin_.reserve(parts.columns.size() + 1);
  row_begin_.push_back(0);
  for (const auto& values : parts.columns) {
    floats_.insert(floats_.end(), values.rows.begin(), values.rows.end());
    row_begin_.push_back(std::ssize(floats_));
  }
}

std::span<const int32_t> InputGraph::children(int32_t v) const {
  const auto begins = child_begin();
  const int32_t begin = begins[static_cast<size_t>(v)];
  return children().subspan(static_cast<size_t>(begin),
                            static_cast<size_t>(begins[static_cast<size_t>(v) + 1] - begin));
}

std::span<const int32_t> InputGraph::ids(int column) const {
  return Ints((2 + column) * vertex_count_ + 1 + edge_count_ + root_count_, vertex_count_);
}

std::span<const float> InputGraph::row(int column, int32_t v) const {
  const int32_t row = ids(column)[static_cast<size_t>(v)];
  if (row == kNone || (*columns_)[column].kind != ColumnKind::kRows) return {};
  const auto width = static_cast<size_t>((*columns_)[column].width);
  return row_values(column).subspan(static_cast<size_t>(row) * width, width);
}

std::span<const float> InputGraph::row_values(int column) const {
  if (row_begin_.empty()) return {};
  const int64_t begin = row_begin_[static_cast<size_t>(column)];
  return {floats_.data() + begin, static_cast<size_t>(row_begin_[static_cast<size_t>(column) + 1] - begin)};
}

InputGraphBuilder::InputGraphBuilder(std::shared_ptr<const ColumnSet> columns)
    : columns_(RequireColumns(std::move(columns))) {
  parts_.child_begin.assign(1, 0);
  parts_.columns.resize(static_cast<size_t>(columns_->size()));
}

int32_t InputGraphBuilder::AddVertex(int32_t type, std::span<const int32_t> children) {
  if (vertex_count() >= kMaxCount) {
    ThrowInvalid(kWhere, fmt::format("expected at most {} vertices, got one more", kMaxCount));
  }
  parts_.types.push_back(type);
  parts_.children.insert(parts_.children.end(), children.begin(), children.end());
  parts_.child_begin.push_back(std::ssize(parts_.children));
  return static_cast<int32_t>(vertex_count() - 1);
}

int32_t InputGraphBuilder::AddVertex(int32_t type, std::initializer_list<int32_t> children) {
  return AddVertex(type, std::span<const int32_t>(children.begin(), children.size()));
}

void InputGraphBuilder::SetId(int column, int32_t v, int32_t value) {
  Values(column, ColumnKind::kIds, v).ids[static_cast<size_t>(v)] = value;
}

void InputGraphBuilder::SetRow(int column, int32_t v, std::span<const float> values) {
  auto& [ids, rows] = Values(column, ColumnKind::kRows, v);
  const int64_t width = (*columns_)[column].width;
  if (std::ssize(values) != width) {
    ThrowInvalid(kWhere, fmt::format("expected a row of {} floats for vertex {} in column '{}', got {}", width, v,
                                     (*columns_)[column].name, values.size()));
  }
  int32_t& row = ids[static_cast<size_t>(v)];
  if (row == kNone) {
    row = static_cast<int32_t>(std::ssize(rows) / width);
    rows.insert(rows.end(), values.begin(), values.end());
  } else {
    std::copy(values.begin(), values.end(), rows.begin() + row * width);
  }
}

void InputGraphBuilder::Clear() {
  parts_.types.clear();
  parts_.child_begin.assign(1, 0);
  parts_.children.clear();
  for (auto& [ids, rows] : parts_.columns) {
    ids.clear();
    rows.clear();
  }
}

InputGraph InputGraphBuilder::Build() {
  struct ClearAtExit {
    InputGraphBuilder* builder;
    ~ClearAtExit() { builder->Clear(); }
  } clear_at_exit{this};
  for (auto& values : parts_.columns) values.ids.resize(parts_.types.size(), kNone);
  return InputGraph(columns_, parts_);
}

GraphParts::ColumnValues& InputGraphBuilder::Values(int column, ColumnKind kind, int32_t v) {
  if (column < 0 || column >= columns_->size()) {
    ThrowInvalid(kWhere, fmt::format("expected a column in [0, {}), got {}", columns_->size(), column));
  }
  if ((*columns_)[column].kind != kind) {
    const auto name = [](ColumnKind k) { return k == ColumnKind::kIds ? "ids" : "rows"; };
    ThrowInvalid(kWhere, fmt::format("expected a column of {}, got '{}' of {}", name(kind), (*columns_)[column].name,
                                     name((*columns_)[column].kind)));
  }
  if (v < 0 || v >= vertex_count()) {
    ThrowInvalid(kWhere, fmt::format("expected a vertex in [0, {}) for column '{}', got {}", vertex_count(),
                                     (*columns_)[column].name, v));
  }
  auto& values = parts_.columns[static_cast<size_t>(column)];
  if (std::ssize(values.ids) <= v) values.ids.resize(parts_.types.size(), kNone);
  return values;
}

}  // namespace cavs
