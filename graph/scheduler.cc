#include "graph/scheduler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "graph/dependents.h"
#include "graph/topological_order.h"

namespace cavs {

namespace {

constexpr std::array<std::pair<BatchingPolicy, std::string_view>, 5> kPolicies = {{
    {BatchingPolicy::kSerial, "serial"},
    {BatchingPolicy::kDepth, "depth"},
    {BatchingPolicy::kFrontier, "frontier"},
    {BatchingPolicy::kAgenda, "agenda"},
    {BatchingPolicy::kFsm, "fsm"},
}};

// Vertices of a task lie far apart: reading them begins this many before they are needed.
constexpr int64_t kAhead = 12;

// Vertices that are planned together are the batch ids from `first` on. Arrays below are indexed by id - first.
size_t At(int64_t v, int64_t first) { return static_cast<size_t>(v - first); }

// The distance of `v` from the leaves below it, given those of its children: 0 when these are all missing or done.
int32_t LevelOf(const GraphBatch& batch, int32_t v, int64_t first, std::span<const int32_t> levels) {
  int32_t level = 0;
  for (const int32_t child : batch.children(v)) {
    if (child >= first) level = std::max(level, levels[At(child, first)] + 1);
  }
  return level;
}

// The level of every vertex.
class Levels {
 public:
  std::span<const int32_t> Compute(const GraphBatch& batch, int64_t first) {
    levels_.resize(static_cast<size_t>(batch.vertex_count() - first));
    for (const int32_t v : topological_.Compute(batch, first)) {
      levels_[At(v, first)] = LevelOf(batch, v, first, levels_);
    }
    return levels_;
  }

 private:
  TopologicalOrder topological_;
  std::vector<int32_t> levels_;
};

class SerialScheduler final : public Scheduler {
 protected:
  int64_t Arrange(const GraphBatch& batch, int64_t first, std::span<int32_t> task_of) override {
    int32_t task = 0;
    for (const int32_t v : topological_.Compute(batch, first)) task_of[At(v, first)] = task++;
    return task;
  }

 private:
  TopologicalOrder topological_;
};

class DepthScheduler final : public Scheduler {
 protected:
  // Two stable counting sorts, by type and then by level, bring the vertices of a task together.
  int64_t Arrange(const GraphBatch& batch, int64_t first, std::span<int32_t> task_of) override {
    const auto levels = levels_.Compute(batch, first);
    ids_.resize(levels.size());
    std::iota(ids_.begin(), ids_.end(), static_cast<int32_t>(first));
    by_type_.resize(levels.size());
    Sort(
        ids_, batch.type_count(), [&](int32_t v) { return batch.type(v); }, by_type_);
    const int32_t level_count = levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end()) + 1;
    Sort(
        by_type_, level_count, [&](int32_t v) { return levels[At(v, first)]; }, ids_);
    int32_t task = kNone, level = kNone, type = kNone;
    for (const int32_t v : ids_) {
      if (batch.type(v) != type || levels[At(v, first)] != level) ++task;
      type = batch.type(v);
      level = levels[At(v, first)];
      task_of[At(v, first)] = task;
    }
    return int64_t{task} + 1;
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

// Takes all ready vertices of a type at a time. What differs between policies is the choice of the type.
class ReadyScheduler : public Scheduler {
 protected:
  int64_t Arrange(const GraphBatch& batch, int64_t first, std::span<int32_t> task_of) final {
    const int64_t levels = ArrangeLevels(batch, first, task_of);
    return levels != kNone ? levels : ArrangeReady(batch, first, task_of);
  }

  virtual void Prepare(const GraphBatch& batch, int64_t first) = 0;
  // One of the types that have ready vertices, two or more in no particular order.
  virtual int32_t Choose(std::span<const int32_t> ready_types) = 0;

  int64_t ready_count(int32_t type) const {
    const Queue& queue = queues_[static_cast<size_t>(type)];
    return queue.end - queue.begin;
  }

