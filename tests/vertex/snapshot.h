// Snapshots of a run, by the Executor or by the Interpreter, and how far two of them lie apart.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cavs/base/thread_pool.h"
#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "graph/sharing.h"
#include "memory/pool.h"
#include "vertex/executable.h"
#include "vertex/executor.h"
#include "vertex/gradients.h"
#include "vertex/interpreter.h"
#include "vertex/parameters.h"

namespace cavs {

// States, outputs, losses and gradients, each a tensor under its own name. Floats are exact as doubles.
struct NamedTensor {
  std::string name;
  std::vector<double> values;
  bool is_gradient = false;
  friend bool operator==(const NamedTensor&, const NamedTensor&) = default;
};
using Snapshot = std::vector<NamedTensor>;

struct Difference {
  double error = 0;  // largest difference over the scale of the tensor
  std::string tensor;
};
// The worst tensor. Its scale is its largest reference value, for a gradient at least a hundredth of the largest
// gradient: a smaller one is what is left of larger numbers that cancelled. Infinite when names or sizes differ, or a
// number is not finite.
Difference WorstDifference(const Snapshot& reference, const Snapshot& result);

// Runs F, and dF when `interpreter` has been given one and `gradients` is true.
Snapshot RunInterpreter(const Program& f, const GraphBatch& batch, const RunOptions& options, bool gradients,
                        Interpreter* interpreter);

// One way to run a Program.
struct RunPolicy {
  BatchingPolicy batching = BatchingPolicy::kFrontier;
  PoolPolicy memory = PoolPolicy::kArena;
  int threads = 1;
  SharingPolicy sharing = SharingPolicy::kOff;  // of minibatches that draw no dropout
  int32_t shards = 1;
  std::string ToString() const;
};
std::string ToString(const PassOptions& passes);
// Every combination of the pass switches.
std::vector<PassOptions> AllPassOptions();
// Every way to batch with every memory, on one thread and on two; and every way to batch in two and in three shards.
std::vector<RunPolicy> AllRunPolicies();
// Whether a run in shards must equal the run in one, bit for bit: in products whose rows do not depend on those beside
// them, while no gradient of a parameter is summed task by task.
bool ShardsKeepBits(const RunOptions& options, const PassOptions& passes);

// An Executor and what it needs, all its own but for the program and the parameters.
class Runner {
 public:
  Runner(std::shared_ptr<const Executable> executable, const ParameterStore* parameters, const RunPolicy& policy);

  // With gradients: of this run alone, or added to those of the runs before.
  Snapshot Run(const GraphBatch& batch, RunOptions options, bool gradients, bool adds = false);
  Executor& executor() { return *executor_; }
  const MemoryStatistics& memory() const { return pool_->statistics(); }
  const Schedule& schedule() const { return schedule_; }
  // What the last run with sharing ran over.
  const GraphBatch& shared_batch() const { return shared_batch_; }
  const Gradients& gradients() const { return gradients_; }

 private:
  std::shared_ptr<const Executable> executable_;
  const ParameterStore* parameters_;
  ThreadPool threads_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Scheduler> scheduler_;
  RunPolicy policy_;
  Sharer sharer_;
  GraphBatch cut_batch_;  // a copy that is cut into shards
  GraphBatch shared_batch_;
  std::vector<int32_t> merged_;
  Schedule schedule_;
  std::unique_ptr<Executor> executor_;
  Gradients gradients_;
};

// Simplifies, differentiates (when `training`) and compiles F; lays the parameters out as it reads them, values kept,
// and packs those that the products need. `shares_inputs`: with ShareInputs, as SharingPolicy::kInputs compiles it.
std::shared_ptr<const Executable> CompileAndPack(const Program& f, bool training, const PassOptions& passes,
                                                 ParameterStore* parameters, bool shares_inputs = false);

}  // namespace cavs
