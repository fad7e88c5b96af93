#include "tests/vertex/random_model.h"

#include <span>

#include <fmt/format.h>

namespace cavs {

Program ModelMaker::Make() {
  tables_.push_back(b_.Lookup("words", 11, 3 + Below(7), Initializer::Uniform(0.8f)));
  tables_.push_back(b_.Lookup("tags", 4, 2 + Below(4), Initializer::Uniform(0.8f)));
  const int64_t states = 2 + Below(2);
  for (int64_t i = 0; i < states; ++i) {
    states_.push_back(b_.DeclareState(fmt::format("state{}", i), Shape::Vector(2 + Below(8))));
  }
  out_width_ = Chance(0.5) ? states_[0].shape.width() : 2 + Below(6);
  extra_width_ = Chance(0.5) ? 2 + Below(4) : 0;
  std::vector<VertexType> types;
  std::vector<int32_t> children;
  const int64_t count = 2 + Below(3);
  for (int64_t i = 0; i < count; ++i) {
    const bool any_arity = i > 0 && Chance(0.35);
    children.push_back(any_arity ? kAnyArity : i == 0 ? 0 : static_cast<int32_t>(Below(6)));
    types.push_back(b_.DeclareType(fmt::format("type{}", i), children.back()));
  }
  for (size_t i = 0; i < types.size(); ++i) DefineType(types[i], children[i]);
  AddHead();
  return b_.Build();
}

Expression ModelMaker::Weights(int64_t rows, int64_t columns, double fresh) {
  std::vector<Expression>& known = weights_[{rows, columns}];
  if (known.empty() || Chance(fresh)) {
    known.push_back(b_.Parameter(fmt::format("W{}x{}_{}", rows, columns, known.size()), Shape::Matrix(rows, columns)));
    if (Chance(0.1)) b_.Freeze(known.back());
    return known.back();
  }
  return Pick(known);
}

Expression ModelMaker::Bias(int64_t width, double fresh) {
  std::vector<Expression>& known = biases_[width];
  if (known.empty() || Chance(fresh)) {
    known.push_back(
        b_.Parameter(fmt::format("b{}_{}", width, known.size()), Shape::Vector(width), Initializer::Uniform(0.3f)));
    return known.back();
  }
  return Pick(known);
}

Expression ModelMaker::Fit(const Expression& x, int64_t width) {
  const int64_t has = x.shape().width();
  if (has == width) return x;
  if (has > width && Chance(0.5)) return Slice(x, Below(has - width + 1), width);
  return MatMul(x, Weights(has, width));
}

void ModelMaker::DefineType(const VertexType& type, int32_t children) {
  VertexType defined = type;
  defined.Define([&](Vertex& v) {
    sources_.clear();
    values_.clear();
    AddInputs(v);
    for (int slot = 0; slot < children; ++slot) {
      const int64_t reads = 1 + Below(2);
      for (int64_t i = 0; i < reads; ++i) sources_.push_back(v.Gather(slot, Pick(states_)));
    }
    values_ = sources_;
    if (Chance(0.6)) AddGates();
    if (children == kAnyArity) AddChildSum(v);
    if (children > 1 && Chance(0.7)) {
      // The usual start of a cell: all that is read, side by side, times one matrix; then gates.
      const Expression all =
          Chance(0.5) ? ChildrenSideBySide(v, children) : Concat(std::span<const Expression>(sources_));
      const int64_t width = 2 + Below(5);
      const auto [i, o, u] = Split<3>(Affine(all, Weights(all.shape().width(), 3 * width), Bias(3 * width)));
      values_.push_back(Sigmoid(i) * Tanh(u));
      values_.push_back(Sigmoid(o) * Tanh(values_.back()));
    }
    const int64_t steps = 2 + Below(5);
    for (int64_t i = 0; i < steps; ++i) AddStep();
    Publish(v);
  });
}

// One state of all children, which may be computed where this wants it.
Expression ModelMaker::ChildrenSideBySide(Vertex& v, int32_t children) {
  const State state = Pick(states_);
  std::vector<Expression> slots;
  slots.reserve(static_cast<size_t>(children));
  for (int32_t slot = 0; slot < children; ++slot) slots.push_back(v.Gather(slot, state));
  return Concat(std::span<const Expression>(slots));
}

void ModelMaker::AddInputs(Vertex& v) {
  sources_.push_back(v.Pull(tables_[0], "word"));
  if (Chance(0.4)) sources_.push_back(v.Pull(tables_[1], "tag"));
  if (Chance(0.3)) sources_.push_back(v.Pull(tables_[0], "other_word"));
  if (Chance(0.4)) sources_.push_back(v.PullRow("features", 3));
}

// x W + y U + b, in one of the ways to write it. Most parameters are of this gate alone.
Expression ModelMaker::Gate(const Expression& x, const Expression& y, int64_t width) {
  constexpr double kFresh = 0.85;
  const Expression w = Weights(x.shape().width(), width, kFresh), u = Weights(y.shape().width(), width, kFresh);
  const Expression b = Bias(width, kFresh);
  switch (Below(4)) {
    case 0:
      return Affine(x, w, b) + MatMul(y, u);
    case 1:
      return MatMul(x, w) + MatMul(y, u) + b;
    case 2:
      return (Affine(y, u, Bias(width)) + b_.Constant(std::vector<float>(static_cast<size_t>(width), 0.2f))) +
             Affine(x, w, b);
    default:
      return MatMul(x, w) + b;
  }
}

void ModelMaker::AddGates() {
  const Expression x = Pick(sources_), y = Pick(sources_);
  const int64_t width = 2 + Below(6), gates = 2 + Below(3);
  Expression cell = Tanh(Gate(x, y, width));
  for (int64_t i = 1; i < gates; ++i) cell = cell * Sigmoid(Gate(x, y, width));
  values_.push_back(cell);
}

void ModelMaker::AddChildSum(Vertex& v) {
  const Expression h = v.GatherAll(Pick(states_));
  const Expression c = v.GatherAll(Pick(states_));
  const int64_t width = c.shape().width();
  const Expression x = Fit(Pick(values_), width);
  const Expression gate = Sigmoid(Affine(h, Weights(h.shape().width(), width), Bias(width)) + x);
  values_.push_back(Tanh(SumChildren(dropout_ && Chance(0.5) ? Dropout(gate, 0.3) * c : gate * c)));
  if (Chance(0.5)) values_.push_back(MeanChildren(h));
  if (Chance(0.3)) values_.push_back(MaxChildren(Tanh(c + x)));
  if (Chance(0.3)) values_.push_back(Tanh(SumChildren(h)));
  if (Chance(0.5)) {
    const Expression larger = MatMul(h, Weights(h.shape().width(), width));
    const Expression summed = Affine(h, Weights(h.shape().width(), width), Bias(width));
    values_.push_back(Tanh(MaxChildren(larger) - SumChildren(summed)));
  }
}

Expression ModelMaker::Unary(const Expression& x) {
  switch (Below(dropout_ ? 9 : 8)) {
    case 0:
      return Sigmoid(2.0 * x);
    case 1:
      return Relu(x);
    case 2:
      return Exp(Tanh(x));
    case 3:
      return Log(3.0 - Tanh(x));
    case 4:
      return Sqrt(1.5 - Sigmoid(x));
    case 5:
      return Softmax(x);
    case 6:
      return Mean(x) * Bias(x.shape().width());
    case 7:
      return Tanh(x) + Tanh(x);
    default:
      return Dropout(x, 0.3);
  }
}

Expression ModelMaker::Combine(const Expression& x, const Expression& y) {
  const int64_t width = x.shape().width();
  switch (Below(7)) {
    case 0:
      return Tanh(x + Fit(y, width));
    case 1:
      return x * Sigmoid(Fit(y, width));
    case 2:
      return Tanh(x - Fit(y, width)) * Bias(width);
    case 3:
      return x / (2.0 - Tanh(Fit(y, width)));
    case 4:
      return Concat(x, Slice(y, 0, 1), x);
    case 5:
      return Tanh(Bilinear(Fit(x, 2), Weights(6, width), Fit(y, 3)));
    default:
      return Mean(y) * x;
  }
}

void ModelMaker::AddStep() {
  const Expression x = Pick(values_);
  const Expression y = Pick(values_);
  const int64_t kind = Below(3);
  Expression result;
  if (kind == 0) {
    const int64_t width = 2 + Below(8);
    result = Affine(x, Weights(x.shape().width(), width), Bias(width));
  } else {
    result = kind == 1 ? Unary(x) : Combine(x, y);
  }
  values_.push_back(Tanh(result));
  if (Chance(0.3)) values_.push_back(0.5 * values_.back());
}

void ModelMaker::Publish(Vertex& v) {
  std::vector<Expression> published;
  for (const State& state : states_) {
    // The first type scatters every state, so that each slot has a type that fits.
    if (v.type() != 0 && &state != &states_.front() && Chance(0.25)) continue;
    const int64_t width = state.shape.width();
    const bool pass_on = Chance(0.2);
    const Expression x = Fit(Pick(pass_on ? sources_ : values_), width);
    published.push_back(pass_on ? x : Tanh(x));
    v.Scatter(state, published.back());
  }
  if (v.type() == 0 || Chance(0.8)) {
    const bool same = published[0].shape().width() == out_width_ && Chance(0.6);
    v.Push("out", same ? published[0] : Fit(Pick(values_), out_width_));
  }
  if (extra_width_ > 0 && (v.type() == 0 || Chance(0.5))) v.Push("extra", Fit(Pick(values_), extra_width_));
}

void ModelMaker::AddHead() {
  Expression h = b_.Pushed("out");
  b_.AddOutput("out", h);
  if (dropout_) h = Dropout(h, 0.2);
  const Expression logits = Affine(h, Weights(out_width_, 3), Bias(3));
  b_.AddOutput("probabilities", Softmax(logits));
  if (Chance(0.5)) b_.AddOutput("more", Affine(h, Weights(out_width_, 2), Bias(2)));
  b_.AddLoss(CrossEntropy(logits, b_.DeclareLabel("label", 3)));
  if (extra_width_ > 0) {
    const Expression score = Tanh(Affine(b_.Pushed("extra"), Weights(extra_width_, 2), Bias(2)));
    b_.AddLoss(SquaredError(score, b_.DeclareTarget("target", 2)));
  }
  if (Chance(0.5)) b_.AddLoss(Scale(Sum(b_.Pushed("out") * b_.Pushed("out")), 0.1));
}

}  // namespace cavs
