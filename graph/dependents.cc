#include "graph/dependents.h"

namespace cavs {

void Dependents::Compute(const GraphBatch& batch, int64_t first) {
  first_ = first;
  vertices_.resize(static_cast<size_t>(batch.vertex_count() - first));
  int64_t parents = 0;
  for (int64_t v = first; v < batch.vertex_count(); ++v) {
    vertices_[At(v)] = {.parent_end = parents, .waiting = 0, .type = batch.type(v)};
    parents += batch.parent_counts()[static_cast<size_t>(v)];
  }
  // Filling advances each vertex's begin to its end, which is the begin of the next vertex.
  parents_.resize(static_cast<size_t>(parents));
  for (int64_t v = first; v < batch.vertex_count(); ++v) {
    int32_t waiting = 0;
    for (const int32_t child : batch.children(v)) {
      if (child < first) continue;
      ++waiting;
      parents_[static_cast<size_t>(vertices_[At(child)].parent_end++)] = static_cast<int32_t>(v);
    }
    vertices_[At(v)].waiting = waiting;
  }
}

}  // namespace cavs
