#include "vertex/builder.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {
namespace {

std::string Where(Op op) { return std::string(OpName(op)); }

bool IsShared(const RowSpace& space) { return space.kind == Space::kParameter || space.kind == Space::kConstant; }

std::string SpaceName(const Signature& signature, const RowSpace& space) {
  switch (space.kind) {
    case Space::kParameter:
      return "a parameter";
    case Space::kConstant:
      return "a constant";
    case Space::kVertex:
      return fmt::format("a value of vertex type \"{}\"", signature.types[size_t(space.type)].name);
    case Space::kEdge:
      return fmt::format("a value of the edges of \"{}\"", signature.types[size_t(space.type)].name);
    case Space::kHead:
      return "a value of the head";
    case Space::kInput:
    case Space::kBlock:
      break;
  }
  return "";
}

RowSpace SpaceOf(const Expression& x) { return x.builder()->value(x.id()).space; }

void RequireMade(Op op, const Expression& x) {
  if (x.builder() == nullptr) ThrowInvalid(Where(op), "expected an expression of a model, got an empty one");
}

void RequireRows(Op op, const Expression& x) {
  RequireMade(op, x);
  if (IsShared(SpaceOf(x))) {
    ThrowInvalid(Where(op), fmt::format("expected a value with a row per vertex, edge or head row, got {} {}",
                                        SpaceName(x.builder()->signature(), SpaceOf(x)), x.shape().ToString()));
  }
}

void RequireParameter(Op op, const Expression& x, int rank) {
  RequireMade(op, x);
  if (SpaceOf(x).kind != Space::kParameter || x.shape().rank() != rank) {
    ThrowInvalid(Where(op), fmt::format("expected a parameter of rank {}, got {} {}", rank,
                                        SpaceName(x.builder()->signature(), SpaceOf(x)), x.shape().ToString()));
  }
}

// The common rows of two operands; a vertex operand that meets edges is repeated for each of them.
RowSpace UnifyRows(Op op, Expression& a, Expression& b) {
  RequireMade(op, a);
  RequireMade(op, b);
  if (a.builder() != b.builder()) ThrowInvalid(Where(op), "expected operands of one model, got two models");
  const RowSpace left = SpaceOf(a), right = SpaceOf(b);
  if (IsShared(left) && IsShared(right)) {
    ThrowInvalid(Where(op),
                 fmt::format("expected at least one operand with rows, got parameters or constants {} and {}",
                             a.shape().ToString(), b.shape().ToString()));
  }
  if (IsShared(left)) return right;
  if (IsShared(right) || left == right) return left;
  const bool meet = left.type == right.type && left.type >= 0;
  if (meet) {
    Expression& vertex = left.kind == Space::kVertex ? a : b;
    const RowSpace edges{Space::kEdge, left.type};
    vertex = vertex.builder()->Emit(Op::kToEdges, edges, vertex.shape(), {vertex});
    return edges;
  }
  ThrowInvalid(Where(op),
               fmt::format("expected operands over the same rows, got {} and {}",
                           SpaceName(a.builder()->signature(), left), SpaceName(a.builder()->signature(), right)));
}

Expression ExpandTo(const Expression& x, const RowSpace& space, const Shape& shape) {
  return x.builder()->Emit(Op::kExpand, space, shape, {x});
}

Expression Binary(Op op, Expression a, Expression b) {
  const RowSpace space = UnifyRows(op, a, b);
  if (a.shape().width() == 1 && b.shape().width() > 1) a = ExpandTo(a, space, b.shape());
  if (b.shape().width() == 1 && a.shape().width() > 1) b = ExpandTo(b, space, a.shape());
  if (a.shape() != b.shape()) {
    ThrowInvalid(Where(op),
                 fmt::format("expected equal shapes, got {} and {}", a.shape().ToString(), b.shape().ToString()));
  }
  return a.builder()->Emit(op, space, a.shape(), {a, b});
}

Expression Unary(Op op, const Expression& x, Attributes attributes = {}) {
  RequireRows(op, x);
  return x.builder()->Emit(op, SpaceOf(x), x.shape(), {x}, std::move(attributes));
}

Expression Reduce(Op op, const Expression& edges) {
  RequireMade(op, edges);
  const RowSpace space = SpaceOf(edges);
  if (space.kind != Space::kEdge) {
    ThrowInvalid(Where(op), fmt::format("expected a value of edges (from GatherAll), got {}",
                                        SpaceName(edges.builder()->signature(), space)));
  }
  return edges.builder()->Emit(op, {Space::kVertex, space.type}, edges.shape(), {edges});
}

Expression LossOf(Op op, const Expression& x, const Label& label) {
  RequireMade(op, x);
  if (SpaceOf(x).kind != Space::kHead) {
    ThrowInvalid(Where(op), fmt::format("expected a value of the head (from Pushed), got {}",
                                        SpaceName(x.builder()->signature(), SpaceOf(x))));
  }
  const std::vector<ColumnDeclaration>& columns = x.builder()->signature().columns;
  if (label.column < 0 || label.column >= std::ssize(columns)) {
    ThrowInvalid(Where(op), "expected a label or target of this model, got an empty one");
  }
  const ColumnDeclaration& column = columns[static_cast<size_t>(label.column)];
  const bool wants_ids = op == Op::kCrossEntropy;
  if ((column.use == ColumnUse::kIds) != wants_ids) {
    ThrowInvalid(Where(op), fmt::format("expected a {}, got the {} \"{}\"", wants_ids ? "label" : "target",
                                        wants_ids ? "target" : "label", column.name));
  }
  if (column.limit != x.shape().width()) {
    ThrowInvalid(Where(op), fmt::format("expected {} columns, one for each class or target of \"{}\", got {}",
                                        column.limit, column.name, x.shape().ToString()));
  }
  Attributes attributes;
  attributes.column = label.column;
  return x.builder()->Emit(op, SpaceOf(x), Shape::Vector(1), {x}, attributes);
}

}  // namespace

