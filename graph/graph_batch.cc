#include "graph/graph_batch.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {

namespace {

// Batch ids and row numbers are int32, and kNone must stay distinct from all of them.
constexpr int64_t kMaxBatchVertices = std::numeric_limits<int32_t>::max();

}  // namespace

void GraphBatch::Clear() {
  graphs_.clear();
  examples_.clear();
  first_vertex_.assign(1, 0);
  types_.clear();
  graph_of_.clear();
  local_ids_.clear();
  child_begin_.assign(1, 0);
  children_.clear();
  parent_counts_.clear();
  shards_ = 1;
  type_count_ = 0;
  children_first_ = true;
}

void GraphBatch::Add(const InputGraph& graph, int64_t example) {
  CAVS_CHECK(local_ids_.empty(), "a merged batch does not grow");
  const int64_t offset = vertex_count();
  const int64_t total = offset + graph.vertex_count();
  if (total >= kMaxBatchVertices) {
    ThrowInvalid("graph batch", fmt::format("expected fewer than {} vertices in a minibatch, got {} with example {}",
                                            kMaxBatchVertices, total, example));
  }
  shards_ = 1;
  const int64_t edge_offset = edge_count();
  graph_of_.insert(graph_of_.end(), static_cast<size_t>(graph.vertex_count()), static_cast<int32_t>(graph_count()));
  graphs_.push_back(&graph);
  examples_.push_back(example);
  first_vertex_.push_back(total);

  const auto types = graph.types();
  types_.insert(types_.end(), types.begin(), types.end());
  type_count_ = std::max(type_count_, *std::max_element(types.begin(), types.end()) + 1);
  children_first_ = children_first_ && graph.children_first();

  const auto begins = graph.child_begin().subspan(1);
  child_begin_.resize(child_begin_.size() + begins.size());
  std::transform(begins.begin(), begins.end(), child_begin_.end() - std::ssize(begins),
                 [&](int32_t begin) { return edge_offset + begin; });

  const auto children = graph.children();
  parent_counts_.resize(static_cast<size_t>(total), 0);
  children_.resize(children_.size() + children.size());
  const auto base = static_cast<int32_t>(offset);
  std::transform(children.begin(), children.end(), children_.end() - std::ssize(children), [&](int32_t child) {
    if (child == kNone) return kNone;
    const int32_t id = base + child;
    ++parent_counts_[static_cast<size_t>(id)];
    return id;
  });
}

void GraphBatch::Pack(std::span<const InputGraph* const> graphs, std::span<const int64_t> examples) {
  CAVS_CHECK(graphs.size() == examples.size(), "{} graphs, {} example numbers", graphs.size(), examples.size());
  Clear();
  for (size_t i = 0; i < graphs.size(); ++i) Add(*graphs[i], examples[i]);
}

void GraphBatch::Shard(int32_t shards) {
  CAVS_CHECK(shards >= 1, "{} shards", shards);
  CAVS_CHECK(local_ids_.empty(), "a merged batch keeps the shards of its original");
  const int64_t graphs = graph_count();
  shards_ = static_cast<int32_t>(std::max<int64_t>(1, std::min<int64_t>(shards, graphs)));
  shard_of_graph_.resize(static_cast<size_t>(graphs));
  // A graph belongs to the shard that its middle falls into, but no shard stays without graphs.
  int32_t shard = 0;
  for (int64_t g = 0; g < graphs; ++g) {
    const int64_t middle = (first_vertex(g) + first_vertex(g + 1)) / 2;
    const auto aim = static_cast<int32_t>(middle * shards_ / std::max<int64_t>(vertex_count(), 1));
    const auto least = static_cast<int32_t>(std::max<int64_t>(0, shards_ - (graphs - g)));
    const int32_t most = g == 0 ? 0 : shard + 1;
    shard = std::clamp(std::max(aim, shard), std::min(least, most), most);
    shard_of_graph_[static_cast<size_t>(g)] = shard;
  }
}

void GraphBatch::Merge(const GraphBatch& batch, std::span<const int32_t> origin, std::span<const int32_t> merged) {
  CAVS_CHECK(std::ssize(merged) == batch.vertex_count(), "{} numbers for {} vertices", merged.size(),
             batch.vertex_count());
  Clear();
  graphs_ = batch.graphs_;
  examples_ = batch.examples_;
  shard_of_graph_ = batch.shard_of_graph_;
  shards_ = batch.shards_;
  type_count_ = batch.type_count_;
  parent_counts_.assign(origin.size(), 0);
  for (size_t v = 0; v < origin.size(); ++v) {
    types_.push_back(batch.type(origin[v]));
    graph_of_.push_back(batch.graph_of(origin[v]));
    local_ids_.push_back(batch.local_id(origin[v]));
    for (const int32_t child : batch.children(origin[v])) {
      const int32_t id = child == kNone ? kNone : merged[static_cast<size_t>(child)];
      children_.push_back(id);
      children_first_ = children_first_ && id < static_cast<int32_t>(v);
      if (id != kNone) ++parent_counts_[static_cast<size_t>(id)];
    }
    child_begin_.push_back(std::ssize(children_));
  }
}

}  // namespace cavs
