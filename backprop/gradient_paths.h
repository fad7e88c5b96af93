// Where gradients flow in a Program F: from the losses back to what is trained.
// A value takes part when it depends on a parameter that is not frozen and a loss depends on it; both relations pass
// through channels (scatter to gather, push to pushed), so they are fixed points over all functions of F.
// Immutable after construction, safe to share between threads.
#pragma once

#include <vector>

#include "vertex/program.h"

namespace cavs {

class GradientPaths {
 public:
  explicit GradientPaths(const Program& f);

  // Whether dF needs the gradient of a value of F.
  bool flows(ValueId value) const {
    const auto i = static_cast<size_t>(value);
    return depends_[i] && reaches_[i];
  }
  // Whether a reader of this channel sends gradients back to its writers.
  bool channel_reaches(int32_t channel) const { return channel_reaches_[static_cast<size_t>(channel)]; }

 private:
  bool SpreadDependence(const Program& f);
  bool SpreadReach(const Program& f);

  std::vector<bool> depends_;  // by value: on a trained parameter
  std::vector<bool> reaches_;  // by value: a loss
  std::vector<bool> channel_depends_;
  std::vector<bool> channel_reaches_;
};

}  // namespace cavs
