#include "cavs/command/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

namespace cavs {
namespace {

constexpr double kMilli = 1e3;

// Sums over the lines of one operator.
struct OperatorCost {
  std::string name;
  int64_t calls = 0, rows = 0, bytes = 0;
  double forward = 0, backward = 0, flops = 0;
  double seconds() const { return forward + backward; }
};

ProfileLine PartLine(std::string_view name, double seconds) {
  ProfileLine line;
  line.cost.operation = name;
  line.cost.seconds = seconds;
  line.is_step = false;
  return line;
}

std::vector<OperatorCost> ByOperator(const std::vector<ProfileLine>& lines) {
  std::vector<OperatorCost> costs;
  for (const ProfileLine& line : lines) {
    const StepProfile& step = line.cost;
    auto place =
        std::find_if(costs.begin(), costs.end(), [&](const auto& cost) { return cost.name == step.operation; });
    if (place == costs.end()) place = costs.insert(costs.end(), OperatorCost{step.operation});
    place->calls += step.calls;
    place->rows += step.rows;
    place->bytes += step.bytes;
    place->flops += step.flops;
    (step.backward ? place->backward : place->forward) += step.seconds;
  }
  std::stable_sort(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.seconds() > b.seconds(); });
  return costs;
}

// "-" where there is nothing to tell.
std::string Rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds * 1e-9) : "-";
}

std::string Milliseconds(double seconds, const RunTotals& totals) {
  return seconds > 0 ? fmt::format("{:.4f}", kMilli * totals.PerStep(seconds)) : "-";
}

std::string Mean(int64_t amount, int64_t count) {
  return amount > 0 && count > 0 ? fmt::format("{:.1f}", static_cast<double>(amount) / static_cast<double>(count))
                                 : "-";
}

void PrintOperators(const std::vector<ProfileLine>& lines, const RunTotals& totals, Output& out) {
  out.Line("{:<20} {:>8} {:>11} {:>11} {:>9} {:>9} {:>8} {:>7}", "by operator", "share", "forward ms", "backward ms",
           "calls", "rows", "GFLOP/s", "GB/s");
  for (const OperatorCost& cost : ByOperator(lines)) {
    const double seconds = cost.seconds();
    out.Line("  {:<18} {:>6.2f} % {:>11} {:>11} {:>9} {:>9} {:>8} {:>7}", cost.name, 100 * seconds / totals.seconds,
             Milliseconds(cost.forward, totals), Milliseconds(cost.backward, totals), Mean(cost.calls, totals.steps),
             Mean(cost.rows, totals.steps), Rate(cost.flops, seconds), Rate(static_cast<double>(cost.bytes), seconds));
  }
}

void PrintSteps(const std::vector<ProfileLine>& lines, const RunTotals& totals, Output& out) {
  out.Line("{:<20} {:>8} {:>11} {:>9} {:>9} {:>8} {:>7}  {}", "by step", "share", "ms", "calls", "rows", "GFLOP/s",
           "GB/s", "what runs (rows, calls and ms are those of a training step)");
  for (const ProfileLine& line : lines) {
    const StepProfile& cost = line.cost;
    out.Line("  {:<18} {:>6.2f} % {:>11.4f} {:>9} {:>9} {:>8} {:>7}  {}", line.Where(), 100 * line.share,
             kMilli * totals.PerStep(cost.seconds), Mean(cost.calls, totals.steps), Mean(cost.rows, totals.steps),
             Rate(cost.flops, cost.seconds), Rate(static_cast<double>(cost.bytes), cost.seconds), cost.step);
  }
}

}  // namespace

std::string ProfileLine::Where() const {
  if (!is_step) return cost.operation;
  if (cost.function == "head" || cost.function == "lookups") {
    return fmt::format("{}{}", cost.backward ? "d " : "", cost.function);
  }
  return fmt::format("{}{} {}", cost.backward ? "d " : "", cost.function, PhaseName(cost.phase));
}

std::vector<ProfileLine> MakeProfile(const std::vector<StepProfile>& steps, const RunTotals& totals) {
  std::vector<ProfileLine> lines;
  double accounted = 0;
  for (const StepProfile& step : steps) {
    if (step.calls > 0) lines.push_back({step});
  }
  lines.push_back(PartLine("planning", totals.schedule));
  lines.push_back(PartLine("optimizer", totals.optimizer));
  std::stable_sort(lines.begin(), lines.end(),
                   [](const ProfileLine& a, const ProfileLine& b) { return a.cost.seconds > b.cost.seconds; });
  for (const ProfileLine& line : lines) accounted += line.cost.seconds;
  lines.push_back(PartLine("unaccounted", totals.seconds - accounted));
  for (ProfileLine& line : lines) line.share = line.cost.seconds / totals.seconds;
  return lines;
}

void PrintProfile(const std::vector<ProfileLine>& lines, const RunTotals& totals, const RunTotals& plain, Output& out) {
  out.Line("profile of {} steps of {:.3f} ms, {:.3f} ms unless kernels are timed one after another", totals.steps,
           kMilli * totals.PerStep(totals.seconds), kMilli * plain.PerStep(plain.seconds));
  PrintOperators(lines, totals, out);
  PrintSteps(lines, totals, out);
}

void WriteProfile(const std::vector<ProfileLine>& lines, const RunTotals& totals, MetricsWriter* metrics) {
  for (const ProfileLine& line : lines) {
    const StepProfile& cost = line.cost;
    nlohmann::ordered_json fields = {{"operator", cost.operation}, {"where", line.Where()}};
    if (line.is_step) {
      fields["step"] = cost.step;
      fields["function"] = cost.function;
      fields["phase"] = PhaseName(cost.phase);
      fields["backward"] = cost.backward;
      fields["calls"] = cost.calls;
      fields["rows"] = cost.rows;
      fields["bytes"] = cost.bytes;
      fields["gb_per_s"] = line.gigabytes();
      if (cost.flops > 0) fields.update({{"flops", cost.flops}, {"gflops", line.gflops()}});
    }
    fields["seconds"] = cost.seconds;
    fields["share"] = line.share;
    fields["steps"] = totals.steps;
    metrics->Write("profile", fields);
  }
}

}  // namespace cavs
