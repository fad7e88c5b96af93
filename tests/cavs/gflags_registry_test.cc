#include "cavs/command/gflags_registry.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cavs/command/command_line.h"

namespace cavs {
namespace {

// gflags keeps one registry per process, so everything about it is one test.
TEST(GflagsRegistry, KnowsTheTableAndReadsWhatWeRead) {
  GflagsRegistry registry;
  const FlagValues defaults;
  for (const FlagSpec& flag : Flags()) {
    gflags::CommandLineFlagInfo info;
    ASSERT_TRUE(gflags::GetCommandLineFlagInfo(std::string(flag.name).c_str(), &info)) << flag.name;
    EXPECT_EQ(info.description, flag.help);
    if (flag.type != FlagType::kDouble) {
      EXPECT_EQ(info.default_value, defaults.ValueText(flag)) << flag.name;
    }
  }

  const std::vector<std::string> words = {"train",       "--train=sst:a b",     "--lr=0.1",  "--seed=9007199254740991",
                                          "--noshuffle", "--memory_limit=2GiB", "--save=-x", "--clip=1e-30"};
  registry.Assign(ParseCommandLine(words).flags);
  const auto read = [](const char* name) {
    std::string text;
    EXPECT_TRUE(gflags::GetCommandLineOption(name, &text)) << name;
    return text;
  };
  EXPECT_EQ(read("train"), "sst:a b");
  EXPECT_EQ(std::stod(read("lr")), 0.1);
  EXPECT_EQ(std::stod(read("clip")), 1e-30);
  EXPECT_EQ(read("seed"), "9007199254740991");
  EXPECT_EQ(read("shuffle"), "false");
  EXPECT_EQ(read("memory_limit"), "2147483648");
  EXPECT_EQ(read("save"), "-x");
  EXPECT_EQ(read("hidden"), "150");
}

}  // namespace
}  // namespace cavs
