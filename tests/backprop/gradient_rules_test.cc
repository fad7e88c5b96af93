// The table of gradient rules covers every operator.
#include "backprop/gradient_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "vertex/program.h"

namespace cavs {
namespace {

TEST(GradientRules, EveryOperatorHasARuleOrIsListedAsNotDifferentiable) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const auto listed = std::count(NonDifferentiableOps().begin(), NonDifferentiableOps().end(), op);
    EXPECT_EQ((FindGradientRule(op) != nullptr) + listed, 1) << OpName(op);
  }
}

TEST(GradientRules, InstructionsOfTheDerivativeHaveNone) {
  for (int i = static_cast<int>(Op::kLossSeed); i < kOpCount; ++i) {
    EXPECT_EQ(FindGradientRule(static_cast<Op>(i)), nullptr) << OpName(static_cast<Op>(i));
  }
}

}  // namespace
}  // namespace cavs
