// The command end to end: what it computes, and what it says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "tests/cavs/command_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Command : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_.File(name); }
  std::string Write(const std::string& name, const std::string& text) {
    WriteText(File(name), text);
    return File(name);
  }

  // The output of a call that must do what it is asked for.
  CommandResult Succeed(const std::vector<std::string>& arguments) {
    CommandResult result = Cavs(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }

  // The fields of the `check` event for a file.
  nlohmann::json Check(const std::string& format, const std::string& text, const std::string& flag = "--quiet") {
    const std::string data = Write("check.txt", text);
    Succeed({"check", "--data=" + format + ":" + data, "--metrics=" + File("check.json"), flag});
    return Events(File("check.json"), "check").at(0);
  }

  ScratchFolder folder_;
};

TEST_F(Command, HelpAndVersion) {
  EXPECT_THAT(Succeed({"help"}).out, AllOf(HasSubstr("train"), HasSubstr("bench"), HasSubstr("--batch_size")));
  EXPECT_THAT(Succeed({"help", "verify"}).out, HasSubstr("--tolerance"));
  EXPECT_THAT(Succeed({"train", "--help"}).out, HasSubstr("--epochs"));
  EXPECT_THAT(Succeed({"--version"}).out, HasSubstr("cavs "));
}

TEST_F(Command, TrainEvalAndPredictAgree) {
  const std::string data = "tree:" + Write("mixed.txt", MixedTrees());
  const std::vector<int> labels = {3, 1, 4, 2, 0, 1, 2};  // at the roots
  const CommandResult trained = Succeed({"train", "--train=" + data, "--dev=" + data, "--test=" + data, "--hidden=6",
                                         "--embed=5", "--batch_size=3", "--epochs=3", "--lr=0.1", "--threads=2",
                                         "--save=" + File("run"), "--metrics=" + File("train.json")});
  EXPECT_THAT(trained.out, AllOf(HasSubstr("hidden=6"), HasSubstr("epoch 3/3"), HasSubstr("mean_width")));
  const nlohmann::json config = Events(File("train.json"), "config").at(0);
  EXPECT_EQ(config.at("threads"), 2);
  EXPECT_EQ(config.at("device"), "cpu");
  EXPECT_EQ(config.at("lookup_updates"), "sparse");
  EXPECT_EQ(Events(File("train.json"), "epoch").size(), 3u);
  const nlohmann::json final_event = Events(File("train.json"), "final").at(0);
  EXPECT_EQ(final_event.at("model"), File("run/best.safetensors"));
  EXPECT_EQ(final_event.at("test_loss"), final_event.at("dev_loss"));

  Succeed({"eval", "--load=" + File("run/best.safetensors"), "--data=" + data, "--batch_size=2",
           "--metrics=" + File("eval.json")});
  const nlohmann::json evaluation = Events(File("eval.json"), "eval").at(0);
  EXPECT_EQ(evaluation.at("accuracy"), final_event.at("dev_accuracy"));
  EXPECT_NEAR(evaluation.at("loss"), final_event.at("dev_loss"), 1e-6) << "whatever the batch size";
  EXPECT_EQ(evaluation.at("vertices"), 29);

  const CommandResult predicted = Succeed({"predict", "--load=" + File("run/best.safetensors"), "--data=" + data});
  const std::vector<nlohmann::json> lines = ParseLines(predicted.out);
  ASSERT_EQ(lines.size(), labels.size());
  int correct = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("example"), i);
    const int predicted_class = lines[i].at("class");
    correct += predicted_class == labels[i];
    EXPECT_EQ(lines[i].at("label"), std::to_string(predicted_class));
    double sum = 0;
    for (const double p : lines[i].at("probabilities")) sum += p;
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_EQ(lines[i].at("probability"), lines[i].at("probabilities").at(static_cast<size_t>(predicted_class)));
  }
  EXPECT_DOUBLE_EQ(correct / 7.0, evaluation.at("accuracy").get<double>());
}

TEST_F(Command, HeldOutExpressionsAreTheSameForTrainAndEval) {
  Succeed({"train", "--train=listops:generate", "--dev=listops:generate", "--test=listops:generate",
           "--max_examples=60", "--hidden=8", "--embed=4", "--epochs=1", "--seed=7", "--save=" + File("run"),
           "--metrics=" + File("train.json")});
  const nlohmann::json final_event = Events(File("train.json"), "final").at(0);
  const std::string load = "--load=" + File("run/best.safetensors");
  for (const std::string part : {"dev", "test"}) {
    const std::string metrics = File(part + ".json");
    Succeed({"eval", load, "--" + part + "=listops:generate", "--max_examples=60", "--metrics=" + metrics});
    EXPECT_EQ(Events(metrics, "eval").at(0).at("loss"), final_event.at(part + "_loss")) << part;
  }
  EXPECT_NE(final_event.at("dev_loss"), final_event.at("test_loss"));
  EXPECT_FALSE(final_event.at("dev_accuracy_by_depth").empty());
}

