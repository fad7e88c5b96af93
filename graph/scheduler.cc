#include "graph/scheduler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "graph/topological_order.h"

namespace cavs {

namespace {

constexpr std::array<std::pair<BatchingPolicy, std::string_view>, 4> kPolicies = {{
    {BatchingPolicy::kSerial, "serial"},
    {BatchingPolicy::kDepth, "depth"},
    {BatchingPolicy::kFrontier, "frontier"},
    {BatchingPolicy::kAgenda, "agenda"},
}};

// Vertices that are planned together are the batch ids from `first` on. Arrays below are indexed by id - first.
size_t At(int64_t v, int64_t first) { return static_cast<size_t>(v - first); }

// Distance of every vertex from the leaves below it: 0 for a vertex whose children are all missing or done.
class Levels {
 public:
  std::span<const int32_t> Compute(const GraphBatch& batch, int64_t first) {
    levels_.resize(static_cast<size_t>(batch.vertex_count() - first));
    for (const int32_t v : topological_.Compute(batch, first)) {
      int32_t level = 0;
      for (const int32_t child : batch.children(v)) {
        if (child >= first) level = std::max(level, levels_[At(child, first)] + 1);
      }
      levels_[At(v, first)] = level;
    }
    return levels_;
  }

 private:
  TopologicalOrder topological_;
  std::vector<int32_t> levels_;
};

class SerialScheduler final : public Scheduler {
 protected:
  void Arrange(const GraphBatch& batch, int64_t first, Order* order) override {
    const auto vertices = topological_.Compute(batch, first);
    order->vertices.assign(vertices.begin(), vertices.end());
    order->task_begin.resize(vertices.size() + 1);
    std::iota(order->task_begin.begin(), order->task_begin.end(), int64_t{0});
  }

 private:
  TopologicalOrder topological_;
};

class DepthScheduler final : public Scheduler {
 protected:
  // Two stable counting sorts, by type and then by level, bring the vertices of a task together.
  void Arrange(const GraphBatch& batch, int64_t first, Order* order) override {
    const auto levels = levels_.Compute(batch, first);
    const auto count = levels.size();
    ids_.resize(count);
    std::iota(ids_.begin(), ids_.end(), static_cast<int32_t>(first));
    by_type_.resize(count);
    order->vertices.resize(count);
    Sort(
        ids_, batch.type_count(), [&](int32_t v) { return batch.type(v); }, by_type_);
    const int32_t level_count = count == 0 ? 0 : *std::max_element(levels.begin(), levels.end()) + 1;
    Sort(
        by_type_, level_count, [&](int32_t v) { return levels[At(v, first)]; }, order->vertices);
    for (size_t i = 1; i < count; ++i) {
      const int32_t v = order->vertices[i], before = order->vertices[i - 1];
      if (batch.type(v) != batch.type(before) || levels[At(v, first)] != levels[At(before, first)]) {
        order->task_begin.push_back(static_cast<int64_t>(i));
      }
    }
    if (count > 0) order->task_begin.push_back(static_cast<int64_t>(count));
  }

 private:
  template <typename Key>
  void Sort(std::span<const int32_t> from, int32_t key_count, Key key, std::span<int32_t> to) {
    position_.assign(static_cast<size_t>(key_count) + 1, 0);
    for (const int32_t v : from) ++position_[static_cast<size_t>(key(v)) + 1];
    std::partial_sum(position_.begin(), position_.end(), position_.begin());
    for (const int32_t v : from) to[static_cast<size_t>(position_[static_cast<size_t>(key(v))]++)] = v;
  }

  Levels levels_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> by_type_;
  std::vector<int64_t> position_;
};

// Parents of every planned vertex, and how many children each still waits for.
class Dependents {
 public:
  void Compute(const GraphBatch& batch, int64_t first) {
    const auto count = static_cast<size_t>(batch.vertex_count() - first);
    const auto parent_counts = batch.parent_counts().subspan(static_cast<size_t>(first));
    parent_end_.resize(count);
    std::exclusive_scan(parent_counts.begin(), parent_counts.end(), parent_end_.begin(), int64_t{0});
    parents_.resize(count == 0 ? 0 : static_cast<size_t>(parent_end_.back() + parent_counts.back()));
    waiting_.resize(count);
    for (int64_t v = first; v < batch.vertex_count(); ++v) {
      int32_t waiting = 0;
      for (const int32_t child : batch.children(v)) {
        if (child < first) continue;
        ++waiting;
        parents_[static_cast<size_t>(parent_end_[At(child, first)]++)] = static_cast<int32_t>(v);
      }
      waiting_[At(v, first)] = waiting;
    }
  }

  bool IsReady(int64_t v, int64_t first) const { return waiting_[At(v, first)] == 0; }

  // Calls `ready(parent)` for each parent whose last child `v` was.
  template <typename Ready>
  void Finish(int64_t v, int64_t first, Ready ready) {
    const int64_t begin = v == first ? 0 : parent_end_[At(v - 1, first)];
    for (int64_t i = begin; i < parent_end_[At(v, first)]; ++i) {
      const int32_t parent = parents_[static_cast<size_t>(i)];
      if (--waiting_[At(parent, first)] == 0) ready(parent);
    }
  }

