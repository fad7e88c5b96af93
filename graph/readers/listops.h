// ListOps (Nangia and Bowman, 2018): nested list operations over digits, as trees whose vertices carry their values.
//
// An expression is a digit or an operator applied to arguments, `[MAX 3 4 ]`, and is bracketed strictly binary:
// operator first, arguments added one by one, `]` last. As a tree that is `( ( ( [MAX 3 ) 4 ) ] )`: every token is a
// leaf. The label of a vertex is the value of the expression that it completes (a digit, or a vertex that closes with
// `]`); all other vertices have none. Word numbers are the same in every corpus (ListOpsToken). A file has one
// expression a line, `value<TAB>expression`; the value is checked by evaluation. Nothing recurses over depth. Pure
// functions, safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

// Word numbers: 0 to 9 are the digits.
enum ListOpsToken : int32_t {
  kListOpsMin = 10,  // [MIN
  kListOpsMax,       // [MAX
  kListOpsMedian,    // [MED, the mean of the two middle values rounded down if their number is even
  kListOpsSum,       // [SM, the sum modulo 10
  kListOpsClose,     // ]
  kListOpsTokens     // how many tokens there are
};

// The values of an expression are the classes 0 to 9.
inline constexpr int32_t kListOpsClasses = 10;

// The spelling of the token numbered `token`; 0 <= token < kListOpsTokens.
std::string_view ListOpsSpelling(int32_t token);

// A table in which every token has its number.
StringTable ListOpsWords();

// The value of an operator for its arguments; at least one, each 0 to 9.
int32_t EvaluateListOps(int32_t op, std::span<const int32_t> arguments);

// How deep operators are nested: 0 for a digit, 1 for an operator over digits.
int32_t OperatorDepth(const Tree& tree);

// The expression as files hold it, without its value: `( ( ( [MAX 3 ) 4 ) ] )`.
std::string FormatListOps(const Tree& tree);

// Reads the expressions of a text; the first `max_examples` if that is above 0. Refuses, with ParseError at line and
// column, unknown tokens, brackets that are not binary, operators without arguments, arguments without operator and a
// stated value that is not the expression's.
TreeCorpus ReadListOps(const TextFile& file, int64_t max_examples = 0);

// The same for the file at `path`. Throws std::invalid_argument when it cannot be read.
TreeCorpus ReadListOpsFile(const std::string& path, int64_t max_examples = 0);

struct ListOpsOptions {
  uint64_t seed = 1;
  uint64_t stream = 0;        // expressions of different streams of a seed are drawn independently
  int64_t count = 10000;      // expressions
  int32_t min_arguments = 2;  // of an operator
  int32_t max_arguments = 5;
  int32_t max_depth = 4;  // of nested operators; every expression has at least one operator
  double nesting = 0.25;  // probability that an argument is an operator, where depth allows; 16 tokens on average
};

// Draws expressions: equal options give equal expressions, and a smaller count the first of them. Throws
// std::invalid_argument for options out of range.
TreeCorpus GenerateListOps(const ListOpsOptions& options);

struct ListOpsSplit {
  TreeCorpus train;
  TreeCorpus held_out;
};

// `options.count` expressions for training and `held_out` others, from the next stream, none of which is among the
// former. Throws std::invalid_argument as well when the options leave too few different expressions.
ListOpsSplit GenerateListOpsSplit(const ListOpsOptions& options, int64_t held_out = 1000);

}  // namespace cavs