Expression MatMul(const Expression& x, const Expression& weights) {
  RequireRows(Op::kMatMul, x);
  RequireParameter(Op::kMatMul, weights, 2);
  if (x.shape().width() != weights.shape().rows()) {
    ThrowInvalid("matmul", fmt::format("expected as many columns on the left as rows on the right, got {} and {}",
                                       x.shape().ToString(), weights.shape().ToString()));
  }
  return x.builder()->Emit(Op::kMatMul, SpaceOf(x), Shape::Vector(weights.shape().columns()), {x, weights});
}

Expression Affine(const Expression& x, const Expression& weights, const Expression& bias) {
  RequireRows(Op::kMatMul, x);
  RequireParameter(Op::kMatMul, weights, 2);
  RequireParameter(Op::kMatMul, bias, 1);
  if (x.shape().width() != weights.shape().rows() || bias.shape().width() != weights.shape().columns()) {
    ThrowInvalid("affine", fmt::format("expected [k], [k, n] and [n], got {}, {} and {}", x.shape().ToString(),
                                       weights.shape().ToString(), bias.shape().ToString()));
  }
  return x.builder()->Emit(Op::kMatMul, SpaceOf(x), Shape::Vector(weights.shape().columns()), {x, weights, bias});
}

Expression Bilinear(const Expression& x, const Expression& tensor, const Expression& y) {
  Expression left = x, right = y;
  const RowSpace space = UnifyRows(Op::kOuter, left, right);
  RequireRows(Op::kOuter, left);
  RequireRows(Op::kOuter, right);
  const int64_t width = left.shape().width() * right.shape().width();
  if (tensor.builder() != nullptr && width != tensor.shape().rows()) {
    ThrowInvalid("bilinear", fmt::format("expected [n], [n * m, k] and [m], got {}, {} and {}", x.shape().ToString(),
                                         tensor.shape().ToString(), y.shape().ToString()));
  }
  const Expression outer = left.builder()->Emit(Op::kOuter, space, Shape::Vector(width), {left, right});
  return MatMul(outer, tensor);
}

Expression operator+(const Expression& a, const Expression& b) { return Binary(Op::kAdd, a, b); }
Expression operator-(const Expression& a, const Expression& b) { return Binary(Op::kSubtract, a, b); }
Expression operator*(const Expression& a, const Expression& b) { return Binary(Op::kMultiply, a, b); }
Expression operator/(const Expression& a, const Expression& b) { return Binary(Op::kDivide, a, b); }
Expression operator*(double factor, const Expression& x) { return Scale(x, factor); }

Expression operator-(double constant, const Expression& x) {
  RequireRows(Op::kSubtract, x);
  std::vector<float> row(static_cast<size_t>(x.shape().width()), static_cast<float>(constant));
  return x.builder()->Constant(std::move(row)) - x;
}

Expression Scale(const Expression& x, double factor) {
  if (!std::isfinite(factor)) ThrowInvalid("scale", fmt::format("expected a finite factor, got {}", factor));
  Attributes attributes;
  attributes.scalar = factor;
  return Unary(Op::kScale, x, attributes);
}

Expression Sigmoid(const Expression& x) { return Unary(Op::kSigmoid, x); }
Expression Tanh(const Expression& x) { return Unary(Op::kTanh, x); }
Expression Relu(const Expression& x) { return Unary(Op::kRelu, x); }
Expression Abs(const Expression& x) { return Relu(x) + Relu(Scale(x, -1)); }
Expression Exp(const Expression& x) { return Unary(Op::kExp, x); }
Expression Log(const Expression& x) { return Unary(Op::kLog, x); }
Expression Sqrt(const Expression& x) { return Unary(Op::kSqrt, x); }