TEST_F(Command, TheNumberOfThreadsChangesNoFigure) {
  std::vector<std::vector<nlohmann::json>> runs;
  for (const std::string threads : {"1", "3"}) {
    Succeed({"train", "--train=listops:generate", "--dev=listops:generate", "--max_examples=80", "--hidden=20",
             "--embed=8", "--epochs=2", "--dropout=0.2", "--threads=" + threads, "--metrics=" + File("m" + threads)});
    runs.emplace_back();
    for (const nlohmann::json& event : Events(File("m" + threads), "epoch")) {
      runs.back().push_back(WithoutTimes(event));
      runs.back().back().erase("launches");  // each shard has its own
    }
  }
  EXPECT_EQ(runs[0].size(), 2u);
  EXPECT_EQ(runs[0], runs[1]);
}

// Waits until the metrics of a run tell of `count` epochs.
bool WaitForEpochs(const std::string& metrics, int64_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (std::chrono::steady_clock::now() < end) {
    const std::string text = ReadText(metrics);
    int64_t seen = 0;
    for (size_t at = text.find(R"("event":"epoch")"); at != std::string::npos;
         at = text.find(R"("event":"epoch")", at + 1)) {
      ++seen;
    }
    if (seen >= count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST_F(Command, ResumingAnInterruptedRunEqualsNotStopping) {
  const auto words = [&](const std::string& name, int64_t epochs) {
    return std::vector<std::string>{"train",
                                    "--train=listops:generate",
                                    "--dev=listops:generate",
                                    "--max_examples=100",
                                    "--hidden=8",
                                    "--embed=4",
                                    "--batch_size=3",
                                    "--optimizer=adam",
                                    "--threads=1",
                                    "--dropout=0.1",
                                    "--save=" + File(name),
                                    "--metrics=" + File(name + ".json"),
                                    "--epochs=" + std::to_string(epochs)};
  };
  RunningCommand running(CavsWords(words("parts", 100000)));
  ASSERT_TRUE(WaitForEpochs(File("parts.json"), 1));
  running.Signal(SIGINT);
  const CommandResult interrupted = running.Wait();
  EXPECT_EQ(interrupted.code, 1);
  EXPECT_THAT(interrupted.err, AllOf(HasSubstr("interrupted"), HasSubstr("--resume")));

  const auto epochs = static_cast<int64_t>(Events(File("parts.json"), "epoch").size()) + 2;
  std::vector<std::string> resumed = words("parts", epochs);
  resumed.emplace_back("--resume");
  Succeed(resumed);
  Succeed(words("whole", epochs));
  for (const char* file : {"/last.safetensors", "/best.safetensors"}) {
    EXPECT_EQ(ReadText(File("parts") + file), ReadText(File("whole") + file)) << file;
  }
  const std::vector<nlohmann::json> parts = Events(File("parts.json"), "epoch");
  const std::vector<nlohmann::json> whole = Events(File("whole.json"), "epoch");
  ASSERT_EQ(parts.size(), whole.size()) << "metrics are appended to";
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(WithoutTimes(parts[i]), WithoutTimes(whole[i]));
}

TEST_F(Command, CheckCountsO1) {
  const nlohmann::json counts =
      Check("tree", "( (S (NP (DT the)\n\n   (NN cat))\n (VP (VBD sat))))\n( (S (X yes)) (. .) )\n", "--unary=keep");
  EXPECT_EQ(counts.at("trees"), 2);
  EXPECT_EQ(counts.at("leaves"), 5);
  EXPECT_EQ(counts.at("brackets"), 6 + 4);
  EXPECT_EQ(counts.at("max_depth"), 3) << "S, NP, DT";
  EXPECT_EQ(counts.at("dropped_tops"), 1);
  EXPECT_EQ(counts.at("blank_lines"), 1);
}

TEST_F(Command, CheckCountsO2) {
  const nlohmann::json counts = Check("sst", "(2 (2 and\\/or) (3 (2 -LRB-) (2 \\*)))\n");
  EXPECT_EQ(counts.at("trees"), 1);
  EXPECT_EQ(counts.at("leaves"), 3);
  EXPECT_EQ(counts.at("brackets"), 5);
  EXPECT_EQ(counts.at("max_depth"), 3);
  const CommandResult drawn = Succeed({"check", "--data=sst:" + File("check.txt")});
  EXPECT_THAT(drawn.out, AllOf(HasSubstr("and/or"), HasSubstr("word=("), HasSubstr("word=*")));
}

TEST_F(Command, CheckCountsO4) {
  const std::string trees = "(3 Good)\n(S (NP (NN rain)))\n(S (A a) (B b) (C c))\n";
  const nlohmann::json counts = Check("tree", trees);
  EXPECT_EQ(counts.at("trees"), 3);
  EXPECT_EQ(counts.at("collapsed_unary"), 2);
  EXPECT_EQ(counts.at("brackets"), 1 + 3 + 4);
  EXPECT_EQ(counts.at("binarised"), 1);
  EXPECT_EQ(counts.at("vertices"), 1 + 1 + 5);
  EXPECT_EQ(counts.at("max_arity"), 3);
  EXPECT_EQ(counts.at("labels"), 1);
  EXPECT_EQ(counts.at("other_labels"), 5) << "NN; S, A, B, C; not what binarising adds";
  EXPECT_THAT(Succeed({"check", "--data=tree:" + File("check.txt")}).out,
              HasSubstr("labels that are not classes: 5\n"));
  EXPECT_EQ(Check("tree", trees, "--unary=keep").at("vertices"), 1 + 3 + 5);
}

TEST_F(Command, CheckCountsO5) {
  const nlohmann::json counts = Check("tree",
                                      "\xEF\xBB\xBF(S  (NN   rain )\t(VB falls))\r\n(S (NN rain) (VB falls))\n"
                                      "(X 3\xC2\xA0kg)\n(X a\xE2\x80\xA8z)\n(X \xE3\x80\x80)\n");
  EXPECT_EQ(counts.at("trees"), 5);
  EXPECT_EQ(counts.at("leaves"), 7);
  EXPECT_EQ(counts.at("brackets"), 9);
  EXPECT_EQ(counts.at("distinct_words"), 5);
}

TEST_F(Command, CheckReportsTheCoverageOfHeldOutWords) {
  const std::string train = Write("train.txt", "(2 (2 the) (2 cat))\n");
  const std::string dev = Write("dev.txt", "(2 (2 the) (2 dog))\n\n");
  const CommandResult result = Succeed({"check", "--train=sst:" + train, "--dev=sst:" + dev});
  EXPECT_THAT(result.out, HasSubstr("1 of 2 dev words unknown"));
  EXPECT_THAT(Cavs({"train", "--train=sst:" + train, "--dev=sst:" + dev, "--epochs=1", "--hidden=2"}).err,
              HasSubstr("<unk>"));
}

TEST_F(Command, CheckCountsO11) {
  const std::string train = Write("train.txt", " the cat sat\n\n");
  const std::string dev = Write("dev.txt", "\n the dog sat\n");
  const CommandResult result = Succeed({"check", "--train=lm:" + train, "--dev=lm:" + dev});
  EXPECT_THAT(result.out, AllOf(HasSubstr("1 sentences, 3 words"), HasSubstr("1 of 3 dev words unknown"),
                                HasSubstr("#0 token word=<eos> label=the\n")));
}

// The layers' products are merged, so that parameters lie inside of others.
TEST_F(Command, ModelsWithMergedParametersTrainWithoutASavedModel) {
  const std::string data = "lm:" + Write("lm.txt", " a b\n c d\n a b a b\n");
  const CommandResult result = Succeed({"train", "--train=" + data, "--test=" + data, "--hidden=6", "--embed=5",
                                        "--layers=2", "--epochs=2", "--metrics=" + File("train.json")});
  EXPECT_GT(Events(File("train.json"), "final").at(0).at("test_perplexity"), 1);
  Succeed({"ablate", "--data=" + data, "--hidden=6", "--embed=5", "--layers=2", "--seconds=0.01", "--repeat=1",
           "--merging=true,false"});
}

TEST_F(Command, LanguageModelsTrainAndPredict) {
  const std::string data = "lm:" + Write("lm.txt", " a b\n c d\n a b a b\n");
  Succeed({"train", "--train=" + data, "--dev=" + data, "--test=" + data, "--hidden=6", "--embed=5", "--layers=2",
           "--epochs=3", "--save=" + File("run"), "--metrics=" + File("train.json")});
  EXPECT_EQ(Events(File("train.json"), "config").at(0).at("model"), "lstm_lm");
  const nlohmann::json final_event = Events(File("train.json"), "final").at(0);
  EXPECT_EQ(final_event.at("test_perplexity"), final_event.at("dev_perplexity"));
  EXPECT_FALSE(final_event.contains("dev_accuracy"));
  const std::string load = "--load=" + File("run/best.safetensors");
  const CommandResult result = Succeed({"eval", load, "--data=" + data, "--metrics=" + File("eval.json")});
  EXPECT_THAT(result.out, AllOf(HasSubstr("perplexity"), HasSubstr("11 predictions over 3 sentences")));
  const nlohmann::json evaluation = Events(File("eval.json"), "eval").at(0);
  double sum = 0;
  const std::vector<nlohmann::json> lines = ParseLines(Succeed({"predict", load, "--data=" + data}).out);
  ASSERT_EQ(lines.size(), 3u);
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(line.at("log_probabilities").size(), line.at("tokens").get<size_t>());
    EXPECT_NEAR(std::log(line.at("perplexity").get<double>()),
                -line.at("log_probability").get<double>() / line.at("tokens").get<double>(), 1e-9);
    for (const double log : line.at("log_probabilities")) sum += log;
  }
  EXPECT_NEAR(-sum / 11, evaluation.at("loss").get<double>(), 1e-5);
  EXPECT_THAT(Succeed({"verify", load, "--data=" + data}).out, HasSubstr("3 examples, 11 vertices"));
}

// One part of `sick:DIR`: two words a sentence, the second the head; the last pair says the opposite.
void WriteSickPart(const std::string& folder, const std::string& table, const std::string& part) {
  std::filesystem::create_directories(folder + "/" + part);
  WriteText(folder + "/" + table,
            "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
            "1\tdogs run\tdogs run\t5\tENTAILMENT\n"
            "2\tcats sit\tdogs sit\t3.6\tNEUTRAL\n"
            "3\tcats sit\tdogs run\t1.2\tNEUTRAL\n");
  const std::string parents = "2 0\n2 0\n2 0\n";
  WriteText(folder + "/" + part + "/a.toks", "dogs run\ncats sit\ncats sit\n");
  WriteText(folder + "/" + part + "/b.toks", "dogs run\ndogs sit\ndogs run\n");
  WriteText(folder + "/" + part + "/a.parents", parents);
  WriteText(folder + "/" + part + "/b.parents", parents);
}

TEST_F(Command, PairsTrainAndPredict) {
  WriteSickPart(File("sick"), "SICK_train.txt", "train");
  WriteSickPart(File("sick"), "SICK_trial.txt", "dev");
  const std::string data = "sick:" + File("sick");
  EXPECT_THAT(Succeed({"check", "--data=" + data}).out,
              AllOf(HasSubstr("3 pairs, 12 words"), HasSubstr("scores of 3 pairs: 1.20 to 5.00, 3.267 on average"),
                    HasSubstr("pair target[5]")));
  const CommandResult trained = Succeed({"train", "--train=" + data, "--dev=" + data, "--hidden=6", "--embed=5",
                                         "--epochs=20", "--save=" + File("run"), "--metrics=" + File("train.json")});
  EXPECT_THAT(trained.out, AllOf(HasSubstr("3 pairs, 15 vertices"), HasSubstr("dev_pearson"), HasSubstr("pairs/s")));
  const nlohmann::json final_event = Events(File("train.json"), "final").at(0);
  const std::string load = "--load=" + File("run/best.safetensors");
  Succeed({"eval", load, "--dev=" + data, "--metrics=" + File("eval.json")});
  const nlohmann::json evaluation = Events(File("eval.json"), "eval").at(0);
  for (const std::string name : {"pearson", "spearman", "mse"}) {
    EXPECT_EQ(evaluation.at(name), final_event.at("dev_" + name)) << name;
  }
  const std::vector<double> truth = {5, 3.6, 1.2};
  const std::vector<nlohmann::json> lines = ParseLines(Succeed({"predict", load, "--dev=" + data}).out);
  ASSERT_EQ(lines.size(), 3u);
  double error = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("true_score"), truth[i]);
    error += std::pow(lines[i].at("score").get<double>() - truth[i], 2) / 3;
  }
  EXPECT_NEAR(error, evaluation.at("mse").get<double>(), 1e-6);
}

