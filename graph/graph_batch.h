// The graphs of one minibatch, packed into flat arrays.
//
// Vertices get batch ids: graph after graph, each graph's vertices in their own order. The arrays are reused from one
// minibatch to the next, so packing allocates nothing once warm. The batch points at its graphs, which must outlive it
// or the next Clear(). Graphs can be added to a batch that is already scheduled (see Scheduler::Extend): batch ids that
// were given never change. Thread-safety: const access from any number of threads; changes by one thread alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/input_graph.h"

namespace cavs {

class GraphBatch {
 public:
  void Clear();
  // Appends `graph` as example number `example`, which seeds whatever is random per example and names it in errors.
  // Throws std::invalid_argument when the batch would reach 2^31 - 1 vertices; the batch is then unchanged.
  void Add(const InputGraph& graph, int64_t example);
  // Clear() and Add() of every graph. `graphs` and `examples` have the same length; a graph may occur repeatedly.
  void Pack(std::span<const InputGraph* const> graphs, std::span<const int64_t> examples);

  // Overwrites this batch with the distinct vertices of `batch`: its vertex v becomes merged[v], where equal vertices
  // have one number and children are numbered like any other vertex. `origin` [merged vertices] names a vertex of
  // `batch` for each of ours, which stands for it: graph_of(), local_id() and shard_of() are its own. Graphs and shards
  // are those of `batch`.
  void Merge(const GraphBatch& batch, std::span<const int32_t> origin, std::span<const int32_t> merged);

  // Cuts the batch into shards: runs of consecutive graphs, as many as `shards` (at least 1) or as there are graphs.
  // Every shard has a graph, and none has more vertices than an even share and the largest graph together. Cuts anew
  // when called again; Clear() and Add() end it: a batch that was not cut is one shard. A vertex is in the shard of its
  // graph, so its children are in the same one, but for children in a merged batch that were merged across shards.
  void Shard(int32_t shards);
  int32_t shard_count() const { return shards_; }  // at least 1
  int32_t shard_of(int64_t v) const { return shards_ == 1 ? 0 : shard_of_graph_[static_cast<size_t>(graph_of(v))]; }

  int64_t graph_count() const { return static_cast<int64_t>(graphs_.size()); }
  int64_t vertex_count() const { return static_cast<int64_t>(types_.size()); }
  int64_t edge_count() const { return static_cast<int64_t>(children_.size()); }
  // One above the highest vertex type in the batch; 0 for an empty batch.
  int32_t type_count() const { return type_count_; }
  // True when every child has a lower batch id than its parents.
  bool children_first() const { return children_first_; }

  const InputGraph& graph(int64_t g) const { return *graphs_[static_cast<size_t>(g)]; }
  int64_t example(int64_t g) const { return examples_[static_cast<size_t>(g)]; }
  // [graphs + 1]: batch id of each graph's vertex 0; the last entry is vertex_count(). Not of a merged batch.
  std::span<const int64_t> first_vertex() const { return first_vertex_; }
  int64_t first_vertex(int64_t g) const { return first_vertex_[static_cast<size_t>(g)]; }

  // All below: indexed by batch id.
  int32_t type(int64_t v) const { return types_[static_cast<size_t>(v)]; }
  int32_t graph_of(int64_t v) const { return graph_of_[static_cast<size_t>(v)]; }
  // The id of `v` inside its graph.
  int32_t local_id(int64_t v) const {
    if (!local_ids_.empty()) return local_ids_[static_cast<size_t>(v)];
    return static_cast<int32_t>(v - first_vertex(graph_of(v)));
  }
  // Batch ids of the children in slot order; kNone where a child is missing.
  std::span<const int32_t> children(int64_t v) const {
    const int64_t begin = child_begin_[static_cast<size_t>(v)];
    return {children_.data() + begin, static_cast<size_t>(child_begin_[static_cast<size_t>(v) + 1] - begin)};
  }

  std::span<const int32_t> types() const { return types_; }                  // [vertices]
  std::span<const int32_t> graph_of() const { return graph_of_; }            // [vertices]
  std::span<const int64_t> child_begin() const { return child_begin_; }      // [vertices + 1]
  std::span<const int32_t> children() const { return children_; }            // [edges]
  std::span<const int32_t> parent_counts() const { return parent_counts_; }  // [vertices]: slots that hold the vertex

 private:
  std::vector<const InputGraph*> graphs_;
  std::vector<int64_t> examples_;
  std::vector<int64_t> first_vertex_ = {0};
  std::vector<int32_t> types_;
  std::vector<int32_t> graph_of_;
  std::vector<int32_t> local_ids_;  // of a merged batch; else they follow from first_vertex_
  std::vector<int64_t> child_begin_ = {0};
  std::vector<int32_t> children_;
  std::vector<int32_t> parent_counts_;
  std::vector<int32_t> shard_of_graph_;  // when there are several
  int32_t shards_ = 1;
  int32_t type_count_ = 0;
  bool children_first_ = true;
};

}  // namespace cavs
