#include "graph/readers/listops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "cavs/base/random.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

constexpr int kDepth = 200000;

// What mutations put in.
constexpr std::string_view kBytes = "()[] \t\n0123456789MAXSMEDIN\xFF";

TreeCorpus Read(std::string text, int64_t max_examples = 0) {
  return ReadListOps(TextFile("f", std::move(text)), max_examples);
}

std::string Error(std::string text) {
  return ParseErrorOf([&] { Read(std::move(text)); });
}

int32_t Evaluate(int32_t op, const std::vector<int32_t>& arguments) { return EvaluateListOps(op, arguments); }

TEST(ListOpsTest, Evaluates) {
  EXPECT_EQ(Evaluate(kListOpsMin, {3, 1, 9}), 1);
  EXPECT_EQ(Evaluate(kListOpsMax, {3, 1, 9}), 9);
  EXPECT_EQ(Evaluate(kListOpsMedian, {9, 1, 3}), 3);
  EXPECT_EQ(Evaluate(kListOpsMedian, {9, 1, 3, 6}), 4);
  EXPECT_EQ(Evaluate(kListOpsMedian, {7, 0}), 3);
  EXPECT_EQ(Evaluate(kListOpsMedian, {8}), 8);
  EXPECT_EQ(Evaluate(kListOpsSum, {9, 9, 9}), 7);
  EXPECT_EQ(Evaluate(kListOpsSum, {5, 5}), 0);
}

TEST(ListOpsTest, LabelsEveryCompleteExpression) {
  const TreeCorpus corpus = Read("4\t( ( ( [MAX 3 ) ( ( ( [MIN 4 ) 8 ) ] ) ) ] )\r\n\n7\t7\n");
  ASSERT_EQ(corpus.statistics.trees, 2);
  EXPECT_EQ(Show(corpus, 0), "(4 ( ( ( [MAX) (3 3)) (4 ( ( ( [MIN) (4 4)) (8 8)) ( ]))) ( ]))");
  EXPECT_EQ(Show(corpus, 1), "(7 7)");
  for (const Tree& tree : corpus.trees) ExpectWellFormed(tree);
  EXPECT_EQ(corpus.trees[1].line, 3);
  EXPECT_EQ(OperatorDepth(corpus.trees[0]), 2);
  EXPECT_EQ(OperatorDepth(corpus.trees[1]), 0);
  EXPECT_EQ(corpus.statistics.leaves, 7 + 1);
  EXPECT_EQ(corpus.statistics.vertices, 13 + 1);
  EXPECT_EQ(corpus.statistics.brackets, 6);
  EXPECT_EQ(corpus.statistics.class_labels, 5 + 1);
  EXPECT_EQ(corpus.statistics.blank_lines, 1);
  EXPECT_EQ(FormatListOps(corpus.trees[0]), "( ( ( [MAX 3 ) ( ( ( [MIN 4 ) 8 ) ] ) ) ] )");
  EXPECT_EQ(FormatListOps(corpus.trees[1]), "7");
}

TEST(ListOpsTest, WordsHaveFixedNumbers) {
  const TreeCorpus corpus = Read("7\t7\n");
  ASSERT_EQ(corpus.words.size(), kListOpsTokens);
  EXPECT_EQ(kListOpsTokens, 15);
  EXPECT_EQ(corpus.words.Find("[SM"), kListOpsSum);
  EXPECT_EQ(corpus.words.Find("7"), 7);
  EXPECT_EQ(ListOpsSpelling(kListOpsClose), "]");
}