 private:
  // The ready vertices of a type: ready_[begin .. end). There is room for all vertices of the type behind one another,
  // as each becomes ready once.
  struct Queue {
    int64_t begin, end;
  };

  // Where all vertices of a level have one type, as in chains and trees of leaves and nodes, only one type is ever
  // ready, and the levels are the tasks of any policy. Returns kNone where it is not so, as soon as that shows.
  int64_t ArrangeLevels(const GraphBatch& batch, int64_t first, std::span<int32_t> task_of) {
    level_types_.clear();
    const auto arrange = [&](int32_t v) {
      const int32_t level = LevelOf(batch, v, first, task_of), type = batch.type(v);
      if (level == std::ssize(level_types_)) level_types_.push_back(type);
      task_of[At(v, first)] = level;
      return level_types_[static_cast<size_t>(level)] == type;
    };
    if (batch.children_first()) {
      // The order without its array: in large minibatches memory traffic is all that counts.
      for (int64_t v = first; v < batch.vertex_count(); ++v) {
        if (!arrange(static_cast<int32_t>(v))) return kNone;
      }
    } else {
      for (const int32_t v : topological_.Compute(batch, first)) {
        if (!arrange(v)) return kNone;
      }
    }
    return std::ssize(level_types_);
  }

  int64_t ArrangeReady(const GraphBatch& batch, int64_t first, std::span<int32_t> task_of) {
    dependents_.Compute(batch, first);
    Prepare(batch, first);
    MakeQueues(batch, first);
    // Whether a parent becomes ready is as good as random: it is always written and rarely branched on.
    const auto add = [&](int32_t v, int32_t type, bool ready) {
      Queue& queue = queues_[static_cast<size_t>(type)];
      ready_[static_cast<size_t>(queue.end)] = v;
      if (static_cast<int>(ready) & static_cast<int>(queue.begin == queue.end)) ready_types_.push_back(type);
      queue.end += ready ? 1 : 0;
    };
    for (int64_t v = first; v < batch.vertex_count(); ++v) {
      if (dependents_.waiting(v) == 0) add(static_cast<int32_t>(v), batch.type(v), true);
    }
    int32_t task = 0;
    for (; !ready_types_.empty(); ++task) {
      const int32_t chosen = ready_types_.size() == 1 ? ready_types_.front() : Choose(ready_types_);
      *std::find(ready_types_.begin(), ready_types_.end(), chosen) = ready_types_.back();
      ready_types_.pop_back();
      Queue& queue = queues_[static_cast<size_t>(chosen)];
      const Queue taken = queue;
      queue.begin = queue.end;
      for (int64_t i = taken.begin; i < taken.end; ++i) {
        const int32_t v = ready_[static_cast<size_t>(i)];
        if (i + kAhead < taken.end) dependents_.Prefetch(ready_[static_cast<size_t>(i + kAhead)]);
        task_of[At(v, first)] = task;
        dependents_.Finish(v, add);
      }
    }
    return task;
  }

  void MakeQueues(const GraphBatch& batch, int64_t first) {
    queues_.assign(static_cast<size_t>(batch.type_count()), {0, 0});
    for (int64_t v = first; v < batch.vertex_count(); ++v) ++queues_[static_cast<size_t>(batch.type(v))].end;
    int64_t begin = 0;
    for (Queue& queue : queues_) {
      const int64_t vertices = queue.end;
      queue = {begin, begin};
      begin += vertices;
    }
    ready_.resize(static_cast<size_t>(begin));
  }

