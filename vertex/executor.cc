#include "vertex/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "vertex/executable.h"
#include "vertex/kernel_runner.h"
#include "vertex/kernels/rows.h"
#include "vertex/memory_plan.h"
#include "vertex/placement.h"
#include "vertex/run_recorder.h"
#include "vertex/step_binding.h"

namespace cavs {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int32_t kNoLane = -1;

}  // namespace

struct Executor::Impl {
  Impl(std::shared_ptr<const Executable> e, const ParameterStore* p, Pool* m, ThreadPool* t)
      : executable(std::move(e)),
        parameters(p),
        threads(t),
        memory(executable.get(), m),
        placement(executable.get()),
        binding(executable.get(), p, &placement, &memory),
        runner(executable.get(), p, t),
        separable{Separable(false), Separable(true)},
        recorder(executable.get(), &runner) {
    std::vector<const Step*> steps;
    for (const BoundStep* bound : binding.steps()) steps.push_back(bound->step);
    recorder.set_steps(std::move(steps));
  }

  // Whether the shards of a schedule may recur side by side: no step adds up rows, as all shards have the gradients of
  // parameters in common.
  bool Separable(bool backward) const {
    for (size_t type = 0; type < executable->signature().types.size(); ++type) {
      if (backward && !executable->has_backward()) return false;
      const FunctionSteps& function = executable->function(backward, static_cast<int32_t>(type));
      for (const StepRun& run : function.phase(Phase::kRecurrent).runs) {
        if (!run.row_local) return false;
      }
    }
    return true;
  }

  // Calls straight(list, run, range) for the runs of head, hoisted and deferred steps, and recur() for all tasks, in
  // order of execution, and lap(phase) behind each phase. Buffers come to life, and die, on the way.
  template <typename Straight, typename Recur, typename Lap>
  void Walk(bool backward, Straight straight, Recur recur, Lap lap) {
    const std::vector<BoundFunction>& types = binding.types(backward);
    int32_t position = backward ? memory.liveness().backward_begin : 0;
    const auto all_runs = [&](const BoundList& steps, const RowRange& range) {
      for (const StepRun& run : steps.list->runs) {
        memory.Advance(position++);
        straight(steps, run, range);
      }
    };
    const auto head = [&] { all_runs(binding.head(backward), RowRange{0, placement.rows({Space::kHead, -1}), 0, 0}); };
    const auto all = [&](Phase phase) {
      for (size_t type = 0; type < types.size(); ++type) {
        const int32_t t = static_cast<int32_t>(type);
        const RowRange inputs{0, placement.rows({Space::kInput, t}), 0, 0};
        if (!backward && phase == Phase::kHoisted) all_runs(types[type].inputs, inputs);
        all_runs(types[type].phase(phase), RowRange{0, schedule->rows(t), 0, schedule->edges(t)});
        if (backward && phase == Phase::kDeferred) all_runs(types[type].inputs, inputs);
      }
      lap(phase);
    };
    if (backward) head();
    all(Phase::kHoisted);
    memory.Advance(position++);
    recur();
    lap(Phase::kRecurrent);
    all(Phase::kDeferred);
    if (!backward) head();
    lap(Phase::kDeferred);
    if (position == memory.liveness().end) memory.Advance(position);
  }

  // Calls visit(steps, run, range) for what each task has of one shard, in order of execution.
  template <typename Visit>
  void WalkTasks(bool backward, int32_t shard, Visit visit) {
    const int64_t tasks = schedule->task_count();
    for (int64_t i = 0; i < tasks; ++i) {
      const Task part = schedule->Part(backward ? tasks - 1 - i : i, shard);
      if (part.count == 0) continue;
      const BoundList& steps = binding.types(backward)[static_cast<size_t>(part.type)].phase(Phase::kRecurrent);
      const RowRange range{part.first_row, part.count, part.first_edge, part.edge_count};
      for (const StepRun& run : steps.list->runs) visit(steps, run, range);
    }
  }

