// One example's structure: vertices with a type, an ordered list of children each, and named external inputs.
//
// An InputGraph is a directed acyclic graph. It is validated when it is constructed and immutable afterwards, so every
// other part of the system may rely on: at least one vertex, children in range, no cycle, columns of the right length.
// Vertices may be numbered in any order; a child may have several parents, fill several slots of one parent, or be
// missing (kNone). Labels are columns like any other input. Names and kinds of the columns live in a ColumnSet that all
// graphs of a data set share. Thread-safety: const access from any number of threads; a builder belongs to one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cavs {

// "Nothing here": a missing child, an id that is not given, a row that is not given.
inline constexpr int32_t kNone = -1;

// Vertex types are small dense numbers in [0, kMaxVertexTypes): schedules keep arrays per type.
inline constexpr int32_t kMaxVertexTypes = 1 << 16;

enum class ColumnKind {
  kIds,   // one int32 per vertex: a token, a label; kNone where there is none
  kRows,  // one row of floats per vertex, or none
};

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kIds;
  int64_t width = 1;     // floats per row; 1 for ids
  int32_t id_limit = 0;  // ids must lie below it; 0: any id from 0 up
};

// The external inputs of a data set, by name. Immutable.
class ColumnSet {
 public:
  // Throws std::invalid_argument on an empty or repeated name, a width below 1, ids wider than 1, a negative limit.
  explicit ColumnSet(std::vector<Column> columns);

  int size() const { return static_cast<int>(columns_.size()); }
  const Column& operator[](int column) const { return columns_[static_cast<size_t>(column)]; }
  // Index of the column called `name`, or kNone.
  int Find(std::string_view name) const;

 private:
  std::vector<Column> columns_;
};

std::shared_ptr<const ColumnSet> MakeColumns(std::vector<Column> columns);

// Everything an InputGraph is made of, in plain arrays. Used by those who have arrays; others use InputGraphBuilder.
struct GraphParts {
  struct ColumnValues {
    std::vector<int32_t> ids;  // [vertices]: the id (kIds) or the vertex's row in `rows` (kRows); kNone: none
    std::vector<float> rows;   // [rows, width], row-major; empty for kIds
  };
  std::vector<int32_t> types;        // [vertices]
  std::vector<int64_t> child_begin;  // [vertices + 1]: children of v are children[child_begin[v] .. child_begin[v + 1])
  std::vector<int32_t> children;     // [edges]: vertex ids or kNone
  std::vector<ColumnValues> columns;  // one per column of the ColumnSet
};

class InputGraph {
 public:
  // Copies `parts`. Throws std::invalid_argument, naming vertices by id, when the graph is empty, has a cycle (its ids
  // are listed in order, parent to child), a self loop, a child, type, id or row out of range, or a column of wrong
  // length. Time and scratch are linear in vertices and edges, whatever the depth.
  InputGraph(std::shared_ptr<const ColumnSet> columns, const GraphParts& parts);

  int64_t vertex_count() const { return vertex_count_; }
  int64_t edge_count() const { return edge_count_; }  // slots, missing children included
  int32_t type(int32_t v) const { return ints_[static_cast<size_t>(v)]; }
  std::span<const int32_t> types() const { return Ints(0, vertex_count_); }
  // Child ids of `v` in slot order; kNone in a slot whose child is missing.
  std::span<const int32_t> children(int32_t v) const;
  // CSR form of the same: child_begin() is [vertices + 1], children() is [edges].
  std::span<const int32_t> child_begin() const { return Ints(vertex_count_, vertex_count_ + 1); }
  std::span<const int32_t> children() const { return Ints(2 * vertex_count_ + 1, edge_count_); }
  // Vertices that are nobody's child, ascending. Never empty.
  std::span<const int32_t> roots() const { return Ints(2 * vertex_count_ + 1 + edge_count_, root_count_); }
  // True when every child has a lower id than its parents: then 0, 1, 2, ... is an order of evaluation.
  bool children_first() const { return children_first_; }

  const ColumnSet& columns() const { return *columns_; }
  const std::shared_ptr<const ColumnSet>& shared_columns() const { return columns_; }
  // [vertices]: ids of an id column; of a row column, the index of each vertex's row in row_values().
  std::span<const int32_t> ids(int column) const;
  // The row of `v` in a row column: [width], or empty where there is none.
  std::span<const float> row(int column, int32_t v) const;
  // All rows of a row column, [rows, width]; empty for an id column.
  std::span<const float> row_values(int column) const;

 private:
  std::span<const int32_t> Ints(int64_t first, int64_t count) const {
    return {ints_.data() + first, static_cast<size_t>(count)};
  }
  void StoreColumns(const GraphParts& parts);

  std::shared_ptr<const ColumnSet> columns_;
  // One block, as data sets hold many small graphs: types, child_begin, children, roots, then one array per column.
  std::vector<int32_t> ints_;
  std::vector<float> floats_;       // the rows of every row column, one column after another
  std::vector<int64_t> row_begin_;  // [columns + 1] offsets into floats_; empty when no column has rows
  int64_t vertex_count_ = 0;
  int64_t edge_count_ = 0;
  int64_t root_count_ = 0;
  bool children_first_ = false;
};

// Builds graphs vertex by vertex. One builder makes any number of graphs; its buffers are reused.
class InputGraphBuilder {
 public:
  // `columns` must not be null.
  explicit InputGraphBuilder(std::shared_ptr<const ColumnSet> columns);

  // Returns the new vertex's id: 0, 1, 2, ... Children may be ids that are added later, or kNone.
  int32_t AddVertex(int32_t type, std::span<const int32_t> children = {});
  int32_t AddVertex(int32_t type, std::initializer_list<int32_t> children);
  // Sets or overwrites an external input of vertex `v`, which must have been added. Unset ones are kNone.
  // Throws std::invalid_argument on an unknown vertex or column, the wrong kind of column, a row of the wrong width.
  void SetId(int column, int32_t v, int32_t value);
  void SetRow(int column, int32_t v, std::span<const float> values);

  int64_t vertex_count() const { return static_cast<int64_t>(parts_.types.size()); }
  // Forgets the vertices added so far.
  void Clear();
  // Validates as InputGraph does, and leaves the builder empty for the next graph, also when it throws.
  InputGraph Build();

 private:
  GraphParts::ColumnValues& Values(int column, ColumnKind kind, int32_t v);

  std::shared_ptr<const ColumnSet> columns_;
  GraphParts parts_;
};

}  // namespace cavs