  TopologicalOrder topological_;
  std::vector<int32_t> level_types_;
  Dependents dependents_;
  std::vector<Queue> queues_;  // by type
  std::vector<int32_t> ready_;
  std::vector<int32_t> ready_types_;  // those with ready vertices, in no particular order
};

// The type that no other is to run before; of several the lowest.
template <typename Before>
int32_t First(std::span<const int32_t> types, Before before) {
  return *std::min_element(types.begin(), types.end(),
                           [&](int32_t a, int32_t b) { return before(a, b) || (!before(b, a) && a < b); });
}

class FrontierScheduler final : public ReadyScheduler {
 protected:
  void Prepare(const GraphBatch&, int64_t) override {}
  int32_t Choose(std::span<const int32_t> ready_types) override {
    return First(ready_types, [&](int32_t a, int32_t b) { return ready_count(a) > ready_count(b); });
  }
};

// The average depth of each type, over all vertices that are planned, ready or not.
class AverageDepths {
 public:
  void Compute(const GraphBatch& batch, int64_t first) {
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

  int32_t Lowest(std::span<const int32_t> types) const {
    return First(types, [&](int32_t a, int32_t b) {
      return average_[static_cast<size_t>(a)] < average_[static_cast<size_t>(b)];
    });
  }

 private:
  Levels levels_;
  std::vector<double> average_;  // by type
  std::vector<int64_t> count_;   // vertices, by type
};

class AgendaScheduler final : public ReadyScheduler {
 protected:
  void Prepare(const GraphBatch& batch, int64_t first) override { depths_.Compute(batch, first); }
  int32_t Choose(std::span<const int32_t> ready_types) override { return depths_.Lowest(ready_types); }

 private:
  AverageDepths depths_;
};

class FsmScheduler final : public ReadyScheduler {
 public:
  explicit FsmScheduler(std::shared_ptr<const FsmPolicy> policy) : policy_(std::move(policy)) {}

 protected:
  void Prepare(const GraphBatch& batch, int64_t first) override {
    if (policy_->fallback() == FsmFallback::kAgenda) depths_.Compute(batch, first);
  }

  int32_t Choose(std::span<const int32_t> ready_types) override {
    state_.assign(ready_types.begin(), ready_types.end());
    if (!policy_->by_size().empty()) {
      OrderBySize(std::span(state_), [&](int32_t type) { return ready_count(type); });
      if (const int32_t chosen = policy_->FindBySize(state_); chosen != kNone) return chosen;
    }
    if (!policy_->by_set().empty()) {
      std::sort(state_.begin(), state_.end());
      if (const int32_t chosen = policy_->FindBySet(state_); chosen != kNone) return chosen;
    }
    if (policy_->fallback() == FsmFallback::kAgenda) return depths_.Lowest(ready_types);
    return First(ready_types, [&](int32_t a, int32_t b) { return ready_count(a) > ready_count(b); });
  }

 private:
  std::shared_ptr<const FsmPolicy> policy_;
  AverageDepths depths_;
  std::vector<int32_t> state_;
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
  const int64_t first = schedule->vertex_count();
  task_of_.resize(static_cast<size_t>(batch.vertex_count() - first));
  const int64_t tasks = Arrange(batch, first, task_of_);
  schedule->Append(batch, task_of_, tasks);
  CAVS_CHECK(schedule->vertex_count() == batch.vertex_count(), "{} of {} vertices scheduled", schedule->vertex_count(),
             batch.vertex_count());
}

std::unique_ptr<Scheduler> MakeScheduler(BatchingPolicy policy, std::shared_ptr<const FsmPolicy> fsm) {
  switch (policy) {
    case BatchingPolicy::kSerial:
      return std::make_unique<SerialScheduler>();
    case BatchingPolicy::kDepth:
      return std::make_unique<DepthScheduler>();
    case BatchingPolicy::kFrontier:
      return std::make_unique<FrontierScheduler>();
    case BatchingPolicy::kAgenda:
      return std::make_unique<AgendaScheduler>();
    case BatchingPolicy::kFsm:
      return std::make_unique<FsmScheduler>(fsm != nullptr ? std::move(fsm) : std::make_shared<const FsmPolicy>());
  }
  CAVS_CHECK(false, "batching policy {}", static_cast<int>(policy));
  return nullptr;
}

}  // namespace cavs
