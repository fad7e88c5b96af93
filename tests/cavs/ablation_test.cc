// The settings that `ablate` compares, and what is made of their figures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cavs/command/ablation_grid.h"
#include "cavs/command/ablation_report.h"
#include "cavs/command/command_line.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AblationGrid GridOf(std::vector<std::string> words) {
  words.insert(words.begin(), {"ablate", "--data=sst:d"});
  return MakeGrid(ParseCommandLine(words).flags);
}

std::vector<std::string> Names(const AblationGrid& grid) {
  std::vector<std::string> names;
  for (const Setting& setting : grid.settings) names.push_back(setting.name);
  return names;
}

std::string Refusal(const std::vector<std::string>& words) {
  try {
    GridOf(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(AblationGrid, StarChangesOneFlagAtATime) {
  const AblationGrid grid = GridOf({"--batching=depth,serial,frontier", "--fusion=true,false", "--threads=2"});
  EXPECT_THAT(Names(grid), ElementsAre("base", "batching=serial", "batching=frontier", "fusion=false"));
  EXPECT_EQ(grid.base, "batching=depth fusion=true");
  EXPECT_EQ(grid.settings[0].flags.Text("batching"), "depth");
  EXPECT_EQ(grid.settings[2].flags.Text("batching"), "frontier");
  EXPECT_EQ(grid.settings[3].flags.Text("batching"), "depth");
  EXPECT_FALSE(grid.settings[3].flags.Bool("fusion"));
  EXPECT_EQ(grid.settings[3].flag, "fusion");
  EXPECT_EQ(grid.settings[3].value, "false");
  for (const Setting& setting : grid.settings) EXPECT_EQ(setting.flags.Int("threads"), 2);
}

TEST(AblationGrid, FullCombinesAll) {
  const AblationGrid grid = GridOf({"--batching=depth,serial,frontier", "--fusion=true,false", "--grid=full"});
  EXPECT_THAT(Names(grid), ElementsAre("base", "fusion=false", "batching=serial", "batching=serial fusion=false",
                                       "batching=frontier", "batching=frontier fusion=false"));
  EXPECT_EQ(grid.settings[3].flags.Text("batching"), "serial");
  EXPECT_FALSE(grid.settings[3].flags.Bool("fusion"));
}

TEST(AblationGrid, WithoutListsTriesEveryPolicyThatIsNotFixed) {
  std::set<std::string> expected = {"base"};
  for (const FlagSpec& flag : Flags()) {
    if (!flag.policy || flag.name == "threads" || flag.name == "memory") continue;
    for (const std::string_view value : ValuesToTry(flag)) {
      if (value != flag.initial) expected.insert(std::string(flag.name) + "=" + std::string(value));
    }
  }
  const std::vector<std::string> names = Names(GridOf({"--threads=1", "--memory=pool"}));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected);
  EXPECT_EQ(names.size(), expected.size());
}

TEST(AblationGrid, NamesThreadsByNumber) {
  const AblationGrid grid = GridOf({"--threads=0,3"});
  ASSERT_LE(grid.settings.size(), 2u);
  EXPECT_GT(grid.settings[0].flags.Int("threads"), 0);
  EXPECT_EQ(grid.settings.back().flags.Int("threads"), 3);
}

TEST(AblationGrid, ComparesBf16MoreLoosely) {
  const AblationGrid grid = GridOf({"--precision=fp32,bf16"});
  EXPECT_EQ(grid.settings[0].flags.Double("tolerance"), 1e-4);
  EXPECT_EQ(grid.settings[1].flags.Double("tolerance"), 3e-2);
  EXPECT_EQ(GridOf({"--precision=fp32,bf16", "--tolerance=0.5"}).settings[1].flags.Double("tolerance"), 0.5);
}

TEST(AblationGrid, RefusesTooMuchAndNothing) {
  EXPECT_THAT(Refusal({"--grid=full", "--batching=serial,depth,frontier,agenda", "--memory=malloc,pool,arena",
                       "--sharing=none,inputs,subgraphs", "--fusion=true,false"}),
              AllOf(HasSubstr("at most 64 settings, got 72"), HasSubstr("4 of --batching"), HasSubstr("--grid=star")));
  std::vector<std::string> fixed;
  for (const FlagSpec& flag : Flags()) {
    if (flag.policy) fixed.push_back("--" + std::string(flag.name) + "=" + std::string(ValuesToTry(flag).front()));
  }
  EXPECT_THAT(Refusal(fixed), HasSubstr("expected a policy that varies"));
}

AblationResult Result(const std::string& name, std::vector<double> seconds, std::vector<double> losses) {
  AblationResult result;
  result.name = name;
  result.step_seconds = std::move(seconds);
  result.losses = std::move(losses);
  result.tolerance = 1e-4;
  result.pass.steps = std::ssize(result.losses);
  return result;
}

TEST(AblationReport, TakesMediansAndComparesTurnByTurn) {
  const Spread odd = SpreadOf({3, 1, 2}), even = SpreadOf({4, 1, 2, 3});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.low, 1);
  EXPECT_EQ(odd.high, 3);
  EXPECT_EQ(even.median, 2.5);
  // The second turn was slow for all: the ratio does not see it.
  const Spread speed = Speed(Result("base", {1, 5, 1}, {1}), Result("x", {2, 10, 2}, {1}));
  EXPECT_EQ(speed.low, 0.5);
  EXPECT_EQ(speed.median, 0.5);
  EXPECT_EQ(speed.high, 0.5);
}

TEST(AblationReport, MeasuresHowFarLossesLieApart) {
  EXPECT_EQ(LossDifference({2, 4}, {2, 4}), 0);
  EXPECT_DOUBLE_EQ(LossDifference({2, 4}, {2.3, 3.7}), 0.6 / 6) << "differences do not cancel";
  EXPECT_EQ(LossDifference({0, 0}, {0, 0}), 0);
  EXPECT_GT(LossDifference({0}, {1e-9}), 1e9);
  EXPECT_GT(LossDifference({1, 1}, {1}), 1e9);
}

TEST(AblationReport, ShoutsAboutOtherAnswersAndSkips) {
  std::vector<AblationResult> results = {Result("base", {1, 1}, {1}), Result("slow", {2, 2}, {1}),
                                         Result("wrong", {0.5, 0.5}, {2}), Result("bf16", {}, {})};
  results[2].loss_difference = LossDifference(results[0].losses, results[2].losses);
  results[3].reason = "no bf16 here";
  EXPECT_TRUE(results[1].agrees());
  EXPECT_FALSE(results[2].agrees());
  const BarChart chart = AblationChart(results);
  const std::vector<Bar>& bars = chart.groups.at(0).bars;
  ASSERT_EQ(bars.size(), 4u);
  EXPECT_EQ(bars[0].tone, BarTone::kBase);
  EXPECT_EQ(bars[1].tone, BarTone::kWorse);
  EXPECT_EQ(bars[2].tone, BarTone::kAlarm);
  EXPECT_THAT(bars[2].remark, HasSubstr("other answers"));
  EXPECT_THAT(bars[3].remark, HasSubstr("no bf16 here"));
  EXPECT_EQ(bars[3].value, 0);
  EXPECT_EQ(AblationFields(results[0], results[1]).at("speed"), 0.5);
  EXPECT_EQ(AblationFields(results[0], results[2]).at("agrees"), false);
  EXPECT_EQ(AblationFields(results[0], results[3]).at("skipped"), "no bf16 here");
}

}  // namespace
}  // namespace cavs
