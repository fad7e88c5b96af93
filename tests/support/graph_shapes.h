// Input graphs of shapes that occur: chains, trees, lattices; without columns of their own. The builder is left ready
// for the next graph. Vertices are added children first.
#pragma once

#include <cstdint>
#include <vector>

#include "cavs/base/random.h"
#include "graph/input_graph.h"

namespace cavs::testing {

// Vertices of type 0, each the child of the next; the first one's child is missing.
inline InputGraph MakeChain(InputGraphBuilder& builder, int64_t length) {
  for (int64_t i = 0; i < length; ++i) builder.AddVertex(0, {i == 0 ? kNone : static_cast<int32_t>(i - 1)});
  return builder.Build();
}

// A binary tree over leaves of type 0, like the parse of a sentence: joins neighbours until one vertex is left.
// `pick(n)` says which of n vertices is joined with the next one, `type()` gives the type of what joins them.
template <typename Pick, typename Type>
InputGraph JoinLeaves(InputGraphBuilder& builder, int64_t leaves, Pick pick, Type type) {
  std::vector<int32_t> row;
  row.reserve(static_cast<size_t>(leaves));
  for (int64_t i = 0; i < leaves; ++i) row.push_back(builder.AddVertex(0));
  while (row.size() > 1) {
    const auto left = row.begin() + pick(std::ssize(row));
    *left = builder.AddVertex(type(), {*left, *(left + 1)});
    row.erase(left + 1);
  }
  return builder.Build();
}

// Neighbours are joined at random; inner vertices have type 1.
inline InputGraph MakeRandomTree(InputGraphBuilder& builder, CounterRandom& random, int64_t leaves) {
  return JoinLeaves(
      builder, leaves, [&](int64_t row) { return random.Below(row - 1); }, [] { return 1; });
}

// Vertices of type 0 in a chain; vertices that span two to four of its links and feed the next one (type 1), as words
// span characters; and one above every link (type 2), as a tag: no plain policy batches it well.
inline InputGraph MakeLattice(InputGraphBuilder& builder, CounterRandom& random, int64_t length) {
  std::vector<int32_t> chain;
  chain.reserve(static_cast<size_t>(length));
  int32_t word = kNone;
  for (int64_t i = 0; i < length; ++i) {
    chain.push_back(builder.AddVertex(0, {chain.empty() ? kNone : chain.back(), word}));
    word = kNone;
    builder.AddVertex(2, {chain.back()});
    const int64_t span = 2 + random.Below(3);
    if (random.Below(2) == 0 && span <= std::ssize(chain)) word = builder.AddVertex(1, {*(chain.end() - span)});
  }
  return builder.Build();
}

}  // namespace cavs::testing
