#include "vertex/parameter_layout.h"

#include <algorithm>

#include "cavs/base/error.h"

namespace cavs {

ParameterLayout::ParameterLayout(std::shared_ptr<const Signature> signature) : signature_(std::move(signature)) {
  const std::vector<ParameterDeclaration>& parameters = signature_->parameters;
  blocks_.reserve(parameters.size());
  for (const ParameterDeclaration& parameter : parameters) {
    blocks_.push_back({total(), 0, parameter.shape.columns()});
    if (parameter.parts.empty()) declared_ = total();
  }
  for (int32_t merged = 0; merged < total(); ++merged) {
    const ParameterDeclaration& whole = declaration(merged);
    CAVS_CHECK(whole.parts.empty() == (merged < declared_), "\"{}\" is out of place", whole.name);
    for (const ParameterPart& part : whole.parts) {
      CAVS_CHECK(part.parameter < declared_ && owns(part.parameter), "a part of \"{}\" lies elsewhere", whole.name);
      const int64_t begin = part.row * whole.shape.columns() + part.column;
      blocks_[static_cast<size_t>(part.parameter)] = {merged, begin, whole.shape.columns()};
    }
  }
}

std::vector<float> ParameterLayout::Read(int32_t parameter, std::span<const float> owner_values) const {
  const Shape& shape = declaration(parameter).shape;
  const Block& block = blocks_[static_cast<size_t>(parameter)];
  std::vector<float> values(static_cast<size_t>(shape.width()));
  for (int64_t row = 0; row < shape.rows(); ++row) {
    std::copy_n(owner_values.data() + block.begin + row * block.ld, shape.columns(),
                values.data() + row * shape.columns());
  }
  return values;
}

void ParameterLayout::Write(int32_t parameter, std::span<const float> values, std::span<float> owner_values) const {
  const Shape& shape = declaration(parameter).shape;
  const Block& block = blocks_[static_cast<size_t>(parameter)];
  for (int64_t row = 0; row < shape.rows(); ++row) {
    std::copy_n(values.data() + row * shape.columns(), shape.columns(),
                owner_values.data() + block.begin + row * block.ld);
  }
}

}  // namespace cavs
