// KernelRunner: one compiled step over a range of rows, on the CPU kernels. Internal to vertex/.
// It knows neither schedules nor memory: the Executor binds operands to a minibatch and walks the tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "cavs/base/thread_pool.h"
#include "graph/schedule.h"
#include "vertex/executable.h"
#include "vertex/executor.h"
#include "vertex/gradients.h"
#include "vertex/kernels/gemm.h"
#include "vertex/kernels/operand.h"
#include "vertex/parameters.h"
#include "vertex/placement.h"

namespace cavs {

// A step with the addresses of the present minibatch.
struct BoundStep {
  const Step* step = nullptr;
  const Instruction* instruction = nullptr;
  std::vector<Operand> operands;
  int32_t number = 0;  // among all steps of an Executor
};

// Rows of a task, of a whole type, of its inputs or of the head, or a block of these.
struct RowRange {
  int64_t row = 0, rows = 0;
  int64_t edge = 0, edges = 0;
  int64_t block = 0;  // row of the buffers of a block where the first row is
  int64_t first(Space space) const {
    switch (space) {
      case Space::kVertex:
      case Space::kHead:
      case Space::kInput:
        return row;
      case Space::kEdge:
        return edge;
      case Space::kBlock:
        return block;
      default:
        return 0;
    }
  }
  int64_t count(Space space) const { return space == Space::kEdge ? edges : rows; }
};

class KernelRunner {
 public:
  KernelRunner(const Executable* executable, const ParameterStore* parameters, ThreadPool* threads);

  // What the steps of a minibatch read besides their operands. All must live until the minibatch ends.
  void Begin(const Placement* placement, const Schedule* schedule, const RunOptions& options);
  // Where gradients of parameters go.
  void set_gradients(Gradients* gradients) { gradients_ = gradients; }

  // Whether there is nothing to do: no rows, or copies of what is in place.
  bool IsIdle(const BoundStep& bound, const RowRange& range) const;
  void Run(const BoundStep& bound, const RowRange& range);

  // Rows that a collecting step sums up over a range; 0 for other steps.
  int64_t CollectedRows(const BoundStep& bound, const RowRange& range) const;
  const RunCounters& counters() const { return counters_; }

 private:
  void RunGroup(const BoundStep& bound, const RowRange& range);
  void RunCopy(const BoundStep& bound, const RowRange& range);
  void RunCollection(const BoundStep& bound, const RowRange& range);
  // [rows + 1] of the range: where the references of each row begin.
  const int64_t* BeginOfReferences(const Step& step, const RowRange& range) const;
  void RunKernel(const BoundStep& bound, const RowRange& range);
  bool RunProduct(const BoundStep& bound, const RowRange& range);
  bool RunSegment(const BoundStep& bound, const RowRange& range);
  bool RunRows(const BoundStep& bound, const RowRange& range);
  bool RunLoss(const BoundStep& bound, const RowRange& range);
  bool RunCustom(const BoundStep& bound, const RowRange& range);
  void MatMul(const BoundStep& bound, const RowRange& range);
  void MatMulGrad(const BoundStep& bound, const RowRange& range);
  void ClearUntargeted(Operand rows, int64_t width, int32_t column, const RowRange& range);
  // The operand at the first row of the range.
  static Operand At(const BoundStep& bound, const RowRange& range, size_t operand) {
    const Space space = bound.step->spaces[operand].kind;
    return bound.operands[operand].At(range.first(space));
  }
  int32_t ParameterOf(const BoundStep& bound, size_t operand) const {
    return executable_->buffers()[static_cast<size_t>(bound.step->operands[operand].buffer)].id;
  }

  const Executable* executable_;
  const ParameterStore* parameters_;
  ThreadPool* threads_;
  cpu::Gemm gemm_;
  const Placement* placement_ = nullptr;
  const Schedule* schedule_ = nullptr;
  Gradients* gradients_ = nullptr;
  bool training_ = false;
  bool packed_ = false;
  RunCounters counters_;
  std::vector<Operand> operands_;      // of the group that runs now
  std::vector<ConstOperand> sources_;  // of the collection that runs now
};

}  // namespace cavs
