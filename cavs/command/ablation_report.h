// What `cavs ablate` measured, as a table, as metrics and as a picture. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cavs/command/bar_chart.h"
#include "cavs/command/output.h"
#include "cavs/command/step_runner.h"

namespace cavs {

struct Spread {
  double median = 0, low = 0, high = 0;
};

// Of at least one value: the middle one, or the mean of the middle two; the smallest and the largest.
Spread SpreadOf(std::vector<double> values);

// One setting. All settings ran the same minibatches in the same turns.
struct AblationResult {
  std::string name;    // "base", "batching=depth"
  std::string flag;    // as in Setting
  std::string value;   // as in Setting
  std::string reason;  // why it was skipped; empty where it ran, and all that follows is of those alone

  std::vector<double> step_seconds;  // mean of a step, by turn
  std::vector<double> losses;        // of the steps of one pass
  RunTotals pass;                    // of that pass
  int64_t peak_bytes = 0;
  double loss_difference = 0;  // LossDifference from the base
  double tolerance = 0;

  bool skipped() const { return !reason.empty(); }
  bool agrees() const { return loss_difference <= tolerance; }
};

// How many times as fast as the base a setting is, turn by turn.
Spread Speed(const AblationResult& base, const AblationResult& result);

// Training amplifies rounding from step to step, so the first ones tell most clearly whether answers are the same.
inline constexpr int64_t kComparedSteps = 8;

// The mean difference between the losses of the first kComparedSteps, as a share of the base's mean loss.
double LossDifference(const std::vector<double>& base, const std::vector<double>& losses);

// `results` begins with the base, which is not skipped.
void PrintAblation(const std::vector<AblationResult>& results, Output& out);
nlohmann::ordered_json AblationFields(const AblationResult& base, const AblationResult& result);
// The bars; title and subtitles are the caller's.
BarChart AblationChart(const std::vector<AblationResult>& results);

}  // namespace cavs
