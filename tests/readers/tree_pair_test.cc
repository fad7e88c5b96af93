#include "graph/readers/tree_pair_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cavs/base/random.h"
#include "graph/readers/sick_reader.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// The tree of one line of each file as brackets, and the corpus's counters.
struct OneTree {
  OneTree(const std::string& tokens, const std::string& parents)
      : token_file("t", tokens), parent_file("p", parents), reader(token_file, parent_file) {
    EXPECT_TRUE(reader.Next(&corpus.words, &corpus.trees.emplace_back()));
  }
  std::string text() const { return Show(corpus); }

  TreeCorpus corpus;
  TextFile token_file, parent_file;
  ParentTreeReader reader;
};

std::string Refusal(const std::string& tokens, const std::string& parents) {
  return ParseErrorOf([&] {
    const TextFile token_file("t", tokens), parent_file("p", parents);
    ParentTreeReader reader(token_file, parent_file);
    TreeCorpus corpus;
    while (reader.Next(&corpus.words, &corpus.trees.emplace_back())) {
    }
  });
}

TEST(ParentTree, O9ReadsConstituentsAndDependencies) {
  const OneTree two("hello world", "3 3 0");
  EXPECT_EQ(two.text(), "( ( hello) ( world))");
  EXPECT_EQ(two.corpus.trees[0].root(), 2);
  EXPECT_EQ(OneTree("a b c", "5 4 4 5 0").text(), "( ( a) ( ( b) ( c)))");
  const OneTree heads("a man sleeps well", "2 3 0 3");
  EXPECT_EQ(heads.text(), "( sleeps ( man ( a)) ( well))");
  EXPECT_EQ(heads.reader.max_arity(), 2);
  EXPECT_EQ(OneTree("one", "0").text(), "( one)");
  EXPECT_EQ(OneTree("x y", "\t0   1 ").text(), "( x ( y))") << "any blanks";
}

TEST(ParentTree, O9TokensOutsideOfTheTreeAreCounted) {
  const OneTree tree("a b c", "2 0 -1");
  EXPECT_EQ(tree.text(), "( b ( a))");
  EXPECT_EQ(tree.reader.unused_tokens(), 1);
  EXPECT_EQ(Refusal("a b c", "2 0 -1\n2 0"), "p:2:1: expected the 1 lines that t has, got another line");
}

TEST(ParentTree, O9RefusesWhatIsNoTreeWithItsPlace) {
  EXPECT_EQ(Refusal("a b", "0 0"), "p:1:3: expected one root (parent 0), got vertices 1 and 2");
  EXPECT_EQ(Refusal("a", "1"), "p:1:1: expected another vertex as parent, got 1 for itself");
  EXPECT_EQ(Refusal("x\na b", "0\n2 1"), "p:2:1: expected one root (parent 0), got none");
  EXPECT_EQ(Refusal("a b c", "4 4 0"), "p:1:1: expected a parent from -1 to 3, got 4");
  EXPECT_EQ(Refusal("a b c", "3 -2 0"), "p:1:3: expected a parent from -1 to 3, got -2");
  EXPECT_EQ(Refusal("a b c d", "3 3 0"), "p:1:1: expected a parent for each of 4 tokens, got 3");
  EXPECT_EQ(Refusal("a b", "3 3 0 0"), "p:1:7: expected one root (parent 0), got vertices 3 and 4");
  EXPECT_EQ(Refusal("a b c", "2 1 0"), "p:1:1: expected a tree, got the cycle 1 -> 2 -> 1");
  EXPECT_EQ(Refusal("a b c d", "3 3 2 0"), "p:1:1: expected a tree, got the cycle 3 -> 2 -> 3") << "from below";
  EXPECT_EQ(Refusal("a b c", "0 3 -1"), "p:1:3: expected a parent inside of the tree, got 3, whose own is -1");
  EXPECT_EQ(Refusal("a b", "2 x"), "p:1:3: expected the number of a parent, got 'x'");
  EXPECT_EQ(Refusal("a b", "2 0.5"), "p:1:3: expected the number of a parent, got '0.5'");
  EXPECT_EQ(Refusal("a b", "99999999999 0"), "p:1:1: expected the number of a parent, got '99999999999'");
  EXPECT_EQ(Refusal("a\nb\n", "0\n"), "t:2:1: expected the 1 lines that p has, got another line");
  EXPECT_EQ(Refusal("a\n\n", "0\n0\n"), "t:2:1: expected a token, got a line without any");
}

TEST(ParentTree, LongChainsAndCyclesTakeNoStack) {
  constexpr int kVertices = 200000;
  std::string tokens, chain, cycle;
  for (int v = 1; v <= kVertices; ++v) {
    tokens += "a ";
    chain += fmt::format("{} ", v - 1);
    cycle += fmt::format("{} ", v == kVertices ? 0 : v == 1 ? kVertices - 1 : v - 1);
  }
  EXPECT_EQ(CountLevels(OneTree(tokens, chain).corpus.trees[0]), kVertices);
  EXPECT_THAT(Refusal(tokens, cycle), AllOf(HasSubstr("got the cycle"), EndsWith("-> ...")));
}