  // Rows [first, first + count) of a range.
  RowRange Part(const BoundList& steps, const RowRange& range, int64_t first, int64_t count) const {
    RowRange part{range.row + first, count, 0, 0};
    const RowSpace& space = steps.steps.front().step->space;
    if (space.kind == Space::kHead || space.kind == Space::kInput) return part;
    const std::span<const int64_t> begin = schedule->edge_begin(space.type);
    part.edge = begin[static_cast<size_t>(part.row)];
    part.edges = begin[static_cast<size_t>(part.row + count)] - part.edge;
    return part;
  }

  // Calls visit(range, lane) for the blocks of a run: on `lane`, or side by side on all lanes where that is kNoLane.
  template <typename Visit>
  void ForBlocks(const BoundList& steps, const StepRun& run, const RowRange& range, int32_t lane, const Visit& visit) {
    const int64_t blocks = run.row_local ? (range.rows + run.block.rows - 1) / run.block.rows : 1;
    RowSpace space = steps.steps.front().step->space;
    if (space.kind == Space::kEdge) space.kind = Space::kVertex;
    const int64_t largest = placement.rows(run.block, space);
    const auto block = [&](int64_t i, int32_t on) {
      RowRange part = range;
      if (blocks > 1) {
        const int64_t first = i * run.block.rows;
        part = Part(steps, range, first, std::min(run.block.rows, range.rows - first));
      }
      part.block = on * largest;
      visit(part, on);
    };
    if (lane == kNoLane && blocks > 1 && threads->size() > 1) {
      threads->Run(blocks, [&](int64_t i, int worker) { block(i, worker); });
    } else {
      for (int64_t i = 0; i < blocks; ++i) block(i, std::max(lane, 0));
    }
  }

  void RunBlock(const BoundList& steps, const StepRun& run, const RowRange& range, KernelRunner* kernels) {
    for (int32_t i = run.begin; i < run.end; ++i) kernels->Run(steps.steps[static_cast<size_t>(i)], range);
  }

  // Whoever has no lane has all threads: for blocks side by side, else inside of kernels. A recorder wants one thing
  // after another, so that the times of steps add up.
  void Run(const BoundList& steps, const StepRun& run, const RowRange& range, int32_t lane) {
    if (recorder.active()) {
      const std::span<const BoundStep> recorded(steps.steps.data() + run.begin, steps.steps.data() + run.end);
      const TraceScope task = recorder.Task(recorded, range);
      return ForBlocks(steps, run, range, 0, [&](const RowRange& part, int32_t) { recorder.Run(recorded, part); });
    }
    const bool apart = threads->size() > 1 && run.row_local && range.rows > run.block.rows;
    if (lane == kNoLane && !apart) {
      ForBlocks(steps, run, range, 0, [&](const RowRange& part, int32_t) { RunBlock(steps, run, part, &runner); });
      return;
    }
    ForBlocks(steps, run, range, lane, [&](const RowRange& part, int32_t on) {
      RunBlock(steps, run, part, lanes[static_cast<size_t>(on)].get());
    });
  }

  // Shards side by side, each on one thread, without a word between them from the first task to the last.
  void RunTasks(bool backward) {
    const int32_t shards = schedule->shard_count();
    const auto run_shard = [&](int32_t shard, int32_t lane) {
      WalkTasks(backward, shard, [&](const BoundList& steps, const StepRun& run, const RowRange& range) {
        Run(steps, run, range, lane);
      });
    };
    if (shards == 1 || !separable[backward ? 1 : 0] || recorder.active()) {
      for (int32_t shard = 0; shard < shards; ++shard) run_shard(shard, kNoLane);
      return;
    }
    threads->Run(shards,
                 [&](int64_t shard, int) { run_shard(static_cast<int32_t>(shard), static_cast<int32_t>(shard)); });
  }

