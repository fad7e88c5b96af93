#include "graph/schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {

namespace {

// Many tasks are written side by side, more than processors foresee: what comes this many entries later is fetched now.
constexpr int64_t kAhead = 32;

constexpr int64_t kNoEdges[] = {0};  // the edge_begin of a type without rows

// Every entry is written anyway: an array that is long enough is left as it is.
template <typename T>
void Grow(std::vector<T>& values, int64_t count) {
  if (std::ssize(values) < count) values.resize(static_cast<size_t>(count));
}

}  // namespace

void Schedule::Clear() {
  tasks_.clear();
  part_begin_.clear();
  shard_count_ = 1;
  segments_.clear();
  batch_vertices_ = 0;
  for (TypeRows& rows : types_) {
    rows.row_count = 0;
    rows.edge_count = 0;
  }
  type_count_ = 0;
  vertex_count_ = 0;
}

// Vertices are visited by number and not task by task: what is known of a vertex and of its neighbours then lies
// together, and the rows of each task are written front to back. In large minibatches this takes a fraction of the
// time.
void Schedule::Append(const GraphBatch& batch, std::span<const int32_t> task_of, int64_t task_count) {
  CAVS_CHECK(batch_vertices_ <= batch.vertex_count(), "the batch lost vertices that are scheduled");
  CAVS_CHECK(std::ssize(task_of) <= batch.vertex_count(), "tasks for {} of {} vertices", task_of.size(),
             batch.vertex_count());
  if (task_count == 0) return;
  CAVS_CHECK(tasks_.empty() || shard_count_ == batch.shard_count(), "the batch was cut into shards anew");
  shard_count_ = batch.shard_count();
  if (std::ssize(types_) < batch.type_count()) types_.resize(static_cast<size_t>(batch.type_count()));
  const int64_t first_task = this->task_count(), scheduled = vertex_count_;
  tasks_.resize(static_cast<size_t>(first_task + task_count));
  const std::span<Task> added = std::span(tasks_).subspan(static_cast<size_t>(first_task));
  places_.resize(added.size());
  SizeTasks(batch, task_of, added);
  PlaceTasks(added);
  if (shard_count_ > 1) PlaceParts(batch, task_of, added);
  NumberEdges(added);
  NumberRows(batch, task_of);
  batch_vertices_ = batch.vertex_count();
  segments_.push_back({first_task, task_count, vertex_count_ - scheduled});
}

void Schedule::SizeTasks(const GraphBatch& batch, std::span<const int32_t> task_of, std::span<Task> added) {
  int64_t v = batch.vertex_count() - std::ssize(task_of);
  for (const int32_t number : task_of) {
    if (number != kNone) {
      CAVS_CHECK(number >= 0 && number < std::ssize(added), "vertex {} in task {} of {}", v, number, added.size());
      Task& task = added[static_cast<size_t>(number)];
      int64_t& arity = places_[static_cast<size_t>(number)].arity;
      const int32_t type = batch.type(v);
      const int64_t children = std::ssize(batch.children(v));
      if (task.count == 0) {
        task.type = type;
        arity = children;
      }
      CAVS_CHECK(task.type == type, "vertex {} of type {} in a task of type {}", v, type, task.type);
      ++task.count;
      task.edge_count += children;
      arity = arity == children ? arity : kMixed;
    }
    ++v;
  }
}

void Schedule::PlaceTasks(std::span<Task> added) {
  for (size_t i = 0; i < added.size(); ++i) {
    Task& task = added[i];
    CAVS_CHECK(task.count > 0, "task {} is empty", i);
    type_count_ = std::max(type_count_, task.type + 1);
    vertex_count_ += task.count;
    TypeRows& rows = types_[static_cast<size_t>(task.type)];
    task.first_row = std::exchange(rows.row_count, rows.row_count + task.count);
    task.first_edge = std::exchange(rows.edge_count, rows.edge_count + task.edge_count);
    places_[i] = {&rows, task.first_row, task.first_edge, places_[i].arity};
  }
  for (TypeRows& rows : types_) {
    Grow(rows.vertex_of_row, rows.row_count);
    Grow(rows.edge_begin, rows.row_count + 1);
    Grow(rows.edge_child, rows.edge_count);
    Grow(rows.edge_parent, rows.edge_count);
  }
}

