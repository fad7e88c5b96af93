// What the command refuses: exit code, one message, nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cavs/command_testing.h"

namespace cavs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGoodTrees[] = "(3 (2 a) (4 b))\n(1 (1 c) (2 d))\n";

class Refusal : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    WriteText(folder_.File(name), text);
    return folder_.File(name);
  }

  // Every file with its content.
  std::vector<std::string> Contents() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.File("."))) {
      all.push_back(entry.path().string() + (entry.is_regular_file() ? ReadText(entry.path()) : ""));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  void ExpectRefused(const std::vector<std::string>& arguments, int code, const std::vector<std::string>& parts) {
    const std::vector<std::string> before = Contents();
    const CommandResult result = Cavs(arguments);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_THAT(result.err, StartsWith("cavs: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_THAT(result.out, Not(HasSubstr("epoch ")));
    EXPECT_EQ(Contents(), before) << "nothing may be written";
  }

  // `cavs train` on a file, with a save folder that must not come into being.
  void ExpectDataRefused(const std::string& data, const std::vector<std::string>& parts) {
    ExpectRefused({"train", "--train=" + data, "--save=" + folder_.File("new/run"), "--hidden=4", "--embed=4",
                   "--metrics=" + folder_.File("metrics.json")},
                  1, parts);
  }

  // A saved model of width 4.
  std::string TrainedModelPath() {
    const std::string data = File("good.txt", kGoodTrees);
    const CommandResult result = Cavs({"train", "--train=sst:" + data, "--save=" + folder_.File("run"), "--hidden=4",
                                       "--embed=3", "--epochs=1", "--threads=1"});
    EXPECT_EQ(result.code, 0) << result.err;
    return folder_.File("run/best.safetensors");
  }

  ScratchFolder folder_;
};

TEST_F(Refusal, WrongCommandLines) {
  const std::string data = "--train=sst:" + File("good.txt", kGoodTrees);
  ExpectRefused({"train", data, "--bach_size=3"}, 2, {"bach_size", "batch_size"});
  ExpectRefused({"train", data, "--batch_size=0"}, 2, {"batch_size", "'0'"});
  ExpectRefused({"train", data, "--lr=nan"}, 2, {"lr", "'nan'"});
  ExpectRefused({"train", data, "--seconds=3"}, 2, {"seconds", "bench"});
  ExpectRefused({"train", "--train=nosuch:x"}, 2, {"train", "listops"});
  ExpectRefused({"train"}, 2, {"--train"});
  ExpectRefused({"tran", data}, 2, {"tran", "train"});
  ExpectRefused({}, 2, {"sub-command"});
  ExpectRefused({"eval", "--load=x", data, "--loss=sum"}, 2, {"loss", "train"});
}

TEST_F(Refusal, GridsThatVaryTooMuchOrNotAtAll) {
  const std::string data = "--data=sst:" + File("good.txt", kGoodTrees);
  ExpectRefused({"train", data, "--memory=pool,arena"}, 2, {"--memory", "'pool,arena'", "ablate"});
  ExpectRefused({"ablate", data, "--batching=depth,frontal"}, 2, {"--batching", "'frontal'"});
  ExpectRefused({"ablate", data, "--grid=full"}, 2, {"64 settings", "--batching"});
  ExpectRefused({"ablate", data, "--svg=" + folder_.File("none/picture.svg")}, 1, {"none/picture.svg", "a picture"});
}

TEST_F(Refusal, PicturesAndTracesOverOtherFiles) {
  const std::string trees = File("good.txt", kGoodTrees), notes = File("notes.txt", "my notes");
  const std::string metrics = File("metrics.json", "{\"event\":\"old\"}\n");
  for (const std::string flag : {"--svg=", "--trace="}) {
    const std::string command = flag == "--svg=" ? "ablate" : "bench";
    ExpectRefused({command, "--data=sst:" + trees, flag + trees}, 1, {"good.txt", "--data"});
    ExpectRefused({command, "--data=sst:" + trees, flag + notes}, 1, {"notes.txt", "something else"});
    ExpectRefused({command, "--data=sst:" + trees, flag + metrics}, 1, {"metrics.json", "something else"});
    ExpectRefused({command, "--data=sst:" + trees, flag + metrics, "--metrics=" + metrics}, 1, {"metrics.json"});
    ExpectRefused({command, "--data=sst:" + trees, flag + "/dev/null"}, 1, {"/dev/null"});
    ExpectRefused({command, "--data=sst:" + trees, flag + folder_.File(".")}, 1, {"folder"});
  }
}

TEST_F(Refusal, FilesThatCannotBeRead) {
  ExpectDataRefused("sst:" + folder_.File("nothing.txt"), {"nothing.txt"});
  std::filesystem::create_directory(folder_.File("folder"));
  ExpectDataRefused("sst:" + folder_.File("folder"), {"folder"});
  ExpectDataRefused("tree:" + File("empty.txt", ""), {"empty.txt"});
  ExpectDataRefused("sst:" + File("blank.txt", "\n\n"), {"blank.txt"});
}

TEST_F(Refusal, LabelsAndBytes) {
  ExpectDataRefused("sst:" + File("class.txt", std::string(kGoodTrees) + "(5 (2 a) (1 b))\n"), {"class.txt:3", "5"});
  ExpectDataRefused("sst:" + File("word.txt", "(x (2 a) (1 b))\n"), {"word.txt:1", "x"});
  ExpectDataRefused("sst:" + File("utf8.txt", std::string(kGoodTrees) + "(2 (2 \xC3\x28) (1 b))\n"), {"utf8.txt:3"});
  ExpectDataRefused("tree:" + File("tags.txt", "(S (NP you) (VP run))\n"), {"tags.txt", "label"});
}

TEST_F(Refusal, O2BracketsThatDoNotClose) {
  ExpectDataRefused("sst:" + File("b.txt", "(2 (2 x) (3 ())\n"), {"b.txt:1"});
  ExpectDataRefused("sst:" + File("c.txt", "(2 (2 x) (3 y)\n"), {"c.txt:1"});
  ExpectDataRefused("sst:" + File("d.txt", "(2 (2 x) (3 y)) 0.75\n"), {"d.txt:1:17"});
}

TEST_F(Refusal, HeldOutDataAreReadBeforeAnythingIsWritten) {
  const std::string train = "--train=sst:" + File("good.txt", kGoodTrees);
  ExpectRefused({"train", train, "--dev=sst:" + folder_.File("nothing.txt"), "--save=" + folder_.File("run")}, 1,
                {"nothing.txt"});
  const std::string metrics = File("metrics.json", "{\"event\":\"old\"}\n");
  ExpectRefused({"train", train, "--test=sst:" + File("bad.txt", "(2 (2 x)\n"), "--metrics=" + metrics}, 1,
                {"bad.txt:1"});
}

TEST_F(Refusal, PlacesThatCannotBeWrittenBeforeTraining) {
  const std::string train = "--train=sst:" + File("good.txt", kGoodTrees);
  const std::string file = File("file", "");
  const std::vector<std::string> slow = {"train", train, "--epochs=1000000"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> words = slow;
    words.push_back(flag);
    return words;
  };
  ExpectRefused(with("--save=" + file), 1, {file});
  ExpectRefused(with("--save=" + file + "/run"), 1, {file});
  ExpectRefused(with("--metrics=" + folder_.File(".")), 1, {"folder"});
  ExpectRefused(with("--metrics=" + folder_.File("nowhere/metrics.json")), 1, {"nowhere"});
  std::vector<std::string> resumed = with("--save=" + folder_.File("run"));
  resumed.emplace_back("--resume");
  ExpectRefused(resumed, 1, {"run/state"});
}

TEST_F(Refusal, MetricsOverFilesOfTheRun) {
  const std::string data = File("good.txt", kGoodTrees);
  const std::string model = TrainedModelPath();
  const std::string train = "--train=sst:" + data;
  const auto metrics = [](const std::string& path) { return "--metrics=" + path; };
  ExpectRefused({"train", train, metrics(data)}, 1, {"good.txt", "--train"});
  ExpectRefused({"check", "--dev=sst:" + data, metrics(folder_.File("run/../good.txt"))}, 1, {"--dev"});
  std::filesystem::create_symlink(data, folder_.File("link"));
  ExpectRefused({"bench", "--data=sst:" + data, metrics(folder_.File("link"))}, 1, {"--data"});
  ExpectRefused({"eval", "--data=sst:" + data, "--load=" + model, metrics(model)}, 1, {"--load"});
  for (const char* file : {"", "/best.safetensors", "/last.safetensors", "/state"}) {
    const std::string folder = folder_.File("new");
    ExpectRefused({"train", train, "--save=" + folder, metrics(folder + file)}, 1, {"new", "--save"});
  }
}

TEST_F(Refusal, MetricsOverForeignFiles) {
  const std::string train = "--train=sst:" + File("good.txt", kGoodTrees);
  const std::string foreign = File("notes.txt", "what took weeks to write\n");
  const std::string pairs = "--data=treelstm:" + folder_.File(".");
  ExpectRefused({"train", train, "--metrics=" + foreign}, 1, {"notes.txt", "an earlier metrics file"});
  ExpectRefused({"check", pairs, "--metrics=" + File("a.toks", "a b\n")}, 1, {"a.toks", "an earlier metrics file"});
  const std::string earlier = File("m.json", "{\"event\":\"old\"}\n");
  const CommandResult result = Cavs({"check", train, "--metrics=" + earlier});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(ReadText(earlier), Not(HasSubstr("old"))) << "a new run replaces it";
}

// Runs a line of bash in which $CAVS is the command.
CommandResult Shell(const std::string& line) {
  return RunningCommand({"/bin/bash", "-c", "CAVS='" CAVS_COMMAND "'; " + line}).Wait();
}

TEST_F(Refusal, StandardStreamsThatCannotBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::string run =
      "\"$CAVS\" train --epochs=1 --hidden=4 --embed=4 --batch_size=1 --train=sst:" + File("good.txt", kGoodTrees) +
      " --save=" + folder_.File("run");
  for (const char* stderr_to : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(Shell(run + " " + stderr_to).code, 0) << "a hint that nobody sees";
    EXPECT_EQ(Shell("\"$CAVS\" train " + std::string(stderr_to)).code, 2);
    EXPECT_EQ(Shell("\"$CAVS\" check --data=sst:nothing " + std::string(stderr_to)).code, 1);
    EXPECT_EQ(Shell(run + " >/dev/full " + stderr_to).code, 1);
  }
  for (const char* stdout_to : {">/dev/full", ">&-"}) {
    for (const std::string& command : {run, std::string("\"$CAVS\" help")}) {
      const CommandResult result = Shell(command + " " + stdout_to);
      EXPECT_EQ(result.code, 1);
      EXPECT_THAT(result.err, HasSubstr("[stdout] expected an output that can be written"));
    }
  }
}

TEST_F(Refusal, ModelsAboveTheLimitOfFileSizes) {
  const std::string run = folder_.File("run");
  const CommandResult result =
      Shell("ulimit -f 16; exec \"$CAVS\" train --epochs=1 --hidden=64 --embed=64 --quiet --train=sst:" +
            File("good.txt", kGoodTrees) + " --save=" + run);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("best.safetensors] expected room for the whole file"));
  EXPECT_TRUE(std::filesystem::is_empty(run)) << "half a file is none";
}

TEST_F(Refusal, ModelsOfAnotherTask) {
  const std::string sentences = "--train=lm:" + File("lm.txt", " a b\n");
  ExpectRefused({"verify", sentences, "--model=tree_lstm"}, 1, {"lstm_lm", "tree_lstm"});
  ExpectRefused({"verify", "--train=sst:" + File("good.txt", kGoodTrees), "--layers=2"}, 1, {"one layer", "2"});
  ExpectRefused({"verify", sentences, "--layers=0"}, 2, {"layers", "'0'"});
}

TEST_F(Refusal, DamagedAndForeignModels) {
  const std::string model = TrainedModelPath();
  const std::string data = "--data=sst:" + folder_.File("good.txt");
  const std::string bytes = ReadText(model);
  ExpectRefused({"eval", data, "--load=" + folder_.File("none.safetensors")}, 1, {"none.safetensors"});
  ExpectRefused({"eval", data, "--load=" + File("short", bytes.substr(0, bytes.size() - 7))}, 1, {"short"});
  ExpectRefused({"eval", data, "--load=" + File("head", bytes.substr(0, 5))}, 1, {"head"});
  ExpectRefused({"eval", data, "--load=" + File("text", "this is no model, but a text\n")}, 1, {"text"});
  ExpectRefused({"predict", data, "--load=" + folder_.File("run/state")}, 1, {"run/state"});
}

TEST_F(Refusal, FlagsAgainstTheLoadedModel) {
  const std::string load = "--load=" + TrainedModelPath();
  const std::string data = "--data=sst:" + folder_.File("good.txt");
  ExpectRefused({"verify", data, load, "--hidden=8"}, 1, {"--hidden", "4", "8"});
  ExpectRefused({"verify", data, load, "--layers=2"}, 1, {"--layers", "1", "2"});
  ExpectRefused({"verify", data, load, "--model=tree_rnn"}, 1, {"--model", "tree_lstm", "tree_rnn"});
  ExpectRefused({"verify", data, load, "--min_count=2"}, 1, {"--min_count", "vocabulary"});
  ExpectRefused({"eval", "--data=listops:generate", load}, 1, {"listops:generate", "5", "10"});
  EXPECT_EQ(Cavs({"verify", data, load, "--hidden=4", "--embed=3"}).code, 0);
}

TEST_F(Refusal, DevicesThatAreNotThere) {
  const CommandResult result = Cavs({"train", "--train=sst:" + File("good.txt", kGoodTrees), "--device=cuda"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("cuda"));
}

TEST_F(Refusal, MemoryLimit) {
  const CommandResult result =
      Cavs({"train", "--train=sst:" + File("good.txt", kGoodTrees), "--memory_limit=4KiB", "--hidden=64"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("vertices"));
}

TEST_F(Refusal, DataWithoutLabelsAreForPredictionOnly) {
  const std::string load = "--load=" + TrainedModelPath();
  const std::string data = "--data=tree:" + File("bare.txt", "(S (NP a) (VP b))\n(X zebra)\n");
  ExpectRefused({"eval", data, load, "--quiet"}, 1, {"bare.txt", "label"});
  const CommandResult result = Cavs({"predict", data, load});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(ParseLines(result.out).size(), 2u);
}

TEST_F(Refusal, NumbersThatAreNotFinite) {
  const std::string train = "--train=tree:" + File("mixed.txt", MixedTrees());
  const std::vector<std::string> words = {"train",          train,        "--optimizer=sgd", "--lr=3e38",
                                          "--batch_size=2", "--epochs=1", "--hidden=4",      "--embed=4"};
  const CommandResult stopped = Cavs(words);
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("step "));
  EXPECT_THAT(stopped.err, HasSubstr("mixed.txt:"));
  std::vector<std::string> skipping = words;
  skipping.emplace_back("--on_nan=skip");
  const CommandResult skipped = Cavs(skipping);
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("minibatches skipped"));
  skipping.emplace_back("--epochs=2");
  const CommandResult stuck = Cavs(skipping);
  EXPECT_EQ(stuck.code, 1) << "in the second epoch nothing is learnt any more";
  EXPECT_THAT(stuck.err, HasSubstr("in epoch 2, got 4, all skipped"));
}

}  // namespace
}  // namespace cavs
