// Order of execution inside of a section (one function, one phase), and which instructions run as one fused group.
#pragma once

#include <cstdint>
#include <vector>

#include "vertex/program.h"

namespace cavs {

// Instructions [first, ...) of a Program that run as one kernel, in order.
struct Group {
  std::vector<int32_t> instructions;
  bool fused = false;  // an elementwise group, also when it has one member
};

// Instructions that an elementwise group may contain: elementwise operators, and sinks that copy or add rows.
bool JoinsGroup(Op op);

// Orders `section` (ascending indices into program.instructions) by dependence so that groups become large.
// Without `fusion` every group has one member. Time is quadratic in the length of the section, once per model.
std::vector<Group> OrderSection(const Program& program, const std::vector<int32_t>& section, bool fusion);

}  // namespace cavs
