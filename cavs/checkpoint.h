// What a training run must keep to go on after a stop as if there had been none, and its file, DIR/state.
//
// The file holds the parameters too, so that it is consistent by itself: whatever moment a process dies at, DIR/state
// is the whole of some step. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "backprop/optimizer.h"
#include "cavs/model.h"

namespace cavs {

// One epoch of training, and the model's figures on the held-out data behind it. What does not exist is NaN.
struct EpochReport {
  int64_t epoch = 0;                                                  // from 1
  double train_loss = std::numeric_limits<double>::quiet_NaN();       // per prediction, while the parameters moved
  double dev_loss = std::numeric_limits<double>::quiet_NaN();         // per prediction
  double dev_metric = std::numeric_limits<double>::quiet_NaN();       // the first of MetricsOf the task
  double dev_accuracy = std::numeric_limits<double>::quiet_NaN();     // at the root
  double vertex_accuracy = std::numeric_limits<double>::quiet_NaN();  // over all labelled vertices of the held-out data
  int64_t examples = 0, vertices = 0, predictions = 0;                // of training, skipped steps left out
  int64_t steps = 0;                                                  // minibatches, skipped ones included
  int64_t skipped = 0;                                                // minibatches whose numbers were not finite
  double seconds = 0;                                                 // of training alone
  double schedule_s = 0;                                              // packing and scheduling, on whatever thread
  double wait_s = 0;  // what of `seconds` went into that, or into waiting for it
  int64_t tasks = 0, launches = 0;
  int64_t peak_bytes = 0;  // most memory that a minibatch's tensors took, so far

  double examples_per_s() const { return Rate(static_cast<double>(examples)); }
  double vertices_per_s() const { return Rate(static_cast<double>(vertices)); }
  double mean_width() const { return tasks > 0 ? static_cast<double>(vertices) / static_cast<double>(tasks) : 0; }

 private:
  double Rate(double count) const { return seconds > 0 ? count / seconds : 0; }
};

struct TrainingState {
  int64_t position = 0;  // examples of the current epoch that are done
  int64_t step = 0;      // minibatches done since the beginning
  double loss_sum = 0;   // over the predictions of the current epoch
  EpochReport current;   // its sums so far; `epoch` is the one to go on with
  EpochReport best;      // epoch 0: none yet
};

// What must be equal when a run goes on, by name: options, model and data.
using Agreement = std::map<std::string, std::string>;

// Writes everything, whole or not at all; the model's batching policy, if it keeps one, too. Throws FileError.
void SaveCheckpoint(const std::string& path, const TrainingState& state, const Agreement& agreement, const Model& model,
                    const Optimizer& optimizer);

// Reads it back into `model` and `optimizer`. Throws FileError for a file that is missing, damaged or foreign, and
// std::invalid_argument that names what differs and both values; nothing is changed then.
TrainingState LoadCheckpoint(const std::string& path, const Agreement& agreement, Model& model, Optimizer& optimizer);

}  // namespace cavs
