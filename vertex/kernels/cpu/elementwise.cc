#include "vertex/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "vertex/kernels/cpu/elementwise_kernels.h"

namespace cavs::cpu {
namespace {

constexpr int64_t kMaxTile = 512;         // columns a step runs over at a time
constexpr int64_t kTileAlignment = 16;    // floats: a cache line
constexpr int64_t kScratchFloats = 8192;  // all temporaries of a tile: 32 KiB, on the stack
constexpr int64_t kJobWork = 1 << 15;     // columns times steps a job should have at least: about 10 us

constexpr int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

bool ReadsA(ElementwiseOp op) { return op != ElementwiseOp::kFill; }

bool ReadsB(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::kAdd:
    case ElementwiseOp::kSubtract:
    case ElementwiseOp::kMultiply:
    case ElementwiseOp::kDivide:
    case ElementwiseOp::kSigmoidGrad:
    case ElementwiseOp::kTanhGrad:
    case ElementwiseOp::kReluGrad:
      return true;
    default:
      return false;
  }
}

// A program bound to operands: how its slots map to memory, the same for all rows.
class Group {
 public:
  Group(const ElementwiseProgram& program, const Operand* operands, const uint64_t* row_keys)
      : program_(program),
        operands_(operands),
        row_keys_(row_keys),
        functions_(StepFunctions()),
        operand_count_(program.inputs + program.outputs),
        slots_(operand_count_ + program.temporaries) {
    CAVS_CHECK(slots_ <= kMaxElementwiseSlots, "{} slots, at most {}", slots_, kMaxElementwiseSlots);
    for (const ElementwiseStep& step : program.steps) Inspect(step);
    int64_t buffers = program.temporaries;
    for (int32_t slot = 0; slot < operand_count_; ++slot) {
      const bool indexed = operands[slot].index != nullptr;
      indexed_ = indexed_ || indexed;
      flat_ = flat_ && operands[slot].Dense(program.width);
      if (indexed && slot >= program.inputs) ++buffers;
    }
    if (indexed_) ++buffers;
    const int64_t fitting = kScratchFloats / std::max<int64_t>(buffers, 1) / kTileAlignment * kTileAlignment;
    max_tile_ = std::min(kMaxTile, fitting);
  }

  // Whether the rows of every operand form one long row and no step cares where a row begins.
  bool flat() const { return flat_; }

