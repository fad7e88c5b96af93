#include "cavs/command/figures.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cavs {

nlohmann::ordered_json EpochFields(const EpochReport& report) {
  return {{"epoch", report.epoch},
          {"train_loss", report.train_loss},
          {"dev_loss", report.dev_loss},
          {"dev_accuracy", report.dev_accuracy},
          {"vertex_accuracy", report.vertex_accuracy},
          {"examples", report.examples},
          {"vertices", report.vertices},
          {"predictions", report.predictions},
          {"steps", report.steps},
          {"skipped", report.skipped},
          {"seconds", report.seconds},
          {"examples_per_s", report.examples_per_s()},
          {"vertices_per_s", report.vertices_per_s()},
          {"tasks", report.tasks},
          {"launches", report.launches},
          {"mean_width", report.mean_width()},
          {"schedule_s", report.schedule_s},
          {"peak_bytes", report.peak_bytes}};
}

nlohmann::ordered_json EvaluationFields(const Evaluation& evaluation, std::string_view prefix) {
  nlohmann::ordered_json fields;
  const auto set = [&](std::string_view name, auto value) { fields[fmt::format("{}{}", prefix, name)] = value; };
  set("loss", evaluation.loss);
  set("accuracy", evaluation.root_accuracy);
  set("vertex_accuracy", evaluation.vertex_accuracy);
  set("examples", evaluation.examples);
  set("vertices", evaluation.vertices);
  set("predictions", evaluation.predictions);
  set("seconds", evaluation.seconds);
  if (!evaluation.groups.empty()) set("accuracy_by_depth", GroupFields(evaluation.groups));
  return fields;
}

nlohmann::ordered_json GroupFields(const std::vector<GroupAccuracy>& groups) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  for (const GroupAccuracy& group : groups) fields[fmt::format("{}", group.group)] = group.accuracy();
  return fields;
}

std::string DescribeEpoch(const EpochReport& report, int64_t epochs) {
  std::string line = fmt::format("epoch {}/{}  train_loss {:.5g}", report.epoch, epochs, report.train_loss);
  if (!std::isnan(report.dev_loss)) line += fmt::format("  dev_loss {:.5g}", report.dev_loss);
  if (!std::isnan(report.dev_accuracy)) line += fmt::format("  dev_accuracy {:.4f}", report.dev_accuracy);
  if (!std::isnan(report.vertex_accuracy)) line += fmt::format("  vertex_accuracy {:.4f}", report.vertex_accuracy);
  line += fmt::format("  {:.1f} s  {:.0f} trees/s  {:.0f} vertices/s  {} tasks  mean_width {:.1f}", report.seconds,
                      report.examples_per_s(), report.vertices_per_s(), report.tasks, report.mean_width());
  if (report.skipped > 0) line += fmt::format("  {} minibatches skipped", report.skipped);
  return line;
}

std::string DescribeEvaluation(const Evaluation& evaluation) {
  std::string line = fmt::format("loss {:.5g}", evaluation.loss);
  if (!std::isnan(evaluation.root_accuracy)) line += fmt::format("  accuracy {:.4f} (root)", evaluation.root_accuracy);
  return line + fmt::format("  {:.4f} (all {} labelled vertices)  {} trees", evaluation.vertex_accuracy,
                            evaluation.predictions, evaluation.examples);
}

std::string DescribeGroups(const std::vector<GroupAccuracy>& groups, std::string_view name) {
  if (groups.empty()) return {};
  std::string line = fmt::format("accuracy by {}:", name);
  for (const GroupAccuracy& group : groups) {
    line += fmt::format("  {} {:.3f} ({})", group.group, group.accuracy(), group.examples);
  }
  return line;
}

std::string DescribeDataset(const Dataset& data, std::string_view part, const std::vector<std::string>& label_names) {
  std::string line =
      fmt::format("{} {}: {} trees, {} vertices", part, data.name, data.size(), data.statistics.vertices);
  const Majority& majority = data.majority;
  if (majority.total == 0) return line;
  return line + fmt::format(", the most frequent class '{}' at {} of {} roots ({:.4f})",
                            label_names[static_cast<size_t>(majority.label)], majority.count, majority.total,
                            majority.rate());
}

}  // namespace cavs
