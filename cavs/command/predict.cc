#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cavs/base/stop_watch.h"
#include "cavs/command/commands.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "cavs/evaluate.h"

namespace cavs {
namespace {

// Ends the run early: nobody reads what it writes.
struct NobodyReads {};

std::string ToLine(const Prediction& prediction, const std::vector<std::string>& label_names) {
  const VertexPrediction& root = prediction.root;
  const auto predicted = static_cast<size_t>(root.predicted);
  const nlohmann::ordered_json line = {{"example", prediction.example},
                                       {"class", root.predicted},
                                       {"label", label_names[predicted]},
                                       {"probability", root.probabilities[predicted]},
                                       {"probabilities", root.probabilities}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace

void RunPredict(Invocation& call) {
  RequireWritableFile(call.flags.Text("metrics"));
  const SessionOptions session = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));

  Progress progress(ProgressOnStderr(call.flags.Bool("quiet")));
  progress.Begin("predicting", task.data.size(), "trees");
  const StopWatch watch;
  Evaluator evaluator(*task.trained.model, session);
  int64_t done = 0;
  try {
    evaluator.Predict(task.data, call.flags.Int("batch_size"), /*all_vertices=*/false,
                      [&](const Prediction& prediction) {
                        EndIfInterrupted(call.interrupt);
                        call.out.Write(ToLine(prediction, task.trained.config.label_names));
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
