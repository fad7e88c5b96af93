// Executable: F (and dF) compiled once per model into steps over buffers; what an Executor binds to a minibatch.
//
// Compilation decides, for every value, where its rows lie (Location) and which instructions run as one fused group:
//  - gathers, pulls, slices and pushed rows are addresses, not copies, unless a product must read them;
//  - the parts of a concatenation are written in place by their producers, a scattered value into its state's table;
//  - where a product reads the states of all children side by side, its rows are rows of the state's table too: a child
//    is computed right in the slot of its parent (Nest);
//  - what readers send back to a state or a pushed value stays where it was computed, and is summed when it is read;
//  - steps that treat every row alone run block by block, all steps of a run over one block before the next block, so
//    that what one writes is still in the cache when the next one reads it;
//  - values used only inside of their own fused group have no memory at all, those used only inside of their own run
//    have the rows of one block.
// Immutable after Compile; safe to share between threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/sharing.h"
#include "vertex/kernels/elementwise.h"
#include "vertex/liveness.h"
#include "vertex/passes.h"
#include "vertex/program.h"

namespace cavs {

enum class BufferKind : uint8_t {
  kRows,             // [rows of `space`, width], allocated for each run
  kChannel,          // rows of all types that scatter (push) channel `id`, type after type
  kChannelGradient,  // the same for the gradient
  kParameter,        // values of parameter `id`
  kConstant,         // the row of constant value `id`
  kLossScale,        // RunOptions::loss_scale
  kColumn,           // external float rows of column `id`, in row order of a vertex type or of the head
};

// How many rows the blocks of a run of steps have at most, and whether the run is of tasks, which may be narrower.
struct BlockSize {
  int64_t rows = 0;
  bool of_tasks = false;
};

struct Buffer {
  BufferKind kind;
  RowSpace space;
  int64_t width = 0;
  int32_t id = -1;
  bool of_block = false;  // kRows: used inside of one run of steps alone, and has the rows of a block for each lane
  BlockSize block = {};   // of_block: of that run
};

// Arrays of row numbers that a run derives from its Schedule.
enum class IndexKind : uint8_t {
  kSlot,        // by row of `type`: row of child `slot` in the tables of channel class `channel_class`
  kEdge,        // by edge of `type`: row of the child in those tables
  kEdgeParent,  // by edge of `type`: row of the parent in its type
  kHead,        // by head row: row of the vertex in the tables of `channel_class`
  kIds,         // by row of `type`: id in `column`
  kInput,       // by row of `type`: row of its input
  kEdgeInput,   // by edge of `type`: row of the parent's input
  kInputIds,    // by input of `type`: id in `column`
};

struct IndexSpec {
  IndexKind kind;
  int32_t type = -1;
  int32_t slot = -1;
  int32_t channel_class = -1;
  int32_t column = -1;
  friend bool operator==(const IndexSpec&, const IndexSpec&) = default;
};

// Rows of a value: columns [column, ...) of a buffer, row by row or through an index.
struct Location {
  int32_t buffer = -1;
  int64_t column = 0;
  int32_t index = -1;
  bool valid() const { return buffer >= 0; }
  friend bool operator==(const Location&, const Location&) = default;
};

// A kRows buffer over the vertices of a type, whose rows are what these gather from one state, slot by slot. Its [rows,
// slots * width] floats are rows [rows * slots, width] of the state's table too. A vertex has its row in the slot of
// its first parent, and is copied to those of others; one without such a parent has a row behind all slots.
struct Nest {
  int32_t buffer = -1;
  int32_t table = -1;  // buffer of the state
  int32_t type = -1;
  int32_t slots = 0;
  int32_t channel_class = -1;
};

enum class StepKind : uint8_t { kGroup, kCopy, kKernel, kCollect };

struct Step {
  StepKind kind = StepKind::kKernel;
  bool backward = false;
  int32_t instruction = -1;        // of its Program; the first one of a group
  RowSpace space;                  // rows that it runs over
  std::vector<Location> operands;  // inputs, then outputs
  int32_t inputs = 0;
  std::vector<int64_t> widths;               // of the operands
  std::vector<RowSpace> spaces;              // of the operands: which numbering of rows they follow
  ElementwiseProgram group;                  // kGroup
  ElementwiseProgram group_without_dropout;  // the same outside of training; empty unless `draws`
  int32_t collection = -1;                   // kCollect
  int32_t nest = -1;                         // kCopy: what it copies is there already but for few rows
  bool draws = false;                        // kGroup: reads the row keys of dropout
};

// The gradient of a channel: for each row of the tables of its class, the sum of what all readers of the row send back.
// Or that of a value over the inputs of a type: for each input, the sum of what its vertices send back. Sources name
// rows by an index, number by number: the gradient of source s for row r is in its rows i with index[i] = r.
struct Collection {
  int32_t channel_class = -1;    // none of inputs
  int32_t inputs_of = -1;        // vertex type; none of a channel
  std::vector<int32_t> indices;  // by source, into Executable::indices()
  friend bool operator==(const Collection&, const Collection&) = default;
};

// Steps [begin, end) of a list. Rows of a row-local run do not depend on each other: it may run block by block, and
// blocks side by side. Other runs have one step, which adds up rows.
struct StepRun {
  int32_t begin = 0, end = 0;
  bool row_local = true;
  BlockSize block;
};

// Steps in order of execution, and the runs that tile them.
struct StepList {
  std::vector<Step> steps;
  std::vector<StepRun> runs;
  bool empty() const { return steps.empty(); }
};

// Steps of one function: over its rows, by phase, and over its distinct inputs, in F before and in dF behind all
// others.
struct FunctionSteps {
  std::array<StepList, 3> phases;
  StepList inputs;
  const StepList& phase(Phase p) const { return phases[static_cast<size_t>(p)]; }
  StepList& phase(Phase p) { return phases[static_cast<size_t>(p)]; }
};

// Rows of a lookup table's gradient, merged after a run.
struct LookupGradient {
  int32_t parameter;
  IndexSpec ids;
  Location rows;
  RowSpace space;
};

class Executable {
 public:
  // `backward` is null for forward-only use. Partitions and fuses both as `options` says; Simplify comes before, as
  // dF must be derived from the simplified F.
  static std::shared_ptr<const Executable> Compile(const Program& forward, const Program* backward,
                                                   const PassOptions& options);

