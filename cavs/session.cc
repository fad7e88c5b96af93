#include "cavs/session.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "cavs/learned_batching.h"

namespace cavs {
namespace {

// Packing a matrix for both directions costs about as much as products of this many rows gain from it. The choice
// depends on the minibatch alone, so that a resumed run repeats it.
constexpr int64_t kRowsWorthPacking = 128;

// Of the automatic choice of shards: the fewest vertices and graphs that each should have. Two shards have rows worth
// packing, as the bits of a row of a packed product, unlike those of a plain one, do not depend on the rows beside it.
constexpr int64_t kRowsWorthShards = 64;
constexpr int64_t kGraphsOfShard = 2;
static_assert(2 * kRowsWorthShards >= kRowsWorthPacking);

constexpr std::array<std::pair<ParallelPolicy, std::string_view>, 3> kParallelPolicies = {{
    {ParallelPolicy::kAuto, "auto"},
    {ParallelPolicy::kTask, "task"},
    {ParallelPolicy::kShard, "shard"},
}};

std::unique_ptr<Pool> PoolFor(const SessionOptions& options) {
  return MakePool(options.memory, MakeDevice(DeviceKind::kCpu), {options.memory_limit, "minibatch"});
}

std::unique_ptr<Scheduler> SchedulerFor(const Model& model, BatchingPolicy batching) {
  return MakeScheduler(batching, batching == BatchingPolicy::kFsm ? FsmPolicyOf(model) : nullptr);
}

}  // namespace

std::string_view ParallelPolicyName(ParallelPolicy policy) {
  return kParallelPolicies[static_cast<size_t>(policy)].second;
}

ParallelPolicy ParseParallelPolicy(std::string_view name) {
  for (const auto& [policy, known] : kParallelPolicies) {
    if (known == name) return policy;
  }
  ThrowInvalid("parallel", fmt::format("expected one of auto, task, shard, got '{}'", name));
}

Session::Session(const Model& model, const SessionOptions& options)
    : model_(&model),
      options_(options),
      threads_(options.threads),
      pool_(PoolFor(options)),
      scheduler_(SchedulerFor(model, options.batching)),
      sharer_(options.sharing, model.executable(false)->inputs()) {
  executor_ = std::make_unique<Executor>(model.executable(false), &model.parameters(), pool_.get(), &threads_);
}

Session::Session(Model& model, const SessionOptions& options)
    : model_(&model),
      trained_(&model),
      options_(options),
      threads_(options.threads),
      pool_(PoolFor(options)),
      scheduler_(SchedulerFor(model, options.batching)),
      sharer_(options.sharing, model.executable(true)->inputs()) {
  executor_ = std::make_unique<Executor>(model.executable(true), &model.parameters(), pool_.get(), &threads_);
  gradients_ = std::make_unique<Gradients>(model.simplified().signature);
}

Session::~Session() = default;

// Graphs are cut unevenly, and a shard's tasks are narrower: shards of one or two graphs gain little or nothing.
int32_t Session::Shards() const {
  const int64_t threads = options_.threads;
  switch (options_.parallel) {
    case ParallelPolicy::kTask:
      return 1;
    case ParallelPolicy::kShard:
      return static_cast<int32_t>(std::min(threads, std::max<int64_t>(1, batch_.graph_count())));
    case ParallelPolicy::kAuto:
      break;
  }
  if (batch_.vertex_count() < kRowsWorthShards * threads) return 1;
  return static_cast<int32_t>(std::min(threads, std::max<int64_t>(1, batch_.graph_count() / kGraphsOfShard)));
}

void Session::Plan(std::span<const Example> examples, bool training) {
  const StopWatch watch;
  {
    TraceScope scope(trace_, TraceLevel::kPart, "plan");
    batch_.Clear();
    for (const Example& example : examples) batch_.Add(*example.graph, example.number);
    const bool draws = training && model_->executable(training)->draws();
    const bool shares = options_.sharing != SharingPolicy::kOff && !draws;
    batch_.Shard(Shards());
    merged_ = shares ? sharer_.Merge(batch_, &shared_batch_) : std::span<const int32_t>();
    scheduler_->Plan(scheduled(), &schedule_);
    scope.set_rows(batch_.vertex_count());
  }
  report_ = {};
  report_.schedule_seconds = watch.Seconds();
  if (batch_.vertex_count() < kRowsWorthPacking) return;
  const TraceScope scope(trace_, TraceLevel::kPart, "pack parameters");
  const StopWatch packing;
  model_->PackProducts();
  report_.prepare_seconds = packing.Seconds();
}

RunOptions Session::Options(bool training, HeadRows head, float loss_scale) const {
  RunOptions run;
  run.training = training;
  run.head = head;
  run.seed = options_.seed;
  run.step = static_cast<uint64_t>(step_);
  run.packed = batch_.vertex_count() >= kRowsWorthPacking;
  run.loss_scale = loss_scale;
  return run;
}

void Session::Run(const RunOptions& options) {
  last_run_ = options;
  const SharedVertices shared{&batch_, merged_};
  executor_->Forward(scheduled(), schedule_, options, merged_.empty() ? nullptr : &shared);
}

void Session::Report() {
  report_.graphs = batch_.graph_count();
  report_.vertices = batch_.vertex_count();
  report_.predictions = executor_->head_rows();
  report_.distinct_vertices = scheduled().vertex_count();
  report_.tasks = schedule_.task_count();
  report_.loss = executor_->loss();
  report_.times = executor_->times();
  report_.counters = executor_->counters();
  report_.schedule_seconds += report_.times.pack;
}

const BatchReport& Session::Forward(std::span<const Example> examples, HeadRows head) {
  Plan(examples, false);
  Run(Options(false, head, 1.0f));
  Report();
  return report_;
}

const BatchReport& Session::Accumulate(std::span<const Example> examples, int64_t graphs_in_step) {
  CAVS_CHECK(trained_ != nullptr, "this Session is forward-only: it was made from a const Model");
  Plan(examples, true);
  const int64_t graphs = graphs_in_step > 0 ? graphs_in_step : std::ssize(examples);
  const bool mean = options_.loss == LossReduction::kMean && graphs > 0;
  RunOptions options = Options(true, HeadRows::kLabelled, mean ? 1.0f / static_cast<float>(graphs) : 1.0f);
  options.backward = true;
  Run(options);
  executor_->Backward(gradients_.get());
  Report();
  return report_;
}

StepResult Session::Step(Optimizer& optimizer) {
  CAVS_CHECK(trained_ != nullptr, "this Session is forward-only: it was made from a const Model");
  const TraceScope scope(trace_, TraceLevel::kPart, "optimizer");
  const StepResult result = optimizer.Step(trained_->parameters(), *gradients_);
  DropGradients();
  ++step_;
  return result;
}

NonFinite Session::FindNonFinite() {
  PassOptions passes = model_->options().passes;
  passes.fusion = false;
  const std::unique_ptr<Pool> pool = PoolFor(options_);
  Executor unfused(Executable::Compile(model_->simplified(), nullptr, passes), &model_->parameters(), pool.get(),
                   &threads_);
  const SharedVertices shared{&batch_, merged_};
  RunOptions options = last_run_;
  options.backward = false;
  return unfused.FindNonFinite(scheduled(), schedule_, options, merged_.empty() ? nullptr : &shared);
}

void Session::Trace(TraceLog* log) {
  trace_ = log;
  executor_->Trace(log);
}

void Session::DropGradients() { gradients_->Clear(); }

double Session::Train(std::span<const Example> examples, Optimizer& optimizer) {
  const double loss = [&] {
    try {
      return Accumulate(examples).loss;
    } catch (...) {
      DropGradients();
      throw;
    }
  }();
  if (std::isfinite(loss)) {
    static_cast<void>(Step(optimizer));
  } else {
    DropGradients();
  }
  return options_.loss == LossReduction::kMean && !examples.empty() ? loss / static_cast<double>(examples.size())
                                                                    : loss;
}

double Session::Train(std::span<const InputGraph> graphs, Optimizer& optimizer) {
  numbered_.clear();
  for (const InputGraph& graph : graphs) numbered_.push_back({&graph, std::ssize(numbered_)});
  return Train(numbered_, optimizer);
}

void Session::RenewBatching() { scheduler_ = SchedulerFor(*model_, options_.batching); }

Optimizer Session::MakeOptimizer(const OptimizerOptions& options) {
  return Optimizer(options, model_->parameters(), &threads_);
}

}  // namespace cavs