TEST(ListOpsTest, RefusesWithPlaceAndReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"6\t6\n7\t( ( ( [MAX 6 ) 3 ) ] )\n", "f:2: expected 6, got 7"},
      {"x\t6\n", "f:1:1: expected a value 0 to 9 before the expression, got 'x'"},
      {"10\t6\n", "f:1:1: expected a value 0 to 9 before the expression, got '10'"},
      {"[MAX\t6\n", "f:1:1: expected a value 0 to 9 before the expression, got '[MAX'"},
      {"( ( [MAX 6 ) ] )\n", "f:1:1: expected a value 0 to 9 before the expression, got '('"},
      {"6\n6\t6\n", "f:1:1: expected an expression after the value, got the end of the line"},
      {"6\t", "f:1:1: expected an expression after the value, got the end of the line"},
      {"6\t6 6\n", "f:1:5: expected the end of the line after the expression, got '6'"},
      {"6\t( ( [AVG 6 ) ] )\n", "f:1:7: expected a digit, an operator or ']', got '[AVG'"},
      {"6\t( ( [MAX 16 ) ] )\n", "f:1:12: expected a digit, an operator or ']', got '16'"},
      {"6\t( [MAX 6 ] )\n", "f:1:12: expected two items in a bracket, got a third"},
      {"6\t( [MAX ] )\n", "f:1:10: expected an argument of the operator, got ']'"},
      {"6\t( ( [MAX ) ] )\n", "f:1:12: expected two items in a bracket, got 1"},
      {"6\t( )\n", "f:1:5: expected two items in a bracket, got 0"},
      {"6\t( 6 ] )\n", "f:1:5: expected an operator before '6'"},
      {"6\t( [MAX 6 )\n", "f:1:12: expected a complete expression, got it to end in ')'"},
      {"6\t[MAX\n", "f:1:3: expected a complete expression, got it to end in '[MAX'"},
      {"6\t( ( [MAX ( [MIN 6 ) ) ] )\n", "f:1:21: expected a complete argument or ']', got it to end in ')'"},
      {"6\t( ( [MAX 6 ) ]\n", "f:1:3: end of line inside the expression: expected 1 more ')'"},
      {"6\t( ( [MAX 6 ) ]", "f:1:3: end of line inside the expression: expected 1 more ')'"},
      {"6\t)", "f:1:3: expected an expression, got ')' without its '('"},
      {"", "f:1: no examples in f"},
      {"6\t\xFF", "f:1:3: expected UTF-8, got byte 0xFF"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(Error(text), error) << text;
}

TEST(ListOpsTest, VeryDeepAndVeryWideExpressions) {
  std::string deep = "3\t";
  for (int i = 0; i < kDepth; ++i) deep += "( ( [MAX ";
  deep += "3";
  for (int i = 0; i < kDepth; ++i) deep += " ) ] )";
  const TreeCorpus nested = Read(deep);
  EXPECT_EQ(OperatorDepth(nested.trees[0]), kDepth);
  EXPECT_EQ("3\t" + FormatListOps(nested.trees[0]), deep);

  std::string wide = "0\t( ";
  for (int i = 0; i < kDepth; ++i) wide += "( ";
  wide += "[SM";
  for (int i = 0; i < kDepth; ++i) wide += " 5 )";
  EXPECT_EQ(OperatorDepth(Read(wide + " ] )").trees[0]), 1);
}

TEST(ListOpsTest, RealFilesReadWithTheirKnownCounts) {
  if (SharedData("listops").empty()) GTEST_SKIP() << "shared data absent";
  const TreeCorpus test = ReadListOpsFile(SharedData("listops/test_d20s.tsv"));
  EXPECT_EQ(test.statistics.trees, 10000);
  EXPECT_EQ(test.statistics.vertices, 846902);
  EXPECT_EQ(test.statistics.leaves, 428451);
  EXPECT_EQ(test.statistics.brackets, 418451);
  EXPECT_EQ(test.statistics.max_leaves, 939);
  EXPECT_EQ(test.statistics.max_levels, 84 + 1);  // known as 84 with a leaf at 0
  const Majority majority = RootMajority(test.trees);
  EXPECT_EQ(majority.label, 9);
  EXPECT_EQ(majority.count, 1141);
  EXPECT_EQ(majority.total, 10000);

  const TreeCorpus first = ReadListOpsFile(SharedData("listops/first20train.tsv"));
  EXPECT_EQ(first.statistics.trees, 20);
  EXPECT_EQ(first.statistics.leaves, 1251);
  EXPECT_EQ(first.statistics.brackets, 1231);
  const TreeCorpus small = ReadListOpsFile(SharedData("listops/2130train.tsv"));
  EXPECT_EQ(small.statistics.trees, 10);
  EXPECT_EQ(small.statistics.leaves, 203);
  EXPECT_EQ(ReadListOpsFile(SharedData("listops/2130train.tsv"), 3).statistics.trees, 3);
}

TEST(ListOpsTest, MutatedExpressionsAreReadOrRefused) {
  const TreeCorpus corpus = GenerateListOps({.count = 20});
  CounterRandom random(5);
  int64_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const Tree& tree = corpus.trees[static_cast<size_t>(random.Below(20))];
    std::string text = fmt::format("{}\t{}\n", tree.label.back(), FormatListOps(tree));
    const auto at = static_cast<size_t>(random.Below(std::ssize(text)));
    const char byte = kBytes[static_cast<size_t>(random.Below(std::ssize(kBytes)))];
    switch (random.Below(3)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      default:
        text.erase(at, 1 + static_cast<size_t>(random.Below(6)));
        break;
    }
    try {
      for (const Tree& read : Read(text).trees) ExpectWellFormed(read);
    } catch (const ParseError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1500);
  EXPECT_LT(refused, 3000);
}

