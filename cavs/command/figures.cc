#include "cavs/command/figures.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cavs {

namespace {

// Calls take(name, value) for the figures of the task that exist.
template <typename Take>
void ForEachMetric(const Evaluation& evaluation, LearningTask task, const Take& take) {
  for (const TaskMetric& metric : MetricsOf(task)) {
    const double value = evaluation.*metric.value;
    if (!std::isnan(value)) take(metric.name, value);
  }
}

std::string MetricsText(const Evaluation& evaluation, LearningTask task, std::string_view prefix) {
  std::string text;
  ForEachMetric(evaluation, task, [&](std::string_view name, double value) {
    text += fmt::format("  {}{} {:.4f}", prefix, name, value);
  });
  return text;
}

}  // namespace

nlohmann::ordered_json EpochFields(const EpochReport& report, LearningTask task, const Evaluation* dev) {
  nlohmann::ordered_json fields = {
      {"epoch", report.epoch}, {"train_loss", report.train_loss}, {"dev_loss", report.dev_loss}};
  if (dev != nullptr) {
    ForEachMetric(*dev, task,
                  [&](std::string_view name, double value) { fields[fmt::format("dev_{}", name)] = value; });
    // Under this name too: all that is about vertices is of the held-out data.
    if (!std::isnan(dev->vertex_accuracy)) fields["vertex_accuracy"] = dev->vertex_accuracy;
  }
  fields.update({{"examples", report.examples},
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
                 {"wait_s", report.wait_s},
                 {"peak_bytes", report.peak_bytes}});
  return fields;
}

nlohmann::ordered_json EvaluationFields(const Evaluation& evaluation, LearningTask task, std::string_view prefix) {
  nlohmann::ordered_json fields;
  const auto set = [&](std::string_view name, auto value) { fields[fmt::format("{}{}", prefix, name)] = value; };
  set("loss", evaluation.loss);
  ForEachMetric(evaluation, task, set);
  set("examples", evaluation.examples);
  set("vertices", evaluation.vertices);
  set("predictions", evaluation.predictions);
  set("seconds", evaluation.seconds);
  if (!evaluation.groups.empty()) set("accuracy_by_depth", GroupFields(evaluation.groups));
  return fields;
}

nlohmann::ordered_json BatchingFields(const FsmReport& report) {
  return {{"minibatches", report.minibatches},
          {"vertices", report.vertices},
          {"tasks", report.tasks},
          {"frontier_tasks", report.frontier_tasks},
          {"agenda_tasks", report.agenda_tasks},
          {"task_lower_bound", report.lower_bound},
          {"plays", report.plays},
          {"seconds", report.seconds}};
}

nlohmann::ordered_json GroupFields(const std::vector<GroupAccuracy>& groups) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  for (const GroupAccuracy& group : groups) fields[fmt::format("{}", group.group)] = group.accuracy();
  return fields;
}

std::string DescribeEpoch(const EpochReport& report, int64_t epochs, LearningTask task, const Evaluation* dev) {
  std::string line = fmt::format("epoch {}/{}  train_loss {:.5g}", report.epoch, epochs, report.train_loss);
  if (dev != nullptr) line += fmt::format("  dev_loss {:.5g}{}", report.dev_loss, MetricsText(*dev, task, "dev_"));
  line += fmt::format("  {:.1f} s  {:.0f} {}/s  {:.0f} vertices/s  {} tasks  mean_width {:.1f}", report.seconds,
                      report.examples_per_s(), Describe(task).examples, report.vertices_per_s(), report.tasks,
                      report.mean_width());
  if (report.skipped > 0) line += fmt::format("  {} minibatches skipped", report.skipped);
  return line;
}

std::string DescribeEvaluation(const Evaluation& evaluation, LearningTask task) {
  return fmt::format("loss {:.5g}{}  of {} predictions over {} {}", evaluation.loss, MetricsText(evaluation, task, ""),
                     evaluation.predictions, evaluation.examples, Describe(task).examples);
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
  std::string line = fmt::format("{} {}: {} {}, {} vertices", part, data.name, data.size(),
                                 Describe(data.task).examples, data.statistics.vertices);
  const Majority& majority = data.majority;
  if (majority.total == 0) return line;
  return line + fmt::format(", the most frequent class '{}' at {} of {} roots ({:.4f})",
                            label_names[static_cast<size_t>(majority.label)], majority.count, majority.total,
                            majority.rate());
}

}  // namespace cavs
