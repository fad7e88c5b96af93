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

// A binary tree with `leaves` leaves of type 0 and inner vertices of type 1, children first, like a parse.
inline InputGraph RandomBinaryTree(CounterRandom& random, int64_t leaves) {
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<int32_t> row;
  for (int64_t i = 0; i < leaves; ++i) row.push_back(builder.AddVertex(0));
  while (row.size() > 1) {
    const auto at = random.Below(std::ssize(row) - 1);
    const auto left = row.begin() + at;
    *left = builder.AddVertex(1, {*left, *(left + 1)});
    row.erase(left + 1);
  }
  return builder.Build();
}

// A chain (type 0), vertices that span two to four of its links and feed the next one (type 1), and one above every
// link (type 2): no plain policy batches it well.
inline InputGraph RandomLattice(CounterRandom& random) {
  InputGraphBuilder builder(MakeColumns({}));
  std::vector<int32_t> chain;
  int32_t word = kNone;
  for (int64_t length = 5 + random.Below(20); length > 0; --length) {
    chain.push_back(builder.AddVertex(0, {chain.empty() ? kNone : chain.back(), word}));
    word = kNone;
    builder.AddVertex(2, {chain.back()});
    const int64_t span = 2 + random.Below(3);
    if (random.Below(2) == 0 && span <= std::ssize(chain)) word = builder.AddVertex(1, {*(chain.end() - span)});
  }
  return builder.Build();
}

inline GraphBatch PackAll(std::span<const InputGraph> graphs) {
  GraphBatch batch;
  for (const InputGraph& graph : graphs) batch.Add(graph, batch.graph_count());
  return batch;
}

}  // namespace cavs::testing