TEST_F(Command, VerifyHoldsForEveryPolicy) {
  const std::string data = "--data=tree:" + Write("mixed.txt", MixedTrees());
  const std::vector<std::string> common = {
      "verify", data, "--hidden=12", "--embed=7", "--unary=keep", "--dropout=0.3", "--batch_size=4"};
  std::vector<std::vector<std::string>> choices;
  for (const std::string batching : {"serial", "depth", "frontier", "agenda", "fsm"}) {
    for (const std::string memory : {"malloc", "pool", "arena", "planned"}) {
      choices.push_back({"--batching=" + batching, "--memory=" + memory});
    }
  }
  for (const std::string pass : {"--nohoisting", "--nolazy_batching", "--nomerging", "--nofusion", "--noin_place",
                                 "--nocse", "--loss=sum", "--memory_limit=16KiB"}) {
    choices.push_back({pass});
  }
  for (const std::string sharing : {"none", "subgraphs"}) choices.push_back({"--sharing=" + sharing, "--dropout=0"});
  for (const std::string parallel : {"task", "shard"}) choices.push_back({"--parallel=" + parallel, "--threads=2"});
  for (const std::string sharing : {"inputs", "subgraphs"}) {
    choices.push_back({"--sharing=" + sharing, "--dropout=0", "--parallel=shard", "--threads=2"});
  }
  choices.push_back(
      {"--nohoisting", "--nolazy_batching", "--nomerging", "--nofusion", "--nocse", "--threads=3", "--parallel=shard"});
  for (const std::string model : {"tree_rnn", "tree_fc"}) choices.push_back({"--model=" + model});
  for (const std::vector<std::string>& choice : choices) {
    std::vector<std::string> words = common;
    words.insert(words.end(), choice.begin(), choice.end());
    words.push_back("--metrics=" + File("verify.json"));
    const CommandResult result = Cavs(words);
    ASSERT_EQ(result.code, 0) << ::testing::PrintToString(choice) << result.err << result.out;
    const nlohmann::json event = Events(File("verify.json"), "verify").at(0);
    EXPECT_LT(event.at("max_rel_value"), 1e-5);
    EXPECT_LT(event.at("max_rel_gradient"), 1e-5);
    EXPECT_GT(event.at("max_abs_gradient"), 0) << "a comparison with itself would be exact";
    EXPECT_EQ(event.at("examples"), 7);
  }
}

