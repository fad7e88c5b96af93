// A copy of all parameter values of a model, to return to.
#pragma once

#include <vector>

#include "cavs/model.h"

namespace cavs {

class ParameterValues {
 public:
  // The values that `model` has now.
  explicit ParameterValues(const Model& model);

  // Gives them to `model`, which has the same parameters: the same one, or one of other passes or precision.
  void Restore(Model* model) const;

 private:
  std::vector<std::vector<float>> values_;  // by parameter
};

}  // namespace cavs
