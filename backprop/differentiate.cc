#include "backprop/differentiate.h"

#include "backprop/gradient_builder.h"
#include "backprop/gradient_rules.h"
#include "cavs/base/error.h"

namespace cavs {
namespace {

void SeedLosses(const Program& f, GradientBuilder* builder) {
  ValueId seed = kNoValue;
  for (const ValueId loss : f.losses) {
    if (!builder->paths().flows(loss)) continue;
    const Value& value = f.value(loss);
    if (seed == kNoValue) seed = builder->Emit(Op::kLossSeed, value.space, value.shape, {});
    builder->Contribute(loss, seed);
  }
}

}  // namespace

Program Differentiate(const Program& f) {
  CAVS_CHECK(!f.is_backward());
  GradientBuilder builder(f);
  SeedLosses(f, &builder);
  for (auto instruction = f.instructions.rbegin(); instruction != f.instructions.rend(); ++instruction) {
    ValueId dy = kNoValue;
    if (IsSink(instruction->op)) {
      if (!builder.paths().flows(instruction->inputs.front())) continue;
    } else {
      dy = builder.TakeGradient(instruction->output);
      if (dy == kNoValue) continue;
    }
    const GradientRule rule = FindGradientRule(instruction->op);
    CAVS_CHECK(rule != nullptr, "{} has no gradient rule", OpName(instruction->op));
    RuleContext context(&builder, *instruction, dy);
    rule(context);
  }
  return builder.Finish();
}

}  // namespace cavs
