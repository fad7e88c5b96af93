#include "cavs/command/ablation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cavs/base/error.h"
#include "cavs/text.h"

namespace cavs {
namespace {

constexpr double kMilli = 1e3;

// Three digits, as 0.123, 1.23, 12.3, 123.
std::string ThreeDigits(double value) {
  const int decimals = value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

// Whether the turns of both lie apart, or may be the same.
BarTone ToneOf(const Spread& speed) {
  if (speed.low > 1) return BarTone::kBetter;
  return speed.high < 1 ? BarTone::kWorse : BarTone::kPlain;
}

Bar BarOf(const AblationResult& base, const AblationResult& result) {
  const bool is_base = &base == &result;
  Bar bar;
  bar.label = result.flag.empty() ? result.name : result.value;
  if (result.skipped()) {
    bar.remark = "skipped: " + result.reason;
    return bar;
  }
  const Spread seconds = SpreadOf(result.step_seconds), speed = Speed(base, result);
  bar.value = kMilli * seconds.median;
  bar.low = kMilli * seconds.low;
  bar.high = kMilli * seconds.high;
  bar.columns = {fmt::format("{} ms", ThreeDigits(bar.value)), is_base ? "" : fmt::format("{:.2f} x", speed.median)};
  bar.tone = is_base ? BarTone::kBase : ToneOf(speed);
  if (!result.agrees()) {
    bar.tone = BarTone::kAlarm;
    bar.remark = fmt::format("other answers: losses differ by {:.1e}", result.loss_difference);
  }
  return bar;
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  CAVS_CHECK(!values.empty(), "the spread of nothing");
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Spread Speed(const AblationResult& base, const AblationResult& result) {
  std::vector<double> ratios;
  ratios.reserve(result.step_seconds.size());
  for (size_t turn = 0; turn < result.step_seconds.size(); ++turn) {
    ratios.push_back(base.step_seconds[turn] / result.step_seconds[turn]);
  }
  return SpreadOf(std::move(ratios));
}

double LossDifference(const std::vector<double>& base, const std::vector<double>& losses) {
  if (base.size() != losses.size()) return std::numeric_limits<double>::infinity();
  double apart = 0, whole = 0;
  for (size_t i = 0; i < std::min(base.size(), static_cast<size_t>(kComparedSteps)); ++i) {
    apart += std::abs(losses[i] - base[i]);
    whole += std::abs(base[i]);
  }
  return apart == 0 ? 0 : apart / whole;
}

void PrintAblation(const std::vector<AblationResult>& results, Output& out) {
  size_t width = 24;
  for (const AblationResult& result : results) width = std::max(width, result.name.size());
  out.Line("{:<{}} {:>10} {:>21} {:>7} {:>9} {:>9} {:>9} {:>10} {:>9}", "setting", width, "ms a step", "from..to",
           "speed", "tasks", "launches", "copied", "peak", "loss off");
  for (const AblationResult& result : results) {
    if (result.skipped()) {
      out.Line("{:<{}} skipped: {}", result.name, width, result.reason);
      continue;
    }
    const Spread seconds = SpreadOf(result.step_seconds);
    const RunTotals& pass = result.pass;
    out.Line("{:<{}} {:>10.4f} {:>21} {:>7.3f} {:>9.1f} {:>9.1f} {:>9} {:>10} {:>9.1e}{}", result.name, width,
             kMilli * seconds.median, fmt::format("{:.4f}..{:.4f}", kMilli * seconds.low, kMilli * seconds.high),
             Speed(results.front(), result).median, pass.PerStep(pass.tasks), pass.PerStep(pass.launches),
             FormatSize(pass.copied_bytes / pass.steps), FormatSize(result.peak_bytes), result.loss_difference,
             result.agrees() ? "" : "  OTHER ANSWERS");
  }
}

nlohmann::ordered_json AblationFields(const AblationResult& base, const AblationResult& result) {
  nlohmann::ordered_json fields = {{"setting", result.name}};
  if (result.skipped()) {
    fields["skipped"] = result.reason;
    return fields;
  }
  const Spread seconds = SpreadOf(result.step_seconds), speed = Speed(base, result);
  const RunTotals& pass = result.pass;
  const double examples = pass.PerStep(pass.examples), vertices = pass.PerStep(pass.vertices);
  fields.update({{"step_seconds", seconds.median},
                 {"step_seconds_low", seconds.low},
                 {"step_seconds_high", seconds.high},
                 {"speed", speed.median},
                 {"speed_low", speed.low},
                 {"speed_high", speed.high},
                 {"examples_per_s", examples / seconds.median},
                 {"vertices_per_s", vertices / seconds.median},
                 {"loss", result.losses.back()},
                 {"loss_difference", result.loss_difference},
                 {"tolerance", result.tolerance},
                 {"agrees", result.agrees()},
                 {"tasks_per_step", pass.PerStep(pass.tasks)},
                 {"launches_per_step", pass.PerStep(pass.launches)},
                 {"copied_bytes", pass.copied_bytes / pass.steps},
                 {"peak_bytes", result.peak_bytes},
                 {"turns", result.step_seconds.size()},
                 {"minibatches", pass.steps}});
  return fields;
}

BarChart AblationChart(const std::vector<AblationResult>& results) {
  const AblationResult& base = results.front();
  BarChart chart;
  chart.axis = "milliseconds a training step: shorter is faster";
  chart.columns = {"median", "speed"};
  chart.baseline = kMilli * SpreadOf(base.step_seconds).median;
  for (const AblationResult& result : results) {
    if (chart.groups.empty() || chart.groups.back().title != result.flag) chart.groups.push_back({result.flag, {}});
    chart.groups.back().bars.push_back(BarOf(base, result));
  }
  return chart;
}

}  // namespace cavs