Expression Dropout(const Expression& x, double rate) {
  RequireRows(Op::kDropout, x);
  if (!(rate >= 0 && rate < 1)) ThrowInvalid("dropout", fmt::format("expected a rate in [0, 1), got {}", rate));
  if (rate == 0) return x;
  Attributes attributes;
  attributes.scalar = rate;
  attributes.salt = x.builder()->NextSalt();
  return Unary(Op::kDropout, x, attributes);
}

Expression Softmax(const Expression& x) { return Unary(Op::kSoftmax, x); }
Expression LogSoftmax(const Expression& x) { return Unary(Op::kLogSoftmax, x); }

Expression Sum(const Expression& x) {
  RequireRows(Op::kSum, x);
  return x.builder()->Emit(Op::kSum, SpaceOf(x), Shape::Vector(1), {x});
}

Expression Mean(const Expression& x) {
  const Expression sum = Sum(x);
  return Scale(sum, 1.0 / static_cast<double>(x.shape().width()));
}

Expression Concat(std::span<const Expression> parts) {
  if (parts.empty()) ThrowInvalid("concat", "expected at least one part, got none");
  std::vector<Expression> inputs(parts.begin(), parts.end());
  RowSpace space = UnifyRows(Op::kConcat, inputs[0], inputs[0]);
  for (size_t i = 1; i < inputs.size(); ++i) space = UnifyRows(Op::kConcat, inputs[0], inputs[i]);
  // The first part may have become a value of edges only after later parts were seen.
  int64_t width = 0;
  for (Expression& part : inputs) {
    RequireRows(Op::kConcat, part);
    UnifyRows(Op::kConcat, inputs[0], part);
    width += part.shape().width();
  }
  return inputs[0].builder()->Emit(Op::kConcat, space, Shape::Vector(width), inputs);
}

Expression Slice(const Expression& x, int64_t begin, int64_t width) {
  RequireRows(Op::kSlice, x);
  if (begin < 0 || width <= 0 || begin + width > x.shape().width()) {
    ThrowInvalid("slice", fmt::format("expected columns inside of {}, got [{}, {})", x.shape().ToString(), begin,
                                      begin + width));
  }
  Attributes attributes;
  attributes.begin = begin;
  return x.builder()->Emit(Op::kSlice, SpaceOf(x), Shape::Vector(width), {x}, attributes);
}

std::vector<Expression> SplitParts(const Expression& x, int64_t parts) {
  RequireRows(Op::kSlice, x);
  if (parts <= 0 || x.shape().width() % parts != 0) {
    ThrowInvalid("split", fmt::format("expected a width that divides by {}, got {}", parts, x.shape().ToString()));
  }
  const int64_t width = x.shape().width() / parts;
  std::vector<Expression> result;
  for (int64_t i = 0; i < parts; ++i) result.push_back(Slice(x, i * width, width));
  return result;
}

Expression SumChildren(const Expression& edges) { return Reduce(Op::kSumChildren, edges); }
Expression MeanChildren(const Expression& edges) { return Reduce(Op::kMeanChildren, edges); }
Expression MaxChildren(const Expression& edges) { return Reduce(Op::kMaxChildren, edges); }

Expression CrossEntropy(const Expression& logits, const Label& label) {
  return LossOf(Op::kCrossEntropy, logits, label);
}
Expression SquaredError(const Expression& x, const Label& target) { return LossOf(Op::kSquaredError, x, target); }
Expression KlDivergence(const Expression& x, const Label& target) { return LossOf(Op::kKlDivergence, x, target); }

Expression Apply(std::shared_ptr<const CustomOperator> op, std::span<const Expression> inputs) {
  if (op == nullptr) ThrowInvalid(Where(Op::kCustom), "expected an operator, got none");
  for (const Expression& input : inputs) {
    if (input.builder() == nullptr) ThrowInvalid(op->name, "expected an expression of a model, got an empty one");
  }
  if (static_cast<int64_t>(inputs.size()) != op->inputs || inputs.empty()) {
    ThrowInvalid(op->name, fmt::format("expected {} operands, got {}", op->inputs, inputs.size()));
  }
  std::vector<Expression> operands(inputs.begin(), inputs.end());
  RowSpace space = SpaceOf(operands[0]);
  for (Expression& operand : operands) space = UnifyRows(Op::kCustom, operands[0], operand);
  std::vector<Shape> shapes;
  for (Expression& operand : operands) {
    RequireRows(Op::kCustom, operand);
    UnifyRows(Op::kCustom, operands[0], operand);
    shapes.push_back(operand.shape());
  }
  const Shape shape = op->infer(shapes);
  Attributes attributes;
  attributes.custom = std::move(op);
  return operands[0].builder()->Emit(Op::kCustom, space, shape, operands, attributes);
}

}  // namespace cavs
