#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "cavs/base/error.h"
#include "graph/readers/bracket_lexer.h"
#include "graph/readers/listops.h"
#include "graph/readers/listops_builder.h"

namespace cavs {
namespace {

class ListOpsParser {
 public:
  explicit ListOpsParser(const TextFile& file) : file_(file), lexer_(file) { corpus_.words = ListOpsWords(); }

  TreeCorpus Run(int64_t max_examples);

 private:
  using Kind = BracketToken::Kind;

  // What a vertex stands for.
  enum class Role : uint8_t { kApplication, kComplete, kClose };

  struct Item {
    int32_t vertex = Tree::kNone;
    Role role = Role::kComplete;
  };

  // A bracket that is open, with the items that it holds so far.
  struct Bracket {
    int64_t offset = 0;
    size_t count = 0;
    std::array<Item, 2> items{};
  };

  int32_t ReadExpression(const BracketToken& stated);
  Item AddToken(const BracketToken& token);
  Item CloseBracket(const BracketToken& token);
  void Deliver(const Item& item, const BracketToken& token);

  const TextFile& file_;
  BracketLexer lexer_;
  ListOpsBuilder builder_;
  TreeCorpus corpus_;
  std::vector<Bracket> open_;  // outermost first
};

TreeCorpus ListOpsParser::Run(int64_t max_examples) {
  ReaderStatistics& statistics = corpus_.statistics;
  BracketToken token = lexer_.Next();
  while (token.kind != Kind::kEnd && (max_examples <= 0 || statistics.trees < max_examples)) {
    const int32_t stated = token.kind == Kind::kWord ? corpus_.words.Find(token.text) : Tree::kNone;
    if (stated < 0 || stated >= kListOpsClasses) {
      file_.Fail(token.offset, fmt::format("expected a value 0 to 9 before the expression, got '{}'", token.text));
    }
    const int64_t line = token.line;
    const int32_t value = ReadExpression(token);
    if (value != stated) throw ParseError(file_.name(), line, 0, fmt::format("expected {}, got {}", value, stated));
    token = lexer_.Next();
    if (token.kind != Kind::kEnd && token.line == line) {
      file_.Fail(token.offset, fmt::format("expected the end of the line after the expression, got '{}'", token.text));
    }
    CountTree(builder_.tree(), &statistics);
    statistics.brackets += builder_.tree().vertex_count() / 2;
    corpus_.trees.push_back(builder_.tree());
  }
  if (corpus_.trees.empty()) file_.FailEmpty();
  statistics.max_arity = statistics.brackets > 0 ? 2 : 0;
  statistics.max_depth = statistics.max_levels;
  statistics.blank_lines = lexer_.blank_lines();
  return std::move(corpus_);
}

// Reads the expression after the value, to the end of the line, and returns its value.
int32_t ListOpsParser::ReadExpression(const BracketToken& stated) {
  builder_.Start(stated.line);
  open_.clear();
  do {
    const BracketToken token = lexer_.Next();
    if (token.kind == Kind::kEnd || token.line != stated.line) {
      if (open_.empty()) file_.Fail(stated.offset, "expected an expression after the value, got the end of the line");
      file_.Fail(open_.back().offset,
                 fmt::format("end of line inside the expression: expected {} more ')'", open_.size()));
    }
    switch (token.kind) {
      case Kind::kOpen:
        open_.push_back({.offset = token.offset});
        break;
      case Kind::kClose:
        Deliver(CloseBracket(token), token);
        break;
      default:
        Deliver(AddToken(token), token);
        break;
    }
  } while (!open_.empty());
  return builder_.tree().label.back();
}

ListOpsParser::Item ListOpsParser::AddToken(const BracketToken& token) {
  const int32_t word = corpus_.words.Find(token.text);
  if (word == StringTable::kNone) {
    file_.Fail(token.offset, fmt::format("expected a digit, an operator or ']', got '{}'", token.text));
  }
  if (word < kListOpsClasses) return {builder_.AddDigit(word), Role::kComplete};
  if (word == kListOpsClose) return {builder_.AddClose(), Role::kClose};
  return {builder_.AddOperator(word), Role::kApplication};
}

ListOpsParser::Item ListOpsParser::CloseBracket(const BracketToken& token) {
  if (open_.empty()) file_.Fail(token.offset, "expected an expression, got ')' without its '('");
  const Bracket bracket = open_.back();
  if (bracket.count < 2) {
    file_.Fail(token.offset, fmt::format("expected two items in a bracket, got {}", bracket.count));
  }
  open_.pop_back();
  const auto& [application, last] = bracket.items;
  if (last.role == Role::kComplete) return {builder_.Apply(application.vertex, last.vertex), Role::kApplication};
  return {builder_.Finish(application.vertex, last.vertex), Role::kComplete};
}

// Hands a token or a closed bracket to the bracket around it, which accepts an application first and then an argument
// or
// `]`; that is the whole grammar.
void ListOpsParser::Deliver(const Item& item, const BracketToken& token) {
  if (open_.empty()) {
    if (item.role == Role::kComplete) return;
    file_.Fail(token.offset, fmt::format("expected a complete expression, got it to end in '{}'", token.text));
  }
  Bracket& bracket = open_.back();
  if (bracket.count == 2) file_.Fail(token.offset, "expected two items in a bracket, got a third");
  if (bracket.count == 0 && item.role != Role::kApplication) {
    file_.Fail(token.offset, fmt::format("expected an operator before '{}'", token.text));
  }
  if (bracket.count == 1 && item.role == Role::kApplication) {
    file_.Fail(token.offset, fmt::format("expected a complete argument or ']', got it to end in '{}'", token.text));
  }
  if (item.role == Role::kClose && builder_.argument_count() == 0) {
    file_.Fail(token.offset, "expected an argument of the operator, got ']'");
  }
  bracket.items[bracket.count++] = item;
}

}  // namespace

TreeCorpus ReadListOps(const TextFile& file, int64_t max_examples) { return ListOpsParser(file).Run(max_examples); }

TreeCorpus ReadListOpsFile(const std::string& path, int64_t max_examples) {
  return ReadListOps(ReadTextFile(path), max_examples);
}

}  // namespace cavs