TEST_F(Command, ALearnedBatchingPolicyIsSavedWithTheModel) {
  const std::string data = "tree:" + Write("mixed.txt", MixedTrees());
  const auto train = [&](const std::string& batching, const std::string& folder) {
    const std::string metrics = File(folder + ".json");
    Succeed({"train", "--train=" + data, "--unary=keep", "--hidden=4", "--embed=4", "--epochs=1", "--batch_size=4",
             "--sharing=none", "--batching=" + batching, "--save=" + File(folder), "--metrics=" + metrics});
    return Events(metrics, "batching");
  };
  EXPECT_EQ(train("frontier", "plain").size(), 0u);
  const nlohmann::json learned = train("fsm", "learned").at(0);
  EXPECT_EQ(learned.at("minibatches"), 2);
  EXPECT_GE(learned.at("tasks"), learned.at("task_lower_bound"));
  EXPECT_LE(learned.at("tasks"), learned.at("frontier_tasks"));
  for (const std::string command : {"eval", "predict", "verify", "bench", "explain"}) {
    for (const std::string folder : {"learned", "plain"}) {
      const std::string metrics = File("used.json");
      std::vector<std::string> words = {command,
                                        "--data=" + data,
                                        "--batching=fsm",
                                        "--batch_size=4",
                                        "--load=" + File(folder + "/best.safetensors"),
                                        "--metrics=" + metrics};
      if (command == "bench") words.push_back("--seconds=0.01");
      const CommandResult result = Succeed(words);
      const bool learns = folder == "plain";
      EXPECT_EQ(Events(metrics, "batching").size(), learns ? 1u : 0u) << command << " " << folder;
      EXPECT_EQ(result.err.find("batching policy learned in") != std::string::npos, learns) << command << " " << folder;
      EXPECT_EQ(result.out.find("learned batching policy") != std::string::npos, command == "explain");
    }
  }
}