// A folder with the five files of two pairs.
class PairFolder {
 public:
  PairFolder() {
    Write("a.toks", "dogs run\nhi\n");
    Write("a.parents", "2 0\n0\n");
    Write("b.toks", "a dog runs\nhi there\n");
    Write("b.parents", "2 3 0\n0 1\n");
    Write("sim.txt", "4.5\nNone\n");
  }
  void Write(const std::string& name, const std::string& text) const { folder_.Write(name, text); }
  TreeCorpus Read(int64_t max_examples = 0) const { return ReadTreePairs(folder_.path(), max_examples); }
  std::string Refusal() const {
    const std::string message = ParseErrorOf([&] { Read(); });
    return message.substr(std::min(message.size(), folder_.path().size() + 1));
  }
  std::string path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST(TreePairReader, PutsARootAboveBothTrees) {
  const PairFolder folder;
  folder.Write("a.rels", "these are not read");
  const TreeCorpus corpus = folder.Read();
  ASSERT_EQ(corpus.trees.size(), 2u);
  EXPECT_EQ(Show(corpus, 0), "( ( run ( dogs)) ( runs ( dog ( a))))");
  EXPECT_EQ(Show(corpus, 1), "( ( hi) ( hi ( there)))");
  EXPECT_EQ(corpus.scores[0], 4.5);
  EXPECT_TRUE(std::isnan(corpus.scores[1]));
  EXPECT_EQ(corpus.trees[1].line, 2);
  EXPECT_EQ(corpus.statistics.trees, 2);
  EXPECT_EQ(corpus.statistics.leaves, 8);
  EXPECT_EQ(corpus.statistics.vertices, 10);
  EXPECT_EQ(corpus.statistics.max_levels, 4);
  EXPECT_EQ(folder.Read(1).trees.size(), 1u);
}

TEST(TreePairReader, RefusesFilesThatDoNotFitEachOther) {
  const PairFolder good;
  const auto with = [&](const std::string& name, const std::string& text) {
    const PairFolder folder;
    folder.Write(name, text);
    return folder.Refusal();
  };
  EXPECT_THAT(with("a.parents", "2 0\n0\n0\n"), HasSubstr("a.parents:3:1: expected the 2 lines that"));
  EXPECT_THAT(with("b.toks", "a dog runs\n"), HasSubstr("b.parents:2:1: expected the 1 lines that"));
  EXPECT_THAT(with("sim.txt", "4.5\n"), HasSubstr("sim.txt:2: expected a score for each pair"));
  EXPECT_THAT(with("sim.txt", "4.5\n1\n1\n"), HasSubstr("sim.txt:3: expected a score for each pair"));
  for (const std::string score : {"0.9", "5.1", "nan", "x", "3,5"}) {
    EXPECT_EQ(with("sim.txt", "4.5\n " + score), "sim.txt:2:2: expected a score from 1 to 5, got '" + score + "'");
  }
  EXPECT_EQ(with("sim.txt", "4.5 1\n1\n"), "sim.txt:1:5: expected one score a line, got another token");
  const PairFolder uneven;
  uneven.Write("b.toks", "a dog runs\n");
  uneven.Write("b.parents", "2 3 0\n");
  EXPECT_THAT(uneven.Refusal(), HasSubstr("b.toks:2: expected as many lines as in"));
  for (const char* name : {"a.toks", "a.parents", "b.toks", "b.parents", "sim.txt"}) uneven.Write(name, "");
  EXPECT_THAT(uneven.Refusal(), HasSubstr("no examples in"));
  EXPECT_THROW(ReadTreePairs(good.path() + "/none"), std::invalid_argument);
}

// Whatever is changed in the files, reading ends with a corpus or a ParseError.
TEST(TreePairReader, SurvivesMutations) {
  CounterRandom random(9);
  const std::string files[][2] = {{"a.toks", "dogs run\nhi\n"},
                                  {"a.parents", "2 0\n0\n"},
                                  {"b.toks", "a dog runs\nhi there\n"},
                                  {"b.parents", "2 3 0\n0 1\n"},
                                  {"sim.txt", "4.5\nNone\n"}};
  constexpr std::string_view kBytes = "0123-1 \n\tN.\r";
  int refused = 0;
  const PairFolder folder;
  for (int i = 0; i < 200; ++i) {
    const auto& [name, original] = files[static_cast<size_t>(i) % std::size(files)];
    std::string text = original;
    for (int64_t changes = 1 + random.Below(2); changes > 0; --changes) {
      text[static_cast<size_t>(random.Below(std::ssize(text)))] = kBytes[static_cast<size_t>(random.Below(12))];
    }
    folder.Write(name, text);
    const std::string message = ParseErrorOf([&] {
      for (const Tree& tree : folder.Read().trees) EXPECT_EQ(std::ssize(tree.child), tree.vertex_count() - 1);
    });
    refused += message.empty() ? 0 : 1;
    folder.Write(name, original);
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 200);
}

constexpr std::string_view kHeader = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n";

std::vector<SickRow> Table(const std::string& rows) {
  return ReadSickTable(TextFile("f", std::string(kHeader) + rows));
}

TEST(SickReader, O3QuotesAreCharactersAndLineEndsAreNot) {
  const std::vector<SickRow> rows = Table(
      "1\t\"Stop\tA dog stops\t3.5\tNEUTRAL\r\n"
      "2\tHe said \"go\" twice\tHe left\t1\tCONTRADICTION\r\n"
      "3\tTwo cats\tTwo \"cats\"\t4.9\tENTAILMENT");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].sentence_a, "\"Stop");
  EXPECT_EQ(rows[1].sentence_a, "He said \"go\" twice");
  EXPECT_EQ(rows[2].sentence_b, "Two \"cats\"");
  EXPECT_EQ(rows[0].score, 3.5);
  EXPECT_EQ(rows[1].score, 1.0);
  EXPECT_EQ(rows[2].score, 4.9);
  EXPECT_EQ(rows[1].judgment, "CONTRADICTION");
  EXPECT_EQ(rows[2].judgment, "ENTAILMENT");
  EXPECT_EQ(rows[2].line, 4);
}

