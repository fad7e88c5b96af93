#include "graph/readers/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "graph/readers/bracket_lexer.h"
#include "graph/readers/token.h"
#include "tests/readers/readers_testing.h"

namespace cavs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string InvalidText(const std::string& path) {
  try {
    ReadTextFile(path);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(TextFileTest, DropsTheByteOrderMarkAtTheStartOnly) {
  EXPECT_EQ(TextFile("f",
                     "\xEF\xBB\xBF"
                     "a")
                .text(),
            "a");
  EXPECT_EQ(TextFile("f", "a\xEF\xBB\xBF").text(), "a\xEF\xBB\xBF");
  EXPECT_EQ(TextFile("f", "\xEF\xBB\xBF").text(), "");
}

TEST(TextFileTest, RefusesBytesThatAreNotUtf8WithTheirPlace) {
  EXPECT_EQ(ParseErrorOf([] { TextFile("f", "ok\nab\xC3\x28"); }), "f:2:3: expected UTF-8, got byte 0xC3");
  EXPECT_EQ(ParseErrorOf([] { TextFile("f", "\xEF\xBB\xBF\xFF"); }), "f:1:1: expected UTF-8, got byte 0xFF");
}

TEST(TextFileTest, FailNamesLineAndColumn) {
  const TextFile file("f", "a\n\nbcd\n");
  EXPECT_EQ(ParseErrorOf([&] { file.Fail(0, "x"); }), "f:1:1: x");
  EXPECT_EQ(ParseErrorOf([&] { file.Fail(1, "x"); }), "f:1:2: x");
  EXPECT_EQ(ParseErrorOf([&] { file.Fail(2, "x"); }), "f:2:1: x");
  EXPECT_EQ(ParseErrorOf([&] { file.Fail(5, "x"); }), "f:3:3: x");
  EXPECT_EQ(ParseErrorOf([&] { file.Fail(7, "x"); }), "f:4:1: x");
}

TEST(TextFileTest, ReadsBytesAsTheyAre) {
  const TemporaryFolder folder;
  std::string bytes(200000, 'x');
  bytes[70000] = '\0';
  bytes[90000] = '\r';
  EXPECT_EQ(ReadTextFile(folder.Write("a", bytes)).text(), bytes);
  EXPECT_EQ(ReadTextFile(folder.Write("b", "")).text(), "");
}

TEST(TextFileTest, RefusesFoldersAndMissingFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT(InvalidText(folder.path()), HasSubstr("expected a text file, got the folder '" + folder.path() + "'"));
  EXPECT_THAT(InvalidText(folder.path() + "/none"), HasSubstr("none', which does not exist"));
  EXPECT_THAT(InvalidText(folder.Write("file", "x") + "/below"), HasSubstr("below', which does not exist"));
}

TEST(LineReaderTest, SplitsAtBothLineEnds) {
  const TextFile file("f", "a\r\n\nb c\r\r\nlast");
  std::vector<std::string> lines;
  std::vector<int64_t> offsets;
  LineReader reader(file);
  while (reader.Next()) {
    lines.emplace_back(reader.line());
    offsets.push_back(reader.offset());
    EXPECT_EQ(reader.number(), std::ssize(lines));
  }
  EXPECT_THAT(lines, ElementsAre("a", "", "b c\r", "last"));
  EXPECT_THAT(offsets, ElementsAre(0, 3, 4, 10));
  EXPECT_FALSE(reader.Next());
}

TEST(LineReaderTest, ALineEndAtTheEndBeginsNoLine) {
  const TextFile file("f", "a\n");
  LineReader reader(file);
  EXPECT_TRUE(reader.Next());
  EXPECT_FALSE(reader.Next());
}

TEST(BracketLexerTest, SplitsOnAsciiBlanksAndBracketsOnly) {
  const TextFile file("f", "(a\t3\xC2\xA0kg)\v\r\n \n\xE2\x80\xA8(\xE3\x80\x80\n\n");
  BracketLexer lexer(file);
  std::vector<std::string> tokens;
  std::vector<int64_t> lines;
  for (BracketToken token = lexer.Next(); token.kind != BracketToken::Kind::kEnd; token = lexer.Next()) {
    tokens.emplace_back(token.text);
    lines.push_back(token.line);
    EXPECT_EQ(file.text().substr(static_cast<size_t>(token.offset), token.text.size()), token.text);
  }
  EXPECT_THAT(tokens, ElementsAre("(", "a", "3\xC2\xA0kg", ")", "\xE2\x80\xA8", "(", "\xE3\x80\x80"));
  EXPECT_THAT(lines, ElementsAre(1, 1, 1, 1, 3, 3, 3));
  EXPECT_EQ(lexer.blank_lines(), 2);
  EXPECT_EQ(lexer.Next().kind, BracketToken::Kind::kEnd);
}

TEST(NormalizeTokenTest, UndoesTreebankEscapes) {
  EXPECT_EQ(NormalizeToken("and\\/or"), "and/or");
  EXPECT_EQ(NormalizeToken("\\*\\*"), "**");
  EXPECT_EQ(NormalizeToken("8\xC2\xA0"
                           "1\\/2"),
            "8\xC2\xA0"
            "1/2");
  EXPECT_EQ(NormalizeToken("-LRB-"), "(");
  EXPECT_EQ(NormalizeToken("-RRB-"), ")");
  EXPECT_EQ(NormalizeToken("-LSB-"), "[");
  EXPECT_EQ(NormalizeToken("-RSB-"), "]");
  EXPECT_EQ(NormalizeToken("-LCB-"), "{");
  EXPECT_EQ(NormalizeToken("-RCB-"), "}");
}

TEST(NormalizeTokenTest, LeavesEverythingElse) {
  for (const char* token : {"a\\b", "\\", "a\\", "\\\\", "-lrb-", "-LRB-x", "*T*-1", "--", "Caf\xC3\xA9", "/"}) {
    EXPECT_EQ(NormalizeToken(token), token);
  }
}

}  // namespace
}  // namespace cavs
