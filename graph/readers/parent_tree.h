// Trees as parent pointers, the form of the treelstm data sets: line n of one file holds the tokens of tree n, line n
// of another the parent of each of its vertices: a number from 1, 0 for the root, -1 for a token outside of the tree.
//
// Vertex k has token k as its word; vertices beyond the tokens have none (the constituents of `5 4 4 5 0` over three
// words). Children are in the order of their numbers. A tree has one root, no cycle, and nothing below a token outside
// of it. Words are taken in their look-up form (NormalizeToken). Nothing here is recursive. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

class ParentTreeReader {
 public:
  // Both files must outlive the reader.
  ParentTreeReader(const TextFile& tokens, const TextFile& parents);

  // Appends the vertices of the next tree to `tree`, in post order and without labels; its words are numbers of
  // `words`. False when both files are at their end. Throws ParseError with line and mostly column for whatever is not
  // one tree, and where one file ends before the other.
  bool Next(StringTable* words, Tree* tree);

  // The line that was read last, from 1.
  int64_t line() const { return parent_lines_.number(); }
  // Tokens outside of their trees, so far.
  int64_t unused_tokens() const { return unused_tokens_; }
  // Children of the widest vertex so far.
  int64_t max_arity() const { return max_arity_; }

 private:
  bool NextLines();
  void ReadWords(StringTable* words);
  void ReadParents();
  // Throws at the parent pointer of `vertex`.
  [[noreturn]] void Fail(int32_t vertex, std::string_view message) const;
  void CheckParent(int32_t vertex) const;
  void CheckRoots() const;
  void FindChildren();
  // The vertices below the root, children before parents.
  void OrderVertices();
  void CheckReached() const;
  void Append(Tree* tree) const;

  const TextFile& token_file_;
  const TextFile& parent_file_;
  LineReader token_lines_;
  LineReader parent_lines_;
  int64_t unused_tokens_ = 0;
  int64_t max_arity_ = 0;
  // Of the present tree; vertices count from 1, as in the file, and [0] stands above the root.
  std::vector<int32_t> words_;        // [vertices + 1]
  std::vector<int32_t> parents_;      // [vertices + 1]
  std::vector<int64_t> columns_;      // [vertices + 1]: byte offset of the pointer in its line
  std::vector<int32_t> child_begin_;  // [vertices + 2]
  std::vector<int32_t> children_;
  std::vector<int32_t> order_;
};

}  // namespace cavs
