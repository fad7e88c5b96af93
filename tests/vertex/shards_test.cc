// Shards of a minibatch that recur side by side: nobody can tell from the results, and none waits for another's memory.
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/vertex/subject.h"

namespace cavs {
namespace {

// Packed products, as sharded minibatches run them.
RunOptions PackedOptions(uint64_t seed) {
  RunOptions options = OptionsFor(seed);
  options.packed = true;
  return options;
}

// A batch in which every graph occurs four times, in every shard.
std::unique_ptr<RandomBatch> RepeatedBatch(const Subject& subject, int64_t graphs, uint64_t seed) {
  std::unique_ptr<RandomBatch> result = subject.MakeBatch(graphs, 16, seed);
  for (int64_t repeat = 1; repeat < 4; ++repeat) {
    for (const auto& graph : result->graphs) result->batch.Add(*graph, 1000 + result->batch.graph_count());
  }
  return result;
}

// Whether the vertices that --sharing=inputs merges, those without children, are the same ones in any shards.
bool MergesAcrossShards(const Executable& executable, const GraphBatch& batch) {
  const std::vector<TypeInputs> types = executable.inputs();
  for (int32_t v = 0; v < batch.vertex_count(); ++v) {
    if (batch.children(v).empty() && types[static_cast<size_t>(batch.type(v))].recurrent) return false;
  }
  return true;
}

TEST(Shards, ChangeNoBitsOfPackedProducts) {
  for (uint64_t seed = 700; seed < 706; ++seed) {
    Subject subject(seed, seed % 2 == 0);
    const std::unique_ptr<RandomBatch> batch = subject.MakeBatch(60, 20, seed);
    const RunOptions options = PackedOptions(seed);
    const auto executable = CompileAndPack(subject.f, true, {}, &subject.parameters, /*shares_inputs=*/seed > 702);
    const Snapshot whole = Runner(executable, &subject.parameters, {}).Run(batch->batch, options, true);
    for (const PoolPolicy memory : {PoolPolicy::kArena, PoolPolicy::kPlanned}) {
      for (const auto& [threads, shards] : {std::pair{1, 3}, std::pair{2, 2}, std::pair{2, 5}, std::pair{3, 3}}) {
        const RunPolicy policy{.memory = memory, .threads = threads, .shards = shards};
        Runner runner(executable, &subject.parameters, policy);
        for (int repeat = 0; repeat < 2; ++repeat) {
          ASSERT_EQ(whole, runner.Run(batch->batch, options, true)) << "model " << seed << ", " << policy.ToString();
        }
      }
    }
  }
}

TEST(Shards, EqualTheInterpreterUnderEverySharing) {
  Difference worst;
  int64_t equal_bits = 0;
  for (uint64_t seed = 720; seed < 736; ++seed) {
    Subject subject(seed, false);
    const std::unique_ptr<RandomBatch> batch = RepeatedBatch(subject, 5, seed);
    const RunOptions options = PackedOptions(seed);
    const Snapshot expected = RunInterpreter(subject.f, batch->batch, options, true, &subject.interpreter);
    const auto executable = CompileAndPack(subject.f, true, {}, &subject.parameters, /*shares_inputs=*/true);
    for (const SharingPolicy sharing : {SharingPolicy::kInputs, SharingPolicy::kSubgraphs}) {
      const Snapshot whole =
          Runner(executable, &subject.parameters, {.sharing = sharing}).Run(batch->batch, options, true);
      for (const int shards : {2, 3}) {
        const RunPolicy policy{.threads = 2, .sharing = sharing, .shards = shards};
        const Snapshot result = Runner(executable, &subject.parameters, policy).Run(batch->batch, options, true);
        const Difference difference = WorstDifference(expected, result);
        if (difference.error > worst.error) worst = difference;
        ASSERT_LE(difference.error, kTolerance) << difference.tensor << ", model " << seed << ", " << policy.ToString();
        if (sharing != SharingPolicy::kInputs || !MergesAcrossShards(*executable, batch->batch)) continue;
        ++equal_bits;
        ASSERT_EQ(whole, result) << "model " << seed << ", " << policy.ToString();
      }
    }
  }
  EXPECT_GT(equal_bits, 0);
  std::cout << "worst " << worst.error << " in " << worst.tensor << ", equal bits in " << equal_bits << " runs\n";
}

// With these passes off, products of a task add into the gradients of parameters, which all shards have in common.
TEST(Shards, OfTasksThatAddIntoParametersRunOneAfterAnother) {
  for (const auto& [hoisting, lazy_batching] :
       {std::pair{true, false}, std::pair{false, true}, std::pair{false, false}}) {
    const PassOptions passes{.hoisting = hoisting, .lazy_batching = lazy_batching};
    for (uint64_t seed = 740; seed < 744; ++seed) {
      Subject subject(seed, false);
      const std::unique_ptr<RandomBatch> batch = RepeatedBatch(subject, 8, seed);
      const RunOptions options = PackedOptions(seed);
      const Snapshot expected = RunInterpreter(subject.f, batch->batch, options, true, &subject.interpreter);
      const auto executable = CompileAndPack(subject.f, true, passes, &subject.parameters, /*shares_inputs=*/true);
      for (const SharingPolicy sharing : {SharingPolicy::kOff, SharingPolicy::kInputs}) {
        const RunPolicy policy{.threads = 2, .sharing = sharing, .shards = 3};
        Runner runner(executable, &subject.parameters, policy);
        const Snapshot first = runner.Run(batch->batch, options, true);
        const Difference difference = WorstDifference(expected, first);
        EXPECT_LE(difference.error, kTolerance) << difference.tensor << ", model " << seed << ", " << ToString(passes);
        for (int repeat = 0; repeat < 3; ++repeat) {
          ASSERT_EQ(first, runner.Run(batch->batch, options, true)) << "model " << seed << ", " << ToString(passes);
        }
      }
    }
  }
}

// Chains over words, whose cell is a leaf and a recurrent step; few words, so that every leaf has parents everywhere.
class ChainShards : public testing::Test {
 protected:
  static constexpr int64_t kWidth = 24;

