// Where the time of a training step goes, by operator and by compiled step, for people and as metrics. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cavs/command/metrics.h"
#include "cavs/command/output.h"
#include "cavs/command/step_runner.h"
#include "vertex/executor.h"

namespace cavs {

// One line of a profile: a compiled step, or a part of a training step that runs no step.
struct ProfileLine {
  StepProfile cost;
  bool is_step = true;
  double share = 0;  // of the seconds of all training steps

  double gflops() const { return cost.seconds > 0 ? cost.flops / cost.seconds * 1e-9 : 0; }
  double gigabytes() const { return cost.seconds > 0 ? static_cast<double>(cost.bytes) / cost.seconds * 1e-9 : 0; }
  // "d node, recurrent"; the name of the part.
  std::string Where() const;
};

// The steps that ran, planning, the optimizer, and the rest of the time as "unaccounted": the dearest first, the rest
// last. The seconds of all lines add up to those of `totals`, which must be of the steps that were profiled.
std::vector<ProfileLine> MakeProfile(const std::vector<StepProfile>& steps, const RunTotals& totals);

// Tables by operator and by step, per training step. `plain` is of steps that were not profiled.
void PrintProfile(const std::vector<ProfileLine>& lines, const RunTotals& totals, const RunTotals& plain, Output& out);

// A `profile` event for each line: sums over `steps` training steps.
void WriteProfile(const std::vector<ProfileLine>& lines, const RunTotals& totals, MetricsWriter* metrics);

}  // namespace cavs
