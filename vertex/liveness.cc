#include "vertex/liveness.h"

#include <algorithm>

#include "vertex/executable.h"

namespace cavs {
namespace {

// Walks the steps in the order in which an Executor runs them.
class LivenessFinder {
 public:
  explicit LivenessFinder(const Executable& executable) : executable_(executable) {
    result_.lifetimes.resize(executable.buffers().size());
  }

  Liveness Run(bool backward) {
    WalkFunction(false);
    result_.backward_begin = position_;
    if (backward) WalkFunction(true);
    BeginPhase("end");
    result_.end = position_;
    UseResults(backward);
    SortEvents();
    return std::move(result_);
  }

 private:
  void WalkFunction(bool backward) {
    if (backward) WalkStraight("d head", executable_.head(true));
    WalkPhase(backward ? "d hoisted" : "hoisted", Phase::kHoisted, backward);
    BeginPhase(backward ? "d recurrent" : "recurrent");
    for (int32_t type = 0; type < type_count(); ++type) {
      for (const Step& step : executable_.function(backward, type).phase(Phase::kRecurrent).steps) Use(step);
    }
    ++position_;
    WalkPhase(backward ? "d deferred" : "deferred", Phase::kDeferred, backward);
    if (!backward) WalkStraight("head", executable_.head(false));
  }

  void WalkPhase(std::string_view name, Phase phase, bool backward) {
    BeginPhase(name);
    for (int32_t type = 0; type < type_count(); ++type) {
      const FunctionSteps& function = executable_.function(backward, type);
      if (!backward && phase == Phase::kHoisted) WalkRuns(function.inputs);
      WalkRuns(function.phase(phase));
      if (backward && phase == Phase::kDeferred) WalkRuns(function.inputs);
    }
  }

  void WalkStraight(std::string_view name, const StepList& list) {
    BeginPhase(name);
    WalkRuns(list);
  }

  void WalkRuns(const StepList& list) {
    for (const StepRun& run : list.runs) {
      for (int32_t i = run.begin; i < run.end; ++i) Use(list.steps[static_cast<size_t>(i)]);
      ++position_;
    }
  }

  void BeginPhase(std::string_view name) {
    auto& phases = result_.phases;
    // A phase without steps has no position.
    if (!phases.empty() && phases.back().first == position_) phases.pop_back();
    phases.emplace_back(position_, name);
  }

  void Use(const Step& step) {
    for (const Location& location : step.operands) Use(location);
  }

  void Use(const Location& location) {
    const Nest* nest = executable_.nest(location.buffer);
    const auto buffer = static_cast<size_t>(nest != nullptr ? nest->table : location.buffer);
    if (!IsOwned(executable_.buffers()[buffer])) return;
    Lifetime& lifetime = result_.lifetimes[buffer];
    if (!lifetime.used()) lifetime.first = position_;
    lifetime.last = position_;
  }

  void UseResults(bool backward) {
    const Program& f = executable_.forward();
    for (const ValueId loss : f.losses) Use(executable_.location(loss));
    for (const NamedValue& output : f.outputs) Use(executable_.location(output.value));
    for (size_t b = 0; b < executable_.buffers().size(); ++b) {
      const Buffer& buffer = executable_.buffers()[b];
      if (buffer.kind != BufferKind::kChannel) continue;
      const ChannelKind kind = f.signature->channels[static_cast<size_t>(buffer.id)].kind;
      if (kind == ChannelKind::kState && result_.lifetimes[b].used()) result_.lifetimes[b].last = position_;
    }
    if (!backward) return;
    for (const LookupGradient& lookup : executable_.lookup_gradients()) Use(lookup.rows);
  }

  void SortEvents() {
    const std::vector<Lifetime>& lifetimes = result_.lifetimes;
    for (size_t b = 0; b < lifetimes.size(); ++b) {
      if (lifetimes[b].used()) result_.births.push_back(static_cast<int32_t>(b));
    }
    result_.deaths = result_.births;
    std::stable_sort(result_.births.begin(), result_.births.end(), [&](int32_t a, int32_t b) {
      return lifetimes[static_cast<size_t>(a)].first < lifetimes[static_cast<size_t>(b)].first;
    });
    std::stable_sort(result_.deaths.begin(), result_.deaths.end(), [&](int32_t a, int32_t b) {
      return lifetimes[static_cast<size_t>(a)].last < lifetimes[static_cast<size_t>(b)].last;
    });
  }

  int32_t type_count() const { return static_cast<int32_t>(executable_.signature().types.size()); }

  const Executable& executable_;
  Liveness result_;
  int32_t position_ = 0;
};

}  // namespace

std::string_view Liveness::PhaseOf(int32_t position) const {
  std::string_view name;
  for (const auto& [begin, phase] : phases) {
    if (begin <= position) name = phase;
  }
  return name;
}

Liveness FindLifetimes(const Executable& executable, bool backward) { return LivenessFinder(executable).Run(backward); }

}  // namespace cavs