 private:
  // Filling advances each vertex's begin to its end, which is the begin of the next vertex.
  std::vector<int64_t> parent_end_;
  std::vector<int32_t> parents_;
  std::vector<int32_t> waiting_;
};

// Takes all ready vertices of a type at a time. What differs between policies is the choice of the type.
class ReadyScheduler : public Scheduler {
 protected:
  void Arrange(const GraphBatch& batch, int64_t first, Order* order) final {
    dependents_.Compute(batch, first);
    Prepare(batch, first);
    if (std::ssize(ready_) < batch.type_count()) ready_.resize(static_cast<size_t>(batch.type_count()));
    const auto add = [&](int32_t v) {
      const int32_t type = batch.type(v);
      if (ReadyOf(type).empty()) ready_types_.push_back(type);
      ReadyOf(type).push_back(v);
    };
    for (int64_t v = first; v < batch.vertex_count(); ++v) {
      if (dependents_.IsReady(v, first)) add(static_cast<int32_t>(v));
    }
    order->vertices.reserve(static_cast<size_t>(batch.vertex_count() - first));
    while (!ready_types_.empty()) {
      const auto chosen = std::min_element(ready_types_.begin(), ready_types_.end(), [&](int32_t a, int32_t b) {
        return Before(a, b) || (!Before(b, a) && a < b);
      });
      std::vector<int32_t>& taken = ReadyOf(*chosen);
      *chosen = ready_types_.back();
      ready_types_.pop_back();
      const size_t begin = order->vertices.size();
      order->vertices.insert(order->vertices.end(), taken.begin(), taken.end());
      taken.clear();
      const size_t end = order->vertices.size();
      order->task_begin.push_back(static_cast<int64_t>(end));
      for (size_t i = begin; i < end; ++i) dependents_.Finish(order->vertices[i], first, add);
    }
  }

  virtual void Prepare(const GraphBatch& batch, int64_t first) = 0;
  // Whether ready type `a` is to run before ready type `b`; when neither is, the lower type runs.
  virtual bool Before(int32_t a, int32_t b) const = 0;

  std::vector<int32_t>& ReadyOf(int32_t type) { return ready_[static_cast<size_t>(type)]; }
  int64_t ready_count(int32_t type) const { return std::ssize(ready_[static_cast<size_t>(type)]); }

 private:
  Dependents dependents_;
  std::vector<std::vector<int32_t>> ready_;  // by type
  std::vector<int32_t> ready_types_;         // those with ready vertices, in no particular order
};

class FrontierScheduler final : public ReadyScheduler {
 protected:
  void Prepare(const GraphBatch&, int64_t) override {}
  bool Before(int32_t a, int32_t b) const override { return ready_count(a) > ready_count(b); }
};

class AgendaScheduler final : public ReadyScheduler {
 protected:
  // The average runs over all vertices of the type that are planned, ready or not.
  void Prepare(const GraphBatch& batch, int64_t first) override {
    const auto levels = levels_.Compute(batch, first);
    average_.assign(static_cast<size_t>(batch.type_count()), 0.0);
    count_.assign(static_cast<size_t>(batch.type_count()), 0);
    for (int64_t v = first; v < batch.vertex_count(); ++v) {
      const auto type = static_cast<size_t>(batch.type(v));
      average_[type] += levels[At(v, first)];
      ++count_[type];
    }
    for (size_t type = 0; type < average_.size(); ++type) {
      if (count_[type] > 0) average_[type] /= static_cast<double>(count_[type]);
    }
  }
  bool Before(int32_t a, int32_t b) const override {
    return average_[static_cast<size_t>(a)] < average_[static_cast<size_t>(b)];
  }

 private:
  Levels levels_;
  std::vector<double> average_;  // depth, by type
  std::vector<int64_t> count_;   // vertices, by type
};

}  // namespace

std::string_view BatchingPolicyName(BatchingPolicy policy) {
  for (const auto& [known, name] : kPolicies) {
    if (known == policy) return name;
  }
  CAVS_CHECK(false, "batching policy {}", static_cast<int>(policy));
  return {};
}

BatchingPolicy ParseBatchingPolicy(std::string_view name) {
  std::string names;
  for (const auto& [policy, known] : kPolicies) {
    if (known == name) return policy;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
  }
  ThrowInvalid("batching", fmt::format("expected one of {}, got '{}'", names, name));
}

void Scheduler::Plan(const GraphBatch& batch, Schedule* schedule) {
  schedule->Clear();
  Extend(batch, schedule);
}

void Scheduler::Extend(const GraphBatch& batch, Schedule* schedule) {
  order_.vertices.clear();
  order_.task_begin.assign(1, 0);
  Arrange(batch, schedule->vertex_count(), &order_);
  CAVS_CHECK(schedule->vertex_count() + std::ssize(order_.vertices) == batch.vertex_count(),
             "{} of {} vertices scheduled", schedule->vertex_count() + std::ssize(order_.vertices),
             batch.vertex_count());
  SortTasks(batch);
  schedule->Append(batch, order_.vertices, order_.task_begin);
}

// Policies that take vertices in the order of the batch leave little to sort: what became ready in one task is ordered.
void Scheduler::SortTasks(const GraphBatch& batch) {
  const auto before = [&](int32_t a, int32_t b) {
    return std::pair(batch.graph_of(a), a) < std::pair(batch.graph_of(b), b);
  };
  for (size_t task = 0; task + 1 < order_.task_begin.size(); ++task) {
    const auto begin = order_.vertices.begin() + order_.task_begin[task];
    const auto end = order_.vertices.begin() + order_.task_begin[task + 1];
    if (!std::is_sorted(begin, end, before)) std::sort(begin, end, before);
  }
}

std::unique_ptr<Scheduler> MakeScheduler(BatchingPolicy policy) {
  switch (policy) {
    case BatchingPolicy::kSerial:
      return std::make_unique<SerialScheduler>();
    case BatchingPolicy::kDepth:
      return std::make_unique<DepthScheduler>();
    case BatchingPolicy::kFrontier:
      return std::make_unique<FrontierScheduler>();
    case BatchingPolicy::kAgenda:
      return std::make_unique<AgendaScheduler>();
  }
  CAVS_CHECK(false, "batching policy {}", static_cast<int>(policy));
  return nullptr;
}

}  // namespace cavs
