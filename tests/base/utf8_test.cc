#include "cavs/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace cavs {
namespace {

// The definition, straight from the numbers: the UTF-8 form of a code point.
std::string Encode(uint32_t point) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | (point >> 6)), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | (point >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (point >> 18)), tail(12), tail(6), tail(0)};
}

TEST(FindInvalidUtf8, AcceptsEveryCodePointButSurrogates) {
  for (uint32_t point = 0; point <= 0x10FFFF; ++point) {
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    ASSERT_EQ(FindInvalidUtf8(Encode(point)), surrogate ? 0 : -1) << std::hex << point;
  }
  EXPECT_EQ(FindInvalidUtf8(Encode(0x110000)), 0);
}

TEST(FindInvalidUtf8, RefusesOverlongForms) {
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF"})
    EXPECT_EQ(FindInvalidUtf8(text), 0);
}

TEST(FindInvalidUtf8, GivesTheOffset) {
  EXPECT_EQ(FindInvalidUtf8(""), -1);
  EXPECT_EQ(FindInvalidUtf8("na\xC3\xAFve"), -1);
  EXPECT_EQ(FindInvalidUtf8("caf\xE9 au lait"), 3);
  EXPECT_EQ(FindInvalidUtf8("abc\x80"), 3);
}

TEST(FindInvalidUtf8, RefusesEveryTruncation) {
  for (const uint32_t point : {0xE9u, 0x20ACu, 0x1F600u}) {
    const std::string whole = Encode(point);
    for (size_t length = 1; length < whole.size(); ++length) {
      EXPECT_EQ(FindInvalidUtf8("ab" + whole.substr(0, length)), 2);
      EXPECT_EQ(FindInvalidUtf8("ab" + whole.substr(0, length) + "c"), 2);
    }
  }
}

}  // namespace
}  // namespace cavs
