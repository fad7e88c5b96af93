// What the bracket reader accepts, and what it makes of it.
#include "graph/readers/bracket_reader.h"

#include <gtest/gtest.h>

#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

constexpr BracketOptions kSst = {.sst = true};
constexpr int64_t kDepth = 200000;
constexpr int64_t kLeaves = 100000;
constexpr BracketOptions kKeepUnary = {.unary = Unary::kKeep};

TEST(BracketReaderTest, ReadsATreeOverSeveralLinesAndDropsTheRedundantTop) {
  const std::string text = "( (S (NP (DT the)\n\n   (NN cat))\n (VP (VBD sat))))\n( (S (X yes)) (. .) )\n";
  const TreeCorpus first = ReadText(text, {.max_examples = 1});
  EXPECT_EQ(first.statistics.trees, 1);
  EXPECT_EQ(first.statistics.leaves, 3);
  EXPECT_EQ(first.statistics.brackets, 6);
  EXPECT_EQ(first.statistics.max_depth, 3);
  EXPECT_EQ(first.statistics.dropped_tops, 1);
  EXPECT_EQ(first.statistics.collapsed_unary, 1);
  EXPECT_EQ(first.statistics.vertices, 5);
  EXPECT_EQ(first.statistics.blank_lines, 1);

  const TreeCorpus both = ReadText(text, kKeepUnary);
  EXPECT_EQ(both.statistics.trees, 2);
  EXPECT_EQ(both.statistics.leaves, 5);
  EXPECT_EQ(both.statistics.brackets, 6 + 4);
  EXPECT_EQ(both.statistics.dropped_tops, 1);
  EXPECT_EQ(both.trees[0].line, 1);
  EXPECT_EQ(both.trees[1].line, 5);
  EXPECT_EQ(Show(both, 0), "(:S (:NP (:DT the) (:NN cat)) (:VP (:VBD sat)))");
  EXPECT_EQ(Show(both, 1), "( (:S (:X yes)) (:. .))");
  EXPECT_EQ(CountLevels(both.trees[1]), 3);
}

TEST(BracketReaderTest, TakesWordsInTheirLookUpForm) {
  const std::string text = "(2 (2 and\\/or) (3 (2 -LRB-) (2 \\*)))\n";
  const TreeCorpus corpus = ReadText(text, kSst);
  EXPECT_EQ(Show(corpus), "(2 (2 and/or) (3 (2 () (2 *)))");
  EXPECT_EQ(corpus.statistics.leaves, 3);
  EXPECT_EQ(corpus.statistics.brackets, 5);
  EXPECT_EQ(corpus.statistics.max_depth, 3);
  EXPECT_EQ(corpus.statistics.class_labels, 5);
  EXPECT_EQ(Show(ReadText(text, {.sst = true, .keep_escapes = true})), "(2 (2 and\\/or) (3 (2 -LRB-) (2 \\*)))");
}

TEST(BracketReaderTest, TagsKeepTheirSpelling) {
  EXPECT_EQ(Show(ReadText("(X (-LRB- -LRB-) (7\\/8 7\\/8) (# #) ('' ''))")),
            "(:X (:-LRB- () (:7\\/8 7/8) (:# #) (:'' ''))");
}

TEST(BracketReaderTest, ReadsOneWordTreesUnaryChainsAndWideVertices) {
  const TreeCorpus word = ReadText("(3 Good)");
  EXPECT_EQ(Show(word), "(3 Good)");
  EXPECT_EQ(word.statistics.max_depth, 1);
  EXPECT_EQ(word.statistics.max_levels, 1);
  EXPECT_EQ(Show(ReadText("(3 Good)", kSst)), "(3 Good)");

  const TreeCorpus collapsed = ReadText("(S (NP (NN rain)))");
  EXPECT_EQ(Show(collapsed), "(:NN rain)");
  EXPECT_EQ(collapsed.statistics.brackets, 3);
  EXPECT_EQ(collapsed.statistics.max_depth, 3);
  EXPECT_EQ(collapsed.statistics.max_levels, 1);
  EXPECT_EQ(collapsed.statistics.collapsed_unary, 2);
  EXPECT_EQ(Show(ReadText("(S (NP (NN rain)))", kKeepUnary)), "(:S (:NP (:NN rain)))");

  const TreeCorpus wide = ReadText("(S (A a) (B b) (C c))");
  EXPECT_EQ(Show(wide), "(:S (:A a) (:B b) (:C c))");
  EXPECT_EQ(wide.statistics.max_arity, 3);
  EXPECT_EQ(wide.statistics.vertices, 4);
}

