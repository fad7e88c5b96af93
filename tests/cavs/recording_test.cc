// What an Executor tells about its runs: the cost of every compiled step, and a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cavs/graph_builder.h"
#include "cavs/session.h"

namespace cavs {
namespace {

constexpr int64_t kWidth = 6, kWords = 5, kClasses = 3;
constexpr int64_t kFloat = sizeof(float);

// A chain of `node`s above a leaf each: two products in F, one of them recurrent, and one in the head.
class Recording : public ::testing::Test {
 protected:
  Recording() {
    leaf_ = model_.VertexType("leaf", 0);
    node_ = model_.VertexType("node", 1);
    const State h = model_.State("h", {kWidth});
    const Expression words = model_.Lookup("words", kWords, kWidth);
    const Expression w = model_.Parameter("W", {kWidth, kWidth}), u = model_.Parameter("U", {kWidth, kWidth});
    leaf_.Define([&](Vertex& v) {
      const Expression x = Tanh(MatMul(v.Pull(words, "word"), w));
      v.Scatter(h, x);
      v.Push("h", x);
    });
    node_.Define([&](Vertex& v) {
      const Expression x = Tanh(MatMul(v.Gather(0, h), u));
      v.Scatter(h, x);
      v.Push("h", x);
    });
    model_.Loss(CrossEntropy(MatMul(model_.Pushed("h"), model_.Parameter("head", {kWidth, kClasses})),
                             model_.Label("label", kClasses)));
    for (const int32_t length : {3, 1, 4}) graphs_.push_back(Chain(length));
    for (const InputGraph& graph : graphs_) examples_.push_back({&graph, std::ssize(examples_)});
  }

  InputGraph Chain(int32_t length) {
    GraphBuilder builder(model_);
    int32_t last = builder.Add(leaf_, {{"word", length % static_cast<int32_t>(kWords)}, {"label", 0}});
    for (int32_t i = 0; i < length; ++i) last = builder.Add(node_, {{"label", i % 3}}, {last});
    return builder.Build();
  }

