#include <algorithm>

#include "vertex/compiler.h"

namespace cavs {

// What only the recurrent steps of one type read and write, row by row, is over with its task: the next task may use the
// same rows. Edges are addressed by their number in the type, so their values keep rows of their own.
void Compiler::NarrowToTasks() {
  std::vector<char> narrow(e_->buffers_.size(), 0);
  for (size_t b = 0; b < narrow.size(); ++b) {
    const Buffer& buffer = e_->buffers_[b];
    narrow[b] = buffer.kind == BufferKind::kRows && buffer.space.kind == Space::kVertex ? 1 : 0;
  }
  const auto keep = [&](const Location& location) { narrow[static_cast<size_t>(location.buffer)] = 0; };
  for (const LookupGradient& lookup : e_->lookup_gradients_) keep(lookup.rows);
  for (const ValueId loss : e_->forward_.losses) keep(e_->location(loss));
  for (const NamedValue& output : e_->forward_.outputs) keep(e_->location(output.value));
  std::vector<char> user(narrow.size(), 0);  // 1: F uses the buffer, 2: dF
  ForEachStep([&](Step& step, bool recurrent) {
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const auto b = static_cast<size_t>(step.operands[i].buffer);
      const char function = step.backward ? 2 : 1;
      const bool by_row = step.operands[i].index < 0 && step.spaces[i] == Space::kVertex;
      const bool own = step.space == e_->buffers_[b].space && (user[b] == 0 || user[b] == function);
      if (!recurrent || !by_row || !own) narrow[b] = 0;
      user[b] = function;
    }
  });
  for (size_t b = 0; b < narrow.size(); ++b) e_->buffers_[b].of_task = narrow[b] != 0;
  ForEachStep([&](Step& step, bool /*recurrent*/) {
    for (size_t i = 0; i < step.operands.size(); ++i) {
      if (narrow[static_cast<size_t>(step.operands[i].buffer)] != 0) step.spaces[i] = Space::kConstant;
    }
  });
}

template <typename Visit>
void Compiler::ForEachStep(const Visit& visit) {
  for (auto* types : {&e_->forward_types_, &e_->backward_types_}) {
    for (FunctionSteps& function : *types) {
      for (const Phase phase : {Phase::kHoisted, Phase::kRecurrent, Phase::kDeferred}) {
        for (Step& step : function.phase(phase)) visit(step, phase == Phase::kRecurrent);
      }
    }
  }
  for (auto* head : {&e_->forward_head_, &e_->backward_head_}) {
    for (Step& step : *head) visit(step, false);
  }
}

}  // namespace cavs
