#include "cavs/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cavs {
namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(ThrowInvalid, NamesThePlace) {
  EXPECT_THAT([] { ThrowInvalid("affine", "expected [3], got [4]"); },
              ThrowsMessage<std::invalid_argument>(StrEq("[affine] expected [3], got [4]")));
}

TEST(ParseError, CarriesThePlace) {
  const ParseError error("trees.txt", 12, 7, "expected ')', got end of line");
  EXPECT_STREQ(error.what(), "trees.txt:12:7: expected ')', got end of line");
  EXPECT_EQ(error.file(), "trees.txt");
  EXPECT_EQ(error.line(), 12);
  EXPECT_EQ(error.column(), 7);
  EXPECT_EQ(error.message(), "expected ')', got end of line");
}

TEST(ParseError, LeavesOutAColumnOfZero) {
  EXPECT_STREQ(ParseError("a.txt", 3, 0, "not UTF-8").what(), "a.txt:3: not UTF-8");
}

TEST(Check, PassesWithoutEvaluatingTheMessage) {
  int formatted = 0;
  CAVS_CHECK(1 + 1 == 2, "{}", ++formatted);
  EXPECT_EQ(formatted, 0);
}

TEST(Check, NamesFileConditionAndText) {
  const auto fail = [](int got) { CAVS_CHECK(got == 2, "got {}", got); };
  EXPECT_THAT([&] { fail(3); },
              ThrowsMessage<std::logic_error>(
                  AllOf(HasSubstr("internal error: "), HasSubstr("error_test.cc:"), HasSubstr(": got == 2: got 3"))));
  const auto fail_silently = [](bool holds) { CAVS_CHECK(holds); };
  EXPECT_THAT([&] { fail_silently(false); }, ThrowsMessage<std::logic_error>(::testing::EndsWith(": holds")));
}

}  // namespace
}  // namespace cavs
