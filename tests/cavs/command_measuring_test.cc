// The sub-commands that measure: bench with profile and trace, and ablate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/cavs/command_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Measuring : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_.File(name); }

  // A call on a small data set and model that must do what it is asked for.
  CommandResult Succeed(const std::string& command, std::vector<std::string> arguments) {
    CommandResult result = Run(command, std::move(arguments));
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }

  CommandResult Run(const std::string& command, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {command, "--data=listops:generate", "--max_examples=64", "--hidden=16",
                                         "--embed=8", "--batch_size=32", "--seconds=0.02"});
    return Cavs(arguments);
  }

  ScratchFolder folder_;
};

TEST_F(Measuring, BenchSplitsTheTimeOfAStep) {
  const CommandResult result = Succeed("bench", {"--threads=1", "--metrics=" + File("bench.json")});
  EXPECT_THAT(result.out, HasSubstr("GFLOP/s"));
  const nlohmann::json event = Events(File("bench.json"), "bench").at(0);
  for (const char* name :
       {"examples_per_s", "vertices_per_s", "gflops", "gemm_gflops", "needed_bytes", "peak_bytes", "reserved_bytes"}) {
    EXPECT_GT(event.at(name), 0) << name;
  }
  EXPECT_NEAR(event.at("gemm_fraction").get<double>(),
              event.at("gflops").get<double>() / event.at("gemm_gflops").get<double>(), 1e-9);
  double sum = 0;
  for (const auto& [part, seconds] : event.at("split").items()) {
    sum += part == "read" || part == "ahead" ? 0 : seconds.get<double>();
  }
  const double step = event.at("seconds").get<double>() / event.at("steps").get<double>();
  EXPECT_NEAR(sum, step, 1e-9);
  EXPECT_GE(event.at("split").at("other"), 0);
}

TEST_F(Measuring, AProfileAccountsForTheWholeStep) {
  const CommandResult result = Succeed("bench", {"--threads=1", "--profile", "--metrics=" + File("bench.json")});
  EXPECT_THAT(result.out, AllOf(HasSubstr("by operator"), HasSubstr("by step"), HasSubstr("node recurrent"),
                                HasSubstr("d lookups"), HasSubstr("unaccounted")));
  const std::vector<nlohmann::json> lines = Events(File("bench.json"), "profile");
  double share = 0, last = 1e9;
  std::set<std::string> operators;
  for (size_t i = 0; i < lines.size(); ++i) {
    const nlohmann::json& line = lines[i];
    operators.insert(line.at("operator"));
    share += line.at("share").get<double>();
    if (i + 1 == lines.size()) break;
    EXPECT_LE(line.at("seconds"), last) << "the dearest first";
    last = line.at("seconds");
    if (line.at("operator") == "matmul") {
      const double flops = line.at("flops").get<double>(), seconds = line.at("seconds").get<double>();
      EXPECT_NEAR(line.at("gflops"), flops / seconds * 1e-9, 1e-6);
      EXPECT_GT(line.at("bytes"), 0);
    }
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_EQ(lines.back().at("operator"), "unaccounted");
  for (const char* name : {"matmul", "matmul_grad", "fused", "planning", "optimizer", "merge"}) {
    EXPECT_TRUE(operators.contains(name)) << name;
  }
}

// Microseconds with three places as nanoseconds.
int64_t Nanoseconds(const nlohmann::json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }

TEST_F(Measuring, ATraceParsesAndItsEventsNest) {
  WriteText(File("trace.json"), "");
  const CommandResult result = Succeed("bench", {"--threads=1", "--trace=" + File("trace.json")});
  EXPECT_THAT(result.out, HasSubstr("trace of 2 steps"));
  const std::vector<std::string> levels = {"minibatch", "part", "phase", "task", "step"};
  std::vector<int64_t> ends;  // of the open events, by level
  std::vector<int64_t> filled(levels.size(), 0);
  int64_t tasks = 0;
  const nlohmann::json trace = nlohmann::json::parse(ReadText(File("trace.json")));
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    ASSERT_EQ(event.at("ph"), "X");
    const int64_t begin = Nanoseconds(event.at("ts")), duration = Nanoseconds(event.at("dur"));
    EXPECT_GE(duration, 0);
    const auto level = static_cast<size_t>(std::find(levels.begin(), levels.end(), event.at("cat")) - levels.begin());
    ASSERT_LE(level, ends.size()) << event << " has no parent";
    ends.resize(level);
    if (level > 0) {
      EXPECT_LE(begin + duration, ends.back()) << event << " is longer than its parent";
    }
    ends.push_back(begin + duration);
    filled[level] += duration;
    tasks += level == 3;
    if (level >= 3) {
      EXPECT_GT(event.at("args").at("rows"), 0);
    }
  }
  for (size_t level = 1; level < levels.size(); ++level) EXPECT_LE(filled[level], filled[level - 1]) << levels[level];
  EXPECT_GT(filled.back(), 0);
  EXPECT_GT(tasks, 2);
  // A trace may be replaced by another one.
  Succeed("bench", {"--threads=1", "--trace=" + File("trace.json")});
}