TEST_F(Command, VerifyFailsAboveTheTolerance) {
  const std::string data = "--data=tree:" + Write("mixed.txt", MixedTrees());
  const CommandResult result = Cavs({"verify", data, "--hidden=12", "--embed=7", "--tolerance=1e-12"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("1e-12"));
  EXPECT_THAT(result.out, HasSubstr("gradient of node.U"));
}

TEST_F(Command, PredictionsMayBeCutOff) {
  Succeed({"train", "--train=listops:generate", "--max_examples=20", "--hidden=4", "--embed=4", "--epochs=1",
           "--save=" + File("run")});
  // More lines than a pipe holds.
  const std::string predict = std::string(CAVS_COMMAND) +
                              " predict --data=listops:generate --load=" + File("run/best.safetensors") + " 2>" +
                              File("errors");
  const CommandResult result =
      RunningCommand({"/bin/bash", "-c", "set -o pipefail; " + predict + " | head -n 1"}).Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(ParseLines(result.out).size(), 1u);
  EXPECT_EQ(ReadText(File("errors")), "");
}

TEST_F(Command, ExplainShowsProgramsScheduleAndMemory) {
  const std::string data = "--data=tree:" + Write("mixed.txt", MixedTrees());
  const CommandResult result =
      Succeed({"explain", data, "--hidden=4", "--embed=4", "--metrics=" + File("explain.json")});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("F as written"), HasSubstr("dF as derived"), HasSubstr("compiled steps"),
                    HasSubstr("no schedule has fewer than"), HasSubstr("at the peak"),
                    ContainsRegex("d h +d recurrent to d deferred\n"), ContainsRegex("d pushed h +d hoisted to ")));
  const nlohmann::json event = Events(File("explain.json"), "explain").at(0);
  EXPECT_GE(event.at("tasks"), event.at("task_lower_bound"));
  EXPECT_LT(event.at("needed_bytes"), event.at("peak_bytes"));
  const CommandResult planned = Succeed({"explain", data, "--hidden=4", "--embed=4", "--memory=planned",
                                         "--memory_limit=6KiB", "--metrics=" + File("explain.json")});
  EXPECT_THAT(planned.out, AllOf(ContainsRegex("hoisted to end at [0-9]+\n"), HasSubstr("this was the first")));
  EXPECT_GT(Events(File("explain.json"), "explain").at(0).at("parts"), 1);
  EXPECT_EQ(Succeed({"explain", data, "--dot"}).out.substr(0, 7), "digraph");
}

