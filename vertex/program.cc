#include "vertex/program.h"

#include <array>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "vertex/operator.h"

namespace cavs {
namespace {

enum class Kind : uint8_t { kPlain, kElementwise, kSink };

struct OpInfo {
  Op op;
  std::string_view name;
  Kind kind = Kind::kPlain;
};

constexpr std::array<OpInfo, kOpCount> kOps = {{
    {Op::kLookup, "lookup"},
    {Op::kPullRows, "pull"},
    {Op::kGather, "gather"},
    {Op::kGatherAll, "gather_all"},
    {Op::kPushed, "pushed"},
    {Op::kScatter, "scatter", Kind::kSink},
    {Op::kPush, "push", Kind::kSink},
    {Op::kToEdges, "to_edges"},
    {Op::kSumChildren, "sum_children"},
    {Op::kMeanChildren, "mean_children"},
    {Op::kMaxChildren, "max_children"},
    {Op::kToVertices, "to_vertices"},
    {Op::kMatMul, "matmul"},
    {Op::kOuter, "outer"},
    {Op::kAdd, "add", Kind::kElementwise},
    {Op::kSubtract, "subtract", Kind::kElementwise},
    {Op::kMultiply, "multiply", Kind::kElementwise},
    {Op::kDivide, "divide", Kind::kElementwise},
    {Op::kScale, "scale", Kind::kElementwise},
    {Op::kSigmoid, "sigmoid", Kind::kElementwise},
    {Op::kTanh, "tanh", Kind::kElementwise},
    {Op::kRelu, "relu", Kind::kElementwise},
    {Op::kExp, "exp", Kind::kElementwise},
    {Op::kLog, "log", Kind::kElementwise},
    {Op::kSqrt, "sqrt", Kind::kElementwise},
    {Op::kDropout, "dropout", Kind::kElementwise},
    {Op::kExpand, "expand", Kind::kElementwise},
    {Op::kSoftmax, "softmax"},
    {Op::kLogSoftmax, "log_softmax"},
    {Op::kSum, "sum"},
    {Op::kConcat, "concat"},
    {Op::kSlice, "slice"},
    {Op::kCrossEntropy, "cross_entropy"},
    {Op::kSquaredError, "squared_error"},
    {Op::kKlDivergence, "kl_divergence"},
    {Op::kCustom, "custom"},
    {Op::kLossSeed, "loss_seed"},
    {Op::kScatterGrad, "scatter_grad"},
    {Op::kPushGrad, "push_grad"},
    {Op::kGatherGrad, "gather_grad", Kind::kSink},
    {Op::kGatherAllGrad, "gather_all_grad", Kind::kSink},
    {Op::kPushedGrad, "pushed_grad", Kind::kSink},
    {Op::kMatMulGrad, "matmul_grad", Kind::kSink},
    {Op::kColumnSumGrad, "column_sum_grad", Kind::kSink},
    {Op::kLookupGrad, "lookup_grad", Kind::kSink},
    {Op::kSigmoidGrad, "sigmoid_grad", Kind::kElementwise},
    {Op::kTanhGrad, "tanh_grad", Kind::kElementwise},
    {Op::kReluGrad, "relu_grad", Kind::kElementwise},
    {Op::kSoftmaxGrad, "softmax_grad"},
    {Op::kLogSoftmaxGrad, "log_softmax_grad"},
    {Op::kOuterGradLeft, "outer_grad_left"},
    {Op::kOuterGradRight, "outer_grad_right"},
    {Op::kSumVertices, "sum_vertices"},
    {Op::kMeanChildrenGrad, "mean_children_grad"},
    {Op::kMaxChildrenGrad, "max_children_grad"},
    {Op::kCrossEntropyGrad, "cross_entropy_grad"},
    {Op::kSquaredErrorGrad, "squared_error_grad"},
    {Op::kKlDivergenceGrad, "kl_divergence_grad"},
    {Op::kCustomGrad, "custom_grad"},
}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  }
  return true;
}
static_assert(InOrder(), "kOps has one row for each Op, in the order of the enum");

const OpInfo& Info(Op op) { return kOps[static_cast<size_t>(op)]; }

std::string FunctionName(const Program& program, const RowSpace& space) {
  if (space.kind == Space::kHead) return "head";
  return program.type_name(space.type);
}

bool SameFunction(const RowSpace& a, const RowSpace& b) { return a.type == b.type; }

std::string OperandText(const Program& program, ValueId id) {
  const Value& value = program.value(id);
  if (value.parameter >= 0) return program.signature->parameters[static_cast<size_t>(value.parameter)].name;
  if (value.space.kind == Space::kConstant) {
    return value.constant.size() == 1 ? fmt::format("{}", value.constant[0])
                                      : fmt::format("constant {}", value.shape.ToString());
  }
  return fmt::format("%{}", id);
}

// Of rows other than those of the function itself.
std::string_view RowsText(Space space) {
  switch (space) {
    case Space::kEdge:
      return " edges";
    case Space::kInput:
      return " inputs";
    default:
      return "";
  }
}

std::string AttributeText(const Program& program, const Instruction& instruction) {
  const Attributes& a = instruction.attributes;
  const Signature& signature = *program.signature;
  std::string text;
  if (a.channel >= 0) text += fmt::format(" {}", signature.channels[static_cast<size_t>(a.channel)].name);
  if (a.slot >= 0) text += fmt::format(" #{}", a.slot);
  if (a.column >= 0) text += fmt::format(" \"{}\"", signature.columns[static_cast<size_t>(a.column)].name);
  if (a.parameter >= 0) text += fmt::format(" -> {}", signature.parameters[static_cast<size_t>(a.parameter)].name);
  if (a.transposed) text += " transposed";
  if (instruction.op == Op::kSlice) text += fmt::format(" from {}", a.begin);
  if (instruction.op == Op::kScale || instruction.op == Op::kDropout) text += fmt::format(" {}", a.scalar);
  if (a.custom != nullptr) text += fmt::format(" {}", a.custom->name);
  return text;
}

}  // namespace