void Schedule::PlaceParts(const GraphBatch& batch, std::span<const int32_t> task_of, std::span<const Task> added) {
  const size_t before = part_begin_.size();
  part_begin_.resize(tasks_.size() * static_cast<size_t>(shard_count_), 0);
  const std::span<int64_t> parts = std::span(part_begin_).subspan(before);
  const auto shards = static_cast<size_t>(shard_count_);
  int64_t v = batch.vertex_count() - std::ssize(task_of);
  int32_t last = 0;
  for (const int32_t number : task_of) {
    const int32_t shard = batch.shard_of(v++);
    CAVS_CHECK(shard >= last, "the vertices are not in the order of their shards");
    last = shard;
    if (number != kNone) ++parts[static_cast<size_t>(number) * shards + static_cast<size_t>(shard)];
  }
  // From sizes to the rows where the parts begin.
  for (size_t i = 0; i < added.size(); ++i) {
    const auto begin = parts.begin() + static_cast<int64_t>(i * shards);
    std::exclusive_scan(begin, begin + shard_count_, begin, added[i].first_row);
  }
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

// Where all vertices of a task have as many children, their edges follow from their rows.
void Schedule::NumberEdges(std::span<const Task> added) {
  for (size_t i = 0; i < added.size(); ++i) {
    const auto& [rows, row, edge, arity] = places_[i];
    if (arity == kMixed) continue;
    int64_t* begin = rows->edge_begin.data() + row;
    for (int64_t k = 1; k <= added[i].count; ++k) begin[k] = edge + k * arity;
    int32_t* parent = rows->edge_parent.data() + edge;
    for (int64_t k = 0; k < added[i].count; ++k) {
      for (int64_t slot = 0; slot < arity; ++slot) *parent++ = static_cast<int32_t>(row + k);
    }
  }
}

void Schedule::NumberRows(const GraphBatch& batch, std::span<const int32_t> task_of) {
  const int64_t first = batch.vertex_count() - std::ssize(task_of);
  Grow(row_of_vertex_, batch.vertex_count());
  for (int64_t v = batch_vertices_; v < first; ++v) row_of_vertex_[static_cast<size_t>(v)] = kNone;
  const auto has_run = [&](int32_t child, int32_t task) {
    const int32_t other = child < first ? kNone : task_of[static_cast<size_t>(child - first)];
    return other != kNone ? other < task : IsScheduled(child);
  };
  for (int64_t v = first; v < batch.vertex_count(); ++v) {
    const int32_t task = task_of[static_cast<size_t>(v - first)];
    int32_t& assigned = row_of_vertex_[static_cast<size_t>(v)];
    if (task == kNone) {
      if (v >= batch_vertices_) assigned = kNone;
      continue;
    }
    CAVS_CHECK(!IsScheduled(v), "vertex {} is scheduled twice", v);
    Place& place = places_[static_cast<size_t>(task)];
    TypeRows& rows = *place.rows;
    const auto row = static_cast<int32_t>(place.row++);
    assigned = row;
    rows.vertex_of_row[static_cast<size_t>(row)] = static_cast<int32_t>(v);
    __builtin_prefetch(rows.vertex_of_row.data() + row + kAhead, 1);
    const auto children = batch.children(v);
    const auto edge = static_cast<size_t>(std::exchange(place.edge, place.edge + std::ssize(children)));
    __builtin_prefetch(rows.edge_child.data() + edge + kAhead, 1);
    for (size_t slot = 0; slot < children.size(); ++slot) {
      const int32_t child = children[slot];
      CAVS_CHECK(child == kNone || has_run(child, task), "vertex {} is scheduled before its child {}", v, child);
      rows.edge_child[edge + slot] = child;
    }
    if (place.arity != kMixed) continue;
    rows.edge_begin[static_cast<size_t>(row) + 1] = place.edge;
    std::fill_n(rows.edge_parent.begin() + static_cast<int64_t>(edge), children.size(), row);
  }
}

double Schedule::mean_width() const {
  return tasks_.empty() ? 0.0 : static_cast<double>(vertex_count_) / static_cast<double>(tasks_.size());
}

std::span<const int32_t> Schedule::vertex_of_row(int32_t type) const {
  if (!Has(type)) return {};
  return std::span(Type(type).vertex_of_row).first(static_cast<size_t>(Type(type).row_count));
}

std::span<const int64_t> Schedule::edge_begin(int32_t type) const {
  if (!Has(type)) return kNoEdges;
  return std::span(Type(type).edge_begin).first(static_cast<size_t>(Type(type).row_count) + 1);
}

std::span<const int32_t> Schedule::edge_child(int32_t type) const {
  if (!Has(type)) return {};
  return std::span(Type(type).edge_child).first(static_cast<size_t>(Type(type).edge_count));
}

std::span<const int32_t> Schedule::edge_parent(int32_t type) const {
  if (!Has(type)) return {};
  return std::span(Type(type).edge_parent).first(static_cast<size_t>(Type(type).edge_count));
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
