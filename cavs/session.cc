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

void Session::Begin(std::span<const Example> examples, bool training, HeadRows head) {
  examples_.assign(examples.begin(), examples.end());
  run_ = {};
  run_.training = training;
  run_.backward = training;
  run_.head = head;
  run_.seed = options_.seed;
  run_.step = static_cast<uint64_t>(step_);
  // Of the whole minibatch: its parts must not differ from it in how products are computed.
  int64_t vertices = 0;
  for (const Example& example : examples) vertices += example.graph->vertex_count();
  run_.packed = vertices >= kRowsWorthPacking;
  report_ = {};
}

void Session::Plan(std::span<const Example> part) {
  executor_->Forget();
  const StopWatch watch;
  {
    TraceScope scope(trace_, TraceLevel::kPart, "plan");
    batch_.Clear();
    for (const Example& example : part) batch_.Add(*example.graph, example.number);
    const bool draws = run_.training && model_->executable(run_.training)->draws();
    const bool shares = options_.sharing != SharingPolicy::kOff && !draws;
    batch_.Shard(Shards());
    merged_ = shares ? sharer_.Merge(batch_, &shared_batch_) : std::span<const int32_t>();
    scheduler_->Plan(scheduled(), &schedule_);
    scope.set_rows(batch_.vertex_count());
  }
  report_.schedule_seconds += watch.Seconds();
  if (!run_.packed) return;
  const TraceScope scope(trace_, TraceLevel::kPart, "pack parameters");
  const StopWatch packing;
  model_->PackProducts();
  report_.prepare_seconds += packing.Seconds();
}

template <typename Run, typename Done>
void Session::InParts(const Run& run, const Done& done) {
  parts_.assign(1, examples_);
  while (!parts_.empty()) {
    const std::span<const Example> part = parts_.back();
    parts_.pop_back();
    Plan(part);
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

const SharedVertices* Session::shared() {
  shared_ = {&batch_, merged_};
  return merged_.empty() ? nullptr : &shared_;
}

void Session::RunForward() { executor_->Forward(scheduled(), schedule_, run_, shared()); }

void Session::Report() {
  ++report_.parts;
  report_.graphs += batch_.graph_count();
  report_.vertices += batch_.vertex_count();
  report_.predictions += executor_->head_rows();
  report_.distinct_vertices += scheduled().vertex_count();
  report_.tasks += schedule_.task_count();
  report_.loss += executor_->loss();
  report_.times += executor_->times();
  report_.counters += executor_->counters();
  report_.schedule_seconds += executor_->times().pack;
}

const BatchReport& Session::Forward(std::span<const Example> examples, HeadRows head) {
  Begin(examples, false, head);
  Plan(examples_);
  RunForward();
  Report();
  return report_;
}

const BatchReport& Session::Forward(std::span<const Example> examples, HeadRows head, const PartVisitor& visit) {
  Begin(examples, false, head);
  InParts([this] { RunForward(); },
          [&] {
            Report();
            visit();
          });
  return report_;
}

const BatchReport& Session::Accumulate(std::span<const Example> examples, int64_t graphs_in_step,
                                       const PartVisitor& visit) {
  CAVS_CHECK(trained_ != nullptr, "this Session is forward-only: it was made from a const Model");
  Begin(examples, true, HeadRows::kLabelled);
  const int64_t graphs = graphs_in_step > 0 ? graphs_in_step : std::ssize(examples);
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
  run_.backward = false;
  Executor unfused(Executable::Compile(model_->simplified(), nullptr, passes), &model_->parameters(), pool_.get(),
                   &threads_);
  NonFinite place;
  const BatchReport report = report_;
  const auto look = [&](Executor& executor) {
    if (!place.found) place = executor.FindNonFinite(scheduled(), schedule_, run_, shared());
    executor.Forget();
  };
  InParts(
      [&] {
        try {
          look(unfused);
        } catch (const OutOfMemory&) {
          // One graph that fits only as it ran, fused, is searched so.
          if (batch_.graph_count() > 1) throw;
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
