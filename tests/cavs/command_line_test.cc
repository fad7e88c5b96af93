#include "cavs/command/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/corpus.h"
#include "cavs/models/ready_models.h"
#include "tests/cavs/scratch_folder.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

CommandLine Parse(const std::vector<std::string>& words) { return ParseCommandLine(words); }

FlagValues ParseTrain(std::vector<std::string> words) {
  words.insert(words.begin(), {"train", "--train=listops:generate"});
  return Parse(words).flags;
}

// One line on what is wrong, which holds `text`.
auto Refuses(const std::string& text) {
  return ThrowsMessage<UsageError>(AllOf(HasSubstr(text), Not(HasSubstr("\n"))));
}

#define EXPECT_REFUSED(text, ...) EXPECT_THAT([&] { Parse({__VA_ARGS__}); }, Refuses(text))
#define EXPECT_TRAIN_REFUSED(text, ...) EXPECT_THAT([&] { ParseTrain({__VA_ARGS__}); }, Refuses(text))

TEST(FlagTable, IsSound) {
  std::set<std::string_view> names = {"help", "version", "flagfile"};
  std::set<std::string_view> groups;
  std::string_view group;
  for (const FlagSpec& flag : Flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name << " stands twice";
    EXPECT_FALSE(flag.name.starts_with("no") && FindFlag(flag.name.substr(2)) != nullptr) << flag.name;
    EXPECT_THAT(std::string(flag.help), EndsWith(".")) << flag.name;
    EXPECT_NE(flag.used_by, 0u) << flag.name;
    EXPECT_EQ(flag.choices.empty(), flag.type != FlagType::kChoice) << flag.name;
    EXPECT_EQ(flag.value.empty(), flag.type == FlagType::kSwitch) << flag.name;
    const bool is_count = flag.type == FlagType::kInt || flag.type == FlagType::kSize;
    EXPECT_TRUE(!is_count || !flag.unit.empty() || flag.name == "seed") << flag.name << " has no unit";
    if (flag.group != group) {
      EXPECT_TRUE(groups.insert(flag.group).second) << flag.group << " stands in two places";
    }
    group = flag.group;
  }
  for (const DependentDefault& rule : DependentDefaults()) {
    ASSERT_NE(FindFlag(rule.depends_on), nullptr);
    EXPECT_NO_THROW(FlagValues().Set(*FindFlag(rule.depends_on), rule.value));
    EXPECT_NO_THROW(FlagValues().Set(*FindFlag(rule.flag), rule.initial));
  }
  for (const SubCommandSpec& spec : SubCommands()) EXPECT_EQ(&Describe(spec.command), &spec);
}

// What says how to run, not what, is for `ablate` to compare: a new policy must not be forgotten.
TEST(FlagTable, CallsEveryChoiceOfExecutionAPolicy) {
  const std::string_view execution = FindFlag("batching")->group;
  for (const FlagSpec& flag : Flags()) {
    const bool chooses = flag.type == FlagType::kSwitch || flag.type == FlagType::kChoice;
    if (!flag.policy) {
      EXPECT_TRUE(flag.group != execution || !chooses || flag.name == "device") << flag.name;
      continue;
    }
    EXPECT_EQ(flag.group, execution) << flag.name;
    EXPECT_TRUE(IsUsedBy(flag, SubCommand::kAblate)) << flag.name;
    EXPECT_GT(ValuesToTry(flag).size(), 1u) << flag.name;
    for (const std::string_view value : ValuesToTry(flag)) EXPECT_NO_THROW(FlagValues().Set(flag, value)) << flag.name;
  }
}

TEST(FlagTable, HasAnExampleForEverySubCommandThatParses) {
  for (const SubCommandSpec& spec : SubCommands()) {
    std::vector<std::string> words;
    std::istringstream example{std::string(spec.example)};
    for (std::string word; example >> word;) words.push_back(word);
    ASSERT_EQ(words.at(0), "cavs");
    words.erase(words.begin());
    EXPECT_EQ(Parse(words).command, &spec);
  }
}