  void RunAll(bool backward) {
    double mark = Now();
    recorder.BeginPhases();
    const auto lap = [&](Phase phase) {
      const double now = Now();
      double& slot = backward                     ? times.backward
                     : phase == Phase::kHoisted   ? times.hoisted
                     : phase == Phase::kRecurrent ? times.recurrent
                                                  : times.deferred;
      slot += now - mark;
      mark = now;
      recorder.EndPhase(PhaseName(phase));
    };
    Walk(
        backward,
        [&](const BoundList& steps, const StepRun& run, const RowRange& range) { Run(steps, run, range, kNoLane); },
        [&] { RunTasks(backward); }, lap);
    counters = runner.counters();
    for (const auto& kernels : lanes) counters += kernels->counters();
  }

  // Everything up to the first step of F.
  void Prepare(const GraphBatch& new_batch, const Schedule& new_schedule, const RunOptions& options,
               const SharedVertices* shared) {
    Forget();
    times = {};
    const double start = Now();
    const TraceScope placing(recorder.log(), TraceLevel::kPhase, "place");
    placement.Plan(new_batch, new_schedule, options, shared);
    BeginRunners(new_schedule, options);
    memory.Begin(placement, options.backward, std::max(threads->size(), new_schedule.shard_count()));
    binding.BindBuffers(options.loss_scale);
    batch = &new_batch;
    schedule = &new_schedule;
    awaits_backward = options.backward;
    binding.BindSteps(false);
    times.pack = Now() - start;
  }

  // A lane runs one block, or one shard, at a time.
  void BeginRunners(const Schedule& new_schedule, const RunOptions& options) {
    const int32_t most = std::max(threads->size(), new_schedule.shard_count());
    while (most > 1 && std::ssize(lanes) < most) {
      lanes.push_back(std::make_unique<KernelRunner>(executable.get(), parameters, &alone));
    }
    runner.Begin(&placement, &new_schedule, options);
    for (const auto& kernels : lanes) kernels->Begin(&placement, &new_schedule, options);
  }

  // What throws on the way leaves an Executor that has run nothing.
  void Forget() {
    schedule = nullptr;
    awaits_backward = false;
    memory.End();
  }

  template <typename Body>
  void RunOrForget(const Body& body) {
    try {
      body();
    } catch (...) {
      Forget();
      throw;
    }
  }

  void MergeLookups(Gradients* gradients) {
    const TraceScope scope(recorder.log(), TraceLevel::kPhase, "merge lookup gradients");
    for (const LookupGradient& lookup : executable->lookup_gradients()) {
      const std::vector<int32_t>& ids = placement.index(lookup.ids);
      if (ids.empty()) continue;
      const int64_t width = parameters->declaration(lookup.parameter).shape.columns();
      const StopWatch watch;
      cpu::MergeSparseRows(ids.data(), binding.Resolve(lookup.rows, lookup.space), std::ssize(ids), width, *threads,
                           &merged);
      gradients->AddSparse(lookup.parameter, merged);
      const int64_t moved = (std::ssize(ids) + std::ssize(merged.ids)) * width;
      recorder.BookMerge(std::ssize(ids), moved * static_cast<int64_t>(sizeof(float)), watch.Seconds());
    }
  }