TEST(BracketReaderTest, BinarisesToTheLeftAndToTheRight) {
  const TreeCorpus left = ReadText("(S (A a) (B b) (C c) (D d))", {.binarize = Binarize::kLeft, .max_children = 2});
  EXPECT_EQ(Show(left), "(:S (:@S (:@S (:A a) (:B b)) (:C c)) (:D d))");
  const TreeCorpus right = ReadText("(1 (A a) (B b) (C c))", {.binarize = Binarize::kRight, .max_children = 2});
  EXPECT_EQ(Show(right), "(1 (:A a) (:@ (:B b) (:C c)))");
  for (const TreeCorpus* corpus : {&left, &right}) ExpectWellFormed(corpus->trees[0]);
  EXPECT_EQ(left.statistics.binarised, 2);
  EXPECT_EQ(left.statistics.vertices, 7);
  EXPECT_EQ(left.statistics.brackets, 5);
  EXPECT_EQ(right.statistics.vertices, 4 + 1);
  EXPECT_EQ(right.statistics.max_arity, 3);
  EXPECT_EQ(BracketError("(S (A a)\n (B b) (X (A a) (B b) (C c)))", {.max_children = 2}),
            "f:2:8: 3 children, cell takes 2 (binarize left or right makes the tree binary)");
}

TEST(BracketReaderTest, ACollapsedChainKeepsTheHighestClassAndTheLowestTag) {
  EXPECT_EQ(Show(ReadText("(4 (S (1 (X (A a) (B b)))))")), "(4:X (:A a) (:B b))");
  EXPECT_EQ(Show(ReadText("(S (3 good))")), "(3:S good)");
  EXPECT_EQ(Show(ReadText("(S ((A a) (B b)))")), "(:S (:A a) (:B b))");
}

TEST(BracketReaderTest, OnlyTheOutermostUnlabelledBracketIsARedundantTop) {
  const TreeCorpus corpus = ReadText("( ( (S (A a) (B b))))", kKeepUnary);
  EXPECT_EQ(Show(corpus), "( (:S (:A a) (:B b)))");
  EXPECT_EQ(corpus.statistics.dropped_tops, 1);
  EXPECT_EQ(corpus.statistics.brackets, 4);
  EXPECT_EQ(corpus.statistics.max_depth, 3);
}

TEST(BracketReaderTest, WhiteSpaceZoo) {
  const TreeCorpus corpus = ReadText(
      "\xEF\xBB\xBF(S  (NN   rain )\t(VB falls))\r\n(S (NN rain) (VB falls))\n(Q 3\xC2\xA0kg)\n(Q a\xE2\x80\xA8"
      "b)\n(Q \xE3\x80\x80)");
  ASSERT_EQ(corpus.statistics.trees, 5);
  EXPECT_EQ(Show(corpus, 0), "(:S (:NN rain) (:VB falls))");
  EXPECT_EQ(Show(corpus, 0), Show(corpus, 1));
  EXPECT_EQ(corpus.statistics.leaves, 2 + 2 + 3);
  EXPECT_EQ(corpus.statistics.brackets, 3 + 3 + 3);
  EXPECT_EQ(Show(corpus, 2), "(:Q 3\xC2\xA0kg)");
  EXPECT_EQ(Show(corpus, 3),
            "(:Q a\xE2\x80\xA8"
            "b)");
  EXPECT_EQ(Show(corpus, 4), "(:Q \xE3\x80\x80)");
  EXPECT_EQ(BracketError("(S (A a)\n (B \xC3\x28))"), "f:2:5: expected UTF-8, got byte 0xC3");
}

TEST(BracketReaderTest, SeveralTreesShareALineAndTheTables) {
  const TreeCorpus corpus = ReadText("(A x)(B y) (A\nx)");
  ASSERT_EQ(corpus.trees.size(), 3u);
  EXPECT_EQ(Show(corpus, 2), "(:A x)");
  EXPECT_EQ(corpus.words.size(), 2);
  EXPECT_EQ(corpus.tags.size(), 2);
  EXPECT_EQ(CountWords(corpus), (std::vector<int64_t>{2, 1}));
}