TEST(ListOpsGeneratorTest, TheReaderAgreesWithEveryGeneratedLabel) {
  const TreeCorpus corpus = GenerateListOps({.seed = 3, .count = 2000});
  std::string text;
  for (const Tree& tree : corpus.trees) text += fmt::format("{}\t{}\n", tree.label.back(), FormatListOps(tree));
  const TreeCorpus read = Read(text);
  ASSERT_EQ(read.trees.size(), corpus.trees.size());
  for (size_t i = 0; i < read.trees.size(); ++i) {
    ASSERT_EQ(read.trees[i].word, corpus.trees[i].word);
    ASSERT_EQ(read.trees[i].label, corpus.trees[i].label);
    ASSERT_EQ(read.trees[i].child, corpus.trees[i].child);
    ASSERT_EQ(read.trees[i].child_begin, corpus.trees[i].child_begin);
  }
  EXPECT_EQ(read.statistics.vertices, corpus.statistics.vertices);
  EXPECT_EQ(read.statistics.brackets, corpus.statistics.brackets);
  EXPECT_EQ(read.statistics.max_depth, corpus.statistics.max_depth);
}

TEST(ListOpsGeneratorTest, KeepsToItsLimits) {
  const TreeCorpus corpus = GenerateListOps({});
  EXPECT_EQ(corpus.statistics.trees, 10000);
  EXPECT_GE(corpus.statistics.leaves, 15 * corpus.statistics.trees);
  std::set<int32_t> depths;
  std::set<int64_t> arguments;
  std::set<int32_t> words;
  for (const Tree& tree : corpus.trees) {
    depths.insert(OperatorDepth(tree));
    std::vector<int64_t> taken(static_cast<size_t>(tree.vertex_count()));
    for (int32_t v = 0; v < tree.vertex_count(); ++v) {
      const auto i = static_cast<size_t>(v);
      if (tree.is_leaf(v)) {
        words.insert(tree.word[i]);
        continue;
      }
      const auto left = static_cast<size_t>(tree.children(v)[0]);
      taken[i] = taken[left] + 1;
      if (tree.label[i] != Tree::kNone) arguments.insert(taken[left]);
    }
  }
  EXPECT_EQ(depths, (std::set<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(arguments, (std::set<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(std::ssize(words), kListOpsTokens);
}

TEST(ListOpsGeneratorTest, IsDeterministicBySeedAndStream) {
  const auto words = [](const TreeCorpus& corpus) {
    std::vector<std::vector<int32_t>> all;
    for (const Tree& tree : corpus.trees) all.push_back(tree.word);
    return all;
  };
  const auto base = words(GenerateListOps({.seed = 1, .count = 100}));
  EXPECT_EQ(base, words(GenerateListOps({.seed = 1, .count = 100})));
  EXPECT_NE(base, words(GenerateListOps({.seed = 2, .count = 100})));
  EXPECT_NE(base, words(GenerateListOps({.seed = 1, .stream = 1, .count = 100})));
  const auto prefix = words(GenerateListOps({.seed = 1, .count = 40}));
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), base.begin()));
}

TEST(ListOpsGeneratorTest, NoHeldOutExpressionIsTrainedOn) {
  // Two arguments and no nesting leave 400 expressions, so that most draws of the second stream were seen in the first.
  const ListOpsOptions options = {.count = 300, .max_arguments = 2, .max_depth = 1};
  const ListOpsSplit split = GenerateListOpsSplit(options, 100);
  EXPECT_EQ(split.train.statistics.trees, 300);
  EXPECT_EQ(split.held_out.statistics.trees, 100);
  std::set<std::string> trained;
  for (const Tree& tree : split.train.trees) trained.insert(FormatListOps(tree));
  for (const Tree& tree : split.held_out.trees) EXPECT_FALSE(trained.contains(FormatListOps(tree)));

  EXPECT_THROW(GenerateListOpsSplit({.count = 20000, .max_arguments = 2, .max_depth = 1}), std::invalid_argument);
  const ListOpsSplit defaults = GenerateListOpsSplit({});
  EXPECT_EQ(defaults.train.statistics.trees, 10000);
  EXPECT_EQ(defaults.held_out.statistics.trees, 1000);
}

TEST(ListOpsGeneratorTest, RefusesOptionsOutOfRange) {
  EXPECT_THROW(GenerateListOps({.count = 0}), std::invalid_argument);
  EXPECT_THROW(GenerateListOps({.min_arguments = 0}), std::invalid_argument);
  EXPECT_THROW(GenerateListOps({.min_arguments = 4, .max_arguments = 3}), std::invalid_argument);
  EXPECT_THROW(GenerateListOps({.max_depth = 0}), std::invalid_argument);
  EXPECT_THROW(GenerateListOps({.nesting = 1.5}), std::invalid_argument);
  EXPECT_THROW(GenerateListOps({.nesting = std::nan("")}), std::invalid_argument);
  EXPECT_THROW(GenerateListOpsSplit({}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace cavs
