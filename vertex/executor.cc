#include "vertex/executor.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/stop_watch.h"
#include "vertex/executable.h"
#include "vertex/kernel_runner.h"
#include "vertex/kernels/rows.h"
#include "vertex/placement.h"
#include "vertex/run_recorder.h"

namespace cavs {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Where a buffer lies in the present minibatch.
struct BoundBuffer {
  float* base = nullptr;
  int64_t ld = 0;
};

bool IsBackward(const Executable& executable, const Buffer& buffer) {
  if (buffer.kind == BufferKind::kRows) return buffer.id >= executable.forward().value_count();
  return buffer.kind == BufferKind::kChannelGradient;
}

}  // namespace

struct Executor::Impl {
  using Steps = std::vector<BoundStep>;
  struct Function {
    std::array<Steps, 3> phases;
  };

  Impl(std::shared_ptr<const Executable> e, const ParameterStore* p, Pool* m, ThreadPool* t)
      : executable(std::move(e)),
        parameters(p),
        pool(m),
        threads(t),
        placement(executable.get()),
        runner(executable.get(), p, t),
        recorder(executable.get(), &runner) {
    buffers.resize(executable->buffers().size());
    for (const bool backward : {false, true}) {
      for (size_t type = 0; type < executable->signature().types.size(); ++type) {
        if (backward && !executable->has_backward()) continue;
        Function& function = functions[backward ? 1 : 0].emplace_back();
        for (const Phase phase : {Phase::kHoisted, Phase::kRecurrent, Phase::kDeferred}) {
          const FunctionSteps& steps = executable->function(backward, static_cast<int32_t>(type));
          function.phases[static_cast<size_t>(phase)] = Wrap(steps.phase(phase));
        }
      }
      heads[backward ? 1 : 0] = Wrap(executable->head(backward));
    }
    NumberSteps();
  }

  void NumberSteps() {
    std::vector<const Step*> steps;
    ForEachStep([&](BoundStep& bound) {
      bound.number = static_cast<int32_t>(steps.size());
      steps.push_back(bound.step);
    });
    recorder.set_steps(std::move(steps));
  }

  Steps Wrap(const std::vector<Step>& steps) const {
    Steps result;
    for (const Step& step : steps) {
      const Program& program = step.backward ? executable->backward() : executable->forward();
      BoundStep& bound = result.emplace_back();
      bound.step = &step;
      bound.instruction = &program.instructions[static_cast<size_t>(step.instruction)];
      bound.operands.resize(step.operands.size());
    }
    return result;
  }