TEST(FlagValues, StartAtTheDefaults) {
  const FlagValues flags = ParseTrain({});
  EXPECT_EQ(flags.Text("model"), "tree_lstm");
  EXPECT_EQ(flags.Int("hidden"), 150);
  EXPECT_EQ(flags.Int("embed"), 300);
  EXPECT_EQ(flags.Int("batch_size"), 25);
  EXPECT_EQ(flags.Text("optimizer"), "adagrad");
  EXPECT_EQ(flags.Double("lr"), 0.05);
  EXPECT_EQ(flags.Text("batching"), "frontier");
  EXPECT_EQ(flags.Text("memory"), "arena");
  EXPECT_EQ(flags.Text("save"), "");
  EXPECT_TRUE(flags.Bool("fusion"));
  EXPECT_TRUE(flags.is_set("train"));
  EXPECT_FALSE(flags.is_set("hidden"));
}

TEST(FlagValues, TakeDefaultsOfTheDataAndOfTheSubCommand) {
  EXPECT_EQ(Parse({"train", "--train=lm:a"}).flags.Text("model"), "lstm_lm");
  EXPECT_EQ(Parse({"verify", "--dev=sick:a"}).flags.Text("model"), "child_sum_tree_lstm");
  EXPECT_EQ(Parse({"verify", "--dev=sick:a"}).flags.Int("max_examples"), 32);
  EXPECT_EQ(Parse({"verify", "--dev=sick:a", "--max_examples=0"}).flags.Int("max_examples"), 0);
  EXPECT_EQ(Parse({"bench", "--data=tree:a", "--model=tree_fc"}).flags.Text("model"), "tree_fc");
  EXPECT_FALSE(Parse({"train", "--train=lm:a"}).flags.is_set("model"));
}

TEST(FlagTable, HoldsEveryReadyModelAndFormat) {
  for (const ReadyModel& model : ReadyModels()) EXPECT_NO_THROW(FlagValues().Set(*FindFlag("model"), model.name));
  for (const DataFormat& format : DataFormats()) EXPECT_TRUE(FindCorpusFormat(format.name)) << format.name;
}

TEST(FlagValues, TakeNamesAndTypesOfTheTableOnly) {
  const FlagValues flags;
  EXPECT_THROW(flags.Int("hiden"), std::logic_error);
  EXPECT_THROW(flags.Int("lr"), std::logic_error);
  EXPECT_THROW(flags.Bool("hidden"), std::logic_error);
  EXPECT_THROW(flags.is_set("height"), std::logic_error);
}

TEST(FlagValues, BecomeJsonOfTheFlagsThatAreUsed) {
  const nlohmann::ordered_json json = ParseTrain({"--hidden=64", "--nofusion", "--lr=1e-3"}).ToJson(SubCommand::kTrain);
  EXPECT_EQ(json.at("hidden"), 64);
  EXPECT_EQ(json.at("fusion"), false);
  EXPECT_EQ(json.at("lr"), 0.001);
  EXPECT_EQ(json.at("train"), "listops:generate");
  EXPECT_TRUE(json.at("dev").is_null());
  EXPECT_FALSE(json.contains("tolerance"));
}

TEST(FlagValues, PrintAsTheyCouldBeWritten) {
  const FlagValues flags = ParseTrain({"--memory_limit=2KiB", "--lr=0.1", "--noshuffle"});
  EXPECT_EQ(flags.ValueText(*FindFlag("memory_limit")), "2048");
  EXPECT_EQ(flags.ValueText(*FindFlag("lr")), "0.1");
  EXPECT_EQ(flags.ValueText(*FindFlag("shuffle")), "false");
  EXPECT_EQ(flags.ValueText(*FindFlag("save")), "");
}

