#include "graph/schedule.h"

#include <algorithm>

#include "cavs/base/error.h"

namespace cavs {

namespace {

constexpr int64_t kNoEdges[] = {0};  // the edge_begin of a type without rows

}  // namespace

void Schedule::Clear() {
  tasks_.clear();
  part_begin_.clear();
  shard_count_ = 1;
  segments_.clear();
  row_of_vertex_.clear();
  for (TypeRows& rows : types_) {
    rows.vertex_of_row.clear();
    rows.edge_begin.assign(1, 0);
    rows.edge_child.clear();
    rows.edge_parent.clear();
  }
  type_count_ = 0;
  vertex_count_ = 0;
}

void Schedule::Append(const GraphBatch& batch, std::span<const int32_t> vertices, std::span<const int64_t> task_begin) {
  CAVS_CHECK(!task_begin.empty() && task_begin.front() == 0 && task_begin.back() == std::ssize(vertices),
             "task_begin must run from 0 to {}", vertices.size());
  CAVS_CHECK(std::ssize(row_of_vertex_) <= batch.vertex_count(), "the batch lost vertices that are scheduled");
  if (vertices.empty()) return;
  CAVS_CHECK(tasks_.empty() || shard_count_ == batch.shard_count(), "the batch was cut into shards anew");
  shard_count_ = batch.shard_count();
  row_of_vertex_.resize(static_cast<size_t>(batch.vertex_count()), kNone);
  if (std::ssize(types_) < batch.type_count()) types_.resize(static_cast<size_t>(batch.type_count()));

  const int64_t first_task = task_count();
  for (size_t i = 0; i + 1 < task_begin.size(); ++i) {
    CAVS_CHECK(task_begin[i] < task_begin[i + 1], "task {} is empty", i);
    AppendTask(batch, vertices.subspan(static_cast<size_t>(task_begin[i]),
                                       static_cast<size_t>(task_begin[i + 1] - task_begin[i])));
  }
  vertex_count_ += std::ssize(vertices);
  segments_.push_back({first_task, task_count() - first_task, std::ssize(vertices)});
}

void Schedule::AppendTask(const GraphBatch& batch, std::span<const int32_t> vertices) {
  const int32_t type = batch.type(vertices.front());
  type_count_ = std::max(type_count_, type + 1);
  TypeRows& rows = types_[static_cast<size_t>(type)];
  const int64_t first_row = std::ssize(rows.vertex_of_row);
  const int64_t first_edge = std::ssize(rows.edge_child);

  // Edges before rows: a child inside the task itself has no row yet, so the check refuses it.
  auto row = static_cast<int32_t>(first_row);
  for (const int32_t v : vertices) {
    CAVS_CHECK(batch.type(v) == type, "vertex {} of type {} in a task of type {}", v, batch.type(v), type);
    for (const int32_t child : batch.children(v)) {
      CAVS_CHECK(child == kNone || row_of_vertex_[static_cast<size_t>(child)] != kNone,
                 "vertex {} is scheduled before its child {}", v, child);
      rows.edge_child.push_back(child);
      rows.edge_parent.push_back(row);
    }
    rows.edge_begin.push_back(std::ssize(rows.edge_child));
    ++row;
  }
  row = static_cast<int32_t>(first_row);
  for (const int32_t v : vertices) {
    int32_t& assigned = row_of_vertex_[static_cast<size_t>(v)];
    CAVS_CHECK(assigned == kNone, "vertex {} is scheduled twice", v);
    assigned = row++;
  }
  rows.vertex_of_row.insert(rows.vertex_of_row.end(), vertices.begin(), vertices.end());
  tasks_.push_back({type, first_row, std::ssize(vertices), first_edge, std::ssize(rows.edge_child) - first_edge});
  if (shard_count_ > 1) AppendParts(batch, vertices, first_row);
}

void Schedule::AppendParts(const GraphBatch& batch, std::span<const int32_t> vertices, int64_t first_row) {
  size_t next = 0;
  for (int32_t shard = 0; shard < shard_count_; ++shard) {
    part_begin_.push_back(first_row + static_cast<int64_t>(next));
    while (next < vertices.size() && batch.shard_of(vertices[next]) == shard) ++next;
  }
  CAVS_CHECK(next == vertices.size(), "the vertices of a task are not in the order of their shards");
}

Task Schedule::Part(int64_t task, int32_t shard) const {
  const Task& whole = tasks_[static_cast<size_t>(task)];
  if (shard_count_ == 1) return whole;
  const auto place = static_cast<size_t>(task * shard_count_ + shard);
  const int64_t first = part_begin_[place];
  const int64_t last = shard + 1 < shard_count_ ? part_begin_[place + 1] : whole.first_row + whole.count;
  const std::span<const int64_t> edges = edge_begin(whole.type);
  const int64_t first_edge = edges[static_cast<size_t>(first)];
  return {whole.type, first, last - first, first_edge, edges[static_cast<size_t>(last)] - first_edge};
}

double Schedule::mean_width() const {
  return tasks_.empty() ? 0.0 : static_cast<double>(vertex_count_) / static_cast<double>(tasks_.size());
}

std::span<const int32_t> Schedule::vertex_of_row(int32_t type) const {
  if (!Has(type)) return {};
  return Type(type).vertex_of_row;
}

std::span<const int64_t> Schedule::edge_begin(int32_t type) const {
  if (!Has(type)) return kNoEdges;
  return Type(type).edge_begin;
}

std::span<const int32_t> Schedule::edge_child(int32_t type) const {
  if (!Has(type)) return {};
  return Type(type).edge_child;
}

std::span<const int32_t> Schedule::edge_parent(int32_t type) const {
  if (!Has(type)) return {};
  return Type(type).edge_parent;
}

namespace {

// The largest sum, over all paths, of `weight(vertex type)`. A schedule is an order of evaluation, so one pass over it
// is enough. `longest` is scratch, [batch vertices].
template <typename Weight>
int64_t LongestPath(const GraphBatch& batch, const Schedule& schedule, Weight weight, std::vector<int32_t>* longest) {
  int32_t best = 0;
  for (const Task& task : schedule.tasks()) {
    const auto vertices =
        schedule.vertex_of_row(task.type).subspan(static_cast<size_t>(task.first_row), static_cast<size_t>(task.count));
    for (const int32_t v : vertices) {
      int32_t below = 0;
      for (const int32_t child : batch.children(v)) {
        if (child != kNone) below = std::max(below, (*longest)[static_cast<size_t>(child)]);
      }
      const int32_t length = below + weight(task.type);
      (*longest)[static_cast<size_t>(v)] = length;
      best = std::max(best, length);
    }
  }
  return best;
}

}  // namespace

ScheduleReport Report(const GraphBatch& batch, const Schedule& schedule) {
  CAVS_CHECK(batch.vertex_count() == std::ssize(schedule.row_of_vertex()),
             "a schedule of {} vertices for a batch of {}", schedule.row_of_vertex().size(), batch.vertex_count());
  ScheduleReport report;
  report.vertices = schedule.vertex_count();
  report.tasks = schedule.task_count();
  report.mean_width = schedule.mean_width();
  std::vector<int32_t> longest(static_cast<size_t>(batch.vertex_count()));
  report.levels = LongestPath(
      batch, schedule, [](int32_t) { return 1; }, &longest);
  for (int32_t type = 0; type < schedule.type_count(); ++type) {
    report.edges += schedule.edges(type);
    if (schedule.rows(type) == 0) continue;
    report.task_lower_bound += LongestPath(
        batch, schedule, [type](int32_t other) { return other == type ? 1 : 0; }, &longest);
  }
  return report;
}

}  // namespace cavs
