// The instructions of the Interpreter: what each of them does at one row.
#include <algorithm>

#include "cavs/base/error.h"
#include "vertex/interpreter.h"
#include "vertex/reference.h"

namespace cavs {
namespace {

void Add(std::span<double> sum, std::span<const double> x) {
  CAVS_CHECK(sum.size() == x.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
}

void Copy(std::span<double> y, std::span<const double> x) {
  CAVS_CHECK(y.size() == x.size());
  std::copy(x.begin(), x.end(), y.begin());
}

bool ReadsTarget(Op op) {
  return op == Op::kSquaredError || op == Op::kSquaredErrorGrad || op == Op::kKlDivergence ||
         op == Op::kKlDivergenceGrad;
}

}  // namespace

void Interpreter::RunVertex(const Function& function, int32_t vertex) {
  const auto v = static_cast<size_t>(vertex);
  const int64_t slots = std::ssize(batch_->children(vertex));
  for (const Instruction* instruction : function) {
    if (instruction->space.kind == Space::kEdge) {
      for (int64_t slot = 0; slot < slots; ++slot) Run(*instruction, {vertex, slot, first_edge_[v] + slot});
    } else {
      Run(*instruction, {vertex, -1, row_of_vertex_[v]});
    }
  }
}

void Interpreter::RunHead(const Function& function) {
  for (int64_t row = 0; row < std::ssize(head_vertices_); ++row) {
    for (const Instruction* instruction : function) {
      Run(*instruction, {head_vertices_[static_cast<size_t>(row)], -1, row});
    }
  }
}

void Interpreter::Run(const Instruction& instruction, const Site& site) {
  const bool done = RunSource(instruction, site) || RunSink(instruction, site) ||
                    RunParameterGradient(instruction, site) || RunChildren(instruction, site);
  if (!done) RunRow(instruction, site);
}

// Rows that come from outside of the function.
bool Interpreter::RunSource(const Instruction& instruction, const Site& site) {
  const Attributes& a = instruction.attributes;
  switch (instruction.op) {
    case Op::kLookup: {
      const int32_t id = Id(a.column, site.vertex);
      const std::span<double> y = Result(instruction, site.row);
      if (id != kNone) Copy(y, Operand(instruction.inputs[0], 0).subspan(static_cast<size_t>(id) * y.size(), y.size()));
      return true;
    }
    case Op::kPullRows: {
      const std::span<const float> x = FloatRow(a.column, site.vertex);
      std::copy(x.begin(), x.end(), Result(instruction, site.row).begin());
      return true;
    }
    case Op::kGather:
    case Op::kGatherAll: {
      const int32_t child = Child(site, instruction.op == Op::kGather ? a.slot : site.slot);
      if (child != kNone) Copy(Result(instruction, site.row), ChannelRow(channels_, a.channel, child));
      return true;
    }
    case Op::kPushed:
      Copy(Result(instruction, site.row), ChannelRow(channels_, a.channel, site.vertex));
      return true;
    case Op::kLossSeed:
      Result(instruction, site.row)[0] = static_cast<double>(options_.loss_scale);
      return true;
    case Op::kScatterGrad:
    case Op::kPushGrad:
      Copy(Result(instruction, site.row), ChannelRow(channel_gradients_, a.channel, site.vertex));
      return true;
    default:
      return false;
  }
}

// Rows that are handed to other vertices, or to the head.
bool Interpreter::RunSink(const Instruction& instruction, const Site& site) {
  const Attributes& a = instruction.attributes;
  switch (instruction.op) {
    case Op::kScatter:
    case Op::kPush:
      Copy(ChannelRow(channels_, a.channel, site.vertex), Operand(instruction.inputs[0], site.row));
      return true;
    case Op::kGatherGrad:
    case Op::kGatherAllGrad: {
      const int32_t child = Child(site, instruction.op == Op::kGatherGrad ? a.slot : site.slot);
      if (child != kNone) {
        Add(ChannelRow(channel_gradients_, a.channel, child), Operand(instruction.inputs[0], site.row));
      }
      return true;
    }
    case Op::kPushedGrad:
      Add(ChannelRow(channel_gradients_, a.channel, site.vertex), Operand(instruction.inputs[0], site.row));
      return true;
    default:
      return false;
  }
}

// What one row adds to the gradient of a parameter.
bool Interpreter::RunParameterGradient(const Instruction& instruction, const Site& site) {
  const Attributes& a = instruction.attributes;
  switch (instruction.op) {
    case Op::kMatMulGrad: {
      std::span<const double> left = Operand(instruction.inputs[0], site.row);
      std::span<const double> right = Operand(instruction.inputs[1], site.row);
      if (a.transposed) std::swap(left, right);
      std::vector<double>& gradient = gradients_[static_cast<size_t>(a.parameter)];
      CAVS_CHECK(gradient.size() == left.size() * right.size());
      for (size_t i = 0; i < left.size(); ++i) {
        for (size_t j = 0; j < right.size(); ++j) gradient[i * right.size() + j] += left[i] * right[j];
      }
      return true;
    }
    case Op::kColumnSumGrad:
      Add(gradients_[static_cast<size_t>(a.parameter)], Operand(instruction.inputs[0], site.row));
      return true;
    case Op::kLookupGrad: {
      const int32_t id = Id(a.column, site.vertex);
      const std::span<const double> dx = Operand(instruction.inputs[0], site.row);
      const std::span<double> gradient = gradients_[static_cast<size_t>(a.parameter)];
      if (id != kNone) Add(gradient.subspan(static_cast<size_t>(id) * dx.size(), dx.size()), dx);
      return true;
    }
    default:
      return false;
  }
}

// Between a vertex and its edges, or its input. A missing child has an edge, whose gathered row is zero.
bool Interpreter::RunChildren(const Instruction& instruction, const Site& site) {
  const int64_t slots = std::ssize(batch_->children(site.vertex));
  const int64_t first_edge = first_edge_[static_cast<size_t>(site.vertex)];
  const int64_t vertex_row = row_of_vertex_[static_cast<size_t>(site.vertex)];
  const auto edge = [&](int64_t slot) { return Operand(instruction.inputs[0], first_edge + slot); };
  switch (instruction.op) {
    case Op::kToVertices:
    case Op::kSumVertices:  // every vertex has an input of its own here
      Copy(Result(instruction, site.row), Operand(instruction.inputs[0], site.row));
      return true;
    case Op::kToEdges:
      Copy(Result(instruction, site.row), Operand(instruction.inputs[0], vertex_row));
      return true;
    case Op::kSumChildren:
    case Op::kMeanChildren: {
      const std::span<double> y = Result(instruction, site.row);
      for (int64_t slot = 0; slot < slots; ++slot) Add(y, edge(slot));
      if (instruction.op == Op::kMeanChildren && slots > 0) {
        for (double& value : y) value /= static_cast<double>(slots);
      }
      return true;
    }
    case Op::kMaxChildren: {
      const std::span<double> y = Result(instruction, site.row);
      for (int64_t slot = 0; slot < slots; ++slot) {
        for (size_t i = 0; i < y.size(); ++i) y[i] = slot == 0 ? edge(slot)[i] : std::max(y[i], edge(slot)[i]);
      }
      return true;
    }
    case Op::kMeanChildrenGrad: {
      const std::span<const double> dy = Operand(instruction.inputs[0], vertex_row);
      const std::span<double> dx = Result(instruction, site.row);
      for (size_t i = 0; i < dx.size(); ++i) dx[i] = dy[i] / static_cast<double>(slots);
      return true;
    }
    case Op::kMaxChildrenGrad:
      // All edges of the vertex at once: a search for each edge would take quadratic time.
      if (site.slot == 0) RunMaxChildrenGrad(instruction, slots, first_edge, vertex_row);
      return true;
    default:
      return false;
  }
}

void Interpreter::RunMaxChildrenGrad(const Instruction& instruction, int64_t slots, int64_t first_edge,
                                     int64_t vertex_row) {
  const std::span<const double> y = Operand(instruction.inputs[1], vertex_row);
  const std::span<const double> dy = Operand(instruction.inputs[2], vertex_row);
  for (size_t i = 0; i < y.size(); ++i) {
    int64_t first = 0;
    while (first < slots && Operand(instruction.inputs[0], first_edge + first)[i] != y[i]) ++first;
    if (first < slots) Result(instruction, first_edge + first)[i] = dy[i];
  }
}

void Interpreter::RunRow(const Instruction& instruction, const Site& site) {
  const ReferenceFunction function = FindReference(instruction.op);
  CAVS_CHECK(function != nullptr, "no reference for {}", OpName(instruction.op));
  std::vector<std::span<const double>> operands;
  std::vector<Shape> shapes;
  for (const ValueId input : instruction.inputs) {
    operands.push_back(Operand(input, site.row));
    shapes.push_back((*value_table_)[static_cast<size_t>(input)].shape);
  }
  ReferenceRow row{.x = operands,
                   .shapes = shapes,
                   .y = Result(instruction, site.row),
                   .attributes = instruction.attributes,
                   .target = {}};
  const int32_t column = instruction.attributes.column;
  std::vector<double> target;
  if (instruction.op == Op::kCrossEntropy || instruction.op == Op::kCrossEntropyGrad) {
    row.label = Id(column, site.vertex);
  }
  if (ReadsTarget(instruction.op)) {
    const std::span<const float> floats = FloatRow(column, site.vertex);
    target.assign(floats.begin(), floats.end());
    row.target = target;
  }
  if (instruction.op == Op::kDropout) {
    row.training = options_.training;
    row.row_key = RowKey(site);
  }
  function(row);
}

}  // namespace cavs
