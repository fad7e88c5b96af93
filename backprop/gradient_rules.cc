#include "backprop/gradient_rules.h"

#include <array>
#include <utility>

#include "cavs/base/error.h"
#include "vertex/operator.h"

namespace cavs {

int32_t RuleContext::parameter(size_t k) const {
  const Value& value = builder_.value(input(k));
  CAVS_CHECK(value.space.kind == Space::kParameter, "input {} of {}", k, OpName(instruction_.op));
  return value.parameter;
}

ValueId RuleContext::Emit(Op op, ValueId like, std::vector<ValueId> operands, Attributes attributes) {
  return builder_.Emit(op, rows(), shape(like), std::move(operands), std::move(attributes));
}

ValueId RuleContext::EmitFor(size_t k, Op op, std::vector<ValueId> operands, Attributes attributes) {
  const RowSpace own = builder_.value(input(k)).space;
  const bool broadcast = own.kind == Space::kParameter || own.kind == Space::kConstant;
  return builder_.Emit(op, broadcast ? rows() : own, shape(input(k)), std::move(operands), std::move(attributes));
}

void RuleContext::Sink(Op op, std::vector<ValueId> operands, Attributes attributes) {
  if (attributes.parameter >= 0) {
    builder_.EmitParameterSink(op, rows(), std::move(operands), std::move(attributes));
  } else {
    builder_.EmitSink(op, rows(), std::move(operands), std::move(attributes));
  }
}

RowSpace RuleContext::rows() const {
  return output() == kNoValue ? instruction_.space : builder_.value(output()).space;
}

namespace {

// The attributes of a sink into the parameter that input k is.
Attributes ForParameter(const RuleContext& c, size_t k) {
  Attributes attributes = c.attributes();
  attributes.parameter = c.parameter(k);
  return attributes;
}

Attributes Factor(double scalar) {
  Attributes attributes;
  attributes.scalar = scalar;
  return attributes;
}

// Below, x (or a, b) are the inputs, y is the output, and d stands for the gradient of the loss.

// y = table[id]: dtable[id] += dy.
void LookupRule(RuleContext& c) { c.Sink(Op::kLookupGrad, {c.dy()}, ForParameter(c, 0)); }

// y = state of a child: the child's dstate += dy.
void GatherRule(RuleContext& c) { c.Sink(Op::kGatherGrad, {c.dy()}, c.attributes()); }

// y_e = state of the child at edge e: that child's dstate += dy_e.
void GatherAllRule(RuleContext& c) { c.Sink(Op::kGatherAllGrad, {c.dy()}, c.attributes()); }

// y = what a vertex pushed: that vertex's dpush += dy.
void PushedRule(RuleContext& c) { c.Sink(Op::kPushedGrad, {c.dy()}, c.attributes()); }

// state = x: dx = dstate, what all parents added; nothing when no parent gathers the state on a path to a loss.
void ScatterRule(RuleContext& c) {
  if (c.ChannelReaches()) c.Add(0, c.EmitFor(0, Op::kScatterGrad, {}, c.attributes()));
}

// push = x: dx = dpush; nothing when the head does not read it on a path to a loss.
void PushRule(RuleContext& c) {
  if (c.ChannelReaches()) c.Add(0, c.EmitFor(0, Op::kPushGrad, {}, c.attributes()));
}

// y_e = x of the parent of edge e: dx = sum over the edges of dy_e.
void ToEdgesRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kSumChildren, {c.dy()})); }

// y_v = x of the input of vertex v: dx = sum over the vertices of dy_v.
void ToVerticesRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kSumVertices, {c.dy()})); }

// y = sum over the edges of x_e: dx_e = dy.
void SumChildrenRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kToEdges, {c.dy()})); }

// y = mean over the n edges of x_e: dx_e = dy / n.
void MeanChildrenRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kMeanChildrenGrad, {c.dy()})); }

// y = maximum over the edges of x_e: dx_e = dy at the first edge that reaches it, else 0; by column.
void MaxChildrenRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kMaxChildrenGrad, {c.input(0), c.output(), c.dy()})); }

// y = x W + b: dx = dy W^T, dW = x^T dy, db = sum of the rows of dy. y = x W^T + b: dx = dy W, dW = dy^T x.
void MatMulRule(RuleContext& c) {
  if (c.Wants(0)) {
    Attributes flipped = c.attributes();
    flipped.transposed = !flipped.transposed;
    c.Add(0, c.EmitFor(0, Op::kMatMul, {c.dy(), c.input(1)}, std::move(flipped)));
  }
  if (c.Wants(1)) c.Sink(Op::kMatMulGrad, {c.input(0), c.dy()}, ForParameter(c, 1));
  if (c.inputs() > 2) c.Add(2, c.dy());
}

