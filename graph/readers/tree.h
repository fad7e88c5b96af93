// Trees as the readers give them: flat arrays in post order, with words and tags as numbers of the corpus's tables.
//
// Every child of a vertex has a smaller number than the vertex itself; the root is the last vertex. In constituency
// trees the leaves are the words, in dependency trees every vertex is one; a sentence is a chain of its words, in which
// each is the only child of the next; a pair is a vertex without word above the trees of its halves. Nothing here is
// recursive, so a tree of any depth is built, walked and freed in constant stack. Plain data, without locks: many
// threads may read a corpus that none changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/readers/string_table.h"

namespace cavs {

struct Tree {
  static constexpr int32_t kNone = -1;

  std::vector<int32_t> child_begin;  // [vertices + 1]: the children of v are child[child_begin[v] .. child_begin[v+1])
  std::vector<int32_t> child;        // [vertices - 1], in order from left to right
  std::vector<int32_t> label;        // [vertices]: class, or kNone
  std::vector<int32_t> word;         // [vertices]: number in TreeCorpus::words, or kNone
  std::vector<int32_t> tag;  // [vertices]: number in TreeCorpus::tags, or kNone; empty if the format has no tags
  int64_t line = 0;          // where the tree begins in its file, from 1; 0 if it came from no file

  int32_t vertex_count() const { return static_cast<int32_t>(label.size()); }
  int32_t root() const { return vertex_count() - 1; }
  bool is_leaf(int32_t v) const { return arity(v) == 0; }
  int32_t arity(int32_t v) const {
    return child_begin[static_cast<size_t>(v) + 1] - child_begin[static_cast<size_t>(v)];
  }
  std::span<const int32_t> children(int32_t v) const {
    return std::span(child).subspan(static_cast<size_t>(child_begin[static_cast<size_t>(v)]),
                                    static_cast<size_t>(arity(v)));
  }
};

// What a reader met. "As read" is before unary chains are collapsed and wide vertices are binarised; a redundant top
// that was dropped is left out of everything but its own counter. A lone vertex has depth 1.
struct ReaderStatistics {
  int64_t trees = 0;
  int64_t leaves = 0;           // vertices with a word
  int64_t vertices = 0;         // of the trees as delivered
  int64_t brackets = 0;         // opening brackets as read
  int64_t max_depth = 0;        // brackets on the longest path as read
  int64_t max_levels = 0;       // vertices on the longest path of a tree as delivered
  int64_t max_leaves = 0;       // leaves of the largest tree
  int64_t max_arity = 0;        // children of the widest vertex as read
  int64_t collapsed_unary = 0;  // brackets that were merged into their only child
  int64_t binarised = 0;        // vertices that were added to make trees binary
  int64_t dropped_tops = 0;     // unlabelled brackets around a whole tree
  int64_t class_labels = 0;     // vertices with a class, as delivered
  int64_t blank_lines = 0;      // lines that hold nothing, inside trees too
  int64_t unused_tokens = 0;    // tokens that a file leaves outside of its trees
};

// The trees of one source, in its order.
struct TreeCorpus {
  StringTable words;
  StringTable tags;
  std::vector<Tree> trees;
  std::vector<double> scores;  // [trees] of pairs, NaN where there is none; empty for other formats
  ReaderStatistics statistics;
};

// Vertices on the longest path from the root to a leaf; 1 for a lone vertex, 0 for no vertex.
int32_t CountLevels(const Tree& tree);

// How often each word of the corpus occurs, indexed by its number in `corpus.words`; [words.size()].
std::vector<int64_t> CountWords(const TreeCorpus& corpus);

struct Majority {
  int32_t label = Tree::kNone;  // the most frequent class at the root, the lowest of equals; kNone without any
  int64_t count = 0;            // trees with it
  int64_t total = 0;            // trees that have a class at the root
  double rate() const { return total > 0 ? static_cast<double>(count) / static_cast<double>(total) : 0.0; }
};

// What a classifier reaches that always answers the most frequent class at the root.
Majority RootMajority(std::span<const Tree> trees);

// Counts what was delivered (trees, leaves, vertices, max_levels, max_leaves, class_labels) of one more tree.
void CountTree(const Tree& tree, ReaderStatistics* statistics);

}  // namespace cavs
