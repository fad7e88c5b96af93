// Program: the flat SSA form of the vertex functions F (one per vertex type, and the head), and of their
// derivative dF. It is compiled once per model and never depends on the shape of a graph.
//
// Invariants: instructions are in dependence order within a function; every value has at most one producer; a
// value keeps its id through all passes. The values of dF extend those of F: an id below F's value count means the
// stored value of F. Immutable after construction, safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/shape.h"
#include "vertex/signature.h"

namespace cavs {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

// The rows over which a value exists.
enum class Space : uint8_t {
  kParameter,  // one matrix for the model
  kConstant,   // one row, the same everywhere
  kVertex,     // a row for each vertex of a type
  kEdge,       // a row for each child edge of the vertices of a type, in row order of the parents
  kInput,      // a row for each distinct input of the vertices of a type (input_sharing.h), in order of appearance
  kHead,       // a row for each vertex that pushes `head_channels` and is labelled or asked for
  kBlock,      // in compiled steps: a row for each one of the block that runs, whichever rows these are
};

struct RowSpace {
  Space kind = Space::kConstant;
  int32_t type = -1;  // the vertex type, for kVertex, kEdge and kInput
  friend bool operator==(const RowSpace&, const RowSpace&) = default;
};

struct Value {
  RowSpace space;
  Shape shape;                  // of one row; of the whole matrix for a parameter
  int32_t parameter = -1;       // for Space::kParameter
  std::vector<float> constant;  // for Space::kConstant: [width]
};

enum class Op : uint8_t {
  // Sources: rows that come from outside of the function.
  kLookup,     // (table) row `column`[vertex] of a parameter; an exact zero row where the id is -1
  kPullRows,   // () the float row of `column`; zero where there is none
  kGather,     // () state `channel` of child `slot`; zero where the child is missing
  kGatherAll,  // () state `channel` of every child, over edges
  kPushed,     // () row of push channel `channel`, over head rows
  // Sinks.
  kScatter,  // (x) publishes x as state `channel` of this vertex
  kPush,     // (x) hands x to the head through push channel `channel`
  // Between vertices and edges.
  kToEdges,       // (vertex value) the parent's row for each of its edges
  kSumChildren,   // (edge value) sum over the edges of a vertex; zero without children
  kMeanChildren,  // (edge value) mean over the edges of a vertex; zero without children
  kMaxChildren,   // (edge value) maximum over the edges of a vertex; zero without children
  // Between vertices and their inputs.
  kToVertices,  // (input value) each vertex's row of it
  // Products.
  kMatMul,  // (x, W) x W, or x W^T when `transposed`; (x, W, b) adds b
  kOuter,   // (x[n], y[m]) x_i y_j as [n*m]; with a product it makes the bilinear form
  // Elementwise; one operand may be a parameter or constant of one row, broadcast over rows.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kScale,  // (x) x * scalar
  kSigmoid,
  kTanh,
  kRelu,
  kExp,
  kLog,
  kSqrt,
  kDropout,  // (x) Srivastava et al. 2014, inverted: kept values are divided by 1 - scalar; identity when not training
  kExpand,   // (x[1]) x repeated to the width of the output
  // Whole rows.
  kSoftmax,
  kLogSoftmax,
  kSum,     // (x) -> [1]
  kConcat,  // (x, y, ...) side by side
  kSlice,   // (x) columns [begin, begin + width)
  // Losses, one per row: [1].
  kCrossEntropy,  // (logits) -log softmax(logits)[label]; 0 where the label is -1
  kSquaredError,  // (x) 1/2 sum (x - target)^2; 0 where there is no target
  kKlDivergence,  // (x) sum target (log target - x) over the targets above 0; 0 where there is no target
  kCustom,        // an operator registered from outside, see operator.h
  // Gradients: instructions of dF only.
  kLossSeed,          // () the factor of the loss: 1, or 1 / graphs of the minibatch
  kScatterGrad,       // () what the parents sent back for state `channel` of this vertex
  kPushGrad,          // () what the head sent back for push channel `channel`
  kGatherGrad,        // (dx) adds dx into the gradient of state `channel` of child `slot`
  kGatherAllGrad,     // (dx over edges) adds dx into the gradient of state `channel` of every child
  kPushedGrad,        // (dx over head rows) adds dx into the gradient of push channel `channel`
  kMatMulGrad,        // (x, dy) adds x^T dy into the gradient of `parameter`; dy^T x when `transposed`
  kColumnSumGrad,     // (dy) adds the sum of dy's rows into the gradient of `parameter`
  kLookupGrad,        // (dx) adds the rows of dx into rows `column`[vertex] of the gradient of `parameter`
  kSigmoidGrad,       // (dy, y) dy y (1 - y)
  kTanhGrad,          // (dy, y) dy (1 - y^2)
  kReluGrad,          // (dy, y) dy where y > 0
  kSoftmaxGrad,       // (dy, y) y (dy - sum(dy y))
  kLogSoftmaxGrad,    // (dy, y) dy - exp(y) sum(dy)
  kOuterGradLeft,     // (dz[n*m], y[m]) sum_j dz_ij y_j
  kOuterGradRight,    // (dz[n*m], x[n]) sum_i dz_ij x_i
  kSumVertices,       // (dy) for each input the sum over its vertices
  kMeanChildrenGrad,  // (dy) dy / children for each edge
  kMaxChildrenGrad,   // (e, y, dy) dy at the first edge whose e equals y, else 0
  kCrossEntropyGrad,  // (logits, dy[1]) (softmax(logits) - onehot(label)) dy
  kSquaredErrorGrad,  // (x, dy[1]) (x - target) dy
  kKlDivergenceGrad,  // (dy[1]) -max(target, 0) dy
  kCustomGrad,        // (dy, y, inputs...) gradient `slot` of a registered operator
};
inline constexpr int kOpCount = static_cast<int>(Op::kCustomGrad) + 1;

// When an instruction runs, relative to the recursion over tasks (design section 4.1).
enum class Phase : uint8_t { kHoisted, kRecurrent, kDeferred };

struct CustomOperator;  // operator.h

struct Attributes {
  int32_t channel = -1;
  int32_t column = -1;
  int32_t slot = -1;
  int32_t parameter = -1;
  int64_t begin = 0;
  double scalar = 0;
  uint64_t salt = 0;  // tells the dropouts of a model apart
  bool transposed = false;
  std::shared_ptr<const CustomOperator> custom = nullptr;
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

struct Instruction {
  Op op;
  RowSpace space;  // of the function's rows: where the instruction runs
  ValueId output = kNoValue;
  std::vector<ValueId> inputs;
  Attributes attributes;
  Phase phase = Phase::kRecurrent;
};

struct NamedValue {
  std::string name;
  ValueId value;
};

struct Program {
  std::shared_ptr<const Signature> signature;
  std::vector<Value> values;
  std::vector<Instruction> instructions;
  std::vector<ValueId> losses;  // [1] over head rows; the loss of a minibatch is the sum over all rows of all of them
  std::vector<NamedValue> outputs;     // values over head rows that the caller may read
  std::vector<int32_t> head_channels;  // push channels that losses and outputs read; ascending
  std::vector<int32_t> head_columns;   // id columns that are labels: a head row exists where one of them is not -1
  // dF: ids below this belong to F. 0 for F itself.
  ValueId first_own_value = 0;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  ValueId value_count() const { return static_cast<ValueId>(values.size()); }
  bool is_backward() const { return first_own_value > 0; }
  std::string type_name(int32_t type) const { return signature->types[static_cast<size_t>(type)].name; }
};

// The name that `explain` and errors print, such as "matmul".
std::string_view OpName(Op op);
// "hoisted", "recurrent", "deferred".
std::string_view PhaseName(Phase phase);

// True for operators that map equal columns of their inputs to one column: the ones that fuse.
bool IsElementwise(Op op);

// Sinks have an effect outside of the function and are never dead code.
bool IsSink(Op op);

// One instruction as text, such as "%12 [750] = matmul %3 [300], U [300, 750]".
std::string ToString(const Program& program, const Instruction& instruction);
// The whole program: a block for each function, phases marked.
std::string ToString(const Program& program);
// The same as a Graphviz digraph.
std::string ToDot(const Program& program);

}  // namespace cavs
