#include "graph/readers/bracket_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "cavs/base/error.h"
#include "graph/readers/bracket_lexer.h"
#include "graph/readers/token.h"

namespace cavs {
namespace {

// The number that `text` writes without sign and leading zeros, or Tree::kNone if it is none or not below `classes`.
int32_t ParseClass(std::string_view text, int32_t classes) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool canonical = error == std::errc() && end == text.data() + text.size() && text.front() != '-' &&
                         (text.front() != '0' || text.size() == 1);
  return canonical && value < classes ? value : Tree::kNone;
}

class BracketParser {
 public:
  BracketParser(const TextFile& file, const BracketOptions& options) : file_(file), options_(options), lexer_(file) {}

  TreeCorpus Run();

 private:
  using Kind = BracketToken::Kind;

  // A bracket that is open.
  struct Bracket {
    int64_t offset = 0;      // of its `(`
    int64_t height = 0;      // brackets on the longest path below it
    size_t first_child = 0;  // where its children begin in open_children_
    int32_t arity = 0;       // children as read
    int32_t label = Tree::kNone;
    int32_t tag = Tree::kNone;
    int32_t word = Tree::kNone;
    bool labelled = false;  // a label was read, be it a class or a tag
  };

  void ReadTree(const BracketToken& open);
  void Open(const BracketToken& token);
  void ReadWord(const BracketToken& token);
  void ReadLabel(const BracketToken& token, Bracket* bracket);
  void Close(const BracketToken& token);
  void CheckContent(const Bracket& bracket, const BracketToken& close) const;
  int32_t MergeIntoChild(const Bracket& bracket);
  int32_t AddInnerOrLeaf(const Bracket& bracket);
  void JoinLastTwo(const Bracket& parent);
  int32_t AddVertex(size_t first_child, int32_t label, int32_t tag, int32_t word);
  std::string ExpectedClass() const { return fmt::format("expected a class label 0 to {}", options_.classes - 1); }
  [[noreturn]] void FailUnfinished(std::string_view end) const;
  [[noreturn]] void Fail(const BracketToken& token, std::string_view message) const;

