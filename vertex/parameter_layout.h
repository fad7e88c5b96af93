// ParameterLayout: where the values of each parameter of a Signature lie, and with them its gradient and the moments of
// an optimizer. A parameter owns its values, row-major and without gaps, unless a pass merged it with others: then it
// is a block of the merged parameter, whose rows have a leading dimension. Programs read and write owners alone; names,
// files and users know declared parameters alone.
// Immutable after construction, safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vertex/signature.h"

namespace cavs {

class ParameterLayout {
 public:
  explicit ParameterLayout(std::shared_ptr<const Signature> signature);

  const Signature& signature() const { return *signature_; }
  const ParameterDeclaration& declaration(int32_t parameter) const {
    return signature_->parameters[static_cast<size_t>(parameter)];
  }
  // Declared parameters are [0, declared()); merged ones follow, up to total().
  int32_t declared() const { return declared_; }
  int32_t total() const { return static_cast<int32_t>(blocks_.size()); }
  // The parameter that owns the values of `parameter`: itself, or the one that it was merged into.
  int32_t owner(int32_t parameter) const { return blocks_[static_cast<size_t>(parameter)].owner; }
  bool owns(int32_t parameter) const { return owner(parameter) == parameter; }

  // The values of `parameter`, row-major [rows * columns], out of those of its owner.
  std::vector<float> Read(int32_t parameter, std::span<const float> owner_values) const;
  // Overwrites them there; `values` has as many elements as `parameter`.
  void Write(int32_t parameter, std::span<const float> values, std::span<float> owner_values) const;

 private:
  struct Block {
    int32_t owner;
    int64_t begin;  // of its first element, in the values of the owner
    int64_t ld;     // between the beginnings of its rows
  };

  std::shared_ptr<const Signature> signature_;
  int32_t declared_ = 0;
  std::vector<Block> blocks_;  // by parameter
};

}  // namespace cavs