std::string_view PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kHoisted:
      return "hoisted";
    case Phase::kRecurrent:
      return "recurrent";
    case Phase::kDeferred:
      return "deferred";
  }
  return "";
}

std::string_view OpName(Op op) { return Info(op).name; }
bool IsElementwise(Op op) { return Info(op).kind == Kind::kElementwise; }
bool IsSink(Op op) { return Info(op).kind == Kind::kSink; }

std::string ToString(const Program& program, const Instruction& instruction) {
  std::string text;
  if (instruction.output != kNoValue) {
    const Value& value = program.value(instruction.output);
    text += fmt::format("%{}{} {} = ", instruction.output, RowsText(value.space.kind), value.shape.ToString());
  }
  text += OpName(instruction.op);
  text += AttributeText(program, instruction);
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", OperandText(program, instruction.inputs[i]));
  }
  return text;
}

std::string ToString(const Program& program) {
  std::string text;
  const Instruction* previous = nullptr;
  for (const Instruction& instruction : program.instructions) {
    if (previous == nullptr || !SameFunction(previous->space, instruction.space)) {
      text += fmt::format("{}{}:\n", program.is_backward() ? "d " : "", FunctionName(program, instruction.space));
    }
    const std::string_view phase = instruction.space.kind == Space::kHead ? "head" : PhaseName(instruction.phase);
    text += fmt::format("  {:<9}  {}\n", phase, ToString(program, instruction));
    previous = &instruction;
  }
  return text;
}

std::string ToDot(const Program& program) {
  std::string text =
      fmt::format("digraph {} {{\n  node [shape=box, fontname=\"monospace\"];\n", program.is_backward() ? "dF" : "F");
  std::vector<int64_t> producer(program.values.size(), -1);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.output != kNoValue) producer[static_cast<size_t>(instruction.output)] = static_cast<int64_t>(i);
    std::string label = fmt::format("{}{}", OpName(instruction.op), AttributeText(program, instruction));
    for (char& c : label) c = c == '"' ? '\'' : c;
    text += fmt::format("  n{} [label=\"{}\\n{}, {}\"];\n", i, label, FunctionName(program, instruction.space),
                        PhaseName(instruction.phase));
    for (const ValueId input : instruction.inputs) {
      if (producer[static_cast<size_t>(input)] >= 0) {
        text += fmt::format("  n{} -> n{} [label=\"{}\"];\n", producer[static_cast<size_t>(input)], i,
                            program.value(input).shape.ToString());
      }
    }
  }
  return text + "}\n";
}

}  // namespace cavs
