// Random input graphs for property tests.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "cavs/base/random.h"
#include "graph/graph_batch.h"
#include "graph/input_graph.h"

namespace cavs::testing {

struct RandomGraphOptions {
  int64_t max_vertices = 40;
  int32_t types = 4;
  int32_t max_arity = 5;
  bool shuffle_ids = true;  // otherwise children have lower ids than their parents
};

// A DAG with shared and repeated children, missing children, several roots at different heights; sometimes one vertex.
inline InputGraph RandomGraph(CounterRandom& random, const RandomGraphOptions& options = {}) {
  const int64_t vertices = 1 + random.Below(options.max_vertices);
  std::vector<int32_t> id(static_cast<size_t>(vertices));
  std::iota(id.begin(), id.end(), 0);
  if (options.shuffle_ids) Shuffle(std::span<int32_t>(id), random);
  std::vector<int32_t> type(id.size());
  std::vector<std::vector<int32_t>> children(id.size());
  for (int64_t i = 0; i < vertices; ++i) {
    const auto v = static_cast<size_t>(id[static_cast<size_t>(i)]);
    type[v] = static_cast<int32_t>(random.Below(options.types));
    for (int64_t slot = random.Below(options.max_arity + 1); slot > 0; --slot) {
      const bool missing = i == 0 || random.Below(8) == 0;
      children[v].push_back(missing ? kNone : id[static_cast<size_t>(random.Below(i))]);
    }
  }
  InputGraphBuilder builder(MakeColumns({}));
  for (size_t v = 0; v < id.size(); ++v) builder.AddVertex(type[v], children[v]);
  return builder.Build();
}

inline std::vector<InputGraph> RandomGraphs(CounterRandom& random, int64_t count,
                                            const RandomGraphOptions& options = {}) {
  std::vector<InputGraph> graphs;
  graphs.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) graphs.push_back(RandomGraph(random, options));
  return graphs;
}

inline GraphBatch PackAll(std::span<const InputGraph> graphs) {
  GraphBatch batch;
  for (const InputGraph& graph : graphs) batch.Add(graph, batch.graph_count());
  return batch;
}

}  // namespace cavs::testing