  const Program& forward() const { return forward_; }
  const Program& backward() const { return backward_; }
  bool has_backward() const { return has_backward_; }
  const Signature& signature() const { return *forward_.signature; }

  const FunctionSteps& function(bool backward, int32_t type) const {
    return (backward ? backward_types_ : forward_types_)[static_cast<size_t>(type)];
  }
  const StepList& head(bool backward) const { return backward ? backward_head_ : forward_head_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<IndexSpec>& indices() const { return indices_; }
  const std::vector<Collection>& collections() const { return collections_; }
  const std::vector<Nest>& nests() const { return nests_; }
  // The nest that a buffer is; null for most.
  const Nest* nest(int32_t buffer) const;
  const std::vector<LookupGradient>& lookup_gradients() const { return lookup_gradients_; }
  // Parameters that products multiply by.
  const std::vector<int32_t>& multiplied() const { return multiplied_; }
  // Where the value of a state, an output or a loss is.
  Location location(ValueId value) const { return locations_[static_cast<size_t>(value)]; }
  // Channels with equal types share row numbers: their class. Types of a class, ascending.
  int32_t channel_class(int32_t channel) const { return channel_class_[static_cast<size_t>(channel)]; }
  const std::vector<int32_t>& class_types(int32_t channel_class) const {
    return class_types_[static_cast<size_t>(channel_class)];
  }
  int32_t class_count() const { return static_cast<int32_t>(class_types_.size()); }
  // The channel whose table holds the rows of `channel`: itself, or the state that equals a push channel.
  int32_t table_of(int32_t channel) const { return table_of_[static_cast<size_t>(channel)]; }
  // Push channels that the head reads.
  const std::vector<int32_t>& head_channels() const { return forward_.head_channels; }
  bool draws() const { return draws_; }
  // Id columns whose values are one input of a type (Space::kInput), ascending; none where the type has no such rows.
  const std::vector<int32_t>& input_columns(int32_t type) const { return input_columns_[static_cast<size_t>(type)]; }
  // Of runs of F alone, or of F and dF.
  const Liveness& liveness(bool backward) const { return liveness_[backward ? 1 : 0]; }
  // What F reads from outside, by vertex type: what tells vertices apart.
  std::vector<TypeInputs> inputs() const;

 private:
  friend class Compiler;
  Executable() = default;

  Program forward_, backward_;
  bool has_backward_ = false;
  std::vector<FunctionSteps> forward_types_, backward_types_;
  StepList forward_head_, backward_head_;
  std::vector<Buffer> buffers_;
  std::vector<IndexSpec> indices_;
  std::vector<Collection> collections_;
  std::vector<Nest> nests_;
  std::vector<LookupGradient> lookup_gradients_;
  std::vector<int32_t> multiplied_;
  std::vector<Location> locations_;
  std::vector<int32_t> channel_class_;
  std::vector<std::vector<int32_t>> class_types_;
  std::vector<int32_t> table_of_;
  bool draws_ = false;
  std::vector<std::vector<int32_t>> input_columns_;
  std::array<Liveness, 2> liveness_;
};

// A run owns the buffer and takes memory for it.
inline bool IsOwned(const Buffer& buffer) {
  return buffer.kind == BufferKind::kRows || buffer.kind == BufferKind::kChannel ||
         buffer.kind == BufferKind::kChannelGradient;
}

// What `explain` and errors call a buffer: "%12", "h", "d h", "leaf.W".
std::string BufferName(const Executable& executable, const Buffer& buffer);

// What a step runs: "matmul", "fused", "copy".
std::string_view OperationName(const Executable& executable, const Step& step);

// One step: what it runs, its operands and results.
std::string ToString(const Executable& executable, const Step& step);

// The compiled steps as text: what runs as one kernel, and what is only an address.
std::string ToString(const Executable& executable);

}  // namespace cavs