  // Calls visit(steps, range) in order of execution, and lap(phase) behind each phase.
  template <typename Visit, typename Lap>
  void Walk(bool backward, Visit visit, Lap lap) {
    std::vector<Function>& types = functions[backward ? 1 : 0];
    Steps& head = heads[backward ? 1 : 0];
    const RowRange head_range{0, placement.rows({Space::kHead, -1}), 0, 0};
    const auto all = [&](Phase phase) {
      for (size_t type = 0; type < types.size(); ++type) {
        const int32_t t = static_cast<int32_t>(type);
        visit(types[type].phases[static_cast<size_t>(phase)], RowRange{0, schedule->rows(t), 0, schedule->edges(t)});
      }
      lap(phase);
    };
    const auto task = [&](const Task& t) {
      Steps& steps = types[static_cast<size_t>(t.type)].phases[static_cast<size_t>(Phase::kRecurrent)];
      if (!steps.empty()) visit(steps, RowRange{t.first_row, t.count, t.first_edge, t.edge_count});
    };
    if (backward) visit(head, head_range);
    all(Phase::kHoisted);
    if (backward) {
      for (const Task& t : schedule->Reversed()) task(t);
    } else {
      for (const Task& t : schedule->tasks()) task(t);
    }
    lap(Phase::kRecurrent);
    all(Phase::kDeferred);
    if (!backward) visit(head, head_range);
    lap(Phase::kDeferred);
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
        [&](Steps& steps, const RowRange& range) {
          if (recorder.active()) return recorder.Run(steps, range);
          for (const BoundStep& step : steps) runner.Run(step, range);
        },
        lap);
  }

  // Calls visit(step) for every step, in order of functions.
  template <typename Visit>
  void ForEachStep(Visit visit) {
    for (const bool backward : {false, true}) {
      const size_t side = backward ? 1 : 0;
      for (Function& function : functions[side]) {
        for (Steps& steps : function.phases) {
          for (BoundStep& step : steps) visit(step);
        }
      }
      for (BoundStep& step : heads[side]) visit(step);
    }
  }

  int64_t BufferRows(const Buffer& buffer) const {
    if (buffer.kind == BufferKind::kRows) return placement.rows(buffer.space);
    return placement.class_rows(executable->channel_class(buffer.id));
  }

  void AllocateBuffers(bool backward) {
    for (size_t b = 0; b < buffers.size(); ++b) {
      const Buffer& buffer = executable->buffers()[b];
      BoundBuffer& bound = buffers[b];
      const bool owned = buffer.kind == BufferKind::kRows || buffer.kind == BufferKind::kChannel ||
                         buffer.kind == BufferKind::kChannelGradient;
      if (owned && IsBackward(*executable, buffer) == backward) {
        const int64_t bytes = BufferRows(buffer) * buffer.width * static_cast<int64_t>(sizeof(float));
        bound = {static_cast<float*>(pool->Allocate(bytes, names[b])), buffer.width};
        if (buffer.kind == BufferKind::kChannelGradient) std::memset(bound.base, 0, static_cast<size_t>(bytes));
      } else if (!owned && !backward) {
        bound = BindShared(buffer);
      }
    }
  }

  // Parameters and constants are only ever read through an Operand.
  BoundBuffer BindShared(const Buffer& buffer) {
    switch (buffer.kind) {
      case BufferKind::kParameter:
        return {const_cast<float*>(parameters->values(buffer.id).data()), 0};
      case BufferKind::kConstant: {
        const bool own = buffer.id >= executable->forward().value_count();
        const Program& program = own ? executable->backward() : executable->forward();
        return {const_cast<float*>(program.value(buffer.id).constant.data()), 0};
      }
      case BufferKind::kLossScale:
        return {&loss_scale, 0};
      default:
        return {const_cast<float*>(placement.column_rows(buffer).data()), buffer.width};
    }
  }

  Operand Resolve(const Location& location, const RowSpace& space) const {
    const Buffer& buffer = executable->buffers()[static_cast<size_t>(location.buffer)];
    const BoundBuffer& bound = buffers[static_cast<size_t>(location.buffer)];
    Operand operand{bound.base + location.column, bound.ld, nullptr};
    IndexKind kind = IndexKind::kEdgeParent;
    if (location.index >= 0) {
      kind = executable->indices()[static_cast<size_t>(location.index)].kind;
      operand.index = placement.index(location.index).data();
      if (buffer.kind == BufferKind::kParameter) operand.ld = parameters->declaration(buffer.id).shape.columns();
    }
    const bool channel = buffer.kind == BufferKind::kChannel || buffer.kind == BufferKind::kChannelGradient;
    if (channel && kind == IndexKind::kEdgeParent) {
      // Rows are numbered inside of the type; an empty type may have no place in the table.
      operand.base += std::max<int64_t>(0, placement.base(executable->channel_class(buffer.id), space.type)) * bound.ld;
    }
    return operand;
  }

  void BindSteps(bool backward) {
    const auto bind = [&](Steps& steps) {
      for (BoundStep& bound : steps) {
        for (size_t i = 0; i < bound.operands.size(); ++i) {
          bound.operands[i] = Resolve(bound.step->operands[i], bound.step->space);
        }
      }
    };
    for (Function& function : functions[backward ? 1 : 0]) {
      for (Steps& steps : function.phases) bind(steps);
    }
    bind(heads[backward ? 1 : 0]);
  }

  void MergeLookups(Gradients* gradients) {
    const TraceScope scope(recorder.log(), TraceLevel::kPhase, "merge lookup gradients");
    for (const LookupGradient& lookup : executable->lookup_gradients()) {
      const std::vector<int32_t>& ids = placement.index(lookup.ids);
      if (ids.empty()) continue;
      const int64_t width = parameters->declaration(lookup.parameter).shape.columns();
      const StopWatch watch;
      cpu::MergeSparseRows(ids.data(), Resolve(lookup.rows, lookup.space), std::ssize(ids), width, *threads, &merged);
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
      const bool edges = step.spaces[i] == Space::kEdge;
      const int64_t first = edges ? range.edge : range.first(step.space.kind);
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = bound.operands[i].Row(first + r);
        for (int64_t j = 0; row != nullptr && j < step.widths[i]; ++j) {
          if (!std::isfinite(row[j])) return first + r;
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
    cpu::CopyRows({rows.data(), width, nullptr}, Resolve(executable->location(value), space), placement.rows(space),
                  width, *threads);
    return rows;
  }

  std::shared_ptr<const Executable> executable;
  const ParameterStore* parameters;
  Pool* pool;
  ThreadPool* threads;
  Placement placement;
  KernelRunner runner;
  RunRecorder recorder;
  std::vector<Function> functions[2];
  Steps heads[2];
  std::vector<BoundBuffer> buffers;
  std::vector<std::string> names;
  const GraphBatch* batch = nullptr;
  const Schedule* schedule = nullptr;
  float loss_scale = 1.0f;
  RunTimes times;
  SparseRows merged;
  std::vector<std::vector<float>> head_copies;
};

Executor::Executor(std::shared_ptr<const Executable> executable, const ParameterStore* parameters, Pool* pool,
                   ThreadPool* threads)
    : impl_(std::make_unique<Impl>(std::move(executable), parameters, pool, threads)) {
  for (const Buffer& buffer : impl_->executable->buffers()) {
    const bool named = buffer.kind == BufferKind::kRows || buffer.kind == BufferKind::kChannel ||
                       buffer.kind == BufferKind::kChannelGradient;
    impl_->names.push_back(named ? BufferName(*impl_->executable, buffer) : std::string());
  }
  const Program& forward = impl_->executable->forward();
  impl_->head_copies.resize(forward.losses.size() + forward.outputs.size());
}

Executor::~Executor() = default;

void Executor::Forward(const GraphBatch& batch, const Schedule& schedule, const RunOptions& options,
                       const SharedVertices* shared) {
  Impl& x = *impl_;
  // A Forward that throws leaves an Executor that has run nothing.
  x.schedule = nullptr;
  for (BoundBuffer& buffer : x.buffers) buffer = {};
  x.pool->Rewind();
  x.pool->set_context(batch.vertex_count());
  x.times = {};
  x.runner.counters() = {};
  x.loss_scale = options.loss_scale;
  const TraceScope scope(x.recorder.log(), TraceLevel::kPart, "forward");
  const double start = Now();
  {
    const TraceScope placing(x.recorder.log(), TraceLevel::kPhase, "place");
    x.placement.Plan(batch, schedule, options, shared);
    x.AllocateBuffers(false);
    x.batch = &batch;
    x.schedule = &schedule;
    x.BindSteps(false);
    x.runner.Begin(&x.placement, &schedule, options);
  }
  x.times.pack = Now() - start;
  x.RunAll(false);
}

void Executor::Backward(Gradients* gradients) {
  Impl& x = *impl_;
  CAVS_CHECK(x.executable->has_backward() && x.schedule != nullptr, "Backward needs dF and a Forward before");
  const TraceScope scope(x.recorder.log(), TraceLevel::kPart, "backward");
  const double start = Now();
  x.AllocateBuffers(true);
  x.BindSteps(true);
  x.runner.set_gradients(gradients);
  x.times.backward += Now() - start;
  x.RunAll(true);
  const double merge = Now();
  x.MergeLookups(gradients);
  x.times.backward += Now() - merge;
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
  const int32_t vertex = x.placement.Merged(original);
  const int64_t base = x.placement.base(x.executable->channel_class(channel), x.batch->type(vertex));
  if (base < 0) return {};
  const int32_t table = x.executable->table_of(channel);
  const auto& buffers = x.executable->buffers();
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].kind != BufferKind::kChannel || buffers[b].id != table) continue;
    const int64_t row = base + x.schedule->row_of_vertex(vertex);
    return {x.buffers[b].base + row * x.buffers[b].ld, static_cast<size_t>(buffers[b].width)};
  }
  return {};
}

