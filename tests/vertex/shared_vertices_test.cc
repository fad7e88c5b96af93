// Vertices that F cannot tell apart are computed once, and nobody can tell from the results.
#include <gtest/gtest.h>

#include "tests/vertex/subject.h"

namespace cavs {
namespace {

// A batch in which graphs repeat, so that whole subgraphs are equal.
std::unique_ptr<RandomBatch> RepeatedBatch(const Subject& subject, uint64_t seed) {
  std::unique_ptr<RandomBatch> result = subject.MakeBatch(4, 12, seed);
  const size_t graphs = result->graphs.size();
  for (size_t i = 0; i < 2 * graphs; ++i)
    result->batch.Add(*result->graphs[i % graphs], 1000 + static_cast<int64_t>(i));
  return result;
}

bool HasInputs(const Executable& executable) {
  for (size_t type = 0; type < executable.signature().types.size(); ++type) {
    if (!executable.input_columns(static_cast<int32_t>(type)).empty()) return true;
  }
  return false;
}

TEST(Sharing, EqualsTheInterpreterUnderEveryPolicy) {
  Difference worst;
  int64_t merged = 0, all = 0, with_inputs = 0;
  for (uint64_t seed = 300; seed < 330; ++seed) {
    Subject subject(seed, false);
    const std::unique_ptr<RandomBatch> batch = RepeatedBatch(subject, seed);
    const RunOptions options = OptionsFor(seed);
    const Snapshot expected = RunInterpreter(subject.f, batch->batch, options, true, &subject.interpreter);
    const auto executable = CompileAndPack(subject.f, true, {}, &subject.parameters, /*shares_inputs=*/true);
    with_inputs += HasInputs(*executable) ? 1 : 0;
    for (const SharingPolicy sharing : {SharingPolicy::kInputs, SharingPolicy::kSubgraphs}) {
      Snapshot one_thread;
      for (RunPolicy policy : AllRunPolicies()) {
        policy.sharing = sharing;
        Runner runner(executable, &subject.parameters, policy);
        Snapshot result = runner.Run(batch->batch, options, true);
        const Difference difference = WorstDifference(expected, result);
        if (difference.error > worst.error) worst = difference;
        ASSERT_LE(difference.error, kTolerance) << difference.tensor << ", model " << seed << ", " << policy.ToString();
        if (policy.threads == 1) {
          one_thread = std::move(result);
        } else if (policy.shards == 1) {  // see shards_test.cc
          ASSERT_EQ(one_thread, result) << "threads change bits: model " << seed << ", " << policy.ToString();
        }
        merged += runner.shared_batch().vertex_count();
        all += batch->batch.vertex_count();
      }
    }
  }
  EXPECT_GE(with_inputs, 8) << "too few of these models compute anything for distinct inputs";
  EXPECT_LT(merged, all * 3 / 4) << "the batches share too little to test anything";
  std::cout << "worst " << worst.error << " in " << worst.tensor << ", distinct vertices "
            << static_cast<double>(merged) / static_cast<double>(all) << ", models with inputs " << with_inputs << "\n";
}

TEST(Sharing, DropoutSwitchesItOff) {
  Subject subject(302, true);
  const std::unique_ptr<RandomBatch> batch = RepeatedBatch(subject, 1);
  const auto executable = CompileAndPack(subject.f, true, {}, &subject.parameters);
  ASSERT_TRUE(executable->draws());
  RunPolicy policy;
  policy.sharing = SharingPolicy::kSubgraphs;
  Runner shared(executable, &subject.parameters, policy);
  Runner plain(executable, &subject.parameters, {});
  EXPECT_EQ(shared.Run(batch->batch, OptionsFor(3), true), plain.Run(batch->batch, OptionsFor(3), true));
}

}  // namespace
}  // namespace cavs
