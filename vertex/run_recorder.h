// RunRecorder: books what each compiled step of an Executor costs, and draws runs into a TraceLog.
// Internal to vertex/. Not thread-safe: while it is active an Executor runs one thing after another, though threads may
// share a kernel. While neither is asked for, an Executor pays one branch for each task.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/base/trace_log.h"
#include "vertex/executable.h"
#include "vertex/kernel_runner.h"

namespace cavs {

// What the calls of one step cost.
struct StepTotals {
  int64_t calls = 0, rows = 0, bytes = 0;
  double seconds = 0, flops = 0;
};

class RunRecorder {
 public:
  // `runner` must outlive the recorder.
  RunRecorder(const Executable* executable, KernelRunner* runner) : executable_(*executable), runner_(*runner) {}

  // The steps that will run, by BoundStep::number.
  void set_steps(std::vector<const Step*> steps);
  // Forgets what was booked.
  void Profile(bool on);
  // Null stops. The log must outlive the tracing.
  void Trace(TraceLog* log);

  bool active() const { return profiling_ || log_ != nullptr; }
  TraceLog* log() const { return log_; }

  // The span of a run of steps over a task, or over all rows of a type or the head, which `Run` may do block by block.
  TraceScope Task(std::span<const BoundStep> steps, const RowRange& range) const;
  // Runs a run of steps over one block; `active` only.
  void Run(std::span<const BoundStep> steps, const RowRange& range);

  // The phases of a run follow each other without a gap.
  void BeginPhases() { phase_begin_ = TraceLog::Now(); }
  void EndPhase(std::string_view name);

  // Books the merging of lookup gradients, which is no step.
  void BookMerge(int64_t rows, int64_t bytes, double seconds);

  const StepTotals& totals(int32_t step) const { return totals_[static_cast<size_t>(step)]; }
  const StepTotals& merges() const { return merges_; }

 private:
  std::string_view TaskName(const Step& step) const;

  const Executable& executable_;
  KernelRunner& runner_;
  std::vector<const Step*> steps_;
  std::vector<StepTotals> totals_;  // by step
  StepTotals merges_;
  bool profiling_ = false;
  TraceLog* log_ = nullptr;
  int64_t phase_begin_ = 0;
  std::vector<std::string_view> step_names_;                 // by step; in the log
  std::array<std::vector<std::string_view>, 2> task_names_;  // of F and of dF: the head, then by type; in the log
};

// Bytes of the operands and results of a step, each counted once and as f32: what it must move at least. `collected`:
// rows that a collecting step sums up.
int64_t OperandBytes(const Executable& executable, const Step& step, const RowRange& range, int64_t collected);

}  // namespace cavs