  // The first non-finite element among the rows that a step wrote, or -1.
  int64_t FirstBadRow(const BoundStep& bound, const RowRange& range) const {
    const Step& step = *bound.step;
    const int64_t rows = range.count(step.space.kind);
    for (size_t i = static_cast<size_t>(step.inputs); i < bound.operands.size(); ++i) {
      const int64_t first = range.first(step.spaces[i].kind);
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = bound.operands[i].Row(first + r);
        for (int64_t j = 0; row != nullptr && j < step.widths[i]; ++j) {
          if (!std::isfinite(row[j])) return range.first(step.space.kind) + r;
        }
      }
    }
    return -1;
  }

  void RequireRun() const { CAVS_CHECK(schedule != nullptr, "results of an Executor that has not run"); }

  std::span<const float> HeadRow(size_t slot, ValueId value) {
    RequireRun();
    std::vector<float>& rows = head_copies[slot];
    const int64_t width = executable->forward().value(value).shape.width();
    const RowSpace space{Space::kHead, -1};
    rows.resize(static_cast<size_t>(placement.rows(space) * width));
    cpu::CopyRows({rows.data(), width, nullptr}, binding.Resolve(executable->location(value), space),
                  placement.rows(space), width, *threads);
    return rows;
  }

  std::shared_ptr<const Executable> executable;
  const ParameterStore* parameters;
  ThreadPool* threads;
  MemoryPlan memory;
  Placement placement;
  StepBinding binding;
  KernelRunner runner;
  ThreadPool alone{1};
  std::vector<std::unique_ptr<KernelRunner>> lanes;  // none for one thread
  const std::array<bool, 2> separable;               // forward, backward
  RunRecorder recorder;
  const GraphBatch* batch = nullptr;
  const Schedule* schedule = nullptr;
  bool awaits_backward = false;
  RunTimes times;
  RunCounters counters;
  SparseRows merged;
  std::vector<std::vector<float>> head_copies;
};

Executor::Executor(std::shared_ptr<const Executable> executable, const ParameterStore* parameters, Pool* pool,
                   ThreadPool* threads)
    : impl_(std::make_unique<Impl>(std::move(executable), parameters, pool, threads)) {
  const Program& forward = impl_->executable->forward();
  impl_->head_copies.resize(forward.losses.size() + forward.outputs.size());
}

Executor::~Executor() = default;

void Executor::Forward(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options,
                       const SharedVertices* shared) {
  const TraceScope scope(impl_->recorder.log(), TraceLevel::kPart, "forward");
  impl_->Prepare(batch, schedule, options, shared);
  impl_->RunOrForget([this] { impl_->RunAll(false); });
}

void Executor::Backward(Gradients* gradients) {
  Impl& x = *impl_;
  CAVS_CHECK(x.executable->has_backward() && x.awaits_backward, "Backward needs dF and a Forward that it follows");
  x.awaits_backward = false;
  const TraceScope scope(x.recorder.log(), TraceLevel::kPart, "backward");
  const double start = Now();
  x.binding.BindSteps(true);
  x.runner.set_gradients(gradients);
  for (const auto& kernels : x.lanes) kernels->set_gradients(gradients);
  x.times.backward += Now() - start;
  x.RunOrForget([&] {
    x.RunAll(true);
    const double merge = Now();
    x.MergeLookups(gradients);
    x.times.backward += Now() - merge;
  });
}

double Executor::loss() const {
  double sum = 0;
  for (size_t i = 0; i < impl_->executable->forward().losses.size(); ++i) {
    for (const float row : loss_rows(i)) sum += row;
  }
  return sum;
}

int64_t Executor::head_rows() const { return std::ssize(impl_->placement.head_vertices()); }

std::span<const int32_t> Executor::head_vertices() const { return impl_->placement.head_vertices(); }

std::span<const float> Executor::output(size_t output) const {
  const Program& forward = impl_->executable->forward();
  return impl_->HeadRow(forward.losses.size() + output, forward.outputs[output].value);
}

std::span<const float> Executor::loss_rows(size_t loss) const {
  return impl_->HeadRow(loss, impl_->executable->forward().losses[loss]);
}

