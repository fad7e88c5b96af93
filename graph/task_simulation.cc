#include "graph/task_simulation.h"

#include <algorithm>

#include "cavs/base/error.h"
#include "graph/topological_order.h"

namespace cavs {

TaskSimulation::TaskSimulation(const GraphBatch& batch)
    : types_(batch.types().begin(), batch.types().end()),
      initially_blocked_(static_cast<size_t>(batch.type_count()) * types_.size(), 0),
      initially_open_(static_cast<size_t>(batch.type_count()), 0),
      ready_(static_cast<size_t>(batch.type_count())) {
  dependents_.Compute(batch);
  CountBlocked(batch);
  Restart();
}

int64_t TaskSimulation::EpisodeWork(const GraphBatch& batch) {
  return (int64_t{batch.type_count()} + 1) * (batch.vertex_count() + batch.edge_count());
}

void TaskSimulation::CountBlocked(const GraphBatch& batch) {
  TopologicalOrder order;
  for (const int32_t v : order.Compute(batch)) {
    for (const int32_t child : batch.children(v)) {
      if (child == kNone) continue;
      const int32_t child_type = batch.type(child);
      for (int32_t type = 0; type < batch.type_count(); ++type) {
        if (type == child_type || initially_blocked_[At(type, child)] > 0) ++initially_blocked_[At(type, v)];
      }
    }
    const int32_t type = batch.type(v);
    if (initially_blocked_[At(type, v)] == 0) ++initially_open_[static_cast<size_t>(type)];
  }
}

void TaskSimulation::Restart() {
  blocked_ = initially_blocked_;
  open_ = initially_open_;
  for (const int32_t type : ready_types_) ready_[static_cast<size_t>(type)].clear();
  ready_types_.clear();
  waiting_.resize(types_.size());
  for (int32_t v = 0; v < std::ssize(types_); ++v) {
    waiting_[static_cast<size_t>(v)] = dependents_.waiting(v);
    if (dependents_.waiting(v) == 0) AddReady(v);
  }
}

void TaskSimulation::AddReady(int32_t v) {
  const int32_t type = types_[static_cast<size_t>(v)];
  std::vector<int32_t>& ready = ready_[static_cast<size_t>(type)];
  if (ready.empty()) ready_types_.push_back(type);
  ready.push_back(v);
}

void TaskSimulation::Run(int32_t type) {
  const auto place = std::find(ready_types_.begin(), ready_types_.end(), type);
  CAVS_CHECK(place != ready_types_.end(), "type {} has no ready vertices", type);
  *place = ready_types_.back();
  ready_types_.pop_back();
  taken_.clear();
  taken_.swap(ready_[static_cast<size_t>(type)]);
  open_[static_cast<size_t>(type)] -= std::ssize(taken_);
  for (const int32_t v : taken_) {
    Clear(type, v);
    dependents_.ForEachParent(v, [&](int32_t parent, int32_t) {
      if (--waiting_[static_cast<size_t>(parent)] == 0) AddReady(parent);
    });
  }
}

void TaskSimulation::Clear(int32_t type, int32_t v) {
  cleared_.assign(1, v);
  while (!cleared_.empty()) {
    const int32_t below = cleared_.back();
    cleared_.pop_back();
    dependents_.ForEachParent(below, [&](int32_t parent, int32_t parent_type) {
      if (--blocked_[At(type, parent)] > 0) return;
      if (parent_type == type) {
        ++open_[static_cast<size_t>(type)];
      } else {
        cleared_.push_back(parent);
      }
    });
  }
}

}  // namespace cavs
