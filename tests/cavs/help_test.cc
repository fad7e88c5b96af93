#include "cavs/command/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace cavs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Spelling(const FlagSpec& flag) {
  const std::string name(flag.name);
  return flag.type == FlagType::kSwitch ? "  --[no]" + name : "  --" + name + "=";
}

// The text as it is before it is broken into lines.
std::string Unbroken(const std::string& text) {
  std::istringstream words(text);
  std::string joined;
  for (std::string word; words >> word;) joined += word + " ";
  return joined;
}

TEST(Help, ListsEveryFlagAndSubCommand) {
  const std::string text = HelpText(nullptr);
  for (const FlagSpec& flag : Flags()) EXPECT_THAT(text, HasSubstr(Spelling(flag)));
  for (const SubCommandSpec& spec : SubCommands()) EXPECT_THAT(text, HasSubstr("  " + std::string(spec.name) + " "));
  for (const DataFormat& format : DataFormats()) EXPECT_THAT(text, HasSubstr("  " + std::string(format.name) + " "));
}

TEST(Help, ListsExactlyTheFlagsOfASubCommand) {
  for (const SubCommandSpec& spec : SubCommands()) {
    const std::string text = HelpText(&spec);
    EXPECT_THAT(text, HasSubstr(std::string(spec.example)));
    for (const FlagSpec& flag : Flags()) {
      if (IsUsedBy(flag, spec.command)) {
        EXPECT_THAT(text, HasSubstr(Spelling(flag))) << spec.name;
      } else {
        EXPECT_THAT(text, Not(HasSubstr(Spelling(flag)))) << spec.name;
      }
    }
  }
}

TEST(Help, GivesUnitsChoicesAndDefaults) {
  const std::string text = HelpText(FindSubCommand("train"));
  EXPECT_THAT(text, HasSubstr("[graphs; default 25]"));
  EXPECT_THAT(text, HasSubstr("default 0.05, with --optimizer=momentum 0.01, with"));
  EXPECT_THAT(text, HasSubstr("[collapse, keep; default collapse]"));
  EXPECT_THAT(text, HasSubstr("[threads; 0: one for each core; default 0]"));
}

TEST(Help, GivesTheDefaultOfASubCommand) {
  EXPECT_THAT(HelpText(FindSubCommand("verify")), HasSubstr("0: all; default 32]"));
  EXPECT_THAT(HelpText(FindSubCommand("train")), HasSubstr("0: all; default 0]"));
  EXPECT_THAT(HelpText(nullptr), HasSubstr("0: all; default 0, of verify 32]"));
  EXPECT_THAT(Unbroken(HelpText(FindSubCommand("ablate"))), HasSubstr("[default 1e-4, with --precision=bf16 3e-2]"));
}

TEST(Help, TellsWhatTakesAList) {
  const std::string text = Unbroken(HelpText(FindSubCommand("ablate")));
  EXPECT_THAT(text, HasSubstr("[malloc, pool, arena, planned; takes a list; default arena]"));
  EXPECT_THAT(HelpText(FindSubCommand("train")), Not(HasSubstr("takes a list")));
}

TEST(Help, FitsIntoAHundredColumns) {
  std::string text = HelpText(nullptr);
  for (const SubCommandSpec& spec : SubCommands()) text += HelpText(&spec);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
}

}  // namespace
}  // namespace cavs
