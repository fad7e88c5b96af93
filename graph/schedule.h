// The order in which a batch is evaluated: a list of tasks, and the rows that they give to vertices.
//
// A task evaluates vertices of one type, none of which has a child in the same or a later task. Rows of a vertex type
// are numbered in schedule order, so a task's rows are contiguous, and so are its edges. Tasks come in segments: one is
// appended when a graph grows, and nothing that was assigned before moves (spans are invalidated, their contents are
// not changed). Backward walks the same tasks in reverse. The arrays are reused by Clear().
// Thread-safety: const access from any number of threads; changes by one thread alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph_batch.h"

namespace cavs {

struct Task {
  int32_t type;        // vertex type
  int64_t first_row;   // rows [first_row, first_row + count) of the type
  int64_t count;       // at least 1
  int64_t first_edge;  // edges [first_edge, first_edge + edge_count) of the type
  int64_t edge_count;  // 0 for a task of leaves
};

// Tasks that were appended together.
struct Segment {
  int64_t first_task;
  int64_t task_count;
  int64_t vertex_count;
};

class Schedule {
 public:
  void Clear();

  // Appends a segment of `task_count` tasks. `task_of` is for the last vertices of the batch, as many as it has
  // entries: the number of the new task, from 0, that evaluates the vertex, or kNone for one that the segment leaves
  // out. Rows of a task are in ascending order of vertices, and so of graphs and shards. Every task has vertices, of
  // one type; none of them has been scheduled before, and all their children are missing or scheduled by earlier tasks.
  // All segments have the same number of shards, so a batch that grows must not be cut. CAVS_CHECK guards this, and
  // after a failure the schedule is good for Clear() alone. An empty segment is not recorded.
  void Append(const GraphBatch& batch, std::span<const int32_t> task_of, int64_t task_count);

  std::span<const Task> tasks() const { return tasks_; }
  std::span<const Segment> segments() const { return segments_; }
  std::span<const Task> tasks(const Segment& segment) const {
    return tasks().subspan(static_cast<size_t>(segment.first_task), static_cast<size_t>(segment.task_count));
  }
  // Of the batch that was scheduled; 1 unless it was cut (GraphBatch::Shard).
  int32_t shard_count() const { return shard_count_; }
  // The rows and edges of task number `task` that belong to `shard`: a run of the task's own, and unlike a whole task
  // maybe none (count 0). Parts of one shard, in the order of tasks, need nothing of another shard, save vertices that
  // were merged across shards (sharing.h), which do not recur.
  Task Part(int64_t task, int32_t shard) const;

  int64_t vertex_count() const { return vertex_count_; }  // scheduled so far
  int64_t task_count() const { return static_cast<int64_t>(tasks_.size()); }
  // Vertices per task; 0 for an empty schedule.
  double mean_width() const;

  // One above the highest type that has rows. Accessors by type answer "no rows" at and above it.
  int32_t type_count() const { return type_count_; }
  int64_t rows(int32_t type) const { return Has(type) ? Type(type).row_count : 0; }
  int64_t edges(int32_t type) const { return Has(type) ? Type(type).edge_count : 0; }
  // [rows]: the batch vertex in each row of the type.
  std::span<const int32_t> vertex_of_row(int32_t type) const;
  // [batch vertices]: each vertex's row inside its own type; kNone for a vertex that is not scheduled.
  std::span<const int32_t> row_of_vertex() const {
    return std::span(row_of_vertex_).first(static_cast<size_t>(batch_vertices_));
  }
  int32_t row_of_vertex(int64_t v) const { return row_of_vertex_[static_cast<size_t>(v)]; }

  // Edges of a type in row order, and in slot order within a row. edge_begin is [rows + 1]: slot k of row r is edge
  // edge_begin[r] + k.
  std::span<const int64_t> edge_begin(int32_t type) const;
  // [edges]: batch vertex of the child, whose row is row_of_vertex(child) in its own type; kNone for a missing child.
  std::span<const int32_t> edge_child(int32_t type) const;
  // [edges]: row of the parent inside the type.
  std::span<const int32_t> edge_parent(int32_t type) const;

 private:
  // Arrays are as long as they ever had to be; the first row_count or edge_count entries count.
  struct TypeRows {
    int64_t row_count = 0, edge_count = 0;
    std::vector<int32_t> vertex_of_row;
    std::vector<int64_t> edge_begin = {0};
    std::vector<int32_t> edge_child;
    std::vector<int32_t> edge_parent;
  };
  bool Has(int32_t type) const { return type >= 0 && type < type_count_; }
  const TypeRows& Type(int32_t type) const { return types_[static_cast<size_t>(type)]; }
  void SizeTasks(const GraphBatch& batch, std::span<const int32_t> task_of, std::span<Task> added);
  void PlaceTasks(std::span<Task> added);
  void PlaceParts(const GraphBatch& batch, std::span<const int32_t> task_of, std::span<const Task> added);
  void NumberEdges(std::span<const Task> added);
  void NumberRows(const GraphBatch& batch, std::span<const int32_t> task_of);
  bool IsScheduled(int64_t v) const { return v < batch_vertices_ && row_of_vertex(v) != kNone; }

  std::vector<Task> tasks_;
  std::vector<Segment> segments_;
  std::vector<int64_t> part_begin_;  // [tasks, shards]: first row of each part, when there are several shards
  int32_t shard_count_ = 1;
  std::vector<int32_t> row_of_vertex_;  // the first batch_vertices_ entries count
  int64_t batch_vertices_ = 0;          // of the batch at the last Append
  std::vector<TypeRows> types_;         // never shrinks, so that its buffers are reused; type_count_ of them are in use
  // Where the next vertex of a new task is written.
  struct Place {
    TypeRows* rows;
    int64_t row, edge;
    int64_t arity;  // of all vertices of the task, or kMixed
  };
  static constexpr int64_t kMixed = -1;
  std::vector<Place> places_;  // by new task; scratch
  int32_t type_count_ = 0;
  int64_t vertex_count_ = 0;
};

// What people and logs want to know about a schedule; computed on demand, in time linear in vertices and edges for each
// vertex type.
struct ScheduleReport {
  int64_t vertices = 0;
  int64_t edges = 0;
  int64_t tasks = 0;
  double mean_width = 0;
  int64_t levels = 0;  // vertices on the longest path from a leaf to a root; the depth of the deepest graph
  // No schedule of these graphs has fewer tasks: over all types, the sum of the most vertices of the type that lie on
  // one path.
  int64_t task_lower_bound = 0;
};
// `batch` is the one that was scheduled.
ScheduleReport Report(const GraphBatch& batch, const Schedule& schedule);

}  // namespace cavs
