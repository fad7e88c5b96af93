// Who waits for whom: the parents of every vertex, and how many children each vertex still waits for.
//
// What scheduling needs of a vertex lies in one place, since it visits vertices far apart. Scratch is reused; one
// thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph_batch.h"

namespace cavs {

class Dependents {
 public:
  // Overwrites. Covers the vertices from `first` on; those before count as done. Linear time.
  void Compute(const GraphBatch& batch, int64_t first = 0);

  // Children of `v` that are not finished, each as often as it fills a slot.
  int32_t waiting(int64_t v) const { return vertices_[At(v)].waiting; }

  // Begins to read what Finish(v) will need.
  void Prefetch(int64_t v) const { __builtin_prefetch(&vertices_[At(v)], 1); }

  // Calls visit(parent, type of the parent) for each slot that `v` fills.
  template <typename Visit>
  void ForEachParent(int64_t v, Visit visit) const {
    const size_t at = At(v);
    for (int64_t i = at == 0 ? 0 : vertices_[at - 1].parent_end; i < vertices_[at].parent_end; ++i) {
      const int32_t parent = parents_[static_cast<size_t>(i)];
      visit(parent, vertices_[At(parent)].type);
    }
  }

  // Calls visit(parent, type of the parent, whether `v` was the last child that it waited for) for each slot.
  template <typename Visit>
  void Finish(int64_t v, Visit visit) {
    ForEachParent(v, [&](int32_t parent, int32_t type) {
      const bool ready = --vertices_[At(parent)].waiting == 0;
      visit(parent, type, ready);
    });
  }

 private:
  struct Vertex {
    int64_t parent_end;  // in parents_; those of a vertex begin where those of the vertex before end
    int32_t waiting;
    int32_t type;
  };
  size_t At(int64_t v) const { return static_cast<size_t>(v - first_); }

  int64_t first_ = 0;
  std::vector<Vertex> vertices_;
  std::vector<int32_t> parents_;
};

}  // namespace cavs