NonFinite Executor::FindNonFinite() const {
  Impl& x = *impl_;
  x.RequireRun();
  NonFinite result;
  x.Walk(
      false,
      [&](Impl::Steps& steps, const RowRange& range) {
        for (const BoundStep& step : steps) {
          const int64_t row = result.found ? -1 : x.FirstBadRow(step, range);
          if (row < 0) continue;
          result.found = true;
          result.operation = ToString(x.executable->forward(), *step.instruction);
          std::tie(result.example, result.vertex) = x.placement.Origin(step.step->space, row);
        }
      },
      [](Phase) {});
  return result;
}

std::vector<TensorBytes> Executor::tensors() const {
  impl_->RequireRun();
  std::vector<TensorBytes> result;
  const auto& buffers = impl_->executable->buffers();
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (impl_->names[b].empty() || impl_->buffers[b].base == nullptr) continue;
    const int64_t rows = impl_->BufferRows(buffers[b]);
    result.push_back({impl_->names[b], rows, buffers[b].width});
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
  impl_->ForEachStep([&](const BoundStep& bound) {
    const Step& step = *bound.step;
    const bool head = step.space.kind == Space::kHead;
    add({.step = ToString(executable, step),
         .operation = std::string(OperationName(executable, step)),
         .function = head ? "head" : executable.forward().type_name(step.space.type),
         .phase = head ? Phase::kDeferred : bound.instruction->phase,
         .backward = step.backward},
        impl_->recorder.totals(bound.number));
  });
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
const RunCounters& Executor::counters() const { return impl_->runner.counters(); }

}  // namespace cavs