// z_ij = x_i y_j: dx_i = sum_j dz_ij y_j, dy_j = sum_i dz_ij x_i.
void OuterRule(RuleContext& c) {
  if (c.Wants(0)) c.Add(0, c.EmitFor(0, Op::kOuterGradLeft, {c.dy(), c.input(1)}));
  if (c.Wants(1)) c.Add(1, c.EmitFor(1, Op::kOuterGradRight, {c.dy(), c.input(0)}));
}

// y = a + b: da = db = dy.
void AddRule(RuleContext& c) {
  c.Add(0, c.dy());
  c.Add(1, c.dy());
}

// y = a - b: da = dy, db = -dy.
void SubtractRule(RuleContext& c) {
  c.Add(0, c.dy());
  if (c.Wants(1)) c.Add(1, c.EmitFor(1, Op::kScale, {c.dy()}, Factor(-1)));
}

// y = a b: da = dy b, db = dy a. dy comes first, for the second operand may be broadcast over rows.
void MultiplyRule(RuleContext& c) {
  if (c.Wants(0)) c.Add(0, c.EmitFor(0, Op::kMultiply, {c.dy(), c.input(1)}));
  if (c.Wants(1)) c.Add(1, c.EmitFor(1, Op::kMultiply, {c.dy(), c.input(0)}));
}

// y = a / b: da = dy / b, db = -dy y / b.
void DivideRule(RuleContext& c) {
  if (c.Wants(0)) c.Add(0, c.EmitFor(0, Op::kDivide, {c.dy(), c.input(1)}));
  if (!c.Wants(1)) return;
  const ValueId product = c.Emit(Op::kMultiply, c.output(), {c.dy(), c.output()});
  const ValueId quotient = c.Emit(Op::kDivide, c.output(), {product, c.input(1)});
  c.Add(1, c.EmitFor(1, Op::kScale, {quotient}, Factor(-1)));
}

// y = s x: dx = s dy.
void ScaleRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kScale, {c.dy()}, c.attributes())); }

// y = 1 / (1 + exp(-x)): dx = dy y (1 - y).
void SigmoidRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kSigmoidGrad, {c.dy(), c.output()})); }

// y = tanh(x): dx = dy (1 - y^2).
void TanhRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kTanhGrad, {c.dy(), c.output()})); }

// y = max(x, 0): dx = dy where y > 0, else 0.
void ReluRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kReluGrad, {c.dy(), c.output()})); }

// y = exp(x): dx = dy y.
void ExpRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kMultiply, {c.dy(), c.output()})); }

// y = log(x): dx = dy / x.
void LogRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kDivide, {c.dy(), c.input(0)})); }

// y = sqrt(x): dx = dy / (2 y).
void SqrtRule(RuleContext& c) {
  const ValueId quotient = c.Emit(Op::kDivide, c.output(), {c.dy(), c.output()});
  c.Add(0, c.EmitFor(0, Op::kScale, {quotient}, Factor(0.5)));
}

// y = mask x / (1 - rate): dx = mask dy / (1 - rate); the same salt draws the same mask.
void DropoutRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kDropout, {c.dy()}, c.attributes())); }

// y_j = x: dx = sum_j dy_j.
void ExpandRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kSum, {c.dy()})); }

// y = softmax(x): dx = y (dy - sum(dy y)).
void SoftmaxRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kSoftmaxGrad, {c.dy(), c.output()})); }

// y = log softmax(x): dx = dy - exp(y) sum(dy).
void LogSoftmaxRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kLogSoftmaxGrad, {c.dy(), c.output()})); }

// y = sum_j x_j: dx_j = dy.
void SumRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kExpand, {c.dy()})); }

// y = [a, b, ...]: da, db, ... are the columns of dy at their places.
void ConcatRule(RuleContext& c) {
  Attributes place;
  for (size_t k = 0; k < c.inputs(); ++k) {
    const bool whole = c.inputs() == 1;
    if (c.Wants(k)) c.Add(k, whole ? c.dy() : c.EmitFor(k, Op::kSlice, {c.dy()}, place));
    place.begin += c.shape(c.input(k)).width();
  }
}

// y = columns [begin, end) of x: those columns of dx += dy.
void SliceRule(RuleContext& c) { c.Add(0, c.dy(), c.attributes().begin); }

// y = -log softmax(x)[label]: dx = (softmax(x) - onehot(label)) dy; 0 where there is no label.
void CrossEntropyRule(RuleContext& c) {
  c.Add(0, c.EmitFor(0, Op::kCrossEntropyGrad, {c.input(0), c.dy()}, c.attributes()));
}

