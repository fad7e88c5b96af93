// The vertex API: how F is written. Expressions build a Program at once; nothing is computed here.
// Shapes are inferred and checked as each expression is made: std::invalid_argument names the operator and both shapes.
// Formulas of the operators stand beside `enum class Op` in program.h.
//
// Ownership: Expressions refer to their ProgramBuilder, which must outlive them. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vertex/operator.h"
#include "vertex/program.h"

namespace cavs {

class ProgramBuilder;

// A value of F: a parameter, a constant, or rows over the vertices or edges of a type, or over the head.
class Expression {
 public:
  Expression() = default;
  Expression(ProgramBuilder* builder, ValueId id) : builder_(builder), id_(id) {}
  const Shape& shape() const;
  ProgramBuilder* builder() const { return builder_; }
  ValueId id() const { return id_; }

 private:
  ProgramBuilder* builder_ = nullptr;
  ValueId id_ = kNoValue;
};

// A state that vertices scatter and gather.
struct State {
  int32_t channel = -1;
  Shape shape;
};

// A label or target of head rows.
struct Label {
  int32_t column = -1;
};

// F as seen from inside a Define: reads and publishes for one vertex (of a task of many).
class Vertex {
 public:
  Vertex(ProgramBuilder* builder, int32_t type) : builder_(builder), type_(type) {}

  // [width] of the table: its row `column`[vertex]; an exact zero row where the vertex has no id.
  Expression Pull(const Expression& table, std::string_view column);
  // [width] floats of an external column; zero where the vertex has none.
  Expression PullRow(std::string_view column, int64_t width);
  // State of child `slot`; zero where the child is missing.
  Expression Gather(int slot, const State& state);
  // State of every child, one row per edge.
  Expression GatherAll(const State& state);
  void Scatter(const State& state, const Expression& x);
  void Push(std::string_view name, const Expression& x);
  int32_t type() const { return type_; }

 private:
  ProgramBuilder* builder_;
  int32_t type_;
};

class VertexType {
 public:
  VertexType() = default;
  VertexType(ProgramBuilder* builder, int32_t index) : builder_(builder), index_(index) {}
  // Runs `function` once, at once. Throws when this type is already defined.
  void Define(const std::function<void(Vertex&)>& function);
  int32_t index() const { return index_; }

 private:
  ProgramBuilder* builder_ = nullptr;
  int32_t index_ = -1;
};

class ProgramBuilder {
 public:
  ProgramBuilder();
  ProgramBuilder(const ProgramBuilder&) = delete;
  ProgramBuilder& operator=(const ProgramBuilder&) = delete;
  ~ProgramBuilder();

  // Throws when the name is taken or a dimension is not positive.
  Expression Parameter(std::string_view name, const Shape& shape, Initializer initializer = {});
  Expression Lookup(std::string_view name, int64_t entries, int64_t width, Initializer initializer);
  // No gradient is computed for a frozen parameter.
  void Freeze(const Expression& parameter);
  State DeclareState(std::string_view name, const Shape& shape);
  // `children` is the exact number of child slots, or kAnyArity.
  VertexType DeclareType(std::string_view name, int32_t children);
  Expression Constant(std::vector<float> row);

  // The head: rows that vertices pushed under `name`. Some type must have pushed it before.
  Expression Pushed(std::string_view name);
  // Labels in [0, classes), -1 for none, in the id column `name`.
  Label DeclareLabel(std::string_view name, int64_t classes);
  // Float targets of `width` columns.
  Label DeclareTarget(std::string_view name, int64_t width);
  // Adds the sum of `loss` [1] over all head rows to the loss of a minibatch.
  void AddLoss(const Expression& loss);
  // Keeps a value over head rows for the caller.
  void AddOutput(std::string_view name, const Expression& value);

  // The Program so far. Throws when a declared type has no function, and when no vertex type pushes all that losses and
  // outputs read: the head has a row for vertices of such types only.
  Program Build() const;

  // For the functions below and for the classes above.
  Expression Emit(Op op, RowSpace space, const Shape& shape, const std::vector<Expression>& inputs,
                  Attributes attributes = {});
  void EmitSink(Op op, RowSpace space, const Expression& input, Attributes attributes);
  const Value& value(ValueId id) const;
  const Signature& signature() const { return signature_; }
  int32_t ColumnIndex(std::string_view name, ColumnUse use, int64_t limit);
  // The push channel of this name, declared now unless it exists. Throws when the shapes differ.
  int32_t PushChannel(std::string_view name, const Shape& shape);
  uint64_t NextSalt();

