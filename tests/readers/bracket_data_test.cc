// The real treebanks, read with exactly the counts that are known of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "graph/readers/bracket_reader.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

constexpr BracketOptions kSst = {.sst = true};

struct SstCounts {
  std::string file;
  int64_t trees, vertices, leaves, vocabulary, max_leaves, max_depth;
  std::vector<int64_t> roots;
};

TEST(BracketDataTest, StanfordSentimentTreebank) {
  if (SharedData("sst").empty()) GTEST_SKIP() << "shared data absent";
  const std::vector<SstCounts> splits = {
      {"sst/train.txt", 8544, 318582, 163563, 18280, 52, 30, {1092, 2218, 1624, 2322, 1288}},
      {"sst/dev.txt", 1101, 41447, 21274, 5374, 49, 28, {139, 289, 229, 279, 165}},
      {"sst/test.txt", 2210, 82600, 42405, 8547, 56, 29, {279, 633, 389, 510, 399}}};
  for (const SstCounts& split : splits) {
    SCOPED_TRACE(split.file);
    const TreeCorpus corpus = ReadBracketFile(SharedData(split.file), {.sst = true, .keep_escapes = true});
    const ReaderStatistics& statistics = corpus.statistics;
    EXPECT_EQ(statistics.trees, split.trees);
    EXPECT_EQ(statistics.vertices, split.vertices);
    EXPECT_EQ(statistics.brackets, split.vertices);
    EXPECT_EQ(statistics.class_labels, split.vertices);
    EXPECT_EQ(statistics.leaves, split.leaves);
    EXPECT_EQ(statistics.max_leaves, split.max_leaves);
    EXPECT_EQ(statistics.max_depth, split.max_depth);
    EXPECT_EQ(statistics.max_levels, split.max_depth);
    EXPECT_EQ(statistics.max_arity, 2);
    EXPECT_EQ(corpus.words.size(), split.vocabulary);
    std::vector<int64_t> roots(5);
    for (const Tree& tree : corpus.trees) ++roots[static_cast<size_t>(tree.label.back())];
    EXPECT_EQ(roots, split.roots);
  }
}

// A lone tree, as `tree:` gives it, is what `sst:` gives.
TEST(BracketDataTest, BothFormatsAgreeOnSst) {
  const std::string path = SharedData("nasty/sst_odd.txt");
  if (path.empty()) GTEST_SKIP() << "shared data absent";
  const TreeCorpus sst = ReadBracketFile(path, kSst);
  const TreeCorpus tree = ReadBracketFile(path, {});
  EXPECT_EQ(sst.statistics.trees, 88);
  ASSERT_EQ(tree.statistics.trees, 88);
  EXPECT_EQ(tree.statistics.class_labels, sst.statistics.class_labels);
  for (size_t i = 0; i < sst.trees.size(); ++i) EXPECT_EQ(Show(sst, i), Show(tree, i));
}

struct WsjCounts {
  std::string name;
  int64_t trees, deepest, leaves, arity, unary, empty;
};

