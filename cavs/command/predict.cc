#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cavs/base/stop_watch.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/evaluate.h"

namespace cavs {
namespace {

// Ends the run early: nobody reads what it writes.
struct NobodyReads {};

nlohmann::ordered_json ClassFields(const Prediction& prediction, const std::vector<std::string>& label_names) {
  const VertexPrediction& root = prediction.root;
  const auto predicted = static_cast<size_t>(root.predicted);
  return {{"class", root.predicted},
          {"label", label_names[predicted]},
          {"probability", root.probabilities[predicted]},
          {"probabilities", root.probabilities}};
}

// How well the model foresees the sentence: ln p of each word behind those before it, and of the end.
nlohmann::ordered_json SentenceFields(const Prediction& prediction) {
  std::vector<double> logs;
  double sum = 0;
  for (const VertexPrediction& vertex : prediction.vertices) {
    sum += logs.emplace_back(std::log(vertex.probabilities[static_cast<size_t>(vertex.label)]));
  }
  const auto tokens = std::ssize(logs);
  return {{"tokens", tokens},
          {"log_probability", sum},
          {"perplexity", std::exp(-sum / static_cast<double>(tokens))},
          {"log_probabilities", logs}};
}

nlohmann::ordered_json PairFields(const Prediction& prediction) {
  const VertexPrediction& pair = prediction.root;
  nlohmann::ordered_json fields = {{"score", pair.score}};
  // Made of a distribution in single precision: no score of a file has this many digits.
  if (!std::isnan(pair.true_score)) fields["true_score"] = std::round(pair.true_score * 1e6) / 1e6;
  fields["probabilities"] = pair.probabilities;
  return fields;
}

std::string ToLine(const Prediction& prediction, const ModelAndData& task) {
  nlohmann::ordered_json line = {{"example", prediction.example}};
  switch (task.data.task) {
    case LearningTask::kTreeClasses:
      line.update(ClassFields(prediction, task.trained.config.label_names));
      break;
    case LearningTask::kNextWord:
      line.update(SentenceFields(prediction));
      break;
    case LearningTask::kSimilarity:
      line.update(PairFields(prediction));
      break;
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

void RunPredict(Invocation& call) {
  RequireMetricsPlace(call.flags);
  const SessionOptions session = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  if (task.batching) metrics.Write("batching", BatchingFields(*task.batching));

  Progress progress(ProgressOnStderr(call.flags.Bool("quiet")));
  progress.Begin("predicting", task.data.size(), std::string(Describe(task.data.task).examples));
  const StopWatch watch;
  Evaluator evaluator(*task.trained.model, session);
  int64_t done = 0;
  try {
    evaluator.Predict(task.data, call.flags.Int("batch_size"),
                      /*all_vertices=*/task.data.task == LearningTask::kNextWord, [&](const Prediction& prediction) {
                        EndIfInterrupted(call.interrupt);
                        call.out.Write(ToLine(prediction, task));
                        if (call.out.closed()) throw NobodyReads();
                        progress.Update(++done);
                      });
    call.out.Flush();
  } catch (const NobodyReads&) {
    progress.End();
    return;
  }
  progress.End();
  metrics.Write("predict", {{"examples", done}, {"seconds", watch.Seconds()}, {"model", call.flags.Text("load")}});
}

}  // namespace cavs
