#include "vertex/input_sharing.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cavs/base/error.h"

namespace cavs {
namespace {

// Rows that exist already; each side has its own address of them.
bool IsView(Op op) { return op == Op::kLookup || op == Op::kSlice; }

class InputSharing {
 public:
  InputSharing(Program program, const PassOptions& options)
      : program_(std::move(program)),
        shared_(program_.values.size(), 0),
        read_by_inputs_(program_.values.size(), 0),
        read_by_vertices_(program_.values.size(), 0) {
    const Program partitioned = Partition(program_, options);
    hoisted_.reserve(partitioned.instructions.size());
    for (const Instruction& instruction : partitioned.instructions) {
      hoisted_.push_back(instruction.phase == Phase::kHoisted ? 1 : 0);
    }
  }

  Program Run() {
    FindShared();
    FindReaders();
    Rewrite();
    return std::move(program_);
  }

 private:
  bool IsShared(ValueId value) const { return value != kNoValue && shared_[static_cast<size_t>(value)] != 0; }
  bool Moves(const Instruction& instruction) const { return IsShared(instruction.output) && !IsView(instruction.op); }
  char& ReadByInputs(ValueId value) { return read_by_inputs_[static_cast<size_t>(value)]; }
  char& ReadByVertices(ValueId value) { return read_by_vertices_[static_cast<size_t>(value)]; }

  // Whether an instruction's rows are functions of the ids that its vertices pull.
  bool DependsOnIds(const Instruction& instruction) const {
    if (instruction.space.kind != Space::kVertex || IsSink(instruction.op)) return false;
    if (instruction.op == Op::kLookup) return true;
    if (instruction.op == Op::kPullRows || instruction.op == Op::kDropout) return false;
    const auto& inputs = instruction.inputs;
    const bool all = std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      const Space space = program_.value(input).space.kind;
      return IsShared(input) || space == Space::kParameter || space == Space::kConstant;
    });
    return all && std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) { return IsShared(input); });
  }

  void FindShared() {
    std::vector<char> multiplies(program_.signature->types.size(), 0);
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (hoisted_[i] == 0 || !DependsOnIds(instruction)) continue;
      const auto type = static_cast<size_t>(instruction.space.type);
      if (program_.signature->types[type].children == 0) continue;
      shared_[static_cast<size_t>(instruction.output)] = 1;
      if (instruction.op == Op::kMatMul) multiplies[type] = 1;
    }
    for (size_t v = 0; v < shared_.size(); ++v) {
      const RowSpace& space = program_.values[v].space;
      if (space.type >= 0 && multiplies[static_cast<size_t>(space.type)] == 0) shared_[v] = 0;
    }
  }

  // On which side each shared value is needed. A view that nothing reads stays where it is.
  void FindReaders() {
    for (auto i = program_.instructions.rbegin(); i != program_.instructions.rend(); ++i) {
      bool for_inputs = Moves(*i), for_vertices = !for_inputs;
      if (IsShared(i->output) && !for_inputs) {
        for_inputs = ReadByInputs(i->output) != 0;
        if (!for_inputs) ReadByVertices(i->output) = 1;
        for_vertices = ReadByVertices(i->output) != 0;
      }
      for (const ValueId input : i->inputs) {
        if (for_inputs) ReadByInputs(input) = 1;
        if (for_vertices) ReadByVertices(input) = 1;
      }
    }
  }

  void Rewrite() {
    std::vector<ValueId> at_inputs(program_.values.size());  // what stands there for a value
    std::iota(at_inputs.begin(), at_inputs.end(), 0);
    std::vector<ValueId> at_vertices = at_inputs;
    std::vector<Instruction> instructions;
    instructions.reserve(program_.instructions.size());
    for (const Instruction& instruction : program_.instructions) {
      const ValueId output = instruction.output;
      const RowSpace vertices = instruction.space, inputs{Space::kInput, vertices.type};
      if (IsShared(output) && !Moves(instruction) && ReadByInputs(output) != 0) {
        instructions.push_back(On(inputs, instruction, at_inputs));
        instructions.back().output = at_inputs[static_cast<size_t>(output)] = NewValue(inputs, output);
      }
      if (!IsShared(output) || (!Moves(instruction) && ReadByVertices(output) != 0)) {
        instructions.push_back(On(vertices, instruction, at_vertices));
      }
      if (!Moves(instruction)) continue;
      program_.values[static_cast<size_t>(output)].space = inputs;
      instructions.push_back(On(inputs, instruction, at_inputs));
      if (ReadByVertices(output) == 0) continue;
      const ValueId copy = at_vertices[static_cast<size_t>(output)] = NewValue(vertices, output);
      instructions.push_back(
          {.op = Op::kToVertices, .space = vertices, .output = copy, .inputs = {output}, .attributes = {}});
    }
    program_.instructions = std::move(instructions);
  }

  // The instruction over other rows, reading what stands there for its inputs.
  static Instruction On(const RowSpace& space, Instruction instruction, const std::vector<ValueId>& names) {
    instruction.space = space;
    for (ValueId& input : instruction.inputs) input = names[static_cast<size_t>(input)];
    return instruction;
  }

  ValueId NewValue(const RowSpace& space, ValueId like) {
    Value value = program_.value(like);
    value.space = space;
    program_.values.push_back(std::move(value));
    return program_.value_count() - 1;
  }

  Program program_;
  std::vector<char> hoisted_;           // by instruction
  std::vector<char> shared_;            // by value: a function of ids, in a type that shares
  std::vector<char> read_by_inputs_;    // by value: where it is needed
  std::vector<char> read_by_vertices_;  // by value
};

}  // namespace

Program ShareInputs(Program program, const PassOptions& options) {
  CAVS_CHECK(!program.is_backward(), "inputs are shared in F");
  if (!options.hoisting) return program;
  return InputSharing(std::move(program), options).Run();
}

}  // namespace cavs
