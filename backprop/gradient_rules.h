// Gradient rules: how each operator of F sends the gradient of its output on to its inputs.
// One table, Op -> rule. A rule is called once for an instruction, with the whole gradient dy of its output; a rule of
// a sink is called without one and fetches it. Rules emit instructions of dF and never look at numbers.
// The table is immutable, safe to share between threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backprop/gradient_builder.h"
#include "vertex/program.h"

namespace cavs {

// What a rule sees: an instruction of F, the gradient of its output, and ways to write dF.
class RuleContext {
 public:
  // `dy` is kNoValue for a sink. Both references must outlive the context.
  RuleContext(GradientBuilder* builder, const Instruction& instruction, ValueId dy)
      : builder_(*builder), instruction_(instruction), dy_(dy) {}

  const Attributes& attributes() const { return instruction_.attributes; }
  size_t inputs() const { return instruction_.inputs.size(); }
  ValueId input(size_t k) const { return instruction_.inputs[k]; }
  ValueId output() const { return instruction_.output; }
  ValueId dy() const { return dy_; }
  // Shape of a row of a value; of the whole matrix for a parameter.
  Shape shape(ValueId id) const { return builder_.value(id).shape; }
  // The parameter that input k is. Throws std::logic_error when it is none.
  int32_t parameter(size_t k) const;

  // Whether input k needs a gradient. Rules may skip the work for those that do not; Add ignores them anyhow.
  bool Wants(size_t k) const { return builder_.paths().flows(input(k)); }
  // Whether readers of attributes().channel send gradients back.
  bool ChannelReaches() const { return builder_.paths().channel_reaches(attributes().channel); }

  // Emits an instruction over the rows of the output, whose result has the shape of `like`.
  ValueId Emit(Op op, ValueId like, std::vector<ValueId> operands, Attributes attributes = {});
  // Emits one whose result has the shape and the rows of input k (the rows of the output where input k is broadcast).
  ValueId EmitFor(size_t k, Op op, std::vector<ValueId> operands, Attributes attributes = {});
  // Emits a sink over the rows of the output, into a channel or into parameter attributes.parameter.
  void Sink(Op op, std::vector<ValueId> operands, Attributes attributes);
  // Adds `gradient` to the gradient of input k, from column `begin` on.
  void Add(size_t k, ValueId gradient, int64_t begin = 0) { builder_.Contribute(input(k), gradient, begin); }

 private:
  RowSpace rows() const;

  GradientBuilder& builder_;
  const Instruction& instruction_;
  ValueId dy_;
};

using GradientRule = void (*)(RuleContext& context);

// The rule of an operator of F; null for an operator of NonDifferentiableOps().
GradientRule FindGradientRule(Op op);

// Operators without a rule: external inputs and the instructions of dF.
std::span<const Op> NonDifferentiableOps();

}  // namespace cavs
