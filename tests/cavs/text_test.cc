#include "cavs/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cavs {
namespace {

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("bach_size", "batch_size"), 1);
  EXPECT_EQ(EditDistance("ephocs", "epochs"), 2);
  EXPECT_EQ(EditDistance("lre", "ler"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(EditDistance, IsSymmetric) {
  constexpr std::array<std::string_view, 6> kWords = {"", "a", "ab", "ba", "abcd", "bcda"};
  for (const std::string_view a : kWords) {
    for (const std::string_view b : kWords) EXPECT_EQ(EditDistance(a, b), EditDistance(b, a)) << a << " " << b;
  }
}

TEST(NearestName, PrefersFewEditsThenACommonBeginning) {
  constexpr std::array<std::string_view, 4> kNames = {"sst", "tree", "tess", "test"};
  EXPECT_EQ(NearestName("treee", kNames), "tree");
  EXPECT_EQ(NearestName("tests", kNames), "test");
  EXPECT_EQ(NearestName("tesx", kNames), "tess");
  EXPECT_EQ(NearestName("x", {}), "");
}

TEST(SplitText, KeepsEmptyParts) {
  EXPECT_TRUE(SplitText("", '|').empty());
  EXPECT_EQ(SplitText("a", '|'), (std::vector<std::string_view>{"a"}));
  EXPECT_EQ(SplitText("a||b|", '|'), (std::vector<std::string_view>{"a", "", "b", ""}));
}

TEST(ParseNumbers, TakeTheWholeTextOrNothing) {
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_EQ(ParseInt("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* bad : {"", " 1", "1 ", "+1", "1.0", "1e3", "0x10", "9223372036854775808", "one"}) {
    EXPECT_EQ(ParseInt(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseDouble("1e-5"), 1e-5);
  EXPECT_TRUE(std::isnan(ParseDouble("nan").value()));
  for (const char* bad : {"", " 1", "1 ", "1,5", "1e", "1e999", "0x1p3x"})
    EXPECT_EQ(ParseDouble(bad), std::nullopt) << bad;
}

TEST(ParseSize, KnowsUnits) {
  EXPECT_EQ(ParseSize("0"), 0);
  EXPECT_EQ(ParseSize("17B"), 17);
  EXPECT_EQ(ParseSize("4k"), 4096);
  EXPECT_EQ(ParseSize("4KiB"), 4096);
  EXPECT_EQ(ParseSize("4kB"), 4000);
  EXPECT_EQ(ParseSize("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(ParseSize("2gb"), 2'000'000'000);
  EXPECT_EQ(ParseSize("0.7B"), 0);
  EXPECT_EQ(ParseSize("9007199254740993"), 9007199254740993);
  EXPECT_EQ(ParseSize("8388607TiB"), int64_t{8388607} << 40);
}

TEST(ParseSize, RefusesWhatItDoesNotKnow) {
  for (const char* bad : {"", "-1", "GiB", "1 GiB", "1Gi", "1PiB", "1.2.3", "8388608TiB", "9e9T", "nan", "1KiBx"}) {
    EXPECT_EQ(ParseSize(bad), std::nullopt) << bad;
  }
}

TEST(FormatSize, KeepsThreeDigits) {
  EXPECT_EQ(FormatSize(0), "0 B");
  EXPECT_EQ(FormatSize(1023), "1023 B");
  EXPECT_EQ(FormatSize(1536), "1.50 KiB");
  EXPECT_EQ(FormatSize(12 << 20), "12.0 MiB");
  EXPECT_EQ(FormatSize((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(FormatSize(int64_t{345} << 30), "345 GiB");
  EXPECT_EQ(FormatSize(std::numeric_limits<int64_t>::max()), "8192 PiB");
}

TEST(FormatDuration, ShowsHoursWhenThereAreAny) {
  EXPECT_EQ(FormatDuration(-1), "0:00");
  EXPECT_EQ(FormatDuration(6.6), "0:07");
  EXPECT_EQ(FormatDuration(3599), "59:59");
  EXPECT_EQ(FormatDuration(3599.9), "1:00:00");
  EXPECT_EQ(FormatDuration(90061), "25:01:01");
}

}  // namespace
}  // namespace cavs