  static Program Chains() {
    ProgramBuilder b;
    const Expression words = b.Lookup("words", 6, kWidth, Initializer::Uniform(0.5f));
    const State x = b.DeclareState("x", Shape::Vector(kWidth)), h = b.DeclareState("h", Shape::Vector(kWidth));
    const Expression w = b.Parameter("W", Shape::Matrix(kWidth, kWidth));
    const Expression u = b.Parameter("U", Shape::Matrix(kWidth, kWidth));
    b.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Scatter(x, Tanh(MatMul(v.Pull(words, "word"), w))); });
    b.DeclareType("step", 2).Define([&](Vertex& v) {
      const Expression next = Tanh(MatMul(v.Gather(0, h), u) + v.Gather(1, x));
      v.Scatter(h, next);
      v.Push("h", next);
    });
    const Expression pushed = b.Pushed("h");
    b.AddLoss(Sum(pushed * pushed));
    return b.Build();
  }

  // A chain of `steps` steps over the word numbers start, start + 1, ...
  InputGraph Chain(int32_t steps, int32_t start) {
    InputGraphBuilder builder(GraphMaker(f_).columns());
    int32_t last = kNone;
    for (int32_t i = 0; i < steps; ++i) {
      const int32_t leaf = builder.AddVertex(0);
      builder.SetId(0, leaf, (start + i) % 6);
      last = builder.AddVertex(1, {last, leaf});
    }
    return builder.Build();
  }

  void FillBatch(int32_t graphs) {
    for (int32_t i = 0; i < graphs; ++i) graphs_.push_back(Chain(1 + i % 9, i));
    for (const InputGraph& graph : graphs_) batch_.Add(graph, batch_.graph_count());
  }

  Program f_ = Chains(), df_ = Differentiate(f_);
  ParameterStore parameters_{f_.signature, 1};
  std::vector<InputGraph> graphs_;
  GraphBatch batch_;
  const RunOptions options_{.training = true, .head = HeadRows::kAll, .packed = true};
};

TEST_F(ChainShards, ShareLeaves) {
  FillBatch(60);
  Interpreter interpreter(f_, &df_, parameters_);
  const Snapshot expected = RunInterpreter(f_, batch_, options_, true, &interpreter);
  const auto executable = CompileAndPack(f_, true, {}, &parameters_);
  ASSERT_TRUE(MergesAcrossShards(*executable, batch_));
  for (const SharingPolicy sharing : {SharingPolicy::kOff, SharingPolicy::kInputs}) {
    const Snapshot whole = Runner(executable, &parameters_, {.sharing = sharing}).Run(batch_, options_, true);
    const Difference difference = WorstDifference(expected, whole);
    EXPECT_LE(difference.error, kTolerance) << difference.tensor;
    for (const int threads : {2, 3}) {
      Runner runner(executable, &parameters_, {.threads = threads, .sharing = sharing, .shards = threads});
      for (int repeat = 0; repeat < 5; ++repeat) ASSERT_EQ(whole, runner.Run(batch_, options_, true)) << threads;
      if (sharing == SharingPolicy::kOff) continue;
      // 60 chains of 300 leaves in all: of each word one leaf for every 64.
      EXPECT_LE(runner.schedule().rows(0), 12);
    }
  }
}

TEST_F(ChainShards, DoTheSameWork) {
  FillBatch(40);
  const auto executable = CompileAndPack(f_, true, {}, &parameters_);
  const auto work = [&](int shards) {
    Runner runner(executable, &parameters_, {.threads = 2, .shards = shards});
    runner.Run(batch_, options_, true);
    runner.Run(batch_, options_, true);  // counts one minibatch, the last
    return runner.executor().counters();
  };
  const RunCounters one = work(1), three = work(3);
  EXPECT_GT(one.flops, 0);
  EXPECT_EQ(three.flops, one.flops);
  EXPECT_EQ(three.copied_bytes, one.copied_bytes);
  EXPECT_GT(three.launches, one.launches);
}

TEST_F(ChainShards, AreProfiledOneAfterAnother) {
  FillBatch(40);
  const auto executable = CompileAndPack(f_, true, {}, &parameters_);
  const auto profile = [&](int shards, Snapshot* result) {
    Runner runner(executable, &parameters_, {.threads = 2, .shards = shards});
    runner.executor().Profile(true);
    *result = runner.Run(batch_, options_, true);
    return runner.executor().profile();
  };
  Snapshot whole, cut;
  const std::vector<StepProfile> one = profile(1, &whole), three = profile(3, &cut);
  EXPECT_EQ(whole, cut);
  ASSERT_EQ(one.size(), three.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].step, three[i].step);
    EXPECT_EQ(one[i].rows, three[i].rows) << one[i].step;
    EXPECT_GE(three[i].calls, one[i].calls) << one[i].step;
  }
}

}  // namespace
}  // namespace cavs
