#include "cavs/session.h"

#include <algorithm>
#include <cmath>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"

namespace cavs {
namespace {

std::unique_ptr<Pool> PoolFor(const SessionOptions& options) {
  return MakePool(options.memory, MakeDevice(DeviceKind::kCpu), {options.memory_limit, "minibatch"});
}

}  // namespace

Session::Session(const Model& model, const SessionOptions& options)
    : model_(&model),
      options_(options),
      threads_(options.threads),
      pool_(PoolFor(options)),
      planner_(model, /*trains=*/false, options),
      executable_(model.executable(/*training=*/false, options.sharing)) {
  executor_ = std::make_unique<Executor>(executable_, &model.parameters(), pool_.get(), &threads_);
}

Session::Session(Model& model, const SessionOptions& options)
    : model_(&model),
      trained_(&model),
      options_(options),
      threads_(options.threads),
      pool_(PoolFor(options)),
      planner_(model, /*trains=*/true, options),
      executable_(model.executable(/*training=*/true, options.sharing)) {
  executor_ = std::make_unique<Executor>(executable_, &model.parameters(), pool_.get(), &threads_);
  gradients_ = std::make_unique<Gradients>(model.simplified().signature);
}

Session::~Session() = default;

void Session::RequireTraining() const {
  CAVS_CHECK(trained_ != nullptr, "this Session is forward-only: it was made from a const Model");
}

const PlannedBatch& Session::Plan(std::span<const Example> examples, bool training) {
  Plan(examples, training, &whole_);
  return whole_;
}

void Session::Plan(std::span<const Example> examples, bool training, PlannedBatch* planned) {
  executor_->Forget();
  TraceScope scope(trace_, TraceLevel::kPart, "plan");
  planner_.Plan(examples, training, planned);
  scope.set_rows(planned->batch().vertex_count());
}

void Session::Begin(const PlannedBatch& minibatch, HeadRows head) {
  minibatch_ = &minibatch;
  run_ = {};
  run_.training = minibatch.training();
  run_.backward = minibatch.training();
  run_.head = head;
  run_.seed = options_.seed;
  run_.step = static_cast<uint64_t>(step_);
  // Of the whole minibatch: its parts must not differ from it in how products are computed.
  run_.packed = minibatch.batch().vertex_count() >= kRowsWorthPacking;
  report_ = {};
  report_.schedule_seconds = minibatch.seconds();
  report_.wait_seconds = minibatch.waited();
}

void Session::BeginPart(std::span<const Example> part) {
  executor_->Forget();
  planned_ = minibatch_;
  if (part.size() != minibatch_->examples().size()) {
    Plan(part, run_.training, &part_);
    planned_ = &part_;
    report_.schedule_seconds += part_.seconds();
    report_.wait_seconds += part_.waited();
  }
  if (!run_.packed) return;
  const TraceScope scope(trace_, TraceLevel::kPart, "pack parameters");
  const StopWatch packing;
  model_->PackProducts();
  report_.prepare_seconds += packing.Seconds();
}

template <typename Run, typename Done>
void Session::InParts(const Run& run, const Done& done) {
  parts_.assign(1, minibatch_->examples());
  while (!parts_.empty()) {
    const std::span<const Example> part = parts_.back();
    parts_.pop_back();
    BeginPart(part);
    try {
      run();
    } catch (const OutOfMemory& refusal) {
      if (part.size() < 2) throw;
      Cut(part, refusal);
      continue;
    }
    done();
  }
}

// Memory grows with the examples, so that the parts of a minibatch that asked for twice the limit and a bit are thirds.
void Session::Cut(std::span<const Example> part, const OutOfMemory& refusal) {
  const int64_t size = std::ssize(part);
  const int64_t times = refusal.cap_bytes() > 0 ? refusal.bytes_asked() / refusal.cap_bytes() : 1;
  const int64_t count = std::clamp<int64_t>(times + 1, 2, size);
  for (int64_t i = count; i-- > 0;) {
    const int64_t begin = i * size / count, end = (i + 1) * size / count;
    parts_.push_back(part.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  }
}

void Session::RunForward() { executor_->Forward(scheduled(), schedule(), run_, planned_->shared()); }

void Session::Report() {
  ++report_.parts;
  report_.graphs += batch().graph_count();
  report_.vertices += batch().vertex_count();
  report_.predictions += executor_->head_rows();
  report_.distinct_vertices += scheduled().vertex_count();
  report_.tasks += schedule().task_count();
  report_.loss += executor_->loss();
  report_.times += executor_->times();
  report_.counters += executor_->counters();
  report_.schedule_seconds += executor_->times().pack;
  report_.wait_seconds += executor_->times().pack;
}

const BatchReport& Session::Forward(std::span<const Example> examples, HeadRows head) {
  const PlannedBatch& minibatch = Plan(examples, /*training=*/false);
  Begin(minibatch, head);
  BeginPart(minibatch.examples());
  RunForward();
  Report();
  return report_;
}

const BatchReport& Session::Forward(std::span<const Example> examples, HeadRows head, const PartVisitor& visit) {
  return Forward(Plan(examples, /*training=*/false), head, visit);
}

const BatchReport& Session::Forward(const PlannedBatch& minibatch, HeadRows head, const PartVisitor& visit) {
  CAVS_CHECK(!minibatch.training(), "Forward over a minibatch that is planned for training");
  Begin(minibatch, head);
  InParts([this] { RunForward(); },
          [&] {
            Report();
            if (visit) visit();
          });
  return report_;
}

const BatchReport& Session::Accumulate(std::span<const Example> examples, int64_t graphs_in_step,
                                       const PartVisitor& visit) {
  RequireTraining();
  return Accumulate(Plan(examples, /*training=*/true), graphs_in_step, visit);
}

const BatchReport& Session::Accumulate(const PlannedBatch& minibatch, int64_t graphs_in_step,
                                       const PartVisitor& visit) {
  RequireTraining();
  CAVS_CHECK(minibatch.training(), "Accumulate over a minibatch that is not planned for training");
  Begin(minibatch, HeadRows::kLabelled);
  const int64_t graphs = graphs_in_step > 0 ? graphs_in_step : std::ssize(minibatch.examples());
  const bool mean = options_.loss == LossReduction::kMean && graphs > 0;
  run_.loss_scale = mean ? 1.0f / static_cast<float>(graphs) : 1.0f;
  InParts([this] { RunForward(); },
          [&] {
            executor_->Backward(gradients_.get());
            Report();
            if (visit) visit();
          });
  return report_;
}

StepResult Session::Step(Optimizer& optimizer) {
  RequireTraining();
  const TraceScope scope(trace_, TraceLevel::kPart, "optimizer");
  const StepResult result = optimizer.Step(trained_->parameters(), *gradients_);
  DropGradients();
  ++step_;
  return result;
}

NonFinite Session::FindNonFinite() {
  PassOptions passes = model_->options().passes;
  passes.fusion = false;
  run_.backward = false;
  Executor unfused(Executable::Compile(executable_->forward(), nullptr, passes), &model_->parameters(), pool_.get(),
                   &threads_);
  NonFinite place;
  const BatchReport report = report_;
  const auto look = [&](Executor& executor) {
    if (!place.found) place = executor.FindNonFinite(scheduled(), schedule(), run_, planned_->shared());
    executor.Forget();
  };
  InParts(
      [&] {
        try {
          look(unfused);
        } catch (const OutOfMemory&) {
          // One graph that fits only as it ran, fused, is searched so.
          if (batch().graph_count() > 1) throw;
          look(*executor_);
        }
      },
      [] {});
  report_ = report;
  return place;
}

void Session::Trace(TraceLog* log) {
  trace_ = log;
  executor_->Trace(log);
}

void Session::Forget() {
  executor_->Forget();
  minibatch_ = planned_ = &none_;
}

const Gradients& Session::gradients() const {
  RequireTraining();
  return *gradients_;
}

void Session::DropGradients() {
  RequireTraining();
  gradients_->Clear();
}

double Session::Train(std::span<const Example> examples, Optimizer& optimizer) {
  RequireTraining();
  return Train(Plan(examples, /*training=*/true), optimizer);
}

double Session::Train(const PlannedBatch& minibatch, Optimizer& optimizer) {
  const double loss = [&] {
    try {
      return Accumulate(minibatch).loss;
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
  const size_t graphs = minibatch.examples().size();
  return options_.loss == LossReduction::kMean && graphs > 0 ? loss / static_cast<double>(graphs) : loss;
}

double Session::Train(std::span<const InputGraph> graphs, Optimizer& optimizer) {
  numbered_.clear();
  for (const InputGraph& graph : graphs) numbered_.push_back({&graph, std::ssize(numbered_)});
  return Train(numbered_, optimizer);
}

Planner Session::MakePlanner() const { return Planner(*model_, trained_ != nullptr, options_); }

void Session::RenewBatching() { planner_ = MakePlanner(); }

Optimizer Session::MakeOptimizer(const OptimizerOptions& options) {
  return Optimizer(options, model_->parameters(), &threads_);
}

}  // namespace cavs
