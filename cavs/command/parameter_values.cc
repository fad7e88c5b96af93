#include "cavs/command/parameter_values.h"

#include <cstdint>

namespace cavs {

ParameterValues::ParameterValues(const Model& model) {
  const ParameterStore& parameters = model.parameters();
  values_.reserve(static_cast<size_t>(parameters.count()));
  for (int32_t p = 0; p < parameters.count(); ++p) values_.push_back(parameters.Get(p));
}

void ParameterValues::Restore(Model* model) const {
  for (size_t p = 0; p < values_.size(); ++p) model->parameters().Set(static_cast<int32_t>(p), values_[p]);
}

}  // namespace cavs