// y = 1/2 sum (x - target)^2: dx = (x - target) dy; 0 where there is no target.
void SquaredErrorRule(RuleContext& c) {
  c.Add(0, c.EmitFor(0, Op::kSquaredErrorGrad, {c.input(0), c.dy()}, c.attributes()));
}

// y = sum target (log target - x): dx = -target dy; 0 where there is no target.
void KlDivergenceRule(RuleContext& c) { c.Add(0, c.EmitFor(0, Op::kKlDivergenceGrad, {c.dy()}, c.attributes())); }

// y = f(x_0, x_1, ...): dx_k by the operator's own gradient kernel, from dy, y and all inputs.
void CustomRule(RuleContext& c) {
  Attributes attributes = c.attributes();
  std::vector<ValueId> operands{c.dy(), c.output()};
  for (size_t k = 0; k < c.inputs(); ++k) operands.push_back(c.input(k));
  for (size_t k = 0; k < c.inputs(); ++k) {
    if (!c.Wants(k)) continue;
    if (!attributes.custom->backward) {
      ThrowInvalid(attributes.custom->name,
                   "expected a gradient kernel in an operator that is trained through, got none");
    }
    attributes.slot = static_cast<int32_t>(k);
    c.Add(k, c.EmitFor(k, Op::kCustomGrad, operands, attributes));
  }
}

struct Entry {
  Op op;
  GradientRule rule;
};

constexpr Entry kRules[] = {
    {Op::kLookup, LookupRule},
    {Op::kGather, GatherRule},
    {Op::kGatherAll, GatherAllRule},
    {Op::kPushed, PushedRule},
    {Op::kScatter, ScatterRule},
    {Op::kPush, PushRule},
    {Op::kToEdges, ToEdgesRule},
    {Op::kSumChildren, SumChildrenRule},
    {Op::kMeanChildren, MeanChildrenRule},
    {Op::kMaxChildren, MaxChildrenRule},
    {Op::kToVertices, ToVerticesRule},
    {Op::kMatMul, MatMulRule},
    {Op::kOuter, OuterRule},
    {Op::kAdd, AddRule},
    {Op::kSubtract, SubtractRule},
    {Op::kMultiply, MultiplyRule},
    {Op::kDivide, DivideRule},
    {Op::kScale, ScaleRule},
    {Op::kSigmoid, SigmoidRule},
    {Op::kTanh, TanhRule},
    {Op::kRelu, ReluRule},
    {Op::kExp, ExpRule},
    {Op::kLog, LogRule},
    {Op::kSqrt, SqrtRule},
    {Op::kDropout, DropoutRule},
    {Op::kExpand, ExpandRule},
    {Op::kSoftmax, SoftmaxRule},
    {Op::kLogSoftmax, LogSoftmaxRule},
    {Op::kSum, SumRule},
    {Op::kConcat, ConcatRule},
    {Op::kSlice, SliceRule},
    {Op::kCrossEntropy, CrossEntropyRule},
    {Op::kSquaredError, SquaredErrorRule},
    {Op::kKlDivergence, KlDivergenceRule},
    {Op::kCustom, CustomRule},
};

constexpr Op kNonDifferentiable[] = {
    Op::kPullRows,         Op::kLossSeed,         Op::kScatterGrad,      Op::kPushGrad,         Op::kGatherGrad,
    Op::kGatherAllGrad,    Op::kPushedGrad,       Op::kMatMulGrad,       Op::kColumnSumGrad,    Op::kLookupGrad,
    Op::kSigmoidGrad,      Op::kTanhGrad,         Op::kReluGrad,         Op::kSoftmaxGrad,      Op::kLogSoftmaxGrad,
    Op::kOuterGradLeft,    Op::kOuterGradRight,   Op::kSumVertices,      Op::kMeanChildrenGrad, Op::kMaxChildrenGrad,
    Op::kCrossEntropyGrad, Op::kSquaredErrorGrad, Op::kKlDivergenceGrad, Op::kCustomGrad,
};

constexpr std::array<GradientRule, kOpCount> IndexRules() {
  std::array<GradientRule, kOpCount> rules{};
  for (const Entry& entry : kRules) rules[static_cast<size_t>(entry.op)] = entry.rule;
  return rules;
}

constexpr std::array<GradientRule, kOpCount> kRuleOf = IndexRules();

}  // namespace

GradientRule FindGradientRule(Op op) { return kRuleOf[static_cast<size_t>(op)]; }

std::span<const Op> NonDifferentiableOps() { return kNonDifferentiable; }

}  // namespace cavs
