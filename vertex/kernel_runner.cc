#include "vertex/kernel_runner.h"

#include <algorithm>

#include "cavs/base/error.h"
#include "vertex/kernels/rows.h"
#include "vertex/operator.h"

namespace cavs {
namespace {

// Below this many element operations a fork and join costs more than the second thread saves.
constexpr int64_t kParallelWork = 1 << 17;

cpu::ConstMatrix AsConst(const Operand& operand) { return {operand.base, operand.ld}; }
cpu::Matrix AsMatrix(const Operand& operand) { return {operand.base, operand.ld}; }

}  // namespace

KernelRunner::KernelRunner(const Executable* executable, const ParameterStore* parameters, ThreadPool* threads)
    : executable_(executable), parameters_(parameters), threads_(threads), gemm_(*threads) {}

void KernelRunner::Begin(const Placement* placement, const Schedule* schedule, const RunOptions& options) {
  placement_ = placement;
  schedule_ = schedule;
  counters_ = {};
  training_ = options.training;
  packed_ = options.packed;
}

bool KernelRunner::IsIdle(const BoundStep& bound, const RowRange& range) const {
  const Step& step = *bound.step;
  return range.count(step.space.kind) == 0 || (step.nest >= 0 && placement_->nest_copies(step.nest) == 0);
}

void KernelRunner::Run(const BoundStep& bound, const RowRange& range) {
  if (IsIdle(bound, range)) return;
  ++counters_.launches;
  switch (bound.step->kind) {
    case StepKind::kGroup:
      RunGroup(bound, range);
      break;
    case StepKind::kCopy:
      RunCopy(bound, range);
      break;
    case StepKind::kKernel:
      RunKernel(bound, range);
      break;
    case StepKind::kCollect:
      RunCollection(bound, range);
      break;
  }
}

void KernelRunner::RunGroup(const BoundStep& bound, const RowRange& range) {
  const Step& step = *bound.step;
  const int64_t rows = range.count(step.space.kind);
  operands_.resize(bound.operands.size());
  for (size_t i = 0; i < operands_.size(); ++i) operands_[i] = At(bound, range, i);
  const ElementwiseProgram* group = &step.group;
  const uint64_t* keys = nullptr;
  if (step.draws && training_) {
    keys = placement_->keys(step.space).data() + range.first(step.space.kind);
  } else if (step.draws) {
    group = &step.group_without_dropout;
  }
  const bool large = rows * group->width * std::ssize(group->steps) >= kParallelWork;
  cpu::RunElementwise(*group, rows, operands_.data(), keys, *threads_, large);
}

const int64_t* KernelRunner::BeginOfReferences(const Step& step, const RowRange& range) const {
  const int32_t channel_class = executable_->collections()[static_cast<size_t>(step.collection)].channel_class;
  const int64_t base = channel_class >= 0 ? placement_->base(channel_class, step.space.type) : 0;
  return placement_->collected(step.collection).begin.data() + base + range.row;
}

int64_t KernelRunner::CollectedRows(const BoundStep& bound, const RowRange& range) const {
  if (bound.step->kind != StepKind::kCollect) return 0;
  const int64_t* const begin = BeginOfReferences(*bound.step, range);
  return begin[range.rows] - begin[0];
}

void KernelRunner::RunCollection(const BoundStep& bound, const RowRange& range) {
  const Step& step = *bound.step;
  const auto output = static_cast<size_t>(step.inputs);
  sources_.assign(bound.operands.begin(), bound.operands.begin() + step.inputs);
  cpu::SumReferences(At(bound, range, output), sources_.data(),
                     placement_->collected(step.collection).references.data(), BeginOfReferences(step, range),
                     range.rows, step.widths[output], *threads_);
}

void KernelRunner::RunCopy(const BoundStep& bound, const RowRange& range) {
  const int64_t rows = range.count(bound.step->space.kind);
  const Operand to = At(bound, range, 1), from = At(bound, range, 0);
  const int64_t width = bound.step->widths[0];
  int64_t copied = rows;
  if (bound.step->nest >= 0) {
    for (int64_t r = 0; r < rows; ++r) copied -= from.Row(r) == to.Row(r) ? 1 : 0;
  }
  if (copied == 0) return;
  cpu::CopyRows(to, from, rows, width, *threads_);
  counters_.copied_bytes += copied * width * static_cast<int64_t>(sizeof(float));
}

void KernelRunner::RunKernel(const BoundStep& bound, const RowRange& range) {
  const bool known = RunProduct(bound, range) || RunSegment(bound, range) || RunRows(bound, range) ||
                     RunLoss(bound, range) || RunCustom(bound, range);
  CAVS_CHECK(known, "no kernel for {}", OpName(bound.instruction->op));
}

void KernelRunner::MatMul(const BoundStep& bound, const RowRange& range) {
  const Step& step = *bound.step;
  const int64_t rows = range.count(step.space.kind);
  const bool transposed = bound.instruction->attributes.transposed;
  const int32_t parameter = ParameterOf(bound, 1);
  const Shape& shape = parameters_->declaration(parameter).shape;
  const bool has_bias = step.inputs == 3;
  const float* bias = has_bias ? bound.operands[2].base : nullptr;
  const size_t y = static_cast<size_t>(step.inputs);
  counters_.flops += 2.0 * static_cast<double>(rows) * static_cast<double>(shape.width());
  const cpu::PackedWeights* packed = packed_ ? parameters_->packed(parameter) : nullptr;
  if (packed != nullptr) {
    gemm_.Multiply(rows, AsConst(At(bound, range, 0)), *packed, transposed, bias, false, AsMatrix(At(bound, range, y)));
  } else {
    gemm_.MultiplyPlain(rows, shape.rows(), shape.columns(), AsConst(At(bound, range, 0)),
                        {parameters_->values(parameter).data(), shape.columns()}, transposed, bias, false,
                        AsMatrix(At(bound, range, y)));
  }
}

void KernelRunner::MatMulGrad(const BoundStep& bound, const RowRange& range) {
  const Step& step = *bound.step;
  const int64_t rows = range.count(step.space.kind);
  const int32_t parameter = bound.instruction->attributes.parameter;
  const Shape& shape = parameters_->declaration(parameter).shape;
  const size_t left = bound.instruction->attributes.transposed ? 1 : 0;
  counters_.flops += 2.0 * static_cast<double>(rows) * static_cast<double>(shape.width());
  gemm_.MultiplyTransposed(rows, shape.rows(), shape.columns(), AsConst(At(bound, range, left)),
                           AsConst(At(bound, range, 1 - left)), gradients_->touched(parameter),
                           {gradients_->dense(parameter).data(), shape.columns()}, parameters_->precision());
  gradients_->set_touched(parameter);
}

bool KernelRunner::RunProduct(const BoundStep& bound, const RowRange& range) {
  const Step& step = *bound.step;
  const int64_t rows = range.count(step.space.kind);
  const auto at = [&](size_t operand) { return At(bound, range, operand); };
  switch (bound.instruction->op) {
    case Op::kMatMul:
      MatMul(bound, range);
      return true;
    case Op::kMatMulGrad:
      MatMulGrad(bound, range);
      return true;
    case Op::kColumnSumGrad: {
      const int32_t parameter = bound.instruction->attributes.parameter;
      cpu::ColumnSum(gradients_->dense(parameter).data(), at(0), rows, step.widths[0], gradients_->touched(parameter),
                     *threads_);
      gradients_->set_touched(parameter);
      return true;
    }
    case Op::kOuter:
      cpu::Outer(at(2), at(0), at(1), rows, step.widths[0], step.widths[1], *threads_);
      return true;
    case Op::kOuterGradLeft:
      cpu::OuterGradX(at(2), at(0), at(1), rows, step.widths[2], step.widths[1], *threads_);
      return true;
    case Op::kOuterGradRight:
      cpu::OuterGradY(at(2), at(0), at(1), rows, step.widths[1], step.widths[2], *threads_);
      return true;
    default:
      return false;
  }
}

// Edges are addressed by their number in the type, so edge operands are not moved to the range.
bool KernelRunner::RunSegment(const BoundStep& bound, const RowRange& range) {
  const Step& step = *bound.step;
  if (step.space.type < 0) return false;
  const auto at = [&](size_t operand) { return At(bound, range, operand); };
  const auto edges = [&](size_t operand) { return bound.operands[operand]; };
  const int64_t* begin = schedule_->edge_begin(step.space.type).data() + range.row;
  const int64_t width = step.widths[0];
  switch (bound.instruction->op) {
    case Op::kSumChildren:
      cpu::SegmentSum(at(1), edges(0), begin, range.rows, width, *threads_);
      return true;
    case Op::kMeanChildren:
      cpu::SegmentMean(at(1), edges(0), begin, range.rows, width, *threads_);
      return true;
    case Op::kMaxChildren:
      cpu::SegmentMax(at(1), edges(0), begin, range.rows, width, *threads_);
      return true;
    case Op::kMeanChildrenGrad:
      cpu::SegmentMeanGrad(edges(1), at(0), begin, range.rows, width, *threads_);
      return true;
    case Op::kMaxChildrenGrad:
      cpu::SegmentMaxGrad(edges(3), at(2), edges(0), begin, range.rows, width, *threads_);
      return true;
    default:
      return false;
  }
}

bool KernelRunner::RunRows(const BoundStep& bound, const RowRange& range) {
  const int64_t rows = range.count(bound.step->space.kind);
  const int64_t width = bound.step->widths[0];
  const auto at = [&](size_t operand) { return At(bound, range, operand); };
  switch (bound.instruction->op) {
    case Op::kSoftmax:
      cpu::Softmax(at(1), at(0), rows, width, *threads_);
      return true;
    case Op::kLogSoftmax:
      cpu::LogSoftmax(at(1), at(0), rows, width, *threads_);
      return true;
    case Op::kSoftmaxGrad:
      cpu::SoftmaxGrad(at(2), at(0), at(1), rows, width, *threads_);
      return true;
    case Op::kLogSoftmaxGrad:
      cpu::LogSoftmaxGrad(at(2), at(0), at(1), rows, width, *threads_);
      return true;
    case Op::kSum:
      cpu::RowSum(at(1), at(0), rows, width, *threads_);
      return true;
    default:
      return false;
  }
}

// A row without a target has neither loss nor gradient.
void KernelRunner::ClearUntargeted(Operand rows, int64_t width, int32_t column, const RowRange& range) {
  const int32_t* present = placement_->target_present(column).data() + range.row;
  for (int64_t r = 0; r < range.rows; ++r) {
    if (present[r] < 0) std::fill_n(rows.Row(r), width, 0.0f);
  }
}

bool KernelRunner::RunLoss(const BoundStep& bound, const RowRange& range) {
  const int32_t column = bound.instruction->attributes.column;
  const int64_t rows = range.rows, width = bound.step->widths[0];
  const auto at = [&](size_t operand) { return At(bound, range, operand); };
  const auto targets = [&](int64_t columns) {
    return ConstOperand{placement_->targets(column).data() + range.row * columns, columns, nullptr};
  };
  switch (bound.instruction->op) {
    case Op::kCrossEntropy:
      cpu::CrossEntropy(at(1), at(0), placement_->labels(column).data() + range.row, rows, width, *threads_);
      return true;
    case Op::kCrossEntropyGrad:
      cpu::CrossEntropyGrad(at(2), at(1), at(0), placement_->labels(column).data() + range.row, rows, width, *threads_);
      return true;
    case Op::kSquaredError:
      cpu::SquaredError(at(1), at(0), targets(width), rows, width, *threads_);
      ClearUntargeted(at(1), 1, column, range);
      return true;
    case Op::kSquaredErrorGrad:
      cpu::SquaredErrorGrad(at(2), at(1), at(0), targets(width), rows, width, *threads_);
      ClearUntargeted(at(2), width, column, range);
      return true;
    // A row without a target reads zeros as its target, which give neither loss nor gradient.
    case Op::kKlDivergence:
      cpu::KlDivergence(at(1), at(0), targets(width), rows, width, *threads_);
      return true;
    case Op::kKlDivergenceGrad: {
      const int64_t columns = bound.step->widths[1];
      cpu::KlDivergenceGrad(at(1), at(0), targets(columns), rows, columns, *threads_);
      return true;
    }
    default:
      return false;
  }
}

bool KernelRunner::RunCustom(const BoundStep& bound, const RowRange& range) {
  const Op op = bound.instruction->op;
  if (op != Op::kCustom && op != Op::kCustomGrad) return false;
  const Step& step = *bound.step;
  const CustomOperator& custom = *bound.instruction->attributes.custom;
  const Program& program = step.backward ? executable_->backward() : executable_->forward();
  const size_t first = op == Op::kCustom ? 0 : 2;
  std::vector<ConstOperand> x;
  std::vector<Shape> shapes;
  for (size_t i = first; i < static_cast<size_t>(step.inputs); ++i) {
    x.push_back(At(bound, range, i));
    shapes.push_back(program.value(bound.instruction->inputs[i]).shape);
  }
  const int64_t rows = range.count(step.space.kind);
  const Operand result = At(bound, range, static_cast<size_t>(step.inputs));
  if (op == Op::kCustom) {
    custom.forward(rows, x, shapes, result);
  } else {
    custom.backward(bound.instruction->attributes.slot, rows, At(bound, range, 0), At(bound, range, 1), x, shapes,
                    result);
  }
  return true;
}

}  // namespace cavs
