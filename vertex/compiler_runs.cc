#include <algorithm>
#include <set>

#include "vertex/compiler.h"

namespace cavs {
namespace {

// What the steps of a run write and read again for a block should stay in the cache next to a core; but products want
// many rows, and more than so many gain nothing.
constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kLeastBlockRows = 128, kMostBlockRows = 512, kBlockRowAlignment = 64;

bool AddsUpRows(const Program& program, const Step& step) {
  if (step.kind != StepKind::kKernel) return false;
  const Op op = program.instructions[static_cast<size_t>(step.instruction)].op;
  return op == Op::kMatMulGrad || op == Op::kColumnSumGrad;
}

// Rows whose operands fill kBlockBytes, about.
int64_t BlockRows(const Executable& executable, const StepList& list, const StepRun& run) {
  std::set<int32_t> seen;
  int64_t bytes = 0;
  for (int32_t i = run.begin; i < run.end; ++i) {
    const Step& step = list.steps[static_cast<size_t>(i)];
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const Location& location = step.operands[k];
      const Buffer& buffer = executable.buffers()[static_cast<size_t>(location.buffer)];
      const bool parameter = buffer.kind == BufferKind::kParameter;
      if ((parameter && location.index < 0) || !seen.insert(location.buffer).second) continue;
      bytes += (parameter ? step.widths[k] : buffer.width) * static_cast<int64_t>(sizeof(float));
    }
  }
  const int64_t rows = kBlockBytes / std::max<int64_t>(bytes, 1) / kBlockRowAlignment * kBlockRowAlignment;
  return std::clamp(rows, kLeastBlockRows, kMostBlockRows);
}

}  // namespace

void Compiler::CutIntoRuns() {
  ForEachList([&](StepList& list) {
    for (size_t i = 0; i < list.steps.size(); ++i) {
      const auto place = static_cast<int32_t>(i);
      const bool local = !AddsUpRows(ProgramOf(list.steps[i].backward), list.steps[i]);
      if (list.runs.empty() || !local || !list.runs.back().row_local) list.runs.push_back({place, place, local, {}});
      list.runs.back().end = place + 1;
    }
    for (StepRun& run : list.runs) run.block.rows = BlockRows(*e_, list, run);
  });
  for (auto* types : {&e_->forward_types_, &e_->backward_types_}) {
    for (FunctionSteps& function : *types) {
      for (StepRun& run : function.phase(Phase::kRecurrent).runs) run.block.of_tasks = true;
    }
  }
}

// What one run alone writes and reads, row by row, is over with its block: the next block may use the same rows. Edges
// are addressed by their number in the type, and what is sent back by that of the sender, so these keep their rows.
void Compiler::NarrowToBlocks() {
  std::vector<const StepRun*> user(e_->buffers_.size(), nullptr);
  std::vector<char> narrow(e_->buffers_.size(), 0);
  for (size_t b = 0; b < narrow.size(); ++b) {
    const Buffer& buffer = e_->buffers_[b];
    const Space space = buffer.space.kind;
    const bool rows = space == Space::kVertex || space == Space::kHead || space == Space::kInput;
    narrow[b] = buffer.kind == BufferKind::kRows && rows ? 1 : 0;
  }
  const auto keep = [&](const Location& location) { narrow[static_cast<size_t>(location.buffer)] = 0; };
  for (const LookupGradient& lookup : e_->lookup_gradients_) keep(lookup.rows);
  for (const ValueId loss : e_->forward_.losses) keep(e_->location(loss));
  for (const NamedValue& output : e_->forward_.outputs) keep(e_->location(output.value));
  const auto visit = [&](const StepRun& run, const Step& step) {
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const auto b = static_cast<size_t>(step.operands[i].buffer);
      const bool sent = step.kind == StepKind::kCollect && i < static_cast<size_t>(step.inputs);
      const bool by_row = step.operands[i].index < 0 && step.spaces[i] == e_->buffers_[b].space;
      const bool own = step.space == e_->buffers_[b].space && (user[b] == nullptr || user[b] == &run);
      if (!run.row_local || sent || !by_row || !own) narrow[b] = 0;
      user[b] = &run;
    }
  };
  const auto visit_steps = [&](StepList& list) {
    for (const StepRun& run : list.runs) {
      for (int32_t i = run.begin; i < run.end; ++i) visit(run, list.steps[static_cast<size_t>(i)]);
    }
  };
  ForEachList(visit_steps);
  for (const Nest& nest : e_->nests_) narrow[static_cast<size_t>(nest.buffer)] = 0;
  for (size_t b = 0; b < narrow.size(); ++b) {
    if (narrow[b] == 0 || user[b] == nullptr) continue;
    e_->buffers_[b].of_block = true;
    e_->buffers_[b].block = user[b]->block;
  }
  ForEachList([&](StepList& list) {
    for (Step& step : list.steps) {
      for (size_t i = 0; i < step.operands.size(); ++i) {
        if (e_->buffers_[static_cast<size_t>(step.operands[i].buffer)].of_block) step.spaces[i] = {Space::kBlock, -1};
      }
    }
  });
}

}  // namespace cavs
