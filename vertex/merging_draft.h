// MergingDraft: F while MergeProducts rewrites it: the program with what is known about it, and the parameters that
// have been merged so far. Internal to vertex/, not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "vertex/passes.h"
#include "vertex/program.h"

namespace cavs {

// Parameters that occur together in the same places and nowhere else.
struct ParameterGroup {
  std::vector<int32_t> parameters;  // ascending; two at least
  std::vector<int32_t> places;      // ascending
};

class MergingDraft {
 public:
  // What takes the place of an instruction, by its number; those that are not named stay.
  using Edits = std::map<int32_t, std::vector<Instruction>>;

  MergingDraft(Program program, const PassOptions& options);

  const Program& program() const { return program_; }
  int32_t instruction_count() const { return static_cast<int32_t>(program_.instructions.size()); }
  const Instruction& instruction(int32_t i) const { return program_.instructions[static_cast<size_t>(i)]; }
  Phase phase(int32_t i) const { return phases_[static_cast<size_t>(i)]; }
  // The instruction that makes a value; -1 for parameters and constants.
  int32_t producer(ValueId value) const { return producers_[static_cast<size_t>(value)]; }
  // The instructions that read a value, once for each operand.
  std::span<const int32_t> uses(ValueId value) const { return uses_[static_cast<size_t>(value)]; }
  // Whether one instruction alone reads a value, once.
  bool IsReadOnce(ValueId value) const;
  const ParameterDeclaration& parameter(int32_t id) const { return parameters_[static_cast<size_t>(id)]; }
  // Operands of F that are this parameter.
  int64_t use_count(int32_t parameter) const { return use_counts_[static_cast<size_t>(parameter)]; }

  // Whether an instruction is a product whose weights may be merged.
  bool IsProduct(int32_t i) const;
  // The parameter by which a product multiplies.
  int32_t WeightsOf(int32_t product) const;

  // Groups the parameters that stand in `places`, each a set of parameters that could be read as one.
  std::vector<ParameterGroup> GroupParameters(std::span<const std::vector<int32_t>> places) const;

  // A new value for an instruction to make.
  ValueId NewValue(const RowSpace& space, const Shape& shape);
  // A new parameter that `parts` tile; parts of parts are resolved.
  ValueId NewParameter(const Shape& shape, std::span<const ParameterPart> parts);
  // Rewrites the program and learns anew about it.
  void Apply(Edits edits);
  // The program with the merged parameters that it reads.
  Program Finish();

 private:
  void Learn();

  Program program_;
  PassOptions options_;
  std::vector<ParameterDeclaration> parameters_;  // of the signature, then merged ones
  std::vector<Phase> phases_;
  std::vector<int32_t> producers_;
  std::vector<std::vector<int32_t>> uses_;
  std::vector<int64_t> use_counts_;
  std::vector<char> kept_;  // by value: a loss, an output
};

// The two halves of the pass, see merging.h.
void MergeSums(MergingDraft* draft);
void MergeGates(MergingDraft* draft);

}  // namespace cavs
