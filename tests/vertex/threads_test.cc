// The number of threads changes no bit of a training step.
#include <memory>

#include <gtest/gtest.h>

#include "tests/vertex/subject.h"

namespace cavs {
namespace {

// Batches that are wide enough for kernels to be cut into several jobs.
TEST(Threads, NeverChangeBits) {
  for (const uint64_t seed : {11, 12}) {
    Subject subject(seed, true);
    const std::unique_ptr<RandomBatch> batch = subject.MakeBatch(400, 20, seed);
    const auto executable = CompileAndPack(subject.f, true, {}, &subject.parameters);
    const RunOptions options = OptionsFor(1);
    const Snapshot expected = RunInterpreter(subject.f, batch->batch, options, true, &subject.interpreter);
    const Snapshot one = Runner(executable, &subject.parameters, {.threads = 1}).Run(batch->batch, options, true);
    for (const int threads : {2, 3}) {
      Runner runner(executable, &subject.parameters, {.threads = threads});
      for (int repeat = 0; repeat < 3; ++repeat) {
        ASSERT_EQ(one, runner.Run(batch->batch, options, true)) << threads << " threads, model " << seed;
      }
    }
    const Difference difference = WorstDifference(expected, one);
    EXPECT_LE(difference.error, kTolerance) << difference.tensor;
  }
}

// Thousands of parents send gradients to the same few children: additions into one row must not meet.
TEST(Threads, NeverMeetInASharedChild) {
  constexpr int64_t kWide = 96;
  ProgramBuilder b;
  const Expression words = b.Lookup("words", 8, kWide, Initializer::Uniform(0.5f));
  const State h = b.DeclareState("h", Shape::Vector(kWide));
  b.DeclareType("leaf", 0).Define([&](Vertex& v) { v.Scatter(h, v.Pull(words, "word")); });
  b.DeclareType("node", 2).Define(
      [&](Vertex& v) { v.Push("h", Tanh(v.Gather(0, h)) * v.Gather(1, h) + v.Pull(words, "word")); });
  b.DeclareType("bag", kAnyArity).Define([&](Vertex& v) {
    v.Push("h", SumChildren(Tanh(v.GatherAll(h) + v.Pull(words, "word"))));
  });
  const Expression pushed = b.Pushed("h");
  b.AddLoss(Sum(pushed * pushed));
  const Program f = b.Build();
  const Program df = Differentiate(f);

  InputGraphBuilder builder(GraphMaker(f).columns());
  for (int32_t i = 0; i < 8; ++i) builder.SetId(0, builder.AddVertex(0), i);
  for (int32_t i = 0; i < 4000; ++i) builder.SetId(0, builder.AddVertex(1, {i % 7, i % 8}), i % 5);
  for (int32_t i = 0; i < 1000; ++i) builder.SetId(0, builder.AddVertex(2, {i % 7, i % 8, 7}), i % 3);
  const InputGraph graph = builder.Build();
  GraphBatch batch;
  batch.Add(graph, 0);

  ParameterStore parameters(f.signature, 1);
  Interpreter interpreter(f, &df, parameters);
  const RunOptions options{.training = true, .head = HeadRows::kAll};
  const Snapshot expected = RunInterpreter(f, batch, options, true, &interpreter);
  const auto executable = CompileAndPack(f, true, {}, &parameters);
  const Snapshot one = Runner(executable, &parameters, {.threads = 1}).Run(batch, options, true);
  const Difference difference = WorstDifference(expected, one);
  EXPECT_LE(difference.error, kTolerance) << difference.tensor;
  for (const int threads : {2, 3}) {
    Runner runner(executable, &parameters, {.threads = threads});
    for (int repeat = 0; repeat < 5; ++repeat) {
      ASSERT_EQ(one, runner.Run(batch, options, true)) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace cavs