TEST_F(Command, ExplainShowsWhatWasMerged) {
  const std::string data = "--data=lm:" + Write("sentences.txt", "a b c d\nb c\n");
  const std::string sum = "[layer2.W; layer2.U], layer2.b";
  EXPECT_THAT(Succeed({"explain", data, "--layers=2"}).out, AllOf(HasSubstr("merging of products"), HasSubstr(sum)));
  EXPECT_THAT(Succeed({"explain", data, "--layers=2", "--nomerging"}).out, Not(HasSubstr(sum)));
}

TEST_F(Command, BenchMeasuresInferenceOfTheFirstMinibatches) {
  const auto bench = [&](const char* mode) {
    Succeed({"bench", "--data=listops:generate", "--max_examples=64", "--hidden=16", "--embed=8", "--batch_size=8",
             "--minibatches=2", "--seconds=0.02", "--threads=1", std::string("--mode=") + mode,
             "--metrics=" + File("bench.json")});
    return Events(File("bench.json"), "bench").at(0);
  };
  const nlohmann::json training = bench("train"), inference = bench("infer");
  EXPECT_EQ(training.at("minibatches"), 2);
  EXPECT_EQ(inference.at("minibatches"), 2);
  EXPECT_EQ(inference.at("split").at("backward"), 0);
  EXPECT_GT(training.at("split").at("backward"), 0);
  EXPECT_LT(inference.at("peak_bytes"), training.at("peak_bytes"));
  EXPECT_GT(training.at("resident_peak_bytes"), training.at("peak_bytes"));
}

TEST_F(Command, QuietRunsSayNothingOnStderr) {
  const CommandResult result = Succeed({"train", "--train=listops:generate", "--max_examples=20", "--hidden=4",
                                        "--embed=4", "--epochs=1", "--batch_size=1", "--quiet"});
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(Cavs({"train", "--train=listops:generate", "--max_examples=20", "--hidden=4", "--embed=4", "--epochs=1",
                    "--batch_size=1"})
                  .err,
              HasSubstr("--batch_size"))
      << "narrow tasks are hinted at";
}

}  // namespace
}  // namespace cavs
