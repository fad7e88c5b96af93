#include "vertex/run_recorder.h"

#include <fmt/format.h>

#include <utility>

namespace cavs {
namespace {

constexpr double kNanosecond = 1e-9;

const Instruction& InstructionOf(const Executable& executable, const Step& step) {
  const Program& program = step.backward ? executable.backward() : executable.forward();
  return program.instructions[static_cast<size_t>(step.instruction)];
}

}  // namespace

int64_t OperandBytes(const Executable& executable, const Step& step, const RowRange& range, int64_t collected) {
  if (step.kind == StepKind::kCollect) {
    return (collected + range.rows) * step.widths.back() * static_cast<int64_t>(sizeof(float));
  }
  int64_t floats = 0;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const Space space = step.spaces[i].kind;
    const bool once = space == Space::kParameter || space == Space::kConstant;
    floats += step.widths[i] * (once ? 1 : range.count(space));
  }
  // The gradient of a parameter is where these write to; it is no operand.
  if (const Instruction& instruction = InstructionOf(executable, step);
      step.kind == StepKind::kKernel && (instruction.op == Op::kMatMulGrad || instruction.op == Op::kColumnSumGrad)) {
    const auto parameter = static_cast<size_t>(instruction.attributes.parameter);
    floats += executable.signature().parameters[parameter].shape.width();
  }
  return floats * static_cast<int64_t>(sizeof(float));
}

void RunRecorder::set_steps(std::vector<const Step*> steps) {
  steps_ = std::move(steps);
  totals_.assign(steps_.size(), {});
}

void RunRecorder::Profile(bool on) {
  profiling_ = on;
  totals_.assign(steps_.size(), {});
  merges_ = {};
}

void RunRecorder::Trace(TraceLog* log) {
  log_ = log;
  if (log == nullptr) return;
  step_names_.clear();
  step_names_.reserve(steps_.size());
  for (const Step* step : steps_) step_names_.push_back(log->Intern(ToString(executable_, *step)));
  for (size_t side = 0; side < task_names_.size(); ++side) {
    const std::string_view prefix = side == 1 ? "d " : "";
    std::vector<std::string_view>& names = task_names_[side];
    names = {log->Intern(fmt::format("{}head", prefix))};
    for (const TypeDeclaration& type : executable_.signature().types) {
      names.push_back(log->Intern(fmt::format("{}{}", prefix, type.name)));
    }
  }
}

std::string_view RunRecorder::TaskName(const Step& step) const {
  const int64_t place = int64_t{step.space.type} + 1;  // the head has type -1
  return task_names_[step.backward ? 1 : 0][static_cast<size_t>(place)];
}

TraceScope RunRecorder::Task(std::span<const BoundStep> steps, const RowRange& range) const {
  if (log_ == nullptr || steps.empty() || range.rows == 0) return {nullptr, TraceLevel::kTask, {}};
  return {log_, TraceLevel::kTask, TaskName(*steps.front().step), range.rows};
}

void RunRecorder::Run(std::span<const BoundStep> steps, const RowRange& range) {
  for (const BoundStep& bound : steps) {
    const int64_t rows = range.count(bound.step->space.kind);
    if (runner_.IsIdle(bound, range)) continue;
    const RunCounters before = runner_.counters();
    const int64_t start = TraceLog::Now();
    runner_.Run(bound, range);
    const int64_t end = TraceLog::Now();
    const double flops = runner_.counters().flops - before.flops;
    // Of a nest few rows move, if any.
    const int64_t copied = runner_.counters().copied_bytes - before.copied_bytes;
    const int64_t bytes = bound.step->nest >= 0
                              ? 2 * copied
                              : OperandBytes(executable_, *bound.step, range, runner_.CollectedRows(bound, range));
    const auto number = static_cast<size_t>(bound.number);
    if (profiling_) {
      StepTotals& totals = totals_[number];
      ++totals.calls;
      totals.rows += rows;
      totals.bytes += bytes;
      totals.flops += flops;
      totals.seconds += kNanosecond * static_cast<double>(end - start);
    }
    if (log_ != nullptr) log_->Add({step_names_[number], TraceLevel::kStep, start, end, rows, flops, bytes});
  }
}

void RunRecorder::EndPhase(std::string_view name) {
  if (log_ == nullptr) return;
  const int64_t now = TraceLog::Now();
  log_->Add({name, TraceLevel::kPhase, phase_begin_, now});
  phase_begin_ = now;
}

void RunRecorder::BookMerge(int64_t rows, int64_t bytes, double seconds) {
  if (!profiling_) return;
  ++merges_.calls;
  merges_.rows += rows;
  merges_.bytes += bytes;
  merges_.seconds += seconds;
}

}  // namespace cavs