 private:
  friend class VertexType;
  void Define(int32_t type, const std::function<void(Vertex&)>& function);
  // Push channels that a value of the head depends on.
  std::set<int32_t> ChannelsOf(ValueId value) const;
  // Whether some vertex type pushes all of `channels`.
  bool PushedTogether(const std::vector<int32_t>& channels) const;
  std::vector<int32_t> HeadChannels() const;

  Signature signature_;
  std::vector<Value> values_;
  std::vector<std::vector<Instruction>> functions_;  // by type
  std::vector<bool> defined_;
  std::vector<Instruction> head_;
  std::vector<ValueId> losses_;
  std::vector<NamedValue> outputs_;
  std::vector<int32_t> head_columns_;
  uint64_t salts_ = 0;
};

// Products. x [k], W [k, n], b [n] -> [n].
Expression MatMul(const Expression& x, const Expression& weights);
Expression Affine(const Expression& x, const Expression& weights, const Expression& bias);
// x [n], V [n * m, k], y [m] -> [k]: x^T V_k y, the tensor product of the RNTN (Socher et al. 2013, eq. 3).
Expression Bilinear(const Expression& x, const Expression& tensor, const Expression& y);

// Elementwise, equal shapes; a parameter or constant is broadcast over rows, a width of 1 over columns; a value of
// a vertex meets a value of its edges edge by edge.
Expression operator+(const Expression& a, const Expression& b);
Expression operator-(const Expression& a, const Expression& b);
Expression operator*(const Expression& a, const Expression& b);
Expression operator/(const Expression& a, const Expression& b);
Expression operator*(double factor, const Expression& x);
Expression operator-(double constant, const Expression& x);
Expression Scale(const Expression& x, double factor);
Expression Sigmoid(const Expression& x);
Expression Tanh(const Expression& x);
Expression Relu(const Expression& x);
Expression Abs(const Expression& x);  // relu(x) + relu(-x); its gradient at 0 is 0
Expression Exp(const Expression& x);
Expression Log(const Expression& x);
Expression Sqrt(const Expression& x);
// Keeps each element with probability 1 - rate; 0 <= rate < 1. The draw depends on (seed, step, example, vertex,
// operator, column) alone, never on batching. Identity outside of training.
Expression Dropout(const Expression& x, double rate);

// Whole rows.
Expression Softmax(const Expression& x);
Expression LogSoftmax(const Expression& x);
Expression Sum(const Expression& x);   // -> [1]
Expression Mean(const Expression& x);  // -> [1]
Expression Concat(std::span<const Expression> parts);
template <typename... Rest>
Expression Concat(const Expression& first, const Rest&... rest) {
  const std::array<Expression, 1 + sizeof...(Rest)> parts{first, rest...};
  return Concat(std::span<const Expression>(parts));
}
Expression Slice(const Expression& x, int64_t begin, int64_t width);
// N equal parts; the width must divide.
template <size_t N>
std::array<Expression, N> Split(const Expression& x);
std::vector<Expression> SplitParts(const Expression& x, int64_t parts);

// Over the children: an edge value [w] -> a vertex value [w]; exact zeros for a vertex without children.
Expression SumChildren(const Expression& edges);
Expression MeanChildren(const Expression& edges);
Expression MaxChildren(const Expression& edges);

// Losses, one [1] per head row.
Expression CrossEntropy(const Expression& logits, const Label& label);
Expression SquaredError(const Expression& x, const Label& target);
// KL(target || exp(x)) for the logarithm x of a distribution, such as a LogSoftmax.
Expression KlDivergence(const Expression& x, const Label& target);

// An operator registered by the user.
Expression Apply(std::shared_ptr<const CustomOperator> op, std::span<const Expression> inputs);

template <size_t N>
std::array<Expression, N> Split(const Expression& x) {
  const std::vector<Expression> parts = SplitParts(x, static_cast<int64_t>(N));
  std::array<Expression, N> result;
  for (size_t i = 0; i < N; ++i) result[i] = parts[i];
  return result;
}

}  // namespace cavs
