#include "graph/readers/listops.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "cavs/base/error.h"
#include "graph/readers/listops_builder.h"

namespace cavs {
namespace {

constexpr std::array<std::string_view, kListOpsTokens> kSpellings = {"0", "1", "2",    "3",    "4",    "5",   "6", "7",
                                                                     "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

int32_t Median(std::span<const int32_t> values) {
  std::vector<int32_t> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace

std::string_view ListOpsSpelling(int32_t token) { return kSpellings[static_cast<size_t>(token)]; }

StringTable ListOpsWords() {
  StringTable words;
  for (const std::string_view spelling : kSpellings) words.Intern(spelling);
  return words;
}

int32_t EvaluateListOps(int32_t op, std::span<const int32_t> arguments) {
  CAVS_CHECK(!arguments.empty());
  switch (op) {
    case kListOpsMin:
      return std::ranges::min(arguments);
    case kListOpsMax:
      return std::ranges::max(arguments);
    case kListOpsMedian:
      return Median(arguments);
    case kListOpsSum:
      return static_cast<int32_t>(std::accumulate(arguments.begin(), arguments.end(), int64_t{0}) % 10);
    default:
      CAVS_CHECK(false, "{} is no ListOps operator", op);
  }
  return Tree::kNone;
}

int32_t OperatorDepth(const Tree& tree) {
  std::vector<int32_t> depth(static_cast<size_t>(tree.vertex_count()));
  for (int32_t v = 0; v < tree.vertex_count(); ++v) {
    if (tree.is_leaf(v)) continue;
    const auto children = tree.children(v);
    const auto left = static_cast<size_t>(children[0]);
    const auto right = static_cast<size_t>(children[1]);
    const bool completes = tree.word[right] == kListOpsClose;
    depth[static_cast<size_t>(v)] = completes ? depth[left] + 1 : std::max(depth[left], depth[right]);
  }
  return depth.empty() ? 0 : depth.back();
}

std::string FormatListOps(const Tree& tree) {
  // In post order a leaf is preceded by one `(` for every bracket in which it is the leftmost leaf.
  std::vector<int32_t> opens(static_cast<size_t>(tree.vertex_count()));
  std::vector<int32_t> leftmost(static_cast<size_t>(tree.vertex_count()));
  for (int32_t v = 0; v < tree.vertex_count(); ++v) {
    const auto i = static_cast<size_t>(v);
    leftmost[i] = tree.is_leaf(v) ? v : leftmost[static_cast<size_t>(tree.children(v)[0])];
    if (!tree.is_leaf(v)) ++opens[static_cast<size_t>(leftmost[i])];
  }
  std::string text;
  const auto append = [&text](std::string_view token) {
    if (!text.empty()) text += ' ';
    text += token;
  };
  for (int32_t v = 0; v < tree.vertex_count(); ++v) {
    const auto i = static_cast<size_t>(v);
    for (int32_t open = 0; open < opens[i]; ++open) append("(");
    append(tree.is_leaf(v) ? ListOpsSpelling(tree.word[i]) : ")");
  }
  return text;
}

void ListOpsBuilder::Start(int64_t line) {
  tree_.child_begin.assign(1, 0);
  for (std::vector<int32_t>* column : {&tree_.child, &tree_.label, &tree_.word}) column->clear();
  tree_.line = line;
  open_.clear();
  arguments_.clear();
}

int32_t ListOpsBuilder::AddDigit(int32_t digit) { return AddLeaf(digit, digit); }

int32_t ListOpsBuilder::AddOperator(int32_t op) {
  open_.push_back({op, arguments_.size()});
  return AddLeaf(op, Tree::kNone);
}

int32_t ListOpsBuilder::AddClose() { return AddLeaf(kListOpsClose, Tree::kNone); }

int32_t ListOpsBuilder::Apply(int32_t application, int32_t argument) {
  arguments_.push_back(tree_.label[static_cast<size_t>(argument)]);
  return AddInner(application, argument, Tree::kNone);
}

int32_t ListOpsBuilder::Finish(int32_t application, int32_t close) {
  const auto [op, first_argument] = open_.back();
  const int32_t value = EvaluateListOps(op, std::span(arguments_).subspan(first_argument));
  arguments_.resize(first_argument);
  open_.pop_back();
  return AddInner(application, close, value);
}

int32_t ListOpsBuilder::AddLeaf(int32_t token, int32_t label) {
  const int32_t vertex = tree_.vertex_count();
  tree_.child_begin.push_back(tree_.child_begin.back());
  tree_.label.push_back(label);
  tree_.word.push_back(token);
  return vertex;
}

int32_t ListOpsBuilder::AddInner(int32_t left, int32_t right, int32_t label) {
  const int32_t vertex = tree_.vertex_count();
  tree_.child.insert(tree_.child.end(), {left, right});
  tree_.child_begin.push_back(static_cast<int32_t>(tree_.child.size()));
  tree_.label.push_back(label);
  tree_.word.push_back(Tree::kNone);
  return vertex;
}

}  // namespace cavs
