#include "graph/readers/parent_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>

#include "graph/readers/token.h"

namespace cavs {
namespace {

constexpr int32_t kOutside = -1;

std::optional<int32_t> ParsePointer(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Where `from` leads in circles: "1 -> 2 -> 1". Only as many vertices are named as a message can hold.
std::string DescribeCycle(const std::vector<int32_t>& parents, int32_t from) {
  constexpr int kNamed = 10;
  for (size_t i = 0; i < parents.size(); ++i) from = parents[static_cast<size_t>(from)];
  std::string text = fmt::format("{}", from);
  int32_t vertex = from;
  for (int named = 0; named == 0 || vertex != from; ++named) {
    if (named == kNamed) return text + " -> ...";
    vertex = parents[static_cast<size_t>(vertex)];
    text += fmt::format(" -> {}", vertex);
  }
  return text;
}

}  // namespace

ParentTreeReader::ParentTreeReader(const TextFile& tokens, const TextFile& parents)
    : token_file_(tokens), parent_file_(parents), token_lines_(tokens), parent_lines_(parents) {}

bool ParentTreeReader::Next(StringTable* words, Tree* tree) {
  if (!NextLines()) return false;
  ReadWords(words);
  ReadParents();
  CheckRoots();
  FindChildren();
  OrderVertices();
  CheckReached();
  Append(tree);
  for (size_t v = 1; v < parents_.size(); ++v) {
    if (parents_[v] == kOutside) ++unused_tokens_;
    max_arity_ = std::max<int64_t>(max_arity_, child_begin_[v + 1] - child_begin_[v]);
  }
  return true;
}

bool ParentTreeReader::NextLines() {
  const bool tokens = token_lines_.Next(), parents = parent_lines_.Next();
  if (tokens == parents) return tokens;
  const TextFile& longer = tokens ? token_file_ : parent_file_;
  const TextFile& shorter = tokens ? parent_file_ : token_file_;
  const LineReader& extra = tokens ? token_lines_ : parent_lines_;
  longer.Fail(extra.offset(),
              fmt::format("expected the {} lines that {} has, got another line", extra.number() - 1, shorter.name()));
}

void ParentTreeReader::ReadWords(StringTable* words) {
  words_.assign(1, Tree::kNone);
  TokenReader tokens(token_lines_.line());
  while (tokens.Next()) words_.push_back(words->Intern(NormalizeToken(tokens.token())));
  if (words_.size() == 1) token_file_.Fail(token_lines_.offset(), "expected a token, got a line without any");
}

void ParentTreeReader::ReadParents() {
  parents_.assign(1, kOutside);
  columns_.assign(1, 0);
  TokenReader pointers(parent_lines_.line());
  while (pointers.Next()) {
    columns_.push_back(pointers.offset());
    const std::optional<int32_t> parent = ParsePointer(pointers.token());
    const auto vertex = static_cast<int32_t>(parents_.size());
    if (!parent) Fail(vertex, fmt::format("expected the number of a parent, got '{}'", pointers.token()));
    parents_.push_back(*parent);
  }
  if (parents_.size() < words_.size()) {
    parent_file_.Fail(parent_lines_.offset(), fmt::format("expected a parent for each of {} tokens, got {}",
                                                          words_.size() - 1, parents_.size() - 1));
  }
  words_.resize(parents_.size(), Tree::kNone);
  for (int32_t vertex = 1; vertex < std::ssize(parents_); ++vertex) CheckParent(vertex);
}

void ParentTreeReader::Fail(int32_t vertex, std::string_view message) const {
  parent_file_.Fail(parent_lines_.offset() + columns_[static_cast<size_t>(vertex)], message);
}

void ParentTreeReader::CheckParent(int32_t vertex) const {
  const int32_t parent = parents_[static_cast<size_t>(vertex)];
  if (parent < kOutside || parent >= std::ssize(parents_)) {
    Fail(vertex, fmt::format("expected a parent from -1 to {}, got {}", std::ssize(parents_) - 1, parent));
  }
  if (parent == vertex) Fail(vertex, fmt::format("expected another vertex as parent, got {} for itself", vertex));
  if (parent > 0 && parents_[static_cast<size_t>(parent)] == kOutside) {
    Fail(vertex, fmt::format("expected a parent inside of the tree, got {}, whose own is -1", parent));
  }
}

void ParentTreeReader::CheckRoots() const {
  int32_t first = 0;
  for (int32_t vertex = 1; vertex < std::ssize(parents_); ++vertex) {
    if (parents_[static_cast<size_t>(vertex)] != 0) continue;
    if (first != 0) Fail(vertex, fmt::format("expected one root (parent 0), got vertices {} and {}", first, vertex));
    first = vertex;
  }
  if (first == 0) parent_file_.Fail(parent_lines_.offset(), "expected one root (parent 0), got none");
}

void ParentTreeReader::FindChildren() {
  child_begin_.assign(parents_.size() + 1, 0);
  for (const int32_t parent : parents_) {
    if (parent != kOutside) ++child_begin_[static_cast<size_t>(parent) + 1];
  }
  std::partial_sum(child_begin_.begin(), child_begin_.end(), child_begin_.begin());
  children_.resize(static_cast<size_t>(child_begin_.back()));
  std::vector<int32_t> next = child_begin_;
  for (int32_t vertex = 1; vertex < std::ssize(parents_); ++vertex) {
    const int32_t parent = parents_[static_cast<size_t>(vertex)];
    if (parent != kOutside) children_[static_cast<size_t>(next[static_cast<size_t>(parent)]++)] = vertex;
  }
}

void ParentTreeReader::OrderVertices() {
  // Parents before children, the last child first, read backwards is post order.
  order_.clear();
  std::vector<int32_t> pending = {children_[static_cast<size_t>(child_begin_[0])]};
  while (!pending.empty()) {
    const auto vertex = static_cast<size_t>(pending.back());
    pending.pop_back();
    order_.push_back(static_cast<int32_t>(vertex));
    pending.insert(pending.end(), children_.begin() + child_begin_[vertex],
                   children_.begin() + child_begin_[vertex + 1]);
  }
  std::reverse(order_.begin(), order_.end());
}

void ParentTreeReader::CheckReached() const {
  std::vector<bool> reached(parents_.size());
  for (const int32_t vertex : order_) reached[static_cast<size_t>(vertex)] = true;
  for (int32_t vertex = 1; vertex < std::ssize(parents_); ++vertex) {
    const auto v = static_cast<size_t>(vertex);
    if (reached[v] || parents_[v] == kOutside) continue;
    Fail(vertex, fmt::format("expected a tree, got the cycle {}", DescribeCycle(parents_, vertex)));
  }
}

void ParentTreeReader::Append(Tree* tree) const {
  if (tree->child_begin.empty()) tree->child_begin.push_back(0);
  std::vector<int32_t> place(parents_.size());
  for (const int32_t vertex : order_) {
    const auto v = static_cast<size_t>(vertex);
    place[v] = tree->vertex_count();
    for (int32_t k = child_begin_[v]; k < child_begin_[v + 1]; ++k) {
      tree->child.push_back(place[static_cast<size_t>(children_[static_cast<size_t>(k)])]);
    }
    tree->child_begin.push_back(static_cast<int32_t>(tree->child.size()));
    tree->label.push_back(Tree::kNone);
    tree->word.push_back(words_[v]);
  }
}

}  // namespace cavs
