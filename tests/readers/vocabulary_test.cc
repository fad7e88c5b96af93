#include "graph/readers/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "graph/readers/bracket_reader.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;

Vocabulary FromCorpus(const TreeCorpus& corpus, int64_t min_count = 1) {
  return Vocabulary::FromCounts(corpus.words, CountWords(corpus), min_count);
}

TEST(StringTableTest, NumbersStringsInOrderOfArrival) {
  StringTable table;
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(table.Intern("word " + std::to_string(i)), i);
  const StringTable moved = std::move(table);
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(moved.Find("word " + std::to_string(i)), i);
    ASSERT_EQ(moved.at(i), "word " + std::to_string(i));
  }
  EXPECT_EQ(moved.size(), 10000);
  EXPECT_EQ(moved.Find("none"), StringTable::kNone);
}

TEST(VocabularyTest, KnowsTheWordsOfTheTrainingData) {
  const TreeCorpus train = ReadText("(S (X the) (X cat) (X sat))");
  const TreeCorpus dev = ReadText("(S (X the) (X dog) (X sat))");
  const Vocabulary vocabulary = FromCorpus(train);
  EXPECT_THAT(vocabulary.words(), ElementsAre("<unk>", "the", "cat", "sat"));
  EXPECT_EQ(vocabulary.Lookup("cat"), 2);
  EXPECT_EQ(vocabulary.Lookup("dog"), Vocabulary::kUnknown);
  EXPECT_THAT(vocabulary.Map(dev.words), ElementsAre(1, 0, 3));
  EXPECT_EQ(vocabulary.size(), 4);
  EXPECT_FALSE(vocabulary.unknown_trained());
  EXPECT_EQ(DescribeCoverage(vocabulary.Cover(dev.words, CountWords(dev)), "dev"),
            "1 of 3 dev words unknown (1 of 3 distinct)");
}

TEST(VocabularyTest, RareWordsAreUnknownAndTrainIt) {
  const TreeCorpus train = ReadText("(S (X a) (X b) (X a) (X c) (X a) (X b))");
  const Vocabulary vocabulary = FromCorpus(train, 2);
  EXPECT_THAT(vocabulary.words(), ElementsAre("<unk>", "a", "b"));
  EXPECT_TRUE(vocabulary.unknown_trained());
  const Coverage coverage = vocabulary.Cover(train.words, CountWords(train));
  EXPECT_EQ(coverage.tokens, 6);
  EXPECT_EQ(coverage.unknown_tokens, 1);
  EXPECT_EQ(coverage.types, 3);
  EXPECT_EQ(coverage.unknown_types, 1);
  EXPECT_EQ(FromCorpus(train, 4).size(), 1);
  EXPECT_THROW(FromCorpus(train, 0), std::invalid_argument);
}

TEST(VocabularyTest, TheUnknownWordItselfIsRowZero) {
  const TreeCorpus train = ReadText("(S (X a) (X <unk>))");
  const Vocabulary vocabulary = FromCorpus(train);
  EXPECT_THAT(vocabulary.words(), ElementsAre("<unk>", "a"));
  EXPECT_TRUE(vocabulary.unknown_trained());
  EXPECT_EQ(vocabulary.Cover(train.words, CountWords(train)).unknown_tokens, 0);
}

TEST(VocabularyTest, CountsOnlyWordsThatOccur) {
  StringTable table;
  for (const char* word : {"a", "b", "c"}) table.Intern(word);
  const Vocabulary vocabulary = Vocabulary::FromCounts(table, std::vector<int64_t>{1, 0, 2});
  EXPECT_THAT(vocabulary.words(), ElementsAre("<unk>", "a", "c"));
  EXPECT_FALSE(vocabulary.unknown_trained());
  EXPECT_EQ(vocabulary.Cover(table, std::vector<int64_t>{0, 0, 7}).types, 1);
}

TEST(VocabularyTest, ComesBackFromItsWords) {
  const Vocabulary vocabulary = FromCorpus(ReadText("(S (X b) (X a))"));
  const Vocabulary loaded = Vocabulary::FromWords(vocabulary.words(), true);
  EXPECT_EQ(loaded.words(), vocabulary.words());
  EXPECT_EQ(loaded.Lookup("a"), vocabulary.Lookup("a"));
  EXPECT_TRUE(loaded.unknown_trained());
  EXPECT_THROW(Vocabulary::FromWords({}, true), std::invalid_argument);
  EXPECT_THROW(Vocabulary::FromWords(std::vector<std::string>{"a"}, true), std::invalid_argument);
  EXPECT_THROW(Vocabulary::FromWords(std::vector<std::string>{"<unk>", "a", "a"}, true), std::invalid_argument);
}

// Every word of the dev split that the train split lacks, counted independently of the vocabulary.
TEST(VocabularyTest, CoversRealData) {
  if (SharedData("sst").empty()) GTEST_SKIP() << "shared data absent";
  const TreeCorpus train = ReadBracketFile(SharedData("sst/train.txt"), {.sst = true});
  const TreeCorpus dev = ReadBracketFile(SharedData("sst/dev.txt"), {.sst = true});
  const Coverage coverage = FromCorpus(train).Cover(dev.words, CountWords(dev));
  int64_t unknown = 0;
  for (int32_t id = 0; id < dev.words.size(); ++id) unknown += train.words.Find(dev.words.at(id)) < 0 ? 1 : 0;
  EXPECT_EQ(coverage.unknown_types, unknown);
  EXPECT_EQ(coverage.tokens, 21274);
  EXPECT_GT(unknown, 0);
}

}  // namespace
}  // namespace cavs
