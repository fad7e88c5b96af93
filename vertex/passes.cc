#include "vertex/passes.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "vertex/merging.h"

namespace cavs {
namespace {

// Equal keys mean equal results. Sinks have effects, so they have no key.
using ExpressionKey = std::tuple<Op, int, int32_t, std::vector<ValueId>, int32_t, int32_t, int32_t, int32_t, int64_t,
                                 uint64_t, uint64_t, bool, const CustomOperator*, int64_t>;

ExpressionKey KeyOf(const Program& program, const Instruction& i) {
  const Attributes& a = i.attributes;
  return {i.op,           static_cast<int>(i.space.kind),
          i.space.type,   i.inputs,
          a.channel,      a.column,
          a.slot,         a.parameter,
          a.begin,        std::bit_cast<uint64_t>(a.scalar),
          a.salt,         a.transposed,
          a.custom.get(), program.value(i.output).shape.width()};
}

void MarkLive(const std::vector<ValueId>& values, std::vector<char>* live) {
  for (const ValueId value : values) (*live)[static_cast<size_t>(value)] = 1;
}

bool IsRecursionSource(Op op) { return op == Op::kGather || op == Op::kGatherAll || op == Op::kScatterGrad; }
bool IsRecursionSink(Op op, bool backward) {
  return backward ? op == Op::kGatherGrad || op == Op::kGatherAllGrad : op == Op::kScatter;
}

// Whether the result of each instruction depends on a gather (in dF: on what the parents sent back).
std::vector<char> DependsOnRecursion(const Program& program) {
  std::vector<char> value_depends(program.values.size(), 0);
  std::vector<char> depends(program.instructions.size(), 0);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    bool any = IsRecursionSource(instruction.op);
    for (const ValueId input : instruction.inputs) {
      any = any || (input >= program.first_own_value && value_depends[static_cast<size_t>(input)] != 0);
    }
    depends[i] = any;
    if (instruction.output != kNoValue) value_depends[static_cast<size_t>(instruction.output)] = any;
  }
  return depends;
}

// Whether a scatter (in dF: a gradient for the children) depends on each instruction.
std::vector<char> FeedsRecursion(const Program& program) {
  std::vector<char> value_feeds(program.values.size(), 0);
  std::vector<char> feeds(program.instructions.size(), 0);
  for (size_t i = program.instructions.size(); i-- > 0;) {
    const Instruction& instruction = program.instructions[i];
    const bool any = IsRecursionSink(instruction.op, program.is_backward()) ||
                     (instruction.output != kNoValue && value_feeds[static_cast<size_t>(instruction.output)] != 0);
    feeds[i] = any;
    if (any) MarkLive(instruction.inputs, &value_feeds);
  }
  return feeds;
}

}  // namespace

Program MergeCommonExpressions(Program program) {
  std::vector<ValueId> replacement(program.values.size());
  for (size_t i = 0; i < replacement.size(); ++i) replacement[i] = static_cast<ValueId>(i);
  std::map<ExpressionKey, ValueId> seen;
  std::vector<Instruction> kept;
  for (Instruction& instruction : program.instructions) {
    for (ValueId& input : instruction.inputs) input = replacement[static_cast<size_t>(input)];
    if (instruction.output != kNoValue) {
      const auto [entry, is_new] = seen.emplace(KeyOf(program, instruction), instruction.output);
      replacement[static_cast<size_t>(instruction.output)] = entry->second;
      if (!is_new) continue;
    }
    kept.push_back(std::move(instruction));
  }
  program.instructions = std::move(kept);
  for (ValueId& loss : program.losses) loss = replacement[static_cast<size_t>(loss)];
  for (NamedValue& output : program.outputs) output.value = replacement[static_cast<size_t>(output.value)];
  return program;
}

Program DropDeadCode(Program program) {
  std::vector<char> live(program.values.size(), 0);
  MarkLive(program.losses, &live);
  for (const NamedValue& output : program.outputs) live[static_cast<size_t>(output.value)] = 1;
  std::vector<Instruction> kept;
  for (size_t i = program.instructions.size(); i-- > 0;) {
    Instruction& instruction = program.instructions[i];
    if (!IsSink(instruction.op) && live[static_cast<size_t>(instruction.output)] == 0) continue;
    MarkLive(instruction.inputs, &live);
    kept.push_back(std::move(instruction));
  }
  std::reverse(kept.begin(), kept.end());
  program.instructions = std::move(kept);
  return program;
}

Program Partition(Program program, const PassOptions& options) {
  const std::vector<char> depends = DependsOnRecursion(program);
  const std::vector<char> feeds = FeedsRecursion(program);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    Instruction& instruction = program.instructions[i];
    instruction.phase = Phase::kRecurrent;
    if (depends[i] == 0 && options.hoisting) instruction.phase = Phase::kHoisted;
    if (depends[i] != 0 && feeds[i] == 0 && options.lazy_batching) instruction.phase = Phase::kDeferred;
    // Vertices of any task may have an input in common.
    if (instruction.space.kind == Space::kInput) {
      instruction.phase = program.is_backward() ? Phase::kDeferred : Phase::kHoisted;
    }
  }
  return program;
}

Program Simplify(Program program, const PassOptions& options) {
  if (options.common_expressions) program = MergeCommonExpressions(std::move(program));
  if (options.dead_code) program = DropDeadCode(std::move(program));
  if (options.merging && !program.is_backward()) program = MergeProducts(std::move(program), options);
  return program;
}

}  // namespace cavs
