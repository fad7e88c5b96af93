// GradientBuilder: dF while it is being written. It emits instructions and collects, for each value of F, the
// contributions to its gradient, until the walk reaches the value's producer and takes their sum.
// A contribution covers all columns of a value or a stretch of them; disjoint stretches become one concatenation, so
// that the gradient of a split costs one row copy and no additions of padding.
// Invariant: contributions of a value arrive before TakeGradient of it. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "backprop/gradient_paths.h"
#include "vertex/program.h"

namespace cavs {

class GradientBuilder {
 public:
  // An empty dF whose values extend those of F.
  explicit GradientBuilder(const Program& f);

  const GradientPaths& paths() const { return paths_; }
  // A value of F or dF; the reference is valid until the next Emit.
  const Value& value(ValueId id) const { return program_.value(id); }

  // Appends an instruction that runs over `rows`. Returns its output, [rows, shape.width()].
  ValueId Emit(Op op, RowSpace rows, const Shape& shape, std::vector<ValueId> inputs, Attributes attributes = {});
  // Appends a sink that adds into a gradient outside of the function.
  void EmitSink(Op op, RowSpace rows, std::vector<ValueId> inputs, Attributes attributes);
  // A sink for parameter attributes.parameter. Throws std::invalid_argument when a lookup table is used as a matrix or
  // a matrix is read by id: the gradient of the one is sparse, of the other dense.
  void EmitParameterSink(Op op, RowSpace rows, std::vector<ValueId> inputs, Attributes attributes);

  // Adds `gradient` to the gradient of columns [begin, begin + width of gradient) of `value`. A parameter that was
  // broadcast over rows gets the sum of the rows at once; nothing happens where no gradient flows.
  void Contribute(ValueId value, ValueId gradient, int64_t begin = 0);
  // The sum of all contributions to a value of F, [rows, width]; kNoValue when there are none.
  ValueId TakeGradient(ValueId value);

  // The finished dF. The builder is empty afterwards.
  Program Finish();

 private:
  struct Contribution {
    ValueId gradient;
    int64_t begin;
    int64_t end;
  };

  ValueId Add(ValueId left, ValueId right);
  // Adds up stretches of the same columns; `sorted` ascends by columns.
  std::vector<Contribution> MergeEqual(std::span<const Contribution> sorted);
  // One concatenation of ascending, disjoint stretches; zeros where none lies.
  ValueId Join(ValueId value, std::span<const Contribution> stretches);
  ValueId Zeros(int64_t width);

  GradientPaths paths_;
  Program program_;
  std::vector<std::vector<Contribution>> contributions_;  // by value of F
  std::map<int64_t, ValueId> zeros_;                      // constants of dF by width
};

}  // namespace cavs
