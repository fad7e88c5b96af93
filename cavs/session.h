// Session: one thread of work on a Model: schedules minibatches, runs F and dF, and owns the memory of a run.
//
// A Session on a const Model runs forward only and keeps nothing for gradients; many of them may share one Model.
// A Session on a mutable Model trains it and must be its only user. A Session is used by one thread at a time.
//
// Answers depend on `threads` within rounding at most, and not at all, bit for bit, with ParallelPolicy::kTask. With
// kAuto neither, given: parameters in f32, the default passes, and SharingPolicy::kOff or kInputs where no vertex
// without children is of a type that recurs (those of DeclareChildSumTreeLstm are: each shard shares its own).
// Where memory_limit cuts a minibatch into parts depends on `threads`, each of which has scratch of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backprop/optimizer.h"
#include "cavs/base/thread_pool.h"
#include "cavs/base/trace_log.h"
#include "cavs/model.h"
#include "cavs/planner.h"
#include "cavs/session_options.h"
#include "memory/pool.h"
#include "vertex/executor.h"

namespace cavs {

// What one minibatch was and cost, summed over the parts that it ran in. Seconds.
struct BatchReport {
  double loss = 0;  // summed over all predictions, not divided
  int64_t graphs = 0, vertices = 0, predictions = 0, tasks = 0;
  int64_t distinct_vertices = 0;  // that F ran over, after sharing
  int64_t parts = 0;              // micro-batches: 1 unless the minibatch exceeded the memory limit
  double schedule_seconds = 0;    // packing graphs and planning, on whatever thread
  double wait_seconds = 0;        // what the Session's thread spent on it, or on waiting for it
  double prepare_seconds = 0;     // packing the parameters that products read
  RunTimes times;
  RunCounters counters;
};

class Session {
 public:
  // Forward only.
  explicit Session(const Model& model, const SessionOptions& options = {});
  // For training.
  explicit Session(Model& model, const SessionOptions& options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Called behind each part of a minibatch, in the order of the examples, while executor(), batch() and schedule() are
  // those of the part.
  using PartVisitor = std::function<void()>;

  // Runs F and the head over `head` rows. Results are in executor() until the next call.
  // Throws std::invalid_argument when a graph does not fit F, OutOfMemory at the memory limit.
  const BatchReport& Forward(std::span<const Example> examples, HeadRows head = HeadRows::kRoots);
  // The same in as many parts as the memory limit makes necessary, with equal results. Which parts depends on the
  // examples and the options alone. `visit` may be empty. Throws OutOfMemory only where a single graph does not fit.
  const BatchReport& Forward(std::span<const Example> examples, HeadRows head, const PartVisitor& visit);
  // The same for a minibatch that a Planner of this Session has planned, not for training. Here and below it must live
  // until the next minibatch, as results refer to it.
  const BatchReport& Forward(const PlannedBatch& minibatch, HeadRows head, const PartVisitor& visit);

  // Runs F and dF, in parts like the Forward above, and adds into the gradients of the coming step. A step over several
  // calls says in `graphs_in_step` how many graphs it has in all (0: those of this call), so that one batch of 8 equals
  // two of 4. `visit` may be empty; afterwards executor() holds the last part. When it throws, gradients may hold those
  // of earlier parts: DropGradients before going on.
  const BatchReport& Accumulate(std::span<const Example> examples, int64_t graphs_in_step = 0,
                                const PartVisitor& visit = {});
  // The same for a minibatch that a Planner of this Session has planned for training.
  const BatchReport& Accumulate(const PlannedBatch& minibatch, int64_t graphs_in_step = 0,
                                const PartVisitor& visit = {});
  // Updates the parameters from the accumulated gradients and forgets these. Leaves the parameters as they are when the
  // gradient is not finite.
  StepResult Step(Optimizer& optimizer);
  // Runs the last minibatch once more, operator by operator, to find where its first non-finite number came from. Its
  // graphs must still be there; its results are gone then.
  NonFinite FindNonFinite();
  // Forgets the last minibatch: batch() and schedule() are empty then, and executor() holds nothing.
  void Forget();
  // Forgets accumulated gradients without a step.
  void DropGradients();
  // Accumulate and Step; returns the loss as `SessionOptions::loss` defines it. Does not step on a non-finite loss.
  double Train(std::span<const Example> examples, Optimizer& optimizer);
  double Train(const PlannedBatch& minibatch, Optimizer& optimizer);
  // The same for graphs that are numbered by position.
  double Train(std::span<const InputGraph> graphs, Optimizer& optimizer);

  // A Planner for minibatches of this Session, by the batching policy that the Model keeps now; the Session itself
  // plans by the one of its construction or of the last RenewBatching. By the same policy their plans are equal, bit
  // for bit. It may outlive the Session, and be used on another thread.
  Planner MakePlanner() const;
  // Plans the minibatches to come by the policy that the Model keeps now. Has no effect unless batching is kFsm.
  // Throws std::invalid_argument when the policy does not fit the Model.
  void RenewBatching();

  // An optimizer for this Session's Model on its threads; must not outlive the Session.
  Optimizer MakeOptimizer(const OptimizerOptions& options = {});

  // Steps so far, which dropout draws from; set by a resumed run.
  int64_t step() const { return step_; }
  void set_step(int64_t step) { step_ = step; }

  // Draws every call from now on into `log`, which must outlive the tracing; null stops.
  void Trace(TraceLog* log);

  Executor& executor() { return *executor_; }
  const GraphBatch& batch() const { return planned_->batch(); }
  // Of the vertices that F ran over: those of scheduled().
  const Schedule& schedule() const { return planned_->schedule(); }
  const GraphBatch& scheduled() const { return planned_->scheduled(); }
  const Gradients& gradients() const;  // of a Session that trains
  const MemoryStatistics& memory() const { return pool_->statistics(); }
  ThreadPool& threads() { return threads_; }
  const SessionOptions& options() const { return options_; }

 private:
  void RequireTraining() const;
  // Plans examples that came unplanned.
  const PlannedBatch& Plan(std::span<const Example> examples, bool training);
  void Plan(std::span<const Example> examples, bool training, PlannedBatch* planned);
  // Ends the last minibatch.
  void Begin(const PlannedBatch& minibatch, HeadRows head);
  // Makes planned_ this part of the minibatch, and ready to run.
  void BeginPart(std::span<const Example> part);
  // Calls run() for the minibatch; where that throws OutOfMemory, for smaller and smaller parts of it. Calls done()
  // behind each.
  template <typename Run, typename Done>
  void InParts(const Run& run, const Done& done);
  void Cut(std::span<const Example> part, const OutOfMemory& refusal);
  void RunForward();
  void Report();

  const Model* model_;
  Model* trained_ = nullptr;  // the same, when training
  SessionOptions options_;
  ThreadPool threads_;
  std::unique_ptr<Pool> pool_;
  Planner planner_;
  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Gradients> gradients_;
  PlannedBatch whole_, part_;                    // what this Session planned itself
  const PlannedBatch none_{};                    // empty
  const PlannedBatch* minibatch_ = &none_;       // the last one
  const PlannedBatch* planned_ = &none_;         // what of it the executor holds
  std::vector<std::span<const Example>> parts_;  // to run, the last one first
  RunOptions run_;
  BatchReport report_;
  std::vector<Example> numbered_;
  int64_t step_ = 0;
  TraceLog* trace_ = nullptr;
};

}  // namespace cavs
