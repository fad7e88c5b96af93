// What the bracket reader refuses, and where it says the fault is.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cavs/base/random.h"
#include "graph/readers/bracket_reader.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

constexpr BracketOptions kSst = {.sst = true};

struct Case {
  std::string text;
  std::string error;
};

TEST(BracketErrorsTest, Sst) {
  const std::vector<Case> cases = {
      {"(2 (2 x) (3 ())", "f:1:14: expected a class label 0 to 4, got ')'"},
      {"(2 (2 x) (3 y)", "f:1:1: end of file inside the tree that began on line 1: expected 1 more ')'"},
      {"(2 (2 x) (3 y)) 0.75", "f:1:17: expected '(' of a tree, got '0.75'"},
      {"(2 x)\n(2 (2 x)\n (3 y))\n", "f:2:1: end of line inside the tree that began on line 2: expected 1 more ')'"},
      {"(2 x) (2 y)\n", "f:1:7: expected one tree a line, got a second one"},
      {"(2 x)\n\n(5 y)\n", "f:3:2: expected a class label 0 to 4, got '5'"},
      {"(2 (-1 x) (1 y))", "f:1:5: expected a class label 0 to 4, got '-1'"},
      {"(NP (2 x) (1 y))", "f:1:2: expected a class label 0 to 4, got 'NP'"},
      {"(1.5 x)", "f:1:2: expected a class label 0 to 4, got '1.5'"},
      {"(99999999999 x)", "f:1:2: expected a class label 0 to 4, got '99999999999'"},
      {"((2 x) (1 y))", "f:1:2: expected a class label 0 to 4, got '('"},
      {"(2 (2 x))", "f:1:9: expected a second child, got ')'"},
      {"(2 (2 x) (2 y) (2 z))", "f:1:16: expected ')' after two children, got a third"},
      {"(2 x) )", "f:1:7: expected a tree, got ')' without its '('"},
      {"2 x", "f:1:1: expected '(' of a tree, got '2'"},
      {"(2)", "f:1:3: expected a word or a child after the label, got ')'"},
  };
  for (const Case& c : cases) EXPECT_EQ(BracketError(c.text, kSst), c.error) << c.text;
}

TEST(BracketErrorsTest, Tree) {
  const std::vector<Case> cases = {
      {"(S (A a) ())", "f:1:11: expected a label, a word or a child, got ')'"},
      {"()", "f:1:2: expected a label, a word or a child, got ')'"},
      {"(S)", "f:1:3: expected a word or a child after the label, got ')'"},
      {"(S (ncfs000 demanda demanda))", "f:1:21: expected ')' after the word of a leaf, got 'demanda'"},
      {"(S (A a (B b)))", "f:1:9: expected ')' after the word of a leaf, got '('"},
      {"(S (A a) b)", "f:1:10: expected '(' or ')', got 'b'"},
      {"( (S\n (A a)\n  (B b c)))",
       "f:3:8: expected ')' after the word of a leaf, got 'c' (in the tree that began on line 1)"},
      {"(A a)\n( (S (A a)\n (B b))\n\n",
       "f:2:1: end of file inside the tree that began on line 2: expected 1 more ')'"},
      {"( (S (A a)\n (B b))))\n", "f:2:9: expected a tree, got ')' without its '('"},
      {"(A a)\nword", "f:2:1: expected '(' of a tree, got 'word'"},
  };
  for (const Case& c : cases) EXPECT_EQ(BracketError(c.text), c.error) << c.text;
}

TEST(BracketErrorsTest, NoExamples) {
  for (const char* text : {"", "\n \t\r\n", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(BracketError(text, kSst), "f:1: no examples in f");
    EXPECT_EQ(BracketError(text), "f:1: no examples in f");
  }
}

TEST(BracketErrorsTest, FilesAreNamedByTheirPath) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("bad.txt", "(1 x)\n(7 y)\n");
  EXPECT_EQ(ParseErrorOf([&] { ReadBracketFile(path, kSst); }), path + ":2:2: expected a class label 0 to 4, got '7'");
  EXPECT_THROW(ReadBracketFile(folder.path(), kSst), std::invalid_argument);
  EXPECT_EQ(ReadBracketFile(folder.Write("good.txt", "(1 x)"), kSst).statistics.trees, 1);
}

// What mutations put in.
constexpr std::string_view kBytes = "()() \n\t[]0159SXx\\-\r\xC2\xA0\xFF";

// Replaces, inserts, drops or doubles a few bytes.
std::string Mutate(std::string text, CounterRandom* random) {
  for (int64_t edits = 1 + random->Below(2); edits > 0 && !text.empty(); --edits) {
    const auto at = static_cast<size_t>(random->Below(std::ssize(text)));
    const char byte = kBytes[static_cast<size_t>(random->Below(std::ssize(kBytes)))];
    switch (random->Below(4)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.erase(at, 1 + static_cast<size_t>(random->Below(4)));
        break;
      default:
        text.insert(at, text.substr(at, 1 + static_cast<size_t>(random->Below(20))));
        break;
    }
  }
  return text;
}

TEST(BracketErrorsTest, MutatedTreesAreReadOrRefused) {
  const std::vector<std::string> seeds = {
      "(4 (3 (2 Steven) (2 Spielberg)) (4 (2 brings) (3 (2 and\\/or) (2 -LRB-))))\n(1 (2 8\xC2\xA0"
      "1\\/2) (0 .))\n",
      "( (S (NP-SBJ (DT The) (NN cat)) (VP (VBD sat)\n   (PP (IN on) (NP (-NONE- *T*-1)))) (. .)))\r\n\n((X x))\n"};
  CounterRandom random(11);
  int64_t read = 0;
  int64_t refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const BracketOptions options = {.sst = random.Below(2) == 0,
                                    .labels = random.Below(2) == 0 ? Labels::kAuto : Labels::kTags,
                                    .binarize = static_cast<Binarize>(random.Below(3)),
                                    .unary = static_cast<Unary>(random.Below(2)),
                                    .max_children = static_cast<int32_t>(2 * random.Below(2))};
    const std::string text = Mutate(seeds[options.sst ? 0 : 1], &random);
    try {
      const TreeCorpus corpus = ReadText(text, options);
      for (const Tree& tree : corpus.trees) ExpectWellFormed(tree);
      EXPECT_EQ(corpus.statistics.vertices,
                corpus.statistics.brackets - corpus.statistics.collapsed_unary + corpus.statistics.binarised);
      ++read;
    } catch (const ParseError& error) {
      EXPECT_GE(error.line(), 1);
      ++refused;
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace cavs