TEST(CommandLine, ReadsAllSpellings) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--batch_size=7"}, {"--batch_size", "7"}, {"-batch_size=7"}, {"-batch_size", "7"}, {"--batch-size=7"}}) {
    EXPECT_EQ(ParseTrain(words).Int("batch_size"), 7) << words[0];
  }
  for (const char* word : {"--noshuffle", "-noshuffle", "--shuffle=false", "--shuffle=0", "--shuffle=no"}) {
    EXPECT_FALSE(ParseTrain({word}).Bool("shuffle")) << word;
  }
  EXPECT_TRUE(ParseTrain({"--noshuffle", "--shuffle"}).Bool("shuffle"));
  EXPECT_EQ(ParseTrain({"--save=a=b"}).Text("save"), "a=b");
}

TEST(CommandLine, TakesFlagsBeforeAndAfterTheSubCommand) {
  const CommandLine line = Parse({"--epochs", "3", "--train=sst:a:b", "train", "--nocse", "--epochs=4"});
  EXPECT_EQ(line.action, Action::kRun);
  EXPECT_EQ(line.command->name, "train");
  EXPECT_EQ(line.flags.Int("epochs"), 4);
  EXPECT_EQ(line.flags.Text("train"), "sst:a:b");
  EXPECT_FALSE(line.flags.Bool("cse"));
}

TEST(CommandLine, NamesTheNearestFlag) {
  EXPECT_TRAIN_REFUSED("unknown flag --bach_size; did you mean --batch_size?", "--bach_size=3");
  EXPECT_TRAIN_REFUSED("unknown flag --nohoistin; did you mean --nohoisting?", "--nohoistin");
  EXPECT_TRAIN_REFUSED("did you mean --flagfile?", "--flagfiles=x");
  EXPECT_TRAIN_REFUSED("unknown flag --heads; did you mean --", "--heads=2");
  EXPECT_TRAIN_REFUSED("unknown flag --h;", "-h");
  EXPECT_REFUSED("unknown sub-command 'trian'; did you mean 'train'?", "trian");
}

TEST(CommandLine, RefusesFlagsOfOtherSubCommands) {
  EXPECT_REFUSED("[--epochs] is not used by 'eval', only by train", "eval", "--load=m", "--data=sst:d", "--epochs=3");
  EXPECT_REFUSED("[--tolerance] is not used by 'train', only by verify, ablate", "--tolerance=1", "train",
                 "--train=sst:t");
  EXPECT_REFUSED("[--optimizer] is not used by 'verify', only by train, bench, ablate", "verify", "--data=sst:d",
                 "--optimizer=sgd");
}

TEST(CommandLine, RefusesValuesOutOfRange) {
  EXPECT_TRAIN_REFUSED("[--batch_size] expected a whole number of at least 1 and at most 1000000, got '0'",
                       "--batch_size=0");
  EXPECT_TRAIN_REFUSED("[--epochs] expected a whole number of at least 1 and at most 1000000, got '-1'", "--epochs=-1");
  EXPECT_TRAIN_REFUSED("[--epochs] expected a whole number of at least 1", "--epochs", "-1");
  EXPECT_TRAIN_REFUSED("[--lr] expected a number of more than 0, got 'nan'", "--lr=nan");
  EXPECT_TRAIN_REFUSED("got 'inf'", "--lr=inf");
  EXPECT_TRAIN_REFUSED("got '0'", "--lr=0");
  EXPECT_TRAIN_REFUSED("got '-0.1'", "--lr", "-0.1");
  EXPECT_TRAIN_REFUSED("[--dropout] expected a number of at least 0 and less than 1, got '1'", "--dropout=1");
  EXPECT_TRAIN_REFUSED("got '9007199254740992'", "--seed=9007199254740992");
  EXPECT_TRAIN_REFUSED("[--memory_limit] expected a size such as", "--memory_limit=2parsecs");
  EXPECT_TRAIN_REFUSED("[--memory_limit] expected a size such as", "--memory_limit=-1");
  EXPECT_EQ(ParseTrain({"--seed=9007199254740991"}).Int("seed"), 9007199254740991);
  EXPECT_EQ(ParseTrain({"--dropout=0"}).Double("dropout"), 0);
}