  void RunRows(int64_t begin, int64_t end) const {
    const int64_t width = program_.width;
    const int64_t tile = std::min(max_tile_, RoundUp(width, kTileAlignment));
    alignas(64) float scratch[kScratchFloats];
    Pointers buffers;
    PlaceBuffers(scratch, tile, &buffers);
    Pointers slots = buffers;
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < width; column += tile) {
        for (int32_t slot = 0; slot < operand_count_; ++slot) {
          float* const address = operands_[slot].Row(row);
          const int64_t offset = scalar_[At(slot)] ? 0 : column;
          slots[At(slot)] = address != nullptr ? address + offset : buffers[At(slot)];
        }
        RunSteps(slots, row, column, std::min(tile, width - column));
      }
    }
  }

  // Runs the floats [begin, end) of the one long row.
  void RunFlat(int64_t begin, int64_t end) const {
    const int64_t tile = std::min(max_tile_, RoundUp(end - begin, kTileAlignment));
    alignas(64) float scratch[kScratchFloats];
    Pointers slots;
    PlaceBuffers(scratch, tile, &slots);
    for (int64_t first = begin; first < end; first += tile) {
      for (int32_t slot = 0; slot < operand_count_; ++slot) slots[At(slot)] = operands_[slot].base + first;
      RunSteps(slots, 0, 0, std::min(tile, end - first));
    }
  }

 private:
  using Pointers = std::array<float*, kMaxElementwiseSlots>;

  static constexpr size_t At(int32_t slot) { return static_cast<size_t>(slot); }

  void Inspect(const ElementwiseStep& step) {
    const auto known = [&](int32_t slot) { return slot >= 0 && slot < slots_; };
    CAVS_CHECK(known(step.dst) && step.dst >= program_.inputs, "slot {} cannot be written", step.dst);
    CAVS_CHECK(!ReadsA(step.op) || known(step.a), "slot {} of {}", step.a, slots_);
    CAVS_CHECK(!ReadsB(step.op) || known(step.b), "slot {} of {}", step.b, slots_);
    if (step.op == ElementwiseOp::kExpand) {
      CAVS_CHECK(step.a < program_.inputs, "expanding slot {}, which is no input", step.a);
      scalar_[At(step.a)] = true;
      flat_ = false;
    }
    if (step.op == ElementwiseOp::kDropout) {
      CAVS_CHECK(row_keys_ != nullptr, "dropout without row keys");
      flat_ = false;
    }
  }

  // Points temporaries at their buffers, and operands at what stands for a row that an index leaves out: zeros for an
  // input, for an output a buffer that later steps of the same row may read.
  void PlaceBuffers(float* scratch, int64_t tile, Pointers* slots) const {
    float* next = scratch;
    const auto take = [&] { return std::exchange(next, next + tile); };
    for (int32_t slot = operand_count_; slot < slots_; ++slot) (*slots)[At(slot)] = take();
    if (!indexed_) return;
    float* const zeros = take();
    std::fill_n(zeros, tile, 0.0f);
    for (int32_t slot = 0; slot < operand_count_; ++slot) {
      const bool discarded = slot >= program_.inputs && operands_[slot].index != nullptr;
      (*slots)[At(slot)] = discarded ? take() : zeros;
      if (discarded) std::fill_n((*slots)[At(slot)], tile, 0.0f);
    }
  }

  void RunSteps(const Pointers& slots, int64_t row, int64_t column, int64_t count) const {
    for (const ElementwiseStep& step : program_.steps) {
      StepArguments arguments;
      arguments.dst = slots[At(step.dst)];
      arguments.a = ReadsA(step.op) ? slots[At(step.a)] : nullptr;
      arguments.b = ReadsB(step.op) ? slots[At(step.b)] : nullptr;
      arguments.count = static_cast<size_t>(count);
      arguments.scalar = step.scalar;
      if (step.op == ElementwiseOp::kDropout) {
        arguments.threshold = step.threshold;
        arguments.column = static_cast<uint32_t>(column);
        arguments.key = HashCounter(row_keys_[row], step.salt);
      }
      functions_[static_cast<size_t>(step.op)](arguments);
    }
  }

  const ElementwiseProgram& program_;
  const Operand* operands_;
  const uint64_t* row_keys_;
  const StepTable& functions_;
  int32_t operand_count_;
  int32_t slots_;
  int64_t max_tile_ = kMaxTile;
  bool flat_ = true;
  bool indexed_ = false;
  std::array<bool, kMaxElementwiseSlots> scalar_{};
};

}  // namespace

void RunElementwise(const ElementwiseProgram& program, int64_t rows, const Operand* operands, const uint64_t* row_keys,
                    ThreadPool& pool, bool parallel) {
  if (rows == 0 || program.width == 0 || program.steps.empty()) return;
  const Group group(program, operands, row_keys);
  const int64_t items = group.flat() ? rows * program.width : rows;
  const int64_t work_per_item =
      static_cast<int64_t>(program.steps.size()) * (group.flat() ? 1 : std::max(program.width, kTileAlignment));
  const int64_t grain = RoundUp(std::max<int64_t>(kJobWork / work_per_item, 1), group.flat() ? kTileAlignment : 1);
  const auto run = [&](int64_t begin, int64_t end, int) {
    group.flat() ? group.RunFlat(begin, end) : group.RunRows(begin, end);
  };
  if (!parallel || pool.size() == 1 || items <= grain) {
    run(0, items, 0);
  } else {
    ParallelFor(pool, items, grain, std::cref(run));
  }
}

}  // namespace cavs::cpu
