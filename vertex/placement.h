// Placement: what one minibatch means to an Executable: how many rows each space has, and every index array.
// All in memory that is reused from one minibatch to the next. Not thread-safe.
//
// Rows of a class: its types, ascending, each in schedule order. So the rows of a task are contiguous, and a vertex is
// row base(class, type) + row_of_vertex. Tables of a channel have these rows in this order, unless the class has nests
// (executable.h): then first the slots of each nest, in the order of its edges, and behind them the rows of vertices
// that no slot holds. Gradients of channels have the rows of the class.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "graph/tuple_numbers.h"
#include "vertex/executable.h"
#include "vertex/executor.h"
#include "vertex/kernels/rows.h"

namespace cavs {

class Placement {
 public:
  explicit Placement(const Executable* executable);

  // Throws std::invalid_argument naming example and vertex when a graph does not fit F: an unknown type, a wrong number
  // of children, a child that does not scatter what its parent gathers, an id out of range, a missing column.
  // The head runs over the vertices of `shared->original`, if given.
  void Plan(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options, const SharedVertices* shared);

  int64_t rows(const RowSpace& space) const;
  // Of the batch that runs.
  int64_t vertices() const { return batch_->vertex_count(); }
  // Rows of a buffer that a run owns, where `lanes` blocks run side by side.
  int64_t rows(const Buffer& buffer, int32_t lanes) const;
  // Rows of the largest block over the vertices of a type, or over the head.
  int64_t rows(const BlockSize& block, const RowSpace& space) const;
  int64_t class_rows(int32_t channel_class) const { return class_rows_[static_cast<size_t>(channel_class)]; }
  // By row of a class: its row in the tables; empty where the numbers are the same.
  const std::vector<int32_t>& homes(int32_t channel_class) const { return homes_[static_cast<size_t>(channel_class)]; }
  // The first row of a nest in its table, and slots that the child's row is not in: to be copied, or zeros.
  int64_t nest_row(int32_t nest) const { return nests_[static_cast<size_t>(nest)].first_row; }
  int64_t nest_copies(int32_t nest) const { return nests_[static_cast<size_t>(nest)].copies; }
  // First row of a type in the tables of a class; -1 when the type is not in the class.
  int64_t base(int32_t channel_class, int32_t type) const;
  const std::vector<int32_t>& index(int32_t index) const { return indices_[static_cast<size_t>(index)]; }
  const std::vector<int32_t>& index(const IndexSpec& spec) const;
  // Rows of an external column over a type or the head, [rows, width].
  const std::vector<float>& column_rows(const Buffer& buffer) const;
  // Ids of a label column for each head row.
  const std::vector<int32_t>& labels(int32_t column) const { return labels_[static_cast<size_t>(column)]; }
  // Float targets of a column for each head row, [head rows, width].
  const std::vector<float>& targets(int32_t column) const { return targets_[static_cast<size_t>(column)]; }
  // Whether a head row has a target in a row column.
  const std::vector<int32_t>& target_present(int32_t column) const { return labels_[static_cast<size_t>(column)]; }
  const std::vector<uint64_t>& keys(const RowSpace& space) const;
  std::span<const int32_t> head_vertices() const { return head_vertices_; }
  // What a row of the tables of a collection's class sums: references [begin[r], begin[r + 1]) of row r, whose operand
  // is the number of a source. In the order of sources, then of their rows.
  struct CollectedRows {
    std::vector<int64_t> begin;
    std::vector<cpu::RowReference> references;
  };
  const CollectedRows& collected(int32_t collection) const { return collected_[static_cast<size_t>(collection)]; }
  // Example and vertex inside of its graph that a row stands for.
  std::pair<int64_t, int64_t> Origin(const RowSpace& space, int64_t row) const;
  // The vertex of the batch that runs which an original vertex became.
  int32_t Merged(int32_t original) const { return merged_.empty() ? original : merged_[static_cast<size_t>(original)]; }

 private:
  void CheckTypes();
  void CountRows();
  void NestClass(int32_t channel_class);
  void MoveToHomes(const IndexSpec& spec, std::vector<int32_t>* index) const;
  void CollectHeadRows(HeadRows which);
  bool IsLabelled(int32_t vertex) const;
  void MapColumns();
  void NumberInputs(int32_t type);
  void FillIndex(const IndexSpec& spec, std::vector<int32_t>* index);
  int32_t TableRow(const IndexSpec& spec, int32_t child, int32_t parent) const;
  void FillIds(const IndexSpec& spec, std::vector<int32_t>* index);
  void FillCollected(const Collection& collection, CollectedRows* rows) const;
  void FillHeadColumns();
  void FillColumnRows(const Buffer& buffer, std::vector<float>* rows);
  void FillKeys(uint64_t seed, uint64_t step);
  void RequireColumn(int32_t column, int32_t vertex) const;
  int32_t Id(const GraphBatch& batch, int32_t column, int32_t vertex) const;
  std::span<const float> Row(const GraphBatch& batch, int32_t column, int32_t vertex) const;

  const Executable* executable_;
  const GraphBatch* batch_ = nullptr;
  const GraphBatch* original_ = nullptr;  // what head rows are numbered by; batch_ itself unless vertices were merged
  std::span<const int32_t> merged_;       // by original vertex; empty unless vertices were merged
  const Schedule* schedule_ = nullptr;
  int64_t type_total_ = 0;
  std::vector<int64_t> class_base_;  // [classes, types]
  std::vector<int64_t> class_rows_;
  std::vector<int64_t> table_rows_;          // by class
  std::vector<std::vector<int32_t>> homes_;  // by class
  struct NestRows {
    int64_t first_row = 0, copies = 0;
  };
  std::vector<NestRows> nests_;
  std::vector<int64_t> widest_task_;  // by type: vertices
  // Distinct inputs of a type (Space::kInput): the one of each row, and the first row that has each.
  struct Inputs {
    std::vector<int32_t> of_row, first_row;
  };
  std::vector<Inputs> inputs_;  // by type
  TupleNumbers tuples_;
  std::vector<int32_t> tuple_;
  std::vector<std::vector<int32_t>> indices_;
  std::vector<std::vector<float>> column_rows_;  // by buffer
  std::vector<std::vector<int32_t>> labels_;     // by column
  std::vector<std::vector<float>> targets_;      // by column
  std::vector<std::vector<uint64_t>> keys_;      // types, then edges of types, then the head
  std::vector<int32_t> head_vertices_;
  std::vector<char> pushes_head_;  // by type: pushes every channel that the head reads
  // Column numbers of the graphs' ColumnSets, [graphs, columns]; most graphs share one set.
  std::vector<int32_t> column_map_;
  std::vector<CollectedRows> collected_;  // by collection
};

}  // namespace cavs