TEST(CommandLine, RefusesMalformedValues) {
  for (const char* text : {"", "3x", "3.5", " 3", "1e2", "0x3", "99999999999999999999"}) {
    EXPECT_TRAIN_REFUSED("[--hidden] expected a whole number", std::string("--hidden=") + text);
  }
  EXPECT_TRAIN_REFUSED("[--lr] expected a number", "--lr=fast");
  EXPECT_TRAIN_REFUSED("[--shuffle] expected true or false, got 'maybe'", "--shuffle=maybe");
  EXPECT_TRAIN_REFUSED("[--batching] expected serial or depth or frontier or agenda or fsm, got 'fold'",
                       "--batching=fold");
  EXPECT_TRAIN_REFUSED("[--precision] expected fp32 or bf16, got 'fp16'", "--precision=fp16");
  EXPECT_TRAIN_REFUSED("[--save] expected a name for DIR, got ''", "--save=");
  for (const char* text : {"file", "sst", "sst:", "csv:file", ":file", "sst.txt:x"}) {
    EXPECT_TRAIN_REFUSED("[--dev] expected FORMAT:PATH with the format listops or sst or tree",
                         std::string("--dev=") + text);
  }
}

TEST(CommandLine, ChecksEveryOneOfARepeatedFlag) {
  EXPECT_EQ(ParseTrain({"--hidden=3", "--hidden=4"}).Int("hidden"), 4);
  EXPECT_TRAIN_REFUSED("got '0'", "--hidden=0", "--hidden=4");
}

TEST(CommandLine, RefusesForgottenValues) {
  EXPECT_TRAIN_REFUSED("[--lr] expected a value, as --lr=X, got none", "--lr");
  EXPECT_TRAIN_REFUSED("[--save] expected a value, as --save=DIR, got none", "--save", "--lr=1");
  EXPECT_TRAIN_REFUSED("[--nofusion] expected no value, got 'true'", "--nofusion=true");
  EXPECT_TRAIN_REFUSED("[--nolr] expected a switch after 'no', got --lr", "--nolr");
  EXPECT_TRAIN_REFUSED("[--help] expected no value", "--help=train");
}

TEST(CommandLine, RefusesStrayWords) {
  EXPECT_TRAIN_REFUSED("unexpected word 'sst:dev.txt'", "sst:dev.txt");
  EXPECT_TRAIN_REFUSED("unexpected word 'false': a switch is written", "--shuffle", "false");
  EXPECT_TRAIN_REFUSED("expected one sub-command, got 'train' and 'eval'", "eval");
  EXPECT_TRAIN_REFUSED("unexpected word '--'", "--", "--lr=1");
  EXPECT_TRAIN_REFUSED("unexpected word '-'", "-");
  EXPECT_TRAIN_REFUSED("unexpected word ''", "");
}

TEST(CommandLine, TakesListsOfPoliciesForAblateAlone) {
  const FlagValues flags =
      Parse({"ablate", "--data=sst:d", "--batching=depth,serial", "--fusion=no,yes", "--threads=2"}).flags;
  EXPECT_EQ(flags.Text("batching"), "depth") << "the first one counts";
  EXPECT_EQ(flags.ValueTexts(*FindFlag("batching")), (std::vector<std::string>{"depth", "serial"}));
  EXPECT_EQ(flags.ValueTexts(*FindFlag("fusion")), (std::vector<std::string>{"false", "true"}));
  EXPECT_FALSE(flags.is_list(*FindFlag("threads")));
  const nlohmann::ordered_json json = flags.ToJson(SubCommand::kAblate);
  EXPECT_EQ(json.at("fusion"), nlohmann::ordered_json::parse("[false, true]"));
  EXPECT_EQ(json.at("threads"), 2);
  EXPECT_REFUSED("[--batching] expected serial or depth or frontier or agenda or fsm, got 'dpeth'", "ablate",
                 "--data=sst:d", "--batching=frontier,dpeth,serial");
  EXPECT_REFUSED("[--memory] expected malloc or pool or arena or planned, got ''", "ablate", "--data=sst:d",
                 "--memory=arena,");
  EXPECT_REFUSED("[--threads] expected different values, got '1,2,1'", "ablate", "--data=sst:d", "--threads=1,2,1");
  EXPECT_REFUSED("[--hidden] expected a whole number", "ablate", "--data=sst:d", "--hidden=16,32");
  EXPECT_TRAIN_REFUSED("[--batching] expected one value, got 'depth,serial'; only 'ablate' takes a list",
                       "--batching=depth,serial");
}