std::span<const float> Executor::state(int32_t channel, int32_t original) const {
  const Impl& x = *impl_;
  x.RequireRun();
  CAVS_CHECK(x.executable->signature().channels[static_cast<size_t>(channel)].kind == ChannelKind::kState,
             "channel {} is no state", channel);
  const int32_t vertex = x.placement.Merged(original);
  const int32_t type = x.batch->type(vertex);
  if (x.placement.base(x.executable->channel_class(channel), type) < 0) return {};
  const auto& buffers = x.executable->buffers();
  const auto table = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& buffer) {
    return buffer.kind == BufferKind::kChannel && buffer.id == channel;
  });
  if (table == buffers.end()) return {};
  const Location rows{static_cast<int32_t>(table - buffers.begin()), 0, -1};
  const Operand operand = x.binding.Resolve(rows, {Space::kVertex, type});
  return {operand.Row(x.schedule->row_of_vertex(vertex)), static_cast<size_t>(table->width)};
}

NonFinite Executor::FindNonFinite(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options,
                                  const SharedVertices* shared) {
  Impl& x = *impl_;
  x.Prepare(batch, schedule, options, shared);
  NonFinite result;
  const auto inspect = [&](const BoundList& steps, const StepRun& run, const RowRange& range) {
    x.ForBlocks(steps, run, range, 0, [&](const RowRange& part, int32_t) {
      for (int32_t i = run.begin; i < run.end; ++i) {
        const BoundStep& step = steps.steps[static_cast<size_t>(i)];
        x.runner.Run(step, part);
        const int64_t row = result.found ? -1 : x.FirstBadRow(step, part);
        if (row < 0) continue;
        result.found = true;
        result.operation = ToString(x.executable->forward(), *step.instruction);
        std::tie(result.example, result.vertex) = x.placement.Origin(step.step->space, row);
      }
    });
  };
  const auto recur = [&] {
    for (int32_t shard = 0; shard < schedule.shard_count(); ++shard) x.WalkTasks(false, shard, inspect);
  };
  x.Walk(false, inspect, recur, [](Phase) {});
  return result;
}

void Executor::Forget() { impl_->Forget(); }

std::vector<TensorBytes> Executor::tensors() const {
  impl_->RequireRun();
  std::vector<TensorBytes> result;
  const MemoryPlan& memory = impl_->memory;
  const auto& buffers = impl_->executable->buffers();
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (memory.data(b) == nullptr) continue;
    const Liveness& liveness = memory.liveness();
    const Lifetime& lifetime = liveness.lifetimes[b];
    result.push_back({memory.name(b), memory.rows(b), buffers[b].width, memory.offset(b),
                      liveness.PhaseOf(lifetime.first), liveness.PhaseOf(lifetime.last)});
  }
  return result;
}

void Executor::Profile(bool on) { impl_->recorder.Profile(on); }

void Executor::Trace(TraceLog* log) { impl_->recorder.Trace(log); }

std::vector<StepProfile> Executor::profile() const {
  const Executable& executable = *impl_->executable;
  std::vector<StepProfile> result;
  const auto add = [&](StepProfile profile, const StepTotals& totals) {
    profile.calls = totals.calls;
    profile.rows = totals.rows;
    profile.bytes = totals.bytes;
    profile.flops = totals.flops;
    profile.seconds = totals.seconds;
    result.push_back(std::move(profile));
  };
  for (const BoundStep* bound : impl_->binding.steps()) {
    const Step& step = *bound->step;
    const bool head = step.space.kind == Space::kHead;
    add({.step = ToString(executable, step),
         .operation = std::string(OperationName(executable, step)),
         .function = head ? "head" : executable.forward().type_name(step.space.type),
         .phase = head ? Phase::kDeferred : bound->instruction->phase,
         .backward = step.backward},
        impl_->recorder.totals(bound->number));
  }
  if (executable.lookup_gradients().empty()) return result;
  add({.step = "merge of equal rows",
       .operation = "merge",
       .function = "lookups",
       .phase = Phase::kDeferred,
       .backward = true},
      impl_->recorder.merges());
  return result;
}

const RunTimes& Executor::times() const { return impl_->times; }
const RunCounters& Executor::counters() const { return impl_->counters; }

}  // namespace cavs