  Model model_;
  VertexType leaf_, node_;
  std::vector<InputGraph> graphs_;
  std::vector<Example> examples_;
};

TEST_F(Recording, AProfileHoldsAllThatARunCounts) {
  Session session(model_, {.sharing = SharingPolicy::kOff});
  session.executor().Profile(true);
  RunCounters counters;
  for (int i = 0; i < 2; ++i) {
    const BatchReport& report = session.Accumulate(examples_);
    counters.launches += report.counters.launches;
    counters.flops += report.counters.flops;
  }
  const std::vector<StepProfile> profile = session.executor().profile();
  RunCounters seen;
  for (const StepProfile& step : profile) {
    if (step.operation != "merge") seen.launches += step.calls;
    seen.flops += step.flops;
    EXPECT_GE(step.seconds, 0) << step.step;
    EXPECT_EQ(step.rows > 0, step.bytes > 0) << step.step;
    EXPECT_EQ(step.flops > 0, step.operation.starts_with("matmul") && step.rows > 0) << step.step;
  }
  EXPECT_EQ(seen.launches, counters.launches);
  EXPECT_DOUBLE_EQ(seen.flops, counters.flops);
}

TEST_F(Recording, AProfileKnowsFunctionsPhasesRowsAndBytes) {
  Session session(model_, {.sharing = SharingPolicy::kOff});
  session.executor().Profile(true);
  session.Accumulate(examples_);
  std::map<std::string, StepProfile> products;
  for (const StepProfile& step : session.executor().profile()) {
    if (step.operation == "matmul" && !step.backward) products[step.function] = step;
  }
  ASSERT_EQ(products.size(), 3u);
  const StepProfile& leaf = products.at("leaf");
  EXPECT_EQ(leaf.phase, Phase::kHoisted);
  EXPECT_EQ(leaf.calls, 1);
  EXPECT_EQ(leaf.rows, 3);
  EXPECT_EQ(leaf.flops, 2.0 * 3 * kWidth * kWidth);
  EXPECT_EQ(leaf.bytes, kFloat * (3 * kWidth + kWidth * kWidth + 3 * kWidth)) << "operand, parameter and result";
  const StepProfile& node = products.at("node");
  EXPECT_EQ(node.phase, Phase::kRecurrent);
  EXPECT_EQ(node.calls, 4);
  EXPECT_EQ(node.rows, 3 + 1 + 4);
  EXPECT_EQ(node.bytes, kFloat * (2 * node.rows * kWidth + 4 * kWidth * kWidth)) << "the parameter in every call";
  EXPECT_EQ(products.at("head").rows, 3 + 8);
}

TEST_F(Recording, ProfilingChangesNoResultAndForgetsOnRequest) {
  Session plain(model_), profiled(model_);
  profiled.executor().Profile(true);
  EXPECT_EQ(plain.Accumulate(examples_).loss, profiled.Accumulate(examples_).loss);
  profiled.executor().Profile(false);
  profiled.Accumulate(examples_);
  for (const StepProfile& step : profiled.executor().profile()) EXPECT_EQ(step.calls, 0) << step.step;
}

TEST_F(Recording, TracedSpansNestAndStepsFillTheirTasks) {
  Session session(model_, {.sharing = SharingPolicy::kOff});
  Optimizer optimizer = session.MakeOptimizer();
  TraceLog log(10000);
  session.Trace(&log);
  const int64_t launches = session.Accumulate(examples_).counters.launches;
  static_cast<void>(session.Step(optimizer));
  session.Trace(nullptr);
  session.Accumulate(examples_);

  std::map<TraceLevel, int64_t> counts;
  std::map<std::string, int64_t> names;
  for (const TraceSpan& span : log.spans()) {
    ++counts[span.level];
    ++names[std::string(span.name)];
    EXPECT_LE(span.begin, span.end) << span.name;
    if (span.level <= TraceLevel::kPart) continue;
    // Exactly one span of the next level outwards holds it, and what that holds fits into it.
    const auto above = static_cast<TraceLevel>(static_cast<int>(span.level) - 1);
    int64_t parents = 0;
    for (const TraceSpan& other : log.spans()) {
      const bool holds = other.level == above && other.begin <= span.begin && span.end <= other.end;
      parents += holds;
      EXPECT_TRUE(other.level != span.level || &other == &span || other.end <= span.begin || span.end <= other.begin)
          << other.name << " and " << span.name << " overlap";
    }
    EXPECT_EQ(parents, 1) << span.name;
  }
  EXPECT_EQ(counts[TraceLevel::kStep], launches);
  EXPECT_EQ(names["node"], 4) << "a task for each depth";
  EXPECT_EQ(names["d node"], 4 + 2) << "and dF's product and sum of all rows";
  for (const char* part : {"plan", "forward", "backward", "optimizer", "recurrent", "head"})
    EXPECT_GT(names[part], 0) << part;
}

TEST_F(Recording, ATaskOfManyBlocksIsOneSpan) {
  const auto trace = [&](int32_t graphs, std::vector<int64_t>* rows) {
    examples_.clear();
    for (int32_t i = 0; i < graphs; ++i) examples_.push_back({graphs_.data(), i});
    Session session(model_, {.sharing = SharingPolicy::kOff});
    TraceLog log(10000);
    session.Trace(&log);
    session.Accumulate(examples_);
    int64_t kernels = 0;
    for (const TraceSpan& span : log.spans()) {
      if (span.level == TraceLevel::kTask && span.name == "node") rows->push_back(span.rows);
      kernels += span.level == TraceLevel::kStep;
    }
    return kernels;
  };
  constexpr int32_t kGraphs = 5000;
  std::vector<int64_t> few, many;
  const int64_t kernels_of_few = trace(1, &few), kernels_of_many = trace(kGraphs, &many);
  EXPECT_THAT(few, ::testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(many, ::testing::ElementsAre(kGraphs, kGraphs, kGraphs));
  EXPECT_GT(kernels_of_many, kernels_of_few) << "so many rows run in blocks";
}

}  // namespace
}  // namespace cavs
