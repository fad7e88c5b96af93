// Trainer: epochs of minibatches over a data set, with the best and the last model saved on the way.
//
// Everything random follows from one seed and counters, so a run that was stopped and resumed gives the same bits as
// one that was not, at any number of threads. The library prints nothing: callbacks tell what happens. A Trainer has
// its Model to itself and belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "backprop/optimizer.h"
#include "cavs/base/log.h"
#include "cavs/checkpoint.h"
#include "cavs/dataset.h"
#include "cavs/evaluate.h"
#include "cavs/learned_batching.h"
#include "cavs/prefetcher.h"
#include "cavs/session.h"

namespace cavs {

enum class OnNan : uint8_t { kStop, kSkip };

struct TrainerOptions {
  int64_t epochs = 10;  // counted from the beginning, also when a run resumes
  int64_t batch_size = 25;
  bool shuffle = true;
  uint64_t seed = 1;  // of the order of examples, and of dropout (in place of session.seed)
  OnNan on_nan = OnNan::kStop;
  OptimizerOptions optimizer;
  SessionOptions session;
  std::string save_folder;  // empty: nothing is saved
  int64_t save_every = 0;   // minibatches between saves within an epoch; 0: at its end only
  bool resume = false;      // go on from save_folder/state
};

// Files of a save folder.
std::string BestModelPath(const std::string& folder);
std::string LastModelPath(const std::string& folder);
std::string StatePath(const std::string& folder);

// A loss or gradient that is not finite. what() is one sentence that names the step, the operator and the example.
class NonFiniteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct StepReport {
  int64_t epoch = 0;  // from 1
  int64_t step = 0;   // minibatches since the beginning
  int64_t done = 0;   // examples of the epoch
  int64_t total = 0;
  double loss = 0;  // per prediction, over the epoch so far
};

// All optional.
struct TrainerCallbacks {
  std::function<void(const StepReport&)> on_step;
  // `dev` is null without held-out data; `is_best` tells whether this epoch's model has become the best.
  std::function<void(const EpochReport&, const Evaluation* dev, bool is_best)> on_epoch;
  // A batching policy has been learned, as `session.batching` is kFsm and neither the model nor the resumed run had
  // one.
  std::function<void(const FsmReport&)> on_batching;
  // Asked behind each step; true ends the run once the state is saved.
  std::function<bool()> should_stop;
  LogCallback log;  // skipped steps, resumed runs
};

struct TrainingResult {
  bool interrupted = false;
  EpochReport best;  // epoch 0: none had finite figures
  int64_t steps = 0;
  int64_t skipped = 0;  // steps of this process
};

class Trainer {
 public:
  // `model` must outlive the Trainer. Makes the save folder, and throws FileError when it is not writable, or
  // std::invalid_argument for options out of range.
  Trainer(Model& model, const TrainerOptions& options);

  // Trains until `epochs` are done; called once. `dev` may be null; then the lowest training loss is the best. An epoch
  // is better if the first figure of its task (MetricsOf) is better on `dev`, or equal and the dev loss lower; losses
  // that are not finite are never the best. Throws NonFiniteError (OnNan::kStop, or an epoch that OnNan::kSkip skipped
  // as a whole), std::invalid_argument when the data have no label or a resumed run differs, FileError when a file
  // cannot be written or read, OutOfMemory where one graph does not fit the memory limit.
  TrainingResult Run(const Dataset& train, const Dataset* dev = nullptr, const TrainerCallbacks& callbacks = {});

  // Holds no minibatch behind Run.
  Session& session() { return session_; }

 private:
  Agreement Agree(const Dataset& train, const Dataset* dev) const;
  void Resume(const Dataset& train, const TrainerCallbacks& callbacks);
  // Sees to a batching policy where one is asked for.
  void PrepareBatching(const Dataset& train, const TrainerCallbacks& callbacks);
  // Trains to the end of the epoch; true when it was asked to stop before.
  bool RunEpoch(const Dataset& train, Prefetcher& prefetcher, const TrainerCallbacks& callbacks);
  // Throws NonFiniteError when every minibatch of an epoch has been skipped.
  void RequireSomeStep() const;
  void RunStep(const Dataset& train, Prefetcher::Pass& pass, const TrainerCallbacks& callbacks);
  void HandleNonFinite(const Dataset& train, std::span<const Example> examples, double loss,
                       const TrainerCallbacks& callbacks);
  std::string DescribeBadLoss(const Dataset& train, double loss);
  std::string DescribeBadGradient(const Dataset& train, std::span<const Example> examples);
  // Whether this epoch is better than the best so far; `dev` may be null.
  bool IsBest(const EpochReport& report, const Dataset* dev) const;
  void EndEpoch(const Dataset* dev, const TrainerCallbacks& callbacks);
  void SaveLast() const;

  Model* model_;
  TrainerOptions options_;
  Session session_;
  Optimizer optimizer_;
  std::unique_ptr<Evaluator> evaluator_;  // where there are held-out data
  TrainingState state_;
  Agreement agreement_;  // empty before Run
  int64_t skipped_ = 0;
};

}  // namespace cavs
