#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/evaluate.h"

namespace cavs {

void RunEval(Invocation& call) {
  RequireMetricsPlace(call.flags);
  const SessionOptions session = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  RequireLabels(task.data);
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  if (task.batching) metrics.Write("batching", BatchingFields(*task.batching));
  call.out.Line("{}", DescribeDataset(task.data, "data", task.trained.config.label_names));
  call.out.Line("{}", DescribeCoverage(task.data.coverage, "data"));

  Progress progress(ProgressOnStderr(call.flags.Bool("quiet")));
  progress.Begin("evaluating", task.data.size(), std::string(Describe(task.data.task).examples));
  Evaluator evaluator(*task.trained.model, session);
  const Evaluation evaluation = evaluator.Evaluate(task.data, call.flags.Int("batch_size"), [&](int64_t done) {
    EndIfInterrupted(call.interrupt);
    progress.Update(done);
  });
  progress.End();
  call.out.Line("{}", DescribeEvaluation(evaluation, task.data.task));
  if (!evaluation.groups.empty()) call.out.Line("{}", DescribeGroups(evaluation.groups, task.data.group_name));
  nlohmann::ordered_json fields = EvaluationFields(evaluation, task.data.task);
  fields["model"] = call.flags.Text("load");
  metrics.Write("eval", fields);
}

}  // namespace cavs
