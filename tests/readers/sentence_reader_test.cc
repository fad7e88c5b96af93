#include "graph/readers/sentence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/readers/vocabulary.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TreeCorpus Read(std::string text, int64_t max_examples = 0) {
  return ReadSentences(TextFile("f", std::move(text)), max_examples);
}

std::vector<std::string> Words(const TreeCorpus& corpus, size_t sentence) {
  std::vector<std::string> words;
  for (const int32_t word : corpus.trees.at(sentence).word) words.emplace_back(corpus.words.at(word));
  return words;
}

TEST(SentenceReader, MakesAChainOfEachLine) {
  const TreeCorpus corpus = Read(" the cat\tsat \r\n\n \t\nyes\n\tand\xC2\xA0so on");
  ASSERT_EQ(corpus.trees.size(), 3u);
  EXPECT_THAT(Words(corpus, 0), ElementsAre("the", "cat", "sat"));
  EXPECT_THAT(Words(corpus, 1), ElementsAre("yes"));
  EXPECT_THAT(Words(corpus, 2), ElementsAre("and\xC2\xA0so", "on"));
  const Tree& chain = corpus.trees[0];
  EXPECT_THAT(chain.child_begin, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(chain.child, ElementsAre(0, 1));
  EXPECT_THAT(corpus.trees[1].child, IsEmpty());
  EXPECT_EQ(chain.line, 1);
  EXPECT_EQ(corpus.trees[1].line, 4);
  const ReaderStatistics& statistics = corpus.statistics;
  EXPECT_EQ(statistics.trees, 3);
  EXPECT_EQ(statistics.leaves, 6);
  EXPECT_EQ(statistics.max_levels, 3);
  EXPECT_EQ(statistics.max_arity, 1);
  EXPECT_EQ(statistics.blank_lines, 2);
}

TEST(SentenceReader, TheEndOfASentenceIsWordZeroAndNoToken) {
  const TreeCorpus corpus = Read("a b\na <eos>\n");
  EXPECT_EQ(corpus.words.Find(kEndOfSentence), 0);
  EXPECT_THAT(CountWords(corpus), ElementsAre(1, 2, 1)) << "the one that the text spells";
  EXPECT_THAT(Words(Read("1\\/2 -LRB-"), 0), ElementsAre("1/2", "(")) << "the look-up form";
}

TEST(SentenceReader, StopsAtTheLimitAndRefusesTextWithoutSentences) {
  EXPECT_EQ(Read("a\nb\nc\n", 2).trees.size(), 2u);
  for (const char* text : {"", "\n", " \n\t\r\n"}) {
    EXPECT_THAT(ParseErrorOf([&] { Read(text); }), HasSubstr("no examples in f"));
  }
  EXPECT_THAT(ParseErrorOf([] { Read("a b\nc \xC3\x28\n"); }), HasSubstr("f:2:3: expected UTF-8"));
}

TEST(SentenceReader, O11WordsOfTheDevFileAloneAreUnknown) {
  const TreeCorpus train = Read(" the cat sat\n\n"), dev = Read("\n the dog sat\n");
  const Vocabulary vocabulary = Vocabulary::FromCounts(train.words, CountWords(train));
  EXPECT_EQ(DescribeCoverage(vocabulary.Cover(dev.words, CountWords(dev)), "dev"),
            "1 of 3 dev words unknown (1 of 3 distinct)");
}

TEST(SentenceReader, ReadsALineOfAMillionTokens) {
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "a ";
  EXPECT_EQ(Read(text).statistics.max_levels, 1000000);
}

// Counts as data/README.md has them, made by another program.
TEST(SentenceReader, ReadsPennTreebankText) {
  if (SharedData("ptb").empty()) GTEST_SKIP() << "shared data absent";
  const TreeCorpus train = ReadSentenceFile(SharedData("ptb/ptb.train.txt"));
  EXPECT_EQ(train.statistics.trees, 42068);
  EXPECT_EQ(train.statistics.leaves, 887521);
  EXPECT_EQ(train.statistics.max_leaves, 82);
  EXPECT_EQ(train.words.size(), 10000) << "with <eos>";
  const TreeCorpus valid = ReadSentenceFile(SharedData("ptb/ptb.valid.txt"));
  EXPECT_EQ(valid.statistics.trees, 3370);
  EXPECT_EQ(valid.statistics.leaves, 70390);
  const Vocabulary vocabulary = Vocabulary::FromCounts(train.words, CountWords(train));
  EXPECT_EQ(vocabulary.Cover(valid.words, CountWords(valid)).unknown_tokens, 0);
}

}  // namespace
}  // namespace cavs
