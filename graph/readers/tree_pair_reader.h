// Reads `treelstm:DIR`: pairs of trees with a score of how alike they are. DIR holds a.toks, a.parents, b.toks and
// b.parents, trees as parent pointers (parent_tree.h), and sim.txt, a score from 1 to 5 or `None` a line; line n of
// every file is pair n. Other files (relations, numbers of pairs) are not read.
//
// A pair becomes one tree (tree.h): the vertices of a, those of b, and a root without word whose children are the roots
// of both. Its line is that of a.parents. Safe to call from several threads.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "graph/readers/parent_tree.h"
#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

// The scale of similarity scores (Marelli et al. 2014).
inline constexpr int32_t kLowestScore = 1;
inline constexpr int32_t kHighestScore = 5;
inline constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// The score that `text` spells, at `offset` of `file`. Throws ParseError unless it is a number on the scale.
double ParseScore(const TextFile& file, int64_t offset, std::string_view text);

// Reads the trees of a folder pair by pair. Not thread-safe.
class TreePairReader {
 public:
  // Throws std::invalid_argument when one of the four files cannot be read.
  explicit TreePairReader(const std::string& folder);
  TreePairReader(const TreePairReader&) = delete;
  TreePairReader& operator=(const TreePairReader&) = delete;

  // Appends the next pair to `corpus`, without a score. False at the end of all files. Throws ParseError.
  bool Next(TreeCorpus* corpus);

  const std::string& name() const { return folder_; }

 private:
  std::string folder_;
  TextFile a_tokens_, a_parents_, b_tokens_, b_parents_;
  ParentTreeReader a_, b_;
};

// The first `max_examples` pairs of a folder, all if that is 0. Throws ParseError for what is refused, also when there
// is no pair at all, and std::invalid_argument when a file cannot be read.
TreeCorpus ReadTreePairs(const std::string& folder, int64_t max_examples = 0);

}  // namespace cavs
