// Sharing: equal work of a minibatch is done once. Vertices that F cannot tell apart become one vertex with several
// parents: of the same type, with the same external inputs and the same (shared) children in every slot.
//
//   none       every vertex for itself
//   inputs     vertices without children: a word is embedded and transformed once per minibatch
//   subgraphs  whole subgraphs
//
// What F computes from external inputs alone at vertices that have children is shared by vertex/input_sharing.h.
//
// Vertices of a recurrent type merge inside of their shard (GraphBatch::Shard) alone, so that shards can recur side by
// side; all others across shards too.
// Exact where F draws no random numbers; gradients of a shared vertex are the sum over its parents. Labels stay with
// the original vertices. At most kMostCopies vertices become one, so that these sums stay short: over a minibatch of
// 10,000 ListOps expressions the worst gradient is off by 1.0e-5 of its tensor's largest value, without the bound by
// 1.5e-5. The bound costs at most a few percent of a step, where it was seen to cost anything.
//
// Linear time, no recursion, scratch is reused. One thread per Sharer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph_batch.h"
#include "graph/topological_order.h"
#include "graph/tuple_numbers.h"

namespace cavs {

enum class SharingPolicy : uint8_t { kOff, kInputs, kSubgraphs };

// "none", "inputs", "subgraphs".
std::string_view SharingPolicyName(SharingPolicy policy);
// Throws std::invalid_argument that lists the names.
SharingPolicy ParseSharingPolicy(std::string_view name);

// What F reads from outside at a vertex of a type.
struct TypeInputs {
  std::vector<std::string> id_columns;
  bool shareable = true;  // false where F pulls rows of floats, which are not compared
  bool recurrent = true;  // F or dF runs over its vertices task by task
};

class Sharer {
 public:
  static constexpr int32_t kMostCopies = 64;

  // `types` by vertex type.
  Sharer(SharingPolicy policy, std::vector<TypeInputs> types);

  // Overwrites `shared` with the distinct vertices of `batch`, and `merged` [vertices of `batch`] with the number in
  // `shared` of each.
  void Merge(const GraphBatch& batch, GraphBatch* shared, std::vector<int32_t>* merged);

 private:
  bool Shares(const GraphBatch& batch, int32_t v) const;
  void MapColumns(const GraphBatch& batch);
  void MakeKey(const GraphBatch& batch, int32_t v);
  // The number of the vertex whose key is key_, a new one unless it was seen.
  int32_t FindOrAdd(int32_t v);
  int32_t Add(int32_t v);

  // Which vertex the next one with a key becomes, and how many have become it.
  struct Holder {
    int32_t merged;
    int32_t copies;
  };

  SharingPolicy policy_;
  std::vector<TypeInputs> types_;
  TopologicalOrder topological_;
  std::vector<int32_t> columns_;      // [graphs, all id columns of all types]: number in the graph's ColumnSet
  std::vector<size_t> first_column_;  // [types + 1]
  std::vector<int32_t> merged_, origin_;
  std::vector<int32_t> key_;
  TupleNumbers keys_;
  std::vector<Holder> holders_;  // by key
};

}  // namespace cavs
