#include "graph/readers/tree.h"

#include <algorithm>
#include <map>

namespace cavs {

int32_t CountLevels(const Tree& tree) {
  std::vector<int32_t> levels(static_cast<size_t>(tree.vertex_count()));
  for (int32_t v = 0; v < tree.vertex_count(); ++v) {
    int32_t below = 0;
    for (const int32_t child : tree.children(v)) below = std::max(below, levels[static_cast<size_t>(child)]);
    levels[static_cast<size_t>(v)] = below + 1;
  }
  return levels.empty() ? 0 : levels.back();
}

std::vector<int64_t> CountWords(const TreeCorpus& corpus) {
  std::vector<int64_t> counts(static_cast<size_t>(corpus.words.size()));
  for (const Tree& tree : corpus.trees) {
    for (const int32_t word : tree.word) {
      if (word != Tree::kNone) ++counts[static_cast<size_t>(word)];
    }
  }
  return counts;
}

Majority RootMajority(std::span<const Tree> trees) {
  std::map<int32_t, int64_t> counts;
  Majority majority;
  for (const Tree& tree : trees) {
    if (tree.label.empty() || tree.label.back() == Tree::kNone) continue;
    ++counts[tree.label.back()];
    ++majority.total;
  }
  for (const auto& [label, count] : counts) {
    if (count > majority.count) {
      majority.label = label;
      majority.count = count;
    }
  }
  return majority;
}

void CountTree(const Tree& tree, ReaderStatistics* statistics) {
  const auto none = [](const std::vector<int32_t>& values) { return std::ranges::count(values, Tree::kNone); };
  const int64_t leaves = tree.vertex_count() - none(tree.word);
  ++statistics->trees;
  statistics->leaves += leaves;
  statistics->vertices += tree.vertex_count();
  statistics->class_labels += tree.vertex_count() - none(tree.label);
  statistics->max_levels = std::max<int64_t>(statistics->max_levels, CountLevels(tree));
  statistics->max_leaves = std::max(statistics->max_leaves, leaves);
}

}  // namespace cavs