  const TextFile& file_;
  const BracketOptions& options_;
  BracketLexer lexer_;
  TreeCorpus corpus_;
  Tree tree_;                           // the tree being read; copied at exact size when it is complete
  std::vector<Bracket> open_;           // outermost first
  std::vector<int32_t> open_children_;  // finished vertices whose parents are open, grouped by parent
};

TreeCorpus BracketParser::Run() {
  ReaderStatistics& statistics = corpus_.statistics;
  int64_t last_line = 0;
  while (options_.max_examples <= 0 || statistics.trees < options_.max_examples) {
    const BracketToken token = lexer_.Next();
    if (token.kind == Kind::kEnd) break;
    if (token.kind == Kind::kClose) Fail(token, "expected a tree, got ')' without its '('");
    if (token.kind == Kind::kWord) Fail(token, fmt::format("expected '(' of a tree, got '{}'", token.text));
    if (options_.sst && token.line == last_line) Fail(token, "expected one tree a line, got a second one");
    last_line = token.line;
    ReadTree(token);
    CountTree(tree_, &statistics);
    corpus_.trees.push_back(tree_);
  }
  if (corpus_.trees.empty()) file_.FailEmpty();
  statistics.blank_lines = lexer_.blank_lines();
  return std::move(corpus_);
}

void BracketParser::ReadTree(const BracketToken& open) {
  tree_.child_begin.assign(1, 0);
  for (std::vector<int32_t>* column : {&tree_.child, &tree_.label, &tree_.word, &tree_.tag}) column->clear();
  tree_.line = open.line;
  open_children_.clear();
  Open(open);
  while (!open_.empty()) {
    const BracketToken token = lexer_.Next();
    if (token.kind == Kind::kEnd) FailUnfinished("file");
    if (options_.sst && token.line != tree_.line) FailUnfinished("line");
    switch (token.kind) {
      case Kind::kOpen:
        Open(token);
        break;
      case Kind::kClose:
        Close(token);
        break;
      default:
        ReadWord(token);
        break;
    }
  }
}

void BracketParser::Open(const BracketToken& token) {
  if (!open_.empty()) {
    const Bracket& parent = open_.back();
    if (parent.word != Tree::kNone) Fail(token, "expected ')' after the word of a leaf, got '('");
    if (options_.sst && !parent.labelled) Fail(token, ExpectedClass() + ", got '('");
    if (options_.sst && parent.arity == 2) Fail(token, "expected ')' after two children, got a third");
    // Joining as soon as a further child is seen keeps the post order of a left-branching tree.
    if (options_.binarize == Binarize::kLeft && parent.arity >= 2) JoinLastTwo(parent);
  }
  open_.push_back({.offset = token.offset, .first_child = open_children_.size()});
}

void BracketParser::ReadWord(const BracketToken& token) {
  Bracket& bracket = open_.back();
  if (bracket.arity > 0) Fail(token, fmt::format("expected '(' or ')', got '{}'", token.text));
  if (bracket.word != Tree::kNone) {
    Fail(token, fmt::format("expected ')' after the word of a leaf, got '{}'", token.text));
  }
  if (!bracket.labelled) {
    ReadLabel(token, &bracket);
  } else {
    bracket.word =
        options_.keep_escapes ? corpus_.words.Intern(token.text) : corpus_.words.Intern(NormalizeToken(token.text));
  }
}

void BracketParser::ReadLabel(const BracketToken& token, Bracket* bracket) {
  bracket->labelled = true;
  const bool only_classes = options_.sst || options_.labels == Labels::kClasses;
  if (only_classes || options_.labels == Labels::kAuto) bracket->label = ParseClass(token.text, options_.classes);
  if (bracket->label != Tree::kNone) return;
  if (only_classes) Fail(token, fmt::format("{}, got '{}'", ExpectedClass(), token.text));
  bracket->tag = corpus_.tags.Intern(token.text);
}

void BracketParser::Close(const BracketToken& token) {
  const Bracket bracket = open_.back();
  CheckContent(bracket, token);
  ReaderStatistics& statistics = corpus_.statistics;
  const bool redundant_top = open_.size() == 1 && bracket.arity == 1 && !bracket.labelled;
  int64_t height = bracket.height;
  int32_t vertex = Tree::kNone;
  if (redundant_top) {
    vertex = open_children_.back();
    ++statistics.dropped_tops;
  } else {
    ++height;
    ++statistics.brackets;
    statistics.max_arity = std::max<int64_t>(statistics.max_arity, bracket.arity);
    const bool merge = bracket.arity == 1 && options_.unary == Unary::kCollapse;
    vertex = merge ? MergeIntoChild(bracket) : AddInnerOrLeaf(bracket);
  }
  open_children_.resize(bracket.first_child);
  open_.pop_back();
  if (open_.empty()) {
    statistics.max_depth = std::max(statistics.max_depth, height);
    return;
  }
  Bracket& parent = open_.back();
  parent.height = std::max(parent.height, height);
  ++parent.arity;
  open_children_.push_back(vertex);
}

void BracketParser::CheckContent(const Bracket& bracket, const BracketToken& close) const {
  if (options_.sst && !bracket.labelled) Fail(close, ExpectedClass() + ", got ')'");
  if (bracket.word == Tree::kNone && bracket.arity == 0) {
    Fail(close, bracket.labelled ? "expected a word or a child after the label, got ')'"
                                 : "expected a label, a word or a child, got ')'");
  }
  if (options_.sst && bracket.arity == 1) Fail(close, "expected a second child, got ')'");
}

int32_t BracketParser::MergeIntoChild(const Bracket& bracket) {
  ++corpus_.statistics.collapsed_unary;
  const int32_t vertex = open_children_.back();
  const auto v = static_cast<size_t>(vertex);
  if (bracket.label != Tree::kNone) tree_.label[v] = bracket.label;
  if (tree_.tag[v] == Tree::kNone) tree_.tag[v] = bracket.tag;
  return vertex;
}

int32_t BracketParser::AddInnerOrLeaf(const Bracket& bracket) {
  if (options_.binarize == Binarize::kRight) {
    while (open_children_.size() - bracket.first_child > 2) JoinLastTwo(bracket);
  }
  const size_t children = open_children_.size() - bracket.first_child;
  if (options_.max_children > 0 && children > static_cast<size_t>(options_.max_children)) {
    file_.Fail(bracket.offset, fmt::format("{} children, cell takes {} (binarize left or right makes the tree binary)",
                                           children, options_.max_children));
  }
  return AddVertex(bracket.first_child, bracket.label, bracket.tag, bracket.word);
}

void BracketParser::JoinLastTwo(const Bracket& parent) {
  ++corpus_.statistics.binarised;
  const std::string_view tag = parent.tag == Tree::kNone ? std::string_view() : corpus_.tags.at(parent.tag);
  const size_t first = open_children_.size() - 2;
  const int32_t vertex = AddVertex(first, Tree::kNone, corpus_.tags.Intern(fmt::format("@{}", tag)), Tree::kNone);
  open_children_.resize(first);
  open_children_.push_back(vertex);
}

int32_t BracketParser::AddVertex(size_t first_child, int32_t label, int32_t tag, int32_t word) {
  const int32_t vertex = tree_.vertex_count();
  if (vertex == std::numeric_limits<int32_t>::max()) {
    file_.Fail(open_.front().offset, "expected a tree of fewer than 2^31 vertices, got more");
  }
  const auto first = open_children_.begin() + static_cast<std::ptrdiff_t>(first_child);
  tree_.child.insert(tree_.child.end(), first, open_children_.end());
  tree_.child_begin.push_back(static_cast<int32_t>(tree_.child.size()));
  tree_.label.push_back(label);
  tree_.word.push_back(word);
  if (!options_.sst) tree_.tag.push_back(tag);
  return vertex;
}

void BracketParser::FailUnfinished(std::string_view end) const {
  file_.Fail(open_.front().offset, fmt::format("end of {} inside the tree that began on line {}: expected {} more ')'",
                                               end, tree_.line, open_.size()));
}

void BracketParser::Fail(const BracketToken& token, std::string_view message) const {
  if (open_.empty() || token.line == tree_.line) file_.Fail(token.offset, message);
  file_.Fail(token.offset, fmt::format("{} (in the tree that began on line {})", message, tree_.line));
}

}  // namespace

Binarize ParseBinarize(std::string_view name) {
  if (name == "none") return Binarize::kKeep;
  if (name == "left") return Binarize::kLeft;
  if (name == "right") return Binarize::kRight;
  ThrowInvalid("binarize", fmt::format("expected none, left or right, got '{}'", name));
}

Unary ParseUnary(std::string_view name) {
  if (name == "collapse") return Unary::kCollapse;
  if (name == "keep") return Unary::kKeep;
  ThrowInvalid("unary", fmt::format("expected collapse or keep, got '{}'", name));
}

TreeCorpus ReadBrackets(const TextFile& file, const BracketOptions& options) {
  return BracketParser(file, options).Run();
}

TreeCorpus ReadBracketFile(const std::string& path, const BracketOptions& options) {
  return ReadBrackets(ReadTextFile(path), options);
}

}  // namespace cavs