TEST(BracketReaderTest, LabelsAreClassesOrTags) {
  const std::string text = "(1 (5 a) (04 b) (-1 c) (NP d) (4 e))";
  EXPECT_EQ(Show(ReadText(text)), "(1 (:5 a) (:04 b) (:-1 c) (:NP d) (4 e))");
  EXPECT_EQ(Show(ReadText("(5 (0 a) (6 b))", {.classes = 6})), "(5 (0 a) (:6 b))");
  EXPECT_EQ(Show(ReadText("(1 (4 a) (4 b))", {.labels = Labels::kTags})), "(:1 (:4 a) (:4 b))");
  EXPECT_EQ(Show(ReadText("((4 a) (4 b))", {.labels = Labels::kClasses})), "( (4 a) (4 b))");
  EXPECT_EQ(BracketError("(1 (4 a) (NP b))", {.labels = Labels::kClasses}),
            "f:1:11: expected a class label 0 to 4, got 'NP'");
}

TEST(BracketReaderTest, StopsAfterMaxExamples) {
  const TreeCorpus corpus = ReadText("(1 a)\n(2 b)\n(", {.sst = true, .max_examples = 2});
  EXPECT_EQ(corpus.statistics.trees, 2);
  EXPECT_EQ(corpus.words.size(), 2);
}

TEST(BracketReaderTest, MajorityCountsRootsWithAClass) {
  const TreeCorpus corpus = ReadText("(3 a) (1 a) (X a) (3 a) (1 a)");
  const Majority majority = RootMajority(corpus.trees);
  EXPECT_EQ(majority.label, 1);
  EXPECT_EQ(majority.count, 2);
  EXPECT_EQ(majority.total, 4);
  EXPECT_DOUBLE_EQ(majority.rate(), 0.5);
  EXPECT_EQ(RootMajority({}).label, Tree::kNone);
  EXPECT_EQ(RootMajority({}).rate(), 0.0);
}

TEST(BracketReaderTest, VeryDeepTrees) {
  std::string left;
  std::string right;
  for (int64_t i = 1; i < kDepth; ++i) {
    left += "(2 ";
    right += "(2 (1 a) ";
  }
  left += "(3 z)";
  right += "(3 z)";
  for (int64_t i = 1; i < kDepth; ++i) {
    left += " (1 a))";
    right += ")";
  }
  for (const std::string& text : {left, right}) {
    for (const bool sst : {true, false}) {
      const TreeCorpus corpus = ReadText(text, {.sst = sst});
      EXPECT_EQ(corpus.statistics.vertices, 2 * kDepth - 1);
      EXPECT_EQ(corpus.statistics.max_depth, kDepth);
      EXPECT_EQ(corpus.statistics.max_levels, kDepth);
      ExpectWellFormed(corpus.trees[0]);
    }
  }
  const TreeCorpus chain = ReadText(std::string(kDepth, '(') + "X x" + std::string(kDepth, ')'), kKeepUnary);
  EXPECT_EQ(chain.statistics.vertices, kDepth - 1);
  EXPECT_EQ(ReadText(std::string(kDepth, '(') + "X x" + std::string(kDepth, ')')).statistics.vertices, 1);
}

TEST(BracketReaderTest, VeryWideTrees) {
  std::string text = "(S";
  for (int64_t i = 0; i < kLeaves; ++i) text += " (X x)";
  text += ")";
  const TreeCorpus star = ReadText(text);
  EXPECT_EQ(star.statistics.max_depth, 2);
  EXPECT_EQ(star.statistics.max_levels, 2);
  EXPECT_EQ(star.statistics.max_arity, kLeaves);
  for (const Binarize binarize : {Binarize::kLeft, Binarize::kRight}) {
    const TreeCorpus binary = ReadText(text, {.binarize = binarize, .max_children = 2});
    EXPECT_EQ(binary.statistics.vertices, 2 * kLeaves - 1);
    EXPECT_EQ(binary.statistics.max_levels, kLeaves);
    ExpectWellFormed(binary.trees[0]);
  }
}

TEST(BracketReaderTest, ParsesTheNamesOfItsOptions) {
  EXPECT_EQ(ParseBinarize("none"), Binarize::kKeep);
  EXPECT_EQ(ParseBinarize("left"), Binarize::kLeft);
  EXPECT_EQ(ParseBinarize("right"), Binarize::kRight);
  EXPECT_EQ(ParseUnary("collapse"), Unary::kCollapse);
  EXPECT_EQ(ParseUnary("keep"), Unary::kKeep);
  EXPECT_THROW(ParseBinarize("up"), std::invalid_argument);
  EXPECT_THROW(ParseUnary(""), std::invalid_argument);
}

}  // namespace
}  // namespace cavs
