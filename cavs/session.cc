#include "cavs/session.h"

#include <chrono>
#include <cmath>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"

namespace cavs {
namespace {

// Packing a matrix for both directions costs about as much as products of this many rows gain from it. The choice
// depends on the minibatch alone, so that a resumed run repeats it.
constexpr int64_t kRowsWorthPacking = 128;

std::unique_ptr<Pool> PoolFor(const SessionOptions& options) {
  return MakePool(options.memory, MakeDevice(DeviceKind::kCpu), {options.memory_limit, "minibatch"});
}

}  // namespace

Session::Session(const Model& model, const SessionOptions& options)
    : model_(&model),
      options_(options),
      threads_(options.threads),
      pool_(PoolFor(options)),
      scheduler_(MakeScheduler(options.batching)),
      sharer_(options.sharing, model.executable(false)->inputs()) {
  executor_ = std::make_unique<Executor>(model.executable(false), &model.parameters(), pool_.get(), &threads_);
}

Session::Session(Model& model, const SessionOptions& options)
    : model_(&model),
      trained_(&model),
      options_(options),
      threads_(options.threads),
      pool_(PoolFor(options)),
      scheduler_(MakeScheduler(options.batching)),
      sharer_(options.sharing, model.executable(true)->inputs()) {
  executor_ = std::make_unique<Executor>(model.executable(true), &model.parameters(), pool_.get(), &threads_);
  gradients_ = std::make_unique<Gradients>(model.program().signature);
}

Session::~Session() = default;

void Session::Plan(std::span<const Example> examples, bool training) {
  const StopWatch watch;
  {
    TraceScope scope(trace_, TraceLevel::kPart, "plan");
    batch_.Clear();
    for (const Example& example : examples) batch_.Add(*example.graph, example.number);
    const bool draws = training && model_->executable(training)->draws();
    const bool shares = options_.sharing != SharingPolicy::kOff && !draws;
    merged_ = shares ? sharer_.Merge(batch_, &shared_batch_) : std::span<const int32_t>();
    scheduler_->Plan(scheduled(), &schedule_);
    scope.set_rows(batch_.vertex_count());
  }
  report_ = {};
  report_.schedule_seconds = watch.Seconds();
  if (scheduled().vertex_count() < kRowsWorthPacking) return;
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
  run.packed = scheduled().vertex_count() >= kRowsWorthPacking;
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
  Run(Options(true, HeadRows::kLabelled, mean ? 1.0f / static_cast<float>(graphs) : 1.0f));
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
  unfused.Forward(scheduled(), schedule_, last_run_, merged_.empty() ? nullptr : &shared);
  return unfused.FindNonFinite();
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

Optimizer Session::MakeOptimizer(const OptimizerOptions& options) {
  return Optimizer(options, model_->parameters(), &threads_);
}

}  // namespace cavs