TEST(CommandLine, TakesTheTolerancesOfSubCommandAndPrecision) {
  EXPECT_EQ(Parse({"verify", "--data=sst:d"}).flags.Double("tolerance"), 1e-5);
  EXPECT_EQ(Parse({"ablate", "--data=sst:d"}).flags.Double("tolerance"), 1e-4);
  EXPECT_EQ(Parse({"ablate", "--data=sst:d", "--precision=bf16"}).flags.Double("tolerance"), 3e-2);
}

TEST(CommandLine, NeedsASubCommandAndItsFlags) {
  EXPECT_THAT([] { ParseCommandLine({}); }, Refuses("expected a sub-command, got none: train, eval, predict"));
  EXPECT_REFUSED("expected a sub-command", "--lr=1");
  EXPECT_REFUSED("'train' needs --train=FORMAT:PATH, as in: cavs train", "train");
  EXPECT_REFUSED("'eval' needs --load=FILE", "eval", "--data=sst:d");
  EXPECT_REFUSED("'eval' needs --data=FORMAT:PATH", "eval", "--load=m");
  EXPECT_REFUSED("'check' needs --data=FORMAT:PATH", "check");
}

TEST(CommandLine, RefusesFlagsInBadCompany) {
  EXPECT_TRAIN_REFUSED("[--resume] expected --save=DIR too", "--resume");
  EXPECT_TRAIN_REFUSED("[--save_every] expected --save=DIR too", "--save_every=3");
  EXPECT_TRAIN_REFUSED("[--load] expected a new run", "--resume", "--save=d", "--load=m");
  EXPECT_TRAIN_REFUSED("[--momentum] expected --optimizer=momentum too, got 'adagrad'", "--momentum=0.5");
  EXPECT_EQ(ParseTrain({"--momentum=0.5", "--optimizer=momentum"}).Double("momentum"), 0.5);
  EXPECT_TRUE(ParseTrain({"--resume", "--save=d"}).Bool("resume"));
}

TEST(CommandLine, ChoosesTheLearningRateByTheOptimizer) {
  EXPECT_EQ(ParseTrain({"--optimizer=adam"}).Double("lr"), 0.001);
  EXPECT_FALSE(ParseTrain({"--optimizer=adam"}).is_set("lr"));
  EXPECT_EQ(ParseTrain({"--optimizer=adam", "--lr=0.5"}).Double("lr"), 0.5);
  EXPECT_EQ(ParseTrain({"--lr=0.5", "--optimizer=sgd"}).Double("lr"), 0.5);
}

TEST(CommandLine, GivesOneDataSetOneName) {
  EXPECT_EQ(Parse({"train", "--data=sst:t"}).flags.Text("train"), "sst:t");
  EXPECT_EQ(Parse({"train", "--data=sst:t"}).flags.Text("data"), "");
  for (const char* name : {"data", "train", "dev", "test"}) {
    const FlagValues flags = Parse({"bench", std::string("--") + name + "=sst:x"}).flags;
    EXPECT_EQ(flags.Text("data"), "sst:x") << name;
    EXPECT_EQ(flags.is_set("train"), false);
  }
  EXPECT_REFUSED("[--train] expected one data set, got --data too", "train", "--data=sst:a", "--train=sst:b");
  EXPECT_REFUSED("[--test] expected one data set, got --data too", "eval", "--load=m", "--data=sst:a", "--test=sst:b");
  const FlagValues check = Parse({"check", "--train=sst:a", "--dev=sst:b"}).flags;
  EXPECT_EQ(check.Text("train"), "sst:a");
  EXPECT_EQ(check.Text("dev"), "sst:b");
}

