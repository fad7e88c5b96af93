// Gradients of the parameters of one or several minibatches, ready for an optimizer.
// Dense parameters have a full matrix, that of their owner (ParameterLayout); lookup tables have sorted unique rows
// only. Invariant: a parameter that no run touched since Clear has `touched() == false` and an exact zero gradient. Not
// thread-safe; a sum that was read once since the last addition may be read by many.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vertex/kernels/sparse_rows.h"
#include "vertex/parameter_layout.h"
#include "vertex/signature.h"

namespace cavs {

class Gradients {
 public:
  // `signature` is that of the dF that runs.
  explicit Gradients(std::shared_ptr<const Signature> signature);

  // Forgets everything; memory is kept.
  void Clear();
  // A parameter is touched when its owner is.
  bool touched(int32_t parameter) const { return touched_[static_cast<size_t>(layout_.owner(parameter))]; }
  void set_touched(int32_t parameter) { touched_[static_cast<size_t>(layout_.owner(parameter))] = true; }

  // [rows * columns] of a dense parameter that owns its values. Undefined content until touched: the first writer
  // overwrites.
  std::span<float> dense(int32_t parameter) { return Own(parameter); }
  std::span<const float> dense(int32_t parameter) const { return const_cast<Gradients*>(this)->Own(parameter); }
  // The sum of all that was added.
  const SparseRows& sparse(int32_t parameter) const;

  // Adds `rows` (sorted unique ids) into the sparse gradient of a lookup table. Many additions cost n log n in all.
  void AddSparse(int32_t parameter, const SparseRows& rows);
  const ParameterLayout& layout() const { return layout_; }
  // The gradient of any parameter as a full matrix, [rows * columns], row-major; zeros where nothing was added.
  std::vector<float> Get(int32_t parameter) const;

 private:
  std::vector<float>& Own(int32_t parameter);

  ParameterLayout layout_;
  std::vector<char> touched_;
  std::vector<std::vector<float>> dense_;
  // By parameter: sums not yet added to each other, the sizes of which fall by half or more.
  mutable std::vector<std::vector<SparseRows>> sparse_;
  SparseRows none_;
};

}  // namespace cavs
