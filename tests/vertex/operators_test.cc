// Every operator: gradients against finite differences, and the Executor against the Interpreter.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backprop/differentiate.h"
#include "tests/vertex/operator_cases.h"
#include "tests/vertex/random_graphs.h"
#include "tests/vertex/snapshot.h"
#include "vertex/input_sharing.h"

namespace cavs {
namespace {

RunOptions Options() { return {.training = true, .head = HeadRows::kAll, .seed = 5, .step = 3, .loss_scale = 0.5f}; }

struct CompiledCase {
  explicit CompiledCase(const OperatorCase& c) {
    ProgramBuilder b;
    c.build(b);
    written = b.Build();
    f = ShareInputs(written, {});
    df = Differentiate(f);
  }

  std::unique_ptr<RandomBatch> MakeBatch(const OperatorCase& c, int64_t graphs) const {
    GraphOptions options;
    options.vertices = c.vertices;
    options.root_type = static_cast<int32_t>(f.signature->types.size() - 1);
    options.missing_input = graphs > 1 ? 0.15 : 0.0;
    CounterRandom random(static_cast<uint64_t>(graphs));
    return GraphMaker(f).MakeBatch(graphs, true, options, random);
  }

  Program written;
  Program f, df;  // over distinct inputs, where it has them
};

class OperatorTest : public testing::TestWithParam<OperatorCase> {};

TEST(OperatorTable, CoversEveryOperator) {
  std::set<Op> cases, emitted;
  for (const OperatorCase& c : OperatorCases()) {
    const CompiledCase compiled(c);
    std::set<Op> forward;
    for (const Instruction& instruction : compiled.f.instructions) forward.insert(instruction.op);
    EXPECT_TRUE(forward.contains(c.op)) << c.name << " does not contain " << OpName(c.op);
    cases.insert(c.op);
    for (const Instruction& instruction : compiled.df.instructions) emitted.insert(instruction.op);
  }
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const bool gradient_only = op >= Op::kLossSeed;
    EXPECT_TRUE(gradient_only ? emitted.contains(op) : cases.contains(op)) << "no case for " << OpName(op);
  }
}

// Central differences in double precision; the worst element of each parameter against the largest of its gradient.
TEST_P(OperatorTest, GradientsEqualFiniteDifferences) {
  const CompiledCase compiled(GetParam());
  const ParameterStore parameters(compiled.f.signature, 11);
  const std::unique_ptr<RandomBatch> batch = compiled.MakeBatch(GetParam(), 7);
  Interpreter interpreter(compiled.f, &compiled.df, parameters);
  interpreter.Forward(batch->batch, Options());
  interpreter.Backward();
  int trained = 0;
  for (int32_t p = 0; p < parameters.count(); ++p) {
    const std::vector<double> gradient = interpreter.gradient(p);
    double scale = 0;
    for (const double value : gradient) scale = std::max(scale, std::abs(value));
    if (parameters.declaration(p).frozen) {
      EXPECT_EQ(scale, 0) << "a frozen parameter has a gradient";
      continue;
    }
    ++trained;
    EXPECT_GT(scale, 1e-3) << "no gradient reaches " << parameters.declaration(p).name;
    for (size_t i = 0; i < gradient.size(); ++i) {
      constexpr double kStep = 1e-4;
      double& element = interpreter.parameter(p)[i];
      const double value = element;
      element = value + kStep;
      interpreter.Forward(batch->batch, Options());
      const double above = interpreter.loss();
      element = value - kStep;
      interpreter.Forward(batch->batch, Options());
      const double below = interpreter.loss();
      element = value;
      const double expected = static_cast<double>(Options().loss_scale) * (above - below) / (2 * kStep);
      ASSERT_NEAR(gradient[i], expected, 1e-6 * scale) << parameters.declaration(p).name << " element " << i;
    }
  }
  EXPECT_GT(trained, 0);
}

TEST_P(OperatorTest, ExecutorEqualsInterpreter) {
  const CompiledCase compiled(GetParam());
  ParameterStore parameters(compiled.f.signature, 11);
  Interpreter interpreter(compiled.f, &compiled.df, parameters);
  for (const bool fusion : {false, true}) {
    const auto executable =
        CompileAndPack(compiled.written, true, {.fusion = fusion}, &parameters, /*shares_inputs=*/fusion);
    Runner runner(executable, &parameters, {});
    for (const int64_t graphs : {1, 2, 7}) {
      const std::unique_ptr<RandomBatch> batch = compiled.MakeBatch(GetParam(), graphs);
      const Snapshot expected = RunInterpreter(compiled.f, batch->batch, Options(), true, &interpreter);
      const Difference worst = WorstDifference(expected, runner.Run(batch->batch, Options(), true));
      EXPECT_LE(worst.error, 1e-5) << worst.tensor << ", " << graphs << " graphs, fusion " << fusion;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorTest, testing::ValuesIn(OperatorCases().begin(), OperatorCases().end()),
                         [](const testing::TestParamInfo<OperatorCase>& c) {
                           std::string name(c.param.name);
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace cavs