// The known counts include the redundant top of every tree, which the reader drops: one bracket of depth, and one
// vertex with a single child a tree.
TEST(BracketDataTest, WallStreetJournal) {
  if (SharedData("nasty/wsj").empty()) GTEST_SKIP() << "shared data absent";
  const std::vector<WsjCounts> files = {
      {"0001", 2, 8, 18, 4, 3, 0},         {"0002", 1, 9, 27, 4, 2, 1},      {"0020", 21, 22, 52, 9, 107, 44},
      {"0037", 71, 25, 92, 9, 379, 117},   {"0056", 5, 8, 28, 5, 10, 3},     {"0063", 19, 22, 44, 7, 97, 48},
      {"0096", 50, 20, 271, 32, 332, 174}, {"0097", 40, 26, 55, 8, 203, 72}, {"0111", 24, 30, 60, 7, 111, 42}};
  for (const WsjCounts& file : files) {
    SCOPED_TRACE(file.name);
    const std::string path = SharedData("nasty/wsj/wsj_" + file.name + ".mrg");
    const TreeCorpus corpus = ReadBracketFile(path, {});
    const ReaderStatistics& statistics = corpus.statistics;
    EXPECT_EQ(statistics.trees, file.trees);
    EXPECT_EQ(statistics.dropped_tops, file.trees);
    EXPECT_EQ(statistics.max_depth + 1, file.deepest);
    EXPECT_EQ(statistics.max_leaves, file.leaves);
    EXPECT_EQ(statistics.max_arity, file.arity);
    EXPECT_EQ(statistics.collapsed_unary + statistics.dropped_tops, file.unary);
    EXPECT_EQ(statistics.class_labels, 0);
    const int32_t none = corpus.tags.Find("-NONE-");
    int64_t empty = 0;
    for (const Tree& tree : corpus.trees) empty += none < 0 ? 0 : std::ranges::count(tree.tag, none);
    EXPECT_EQ(empty, file.empty);

    const TreeCorpus binary = ReadBracketFile(path, {.binarize = Binarize::kRight, .max_children = 2});
    EXPECT_EQ(binary.statistics.leaves, statistics.leaves);
    EXPECT_EQ(binary.statistics.vertices, 2 * statistics.leaves - statistics.trees);
    for (const Tree& tree : binary.trees) ExpectWellFormed(tree);
  }
}

// Latin-1 text as UTF-8.
std::string FromLatin1(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string utf8;
  for (char c = 0; in.get(c);) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) utf8.push_back(static_cast<char>(0xC0 | (byte >> 6)));
    utf8.push_back(byte >= 0x80 ? static_cast<char>(0x80 | (byte & 0x3F)) : c);
  }
  return utf8;
}

// Leaves the first two fields of every leaf.
std::string DropThirdFields(const std::string& text) {
  std::string result;
  size_t fields = 0;
  bool in_word = false;
  for (const char c : text) {
    const bool word = c != '(' && c != ')' && !IsAsciiBlank(c);
    if (c == '(' || c == ')') fields = 0;
    if (word && !in_word) ++fields;
    in_word = word;
    if (!word || fields <= 2) result.push_back(c);
  }
  return result;
}

TEST(BracketDataTest, CessIsRefused) {
  if (SharedData("nasty/cess_esp").empty()) GTEST_SKIP() << "shared data absent";
  for (const char* name : {"10585_20000313", "14827_20000719_3", "17992_20001022_1", "d1-15"}) {
    SCOPED_TRACE(name);
    const std::string path = SharedData(fmt::format("nasty/cess_esp/{}.tbf", name));
    const std::string bytes = ParseErrorOf([&] { ReadBracketFile(path, {}); });
    EXPECT_NE(bytes.find(": expected UTF-8, got byte 0x"), std::string::npos) << bytes;
    const std::string fields = BracketError(FromLatin1(path));
    EXPECT_NE(fields.find(": expected ')' after the word of a leaf, got '"), std::string::npos) << fields;
  }
}

TEST(BracketDataTest, CessBracketsAreCounted) {
  if (SharedData("nasty/cess_esp").empty()) GTEST_SKIP() << "shared data absent";
  const auto text = [](const std::string& name) {
    return DropThirdFields(FromLatin1(SharedData("nasty/cess_esp/" + name + ".tbf")));
  };
  EXPECT_EQ(ReadText(text("17992_20001022_1")).statistics.trees, 3);
  const TreeCorpus d1 = ReadText(text("d1-15"));
  EXPECT_EQ(d1.statistics.trees, 17);
  EXPECT_EQ(d1.statistics.max_leaves, 37);
  const std::string missing = BracketError(text("10585_20000313"));
  EXPECT_NE(missing.find("end of file inside the tree that began on line "), std::string::npos) << missing;
  EXPECT_NE(missing.find("expected 1 more ')'"), std::string::npos) << missing;
  const std::string extra = BracketError(text("14827_20000719_3"));
  EXPECT_NE(extra.find("expected a tree, got ')' without its '('"), std::string::npos) << extra;
}

}  // namespace
}  // namespace cavs
