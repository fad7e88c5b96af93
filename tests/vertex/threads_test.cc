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

}  // namespace
}  // namespace cavs