TEST(CommandLine, KnowsHelpAndVersion) {
  EXPECT_EQ(Parse({"help"}).action, Action::kHelp);
  EXPECT_EQ(Parse({"help"}).command, nullptr);
  EXPECT_EQ(Parse({"--help"}).command, nullptr);
  EXPECT_EQ(Parse({"help", "eval"}).command->name, "eval");
  EXPECT_EQ(Parse({"help", "help"}).command, nullptr);
  const CommandLine line = Parse({"train", "--help"});
  EXPECT_EQ(line.action, Action::kHelp);
  EXPECT_EQ(line.command->name, "train");
  EXPECT_EQ(Parse({"--version"}).action, Action::kVersion);
  EXPECT_EQ(Parse({"bench", "-version"}).action, Action::kVersion);
  EXPECT_REFUSED("unknown sub-command 'evl'; did you mean 'eval'?", "help", "evl");
  EXPECT_REFUSED("[--lr] is not used by 'help'", "help", "--lr=1");
  EXPECT_REFUSED("unexpected word 'x'", "help", "eval", "x");
  EXPECT_REFUSED("unknown flag --lear", "--help", "--lear=1");
}

class FlagFileTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    WriteText(folder_.File(name), text);
    return folder_.File(name);
  }
  const ScratchFolder folder_;
};

TEST_F(FlagFileTest, StandsWhereItIsNamed) {
  const std::string inner = Write("inner", "--epochs=5");
  const std::string outer =
      Write("outer", "# a comment\r\n\r\n  --hidden=64  \r\n-nofusion\n--flagfile=" + inner + "\n");
  const FlagValues flags = ParseTrain({"--hidden=1", "--flagfile=" + outer, "--epochs=6"});
  EXPECT_EQ(flags.Int("hidden"), 64);
  EXPECT_EQ(flags.Int("epochs"), 6);
  EXPECT_FALSE(flags.Bool("fusion"));
  EXPECT_EQ(ParseTrain({"--flagfile", inner}).Int("epochs"), 5);
}

TEST_F(FlagFileTest, IsCheckedLikeTheCommandLine) {
  EXPECT_TRAIN_REFUSED("f:2: unknown flag --bach_size", "--flagfile=" + Write("f", "--lr=1\n--bach_size=3\n"));
  EXPECT_TRAIN_REFUSED("f:1: [--lr] expected a number", "--flagfile=" + Write("f", "--lr=x"));
  EXPECT_TRAIN_REFUSED("f:1: [--lr] expected a value", "--flagfile=" + Write("f", "--lr\n1"));
  EXPECT_TRAIN_REFUSED("f:1: expected --flag=value, got 'train'", "--flagfile=" + Write("f", "train"));
  EXPECT_TRAIN_REFUSED("[--tolerance] is not used by 'train'", "--flagfile=" + Write("f", "--tolerance=1"));
  EXPECT_TRAIN_REFUSED("in a circle", "--flagfile=" + Write("f", "--flagfile=" + folder_.File("f")));
}

TEST_F(FlagFileTest, MustBeThere) {
  EXPECT_TRAIN_REFUSED("missing', which is empty or cannot be read", "--flagfile=" + folder_.File("missing"));
  EXPECT_TRAIN_REFUSED("which is empty or cannot be read", "--flagfile=" + folder_.File(""));
  EXPECT_TRAIN_REFUSED("expected the name of a file, got none", "--flagfile=");
  EXPECT_TRAIN_REFUSED("expected the name of a file, got none", "--flagfile");
}

}  // namespace
}  // namespace cavs