TEST_F(Measuring, AblateComparesEverySetting) {
  const CommandResult result =
      Succeed("ablate", {"--batching=frontier,serial", "--fusion=true,false", "--threads=1", "--repeat=2",
                         "--metrics=" + File("ablate.json"), "--svg=" + File("ablate.svg")});
  EXPECT_THAT(result.out, AllOf(HasSubstr("base: batching=frontier fusion=true"), HasSubstr("batching=serial")));
  const nlohmann::json config = Events(File("ablate.json"), "config").at(0);
  EXPECT_EQ(config.at("batching"), nlohmann::json::parse(R"(["frontier", "serial"])"));
  const std::vector<nlohmann::json> events = Events(File("ablate.json"), "ablate");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("speed"), 1);
  EXPECT_EQ(events[0].at("loss_difference"), 0);
  EXPECT_EQ(events[1].at("setting"), "batching=serial");
  EXPECT_GT(events[1].at("tasks_per_step"), events[0].at("tasks_per_step"));
  EXPECT_EQ(events[2].at("setting"), "fusion=false");
  EXPECT_GT(events[2].at("launches_per_step"), events[0].at("launches_per_step"));
  EXPECT_GT(events[2].at("peak_bytes"), events[0].at("peak_bytes"));
  for (const nlohmann::json& event : events) {
    EXPECT_EQ(event.at("turns"), 2);
    EXPECT_EQ(event.at("agrees"), true);
    EXPECT_LE(event.at("step_seconds_low"), event.at("step_seconds"));
    EXPECT_LE(event.at("step_seconds"), event.at("step_seconds_high"));
    EXPECT_EQ(event.at("minibatches"), events[0].at("minibatches")) << "all run the same";
  }
  const std::string svg = ReadText(File("ablate.svg"));
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("tree_lstm"), HasSubstr("listops:generate"), HasSubstr("serial"),
                         HasSubstr("</svg>")));
}

TEST_F(Measuring, AblateWithoutListsTriesEveryPolicyAndSkipsWhatIsNotHere) {
  Succeed("ablate", {"--repeat=1", "--seconds=0.001", "--metrics=" + File("ablate.json")});
  std::set<std::string> settings;
  for (const nlohmann::json& event : Events(File("ablate.json"), "ablate")) {
    settings.insert(event.at("setting"));
    if (event.contains("skipped")) {
      EXPECT_EQ(event.at("setting"), "precision=bf16");
    }
  }
  for (const char* name :
       {"base", "batching=agenda", "batching=fsm", "sharing=none", "memory=malloc", "precision=bf16", "cse=false"}) {
    EXPECT_TRUE(settings.contains(name)) << name;
  }
}

TEST_F(Measuring, AblateFailsWhenAnswersDiffer) {
  // Gradients are summed in another order, so that not all losses are equal to the last bit.
  const CommandResult result =
      Run("ablate", {"--sharing=none,subgraphs", "--repeat=1", "--batch_size=8", "--seconds=0.5", "--tolerance=1e-300",
                     "--threads=1", "--metrics=" + File("ablate.json")});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("OTHER ANSWERS"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("expected losses within"), HasSubstr("for sharing=subgraphs")));
  EXPECT_EQ(Events(File("ablate.json"), "ablate").at(1).at("agrees"), false) << "the figures are there all the same";
}

TEST_F(Measuring, AblateUsesALoadedModel) {
  const CommandResult trained = Cavs({"train", "--train=listops:generate", "--max_examples=40", "--hidden=7",
                                      "--embed=4", "--epochs=2", "--save=" + File("run")});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const CommandResult result =
      Cavs({"ablate", "--load=" + File("run/best.safetensors"), "--data=listops:generate", "--max_examples=40",
            "--fusion=true,false", "--repeat=1", "--seconds=0.001", "--metrics=" + File("ablate.json")});
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<nlohmann::json> events = Events(File("ablate.json"), "ablate");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].at("agrees"), true) << "both start with the values of the file";
}

}  // namespace
}  // namespace cavs