TEST(SickReader, O3RefusesScoresAndColumnsWithTheirLine) {
  const auto refusal = [](const std::string& row) { return ParseErrorOf([&] { Table("1\ta\tb\t2\tX\r\n" + row); }); };
  EXPECT_EQ(refusal("2\ta\tb\t6\tX"), "f:3:7: expected a score from 1 to 5, got '6'");
  EXPECT_EQ(refusal("2\ta\tb\tabc\tX"), "f:3:7: expected a score from 1 to 5, got 'abc'");
  EXPECT_EQ(refusal("2\ta\tb\t3"), "f:3:1: expected 5 columns between tabs, got 4");
  EXPECT_EQ(refusal("2\ta\tb\t3\tX\tY"), "f:3:1: expected 5 columns between tabs, got 6");
  EXPECT_THAT(ParseErrorOf([] { ReadSickTable(TextFile("f", "1\ta\tb\t2\tX\n")); }), HasSubstr("expected the header"));
  EXPECT_THAT(ParseErrorOf([] { Table(""); }), HasSubstr("no examples in f"));
  EXPECT_THAT(ParseErrorOf([] { ReadSickTable(TextFile("f", "")); }), HasSubstr("no examples in f"));
}

TEST(SickReader, TakesScoresFromTheTableAndTreesFromTheFolder) {
  const PairFolder trees;
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/dev");
  for (const char* name : {"a.toks", "a.parents", "b.toks", "b.parents"}) {
    std::filesystem::copy(trees.path() + "/" + name, folder.path() + "/dev/" + name);
  }
  const auto table = [&](const std::string& rows) { folder.Write("SICK_trial.txt", std::string(kHeader) + rows); };
  table("1\tx\ty\t2.5\tX\n2\tx\ty\t3\tX\n");
  const TreeCorpus corpus = ReadSick(folder.path(), SickPart::kDev);
  EXPECT_THAT(corpus.scores, ElementsAre(2.5, 3));
  EXPECT_EQ(Show(corpus, 1), "( ( hi) ( hi ( there)))");
  EXPECT_EQ(ReadSick(folder.path(), SickPart::kDev, 1).trees.size(), 1u);
  table("1\tx\ty\t2.5\tX\n");
  const auto refusal = [&] { return ParseErrorOf([&] { ReadSick(folder.path(), SickPart::kDev); }); };
  EXPECT_THAT(refusal(), HasSubstr("SICK_trial.txt:3: expected a row for each pair of"));
  table("1\tx\ty\t2.5\tX\n2\tx\ty\t3\tX\n3\tx\ty\t3\tX\n");
  EXPECT_THAT(refusal(), HasSubstr("SICK_trial.txt:4: expected the 2 pairs that"));
  EXPECT_THROW(ReadSick(folder.path(), SickPart::kTest), std::invalid_argument);
}

TEST(SickReader, ReadsTheSharedData) {
  if (SharedData("sick").empty()) GTEST_SKIP() << "shared data absent";
  struct Part {
    SickPart part;
    const char* folder;
    int64_t pairs, words;
  };
  for (const Part& part :
       {Part{SickPart::kTrain, "sick/train", 4500, 87089}, Part{SickPart::kDev, "sick/dev", 500, 9884},
        Part{SickPart::kTest, "sick/test", 4927, 95218}}) {
    const TreeCorpus corpus = ReadSick(SharedData("sick"), part.part);
    EXPECT_EQ(corpus.statistics.trees, part.pairs);
    EXPECT_EQ(corpus.statistics.leaves, part.words);
    EXPECT_EQ(corpus.statistics.unused_tokens, 0);
    EXPECT_EQ(corpus.statistics.max_arity, part.part == SickPart::kDev ? 7 : 8);
    EXPECT_EQ(corpus.scores, ReadTreePairs(SharedData(part.folder)).scores) << "both forms hold the same scores";
  }
}

}  // namespace
}  // namespace cavs
