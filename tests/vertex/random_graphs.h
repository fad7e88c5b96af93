// Random batches of graphs that fit a Program: its arities, the states that its slots read, its columns.
// Everything is drawn from one CounterRandom, so that equal seeds give equal batches. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cavs/base/random.h"
#include "graph/graph_batch.h"
#include "graph/input_graph.h"
#include "vertex/program.h"

namespace cavs {

struct GraphOptions {
  int64_t vertices = 1;         // of a graph; exact
  int32_t root_type = -1;       // type of the vertex that is added last; -1: any
  int64_t most_children = 5;    // of a type of any arity
  double missing_child = 0.15;  // probability of an empty slot
  double missing_input = 0.15;  // probability of an id or row that is not given
  double second_parent = 0.3;   // probability that a slot takes any vertex, not one that nobody has taken yet
};

// Graphs and the batch that is packed from them.
struct RandomBatch {
  std::vector<std::unique_ptr<InputGraph>> graphs;
  GraphBatch batch;
};

class GraphMaker {
 public:
  explicit GraphMaker(const Program& f);

  const std::shared_ptr<const ColumnSet>& columns() const { return columns_; }
  // Children have higher and lower ids than their parents: ids are shuffled.
  InputGraph Make(const GraphOptions& options, CounterRandom& random) const;
  // `graphs` graphs of 1 to options.vertices vertices (all of options.vertices when `exact`). Example numbers are
  // distinct and not consecutive.
  std::unique_ptr<RandomBatch> MakeBatch(int64_t graphs, bool exact, GraphOptions options, CounterRandom& random) const;

 private:
  using Parts = GraphParts;
  bool Accepts(int32_t type, int64_t slot, int32_t child_type) const;
  void AddChildren(const GraphOptions& options, CounterRandom& random, std::vector<char>* taken, Parts* parts) const;
  void AddInputs(const GraphOptions& options, CounterRandom& random, Parts* parts) const;

  std::shared_ptr<const Signature> signature_;
  std::shared_ptr<const ColumnSet> columns_;
  std::vector<std::vector<char>> scatters_;                 // [types][channels]
  std::vector<std::vector<std::vector<int32_t>>> gathers_;  // [types][slots]: channels; of any arity: one slot
};

}  // namespace cavs
