#include "cavs/command/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProgressTest : public ::testing::Test {
 protected:
  ProgressOptions Options(bool terminal, int columns = 120) {
    ProgressOptions options;
    options.terminal = terminal;
    options.columns = columns;
    options.write = [this](std::string_view text) { written_ += text; };
    options.seconds = [this] { return now_; };
    return options;
  }

  // What a terminal shows in its current line.
  std::string Screen() const {
    std::string line;
    size_t column = 0;
    for (const char c : written_) {
      if (c == '\n') line.clear();
      if (c == '\n' || c == '\r') column = 0;
      if (c == '\n' || c == '\r') continue;
      if (column == line.size()) line += ' ';
      line[column++] = c;
    }
    return line;
  }

  std::string written_;
  double now_ = 1000;
};

TEST_F(ProgressTest, WritesPlainLinesNowAndThen) {
  Progress progress(Options(false));
  progress.Begin("epoch 1/3", 200, "trees");
  for (int i = 1; i <= 100; ++i) {
    now_ += 0.25;
    progress.Update(i, "loss 0.500");
  }
  progress.End();
  EXPECT_EQ(written_,
            "epoch 1/3  20%  40/200 trees  4.00 trees/s  0:40 left  loss 0.500\n"
            "epoch 1/3  40%  80/200 trees  4.00 trees/s  0:30 left  loss 0.500\n");
}

TEST_F(ProgressTest, RedrawsOneLineOnATerminal) {
  Progress progress(Options(true));
  progress.Begin("epoch 1/3", 200, "trees");
  now_ += 10;
  progress.Update(100, "loss 0.500");
  EXPECT_EQ(Screen(), "epoch 1/3 [==========>         ]  50%  100/200 trees  10 trees/s  0:10 left  loss 0.500");
  EXPECT_THAT(written_, Not(HasSubstr("\n")));
  now_ += 10;
  progress.Update(200);
  EXPECT_THAT(Screen(), AllOf(HasSubstr("[====================] 100%"), Not(HasSubstr("loss"))));
  progress.End();
  EXPECT_EQ(Screen().find_first_not_of(' '), std::string::npos);
}

TEST_F(ProgressTest, DrawsSeldom) {
  Progress progress(Options(true));
  progress.Begin("x", 1000000, "trees");
  for (int i = 0; i < 100000; ++i) progress.Update(i);
  EXPECT_EQ(written_, "");
  now_ += 1;
  for (int i = 0; i < 1000; ++i) progress.Update(i);
  EXPECT_EQ(std::count(written_.begin(), written_.end(), '\r'), 1);
}

TEST_F(ProgressTest, KeepsLinesAboveTheBar) {
  Progress progress(Options(true));
  progress.Begin("epoch", 10, "trees");
  now_ += 1;
  progress.Update(5);
  progress.Line("epoch 1: loss 1.0");
  EXPECT_THAT(written_, HasSubstr("epoch 1: loss 1.0\n"));
  EXPECT_THAT(Screen(), StartsWith("epoch ["));
}

TEST_F(ProgressTest, StaysWithinTheTerminal) {
  Progress progress(Options(true, 20));
  progress.Begin("a rather long title", 10, "trees");
  now_ += 1;
  progress.Update(5);
  EXPECT_EQ(Screen().size(), 19u);
}

TEST_F(ProgressTest, DoesWithoutATotal) {
  Progress progress(Options(true));
  progress.Begin("reading", 0, "trees");
  now_ += 2;
  progress.Update(5);
  EXPECT_EQ(Screen(), "reading  5 trees  2.50 trees/s");
}

TEST_F(ProgressTest, IsSilentWhenAsked) {
  ProgressOptions options = Options(true);
  options.quiet = true;
  Progress progress(options);
  progress.Begin("x", 10, "trees");
  now_ += 100;
  progress.Update(5);
  progress.Line("text");
  progress.End();
  EXPECT_EQ(written_, "");
}

}  // namespace
}  // namespace cavs
