#include "backprop/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {
namespace {

constexpr int64_t kGrain = 16384;  // floats of a job: 64 KiB of each array
// Fewer floats than these in all jobs are done before another thread has woken up: an update reads and writes less for
// each than the kernels of vertex/ do.
constexpr int64_t kParallelFloats = 1 << 17;
constexpr int64_t kStepBits = 24;  // a float holds integers of that many bits exactly

struct KindEntry {
  OptimizerKind kind;
  std::string_view name;
  cpu::UpdateKernel cpu::OptimizerKernels::*kernel;
  // Names of the moments, empty for those that it does not have.
  std::string_view first;
  std::string_view second;
};

constexpr std::array<KindEntry, 4> kKinds = {{
    {OptimizerKind::kSgd, "sgd", &cpu::OptimizerKernels::sgd, "", ""},
    {OptimizerKind::kMomentum, "momentum", &cpu::OptimizerKernels::momentum, "momentum.velocity", ""},
    {OptimizerKind::kAdagrad, "adagrad", &cpu::OptimizerKernels::adagrad, "adagrad.sum", ""},
    {OptimizerKind::kAdam, "adam", &cpu::OptimizerKernels::adam, "adam.first", "adam.second"},
}};

const KindEntry& EntryOf(OptimizerKind kind) { return kKinds[static_cast<size_t>(kind)]; }

void RequireRange(std::string_view name, double value, bool inside, std::string_view range) {
  if (!inside || !std::isfinite(value)) {
    ThrowInvalid("optimizer", fmt::format("expected {} {}, got {}", name, range, value));
  }
}

void CheckOptions(const OptimizerOptions& options) {
  RequireRange("lr", options.lr, options.lr > 0, "above 0");
  RequireRange("momentum", options.momentum, options.momentum >= 0 && options.momentum < 1, "in [0, 1)");
  RequireRange("beta1", options.beta1, options.beta1 >= 0 && options.beta1 < 1, "in [0, 1)");
  RequireRange("beta2", options.beta2, options.beta2 >= 0 && options.beta2 < 1, "in [0, 1)");
  // Below the smallest float, 0 / (sqrt(0) + epsilon) would be NaN.
  RequireRange("epsilon", options.epsilon, options.epsilon >= double{std::numeric_limits<float>::min()}, "above 1e-38");
  RequireRange("weight_decay", options.weight_decay, options.weight_decay >= 0, "of at least 0");
  RequireRange("clip", options.clip, options.clip >= 0, "of at least 0");
}

const OptimizerTensor* FindTensor(std::span<const OptimizerTensor> state, std::string_view name) {
  const auto found = std::find_if(state.begin(), state.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == state.end() ? nullptr : &*found;
}

std::string Describe(const OptimizerTensor& tensor) {
  return fmt::format("\"{}\" {}", tensor.name, tensor.shape.ToString());
}

// The tensors of `state` in the order of `expected`, which have its names and shapes.
std::vector<const OptimizerTensor*> MatchState(std::span<const OptimizerTensor> expected,
                                               std::span<const OptimizerTensor> state) {
  constexpr std::string_view kWhere = "optimizer state";
  for (const OptimizerTensor& tensor : state) {
    if (FindTensor(expected, tensor.name) == nullptr) {
      ThrowInvalid(kWhere,
                   fmt::format("expected tensors such as {}, got {}", Describe(expected.back()), Describe(tensor)));
    }
  }
  std::vector<const OptimizerTensor*> matched;
  for (const OptimizerTensor& tensor : expected) {
    const OptimizerTensor* found = FindTensor(state, tensor.name);
    if (found == nullptr) ThrowInvalid(kWhere, fmt::format("expected {}, got no such tensor", Describe(tensor)));
    if (found->shape != tensor.shape || found->values.size() != tensor.values.size()) {
      ThrowInvalid(kWhere, fmt::format("expected {}, got {} of {} numbers", Describe(tensor), Describe(*found),
                                       found->values.size()));
    }
    matched.push_back(found);
  }
  return matched;
}

OptimizerTensor EncodeSteps(int64_t steps) {
  const auto high = static_cast<float>(steps >> kStepBits);
  const auto low = static_cast<float>(steps & ((int64_t{1} << kStepBits) - 1));
  return {"steps", Shape::Vector(2), {high, low}};
}

int64_t DecodeSteps(const OptimizerTensor& tensor) {
  constexpr float kLimit = float{int64_t{1} << kStepBits};
  for (const float part : tensor.values) {
    if (!(part >= 0 && part < kLimit && part == std::floor(part))) {
      ThrowInvalid("optimizer state", fmt::format("expected a count in \"steps\", got {}", part));
    }
  }
  return (static_cast<int64_t>(tensor.values[0]) << kStepBits) + static_cast<int64_t>(tensor.values[1]);
}

}  // namespace

std::string_view OptimizerName(OptimizerKind kind) { return EntryOf(kind).name; }

std::optional<OptimizerKind> FindOptimizer(std::string_view name) {
  for (const KindEntry& entry : kKinds) {
    if (entry.name == name) return entry.kind;
  }
  return std::nullopt;
}

Optimizer::Optimizer(const OptimizerOptions& options, const ParameterStore& parameters, ThreadPool* threads)
    : options_(options),
      kernel_(cpu::FindOptimizerKernels().*EntryOf(options.kind).kernel),
      threads_(threads),
      layout_(parameters.layout()),
      trained_(static_cast<size_t>(layout_.total())),
      moments_(static_cast<size_t>(layout_.total())) {
  CheckOptions(options);
  int64_t longest = kGrain;
  for (int32_t p = 0; p < layout_.total(); ++p) {
    const auto place = static_cast<size_t>(p);
    const ParameterDeclaration& declaration = layout_.declaration(p);
    trained_[place] = layout_.owns(p) && !declaration.frozen;
    if (!trained_[place]) continue;
    const auto size = static_cast<size_t>(declaration.shape.width());
    if (!EntryOf(options.kind).first.empty()) moments_[place].first.resize(size);
    if (!EntryOf(options.kind).second.empty()) moments_[place].second.resize(size);
    if (declaration.is_lookup) longest = std::max(longest, declaration.shape.columns());
  }
  zeros_.resize(static_cast<size_t>(longest));
}

template <typename Body>
void Optimizer::RunJobs(int64_t jobs, int64_t floats, const Body& body) {
  if (floats < kParallelFloats) {
    for (int64_t job = 0; job < jobs; ++job) body(job);
  } else {
    threads_->Run(jobs, [&](int64_t job, int) { body(job); });
  }
}

StepResult Optimizer::Step(ParameterStore& parameters, const Gradients& gradients) {
  CAVS_CHECK(static_cast<size_t>(parameters.layout().total()) == moments_.size(), "parameters of another model");
  CAVS_CHECK(static_cast<size_t>(gradients.layout().total()) == moments_.size(), "gradients of another model");
  const double norm = Norm(gradients);
  if (!std::isfinite(norm)) return {.applied = false, .norm = norm};
  ++steps_;
  const cpu::UpdateScalars scalars = Scalars(norm);
  PlanJobs(gradients);
  RunJobs(static_cast<int64_t>(jobs_.size()), planned_floats_, [&](int64_t number) {
    const Job& job = jobs_[static_cast<size_t>(number)];
    RunJob(job, scalars, gradients, parameters.values(job.parameter));
  });
  int32_t changed = -1;
  for (const Job& job : jobs_) {
    if (job.parameter != changed) parameters.Changed(job.parameter);
    changed = job.parameter;
  }
  return {.applied = true, .norm = norm};
}

double Optimizer::Norm(const Gradients& gradients) {
  std::vector<std::span<const float>> stretches;
  int64_t floats = 0;
  for (size_t p = 0; p < moments_.size(); ++p) {
    const auto parameter = static_cast<int32_t>(p);
    if (!trained_[p] || !gradients.touched(parameter)) continue;
    const bool is_lookup = layout_.declaration(parameter).is_lookup;
    std::span<const float> rest =
        is_lookup ? std::span<const float>(gradients.sparse(parameter).rows) : gradients.dense(parameter);
    floats += std::ssize(rest);
    while (!rest.empty()) {
      stretches.push_back(rest.first(std::min(rest.size(), static_cast<size_t>(kGrain))));
      rest = rest.subspan(stretches.back().size());
    }
  }
  // Summed in a fixed order, so that the norm does not depend on the number of threads.
  std::vector<double> sums(stretches.size());
  const auto sum_of_squares = cpu::FindOptimizerKernels().sum_of_squares;
  RunJobs(static_cast<int64_t>(stretches.size()), floats, [&](int64_t job) {
    const std::span<const float> stretch = stretches[static_cast<size_t>(job)];
    sums[static_cast<size_t>(job)] = sum_of_squares(static_cast<int64_t>(stretch.size()), stretch.data());
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

cpu::UpdateScalars Optimizer::Scalars(double norm) const {
  const bool is_adam = options_.kind == OptimizerKind::kAdam;
  const bool clips = options_.clip > 0 && norm > options_.clip;
  const auto t = static_cast<double>(steps_);
  const double rate = is_adam ? options_.lr / (1 - std::pow(options_.beta1, t)) : options_.lr;
  cpu::UpdateScalars scalars;
  scalars.gradient_scale = clips ? static_cast<float>(options_.clip / norm) : 1.0f;
  scalars.decay = static_cast<float>(options_.weight_decay);
  scalars.rate = static_cast<float>(rate);
  scalars.keep_first = static_cast<float>(is_adam ? options_.beta1 : options_.momentum);
  scalars.add_first = static_cast<float>(1 - options_.beta1);
  scalars.keep_second = static_cast<float>(options_.beta2);
  scalars.add_second = static_cast<float>(1 - options_.beta2);
  scalars.root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, t)));
  scalars.epsilon = static_cast<float>(options_.epsilon);
  return scalars;
}

bool Optimizer::MovesWithoutGradient() const {
  return options_.weight_decay > 0 || options_.kind == OptimizerKind::kMomentum ||
         options_.kind == OptimizerKind::kAdam;
}

void Optimizer::PlanJobs(const Gradients& gradients) {
  jobs_.clear();
  planned_floats_ = 0;
  for (int32_t p = 0; p < layout_.total(); ++p) {
    if (!trained_[static_cast<size_t>(p)]) continue;
    const ParameterDeclaration& declaration = layout_.declaration(p);
    const bool touched = gradients.touched(p);
    // Where a gradient of zeros changes nothing, only what has a gradient is visited.
    const bool all = MovesWithoutGradient() && !(declaration.is_lookup && options_.sparse_updates);
    if (!touched) {
      if (all) PlanStretches(Job::Kind::kZeroGradient, p, declaration.shape.width(), kGrain);
    } else if (!declaration.is_lookup) {
      PlanStretches(Job::Kind::kElements, p, declaration.shape.width(), kGrain);
    } else {
      const int64_t rows_per_job = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, declaration.shape.columns()));
      const auto seen = static_cast<int64_t>(gradients.sparse(p).ids.size());
      PlanStretches(all ? Job::Kind::kAllRows : Job::Kind::kSeenRows, p, all ? declaration.shape.rows() : seen,
                    rows_per_job);
    }
  }
}

void Optimizer::PlanStretches(Job::Kind kind, int32_t parameter, int64_t count, int64_t grain) {
  const bool rows = kind == Job::Kind::kSeenRows || kind == Job::Kind::kAllRows;
  planned_floats_ += count * (rows ? layout_.declaration(parameter).shape.columns() : 1);
  for (int64_t begin = 0; begin < count; begin += grain) {
    jobs_.push_back({kind, parameter, begin, std::min(count, begin + grain)});
  }
}

void Optimizer::RunJob(const Job& job, const cpu::UpdateScalars& scalars, const Gradients& gradients,
                       std::span<float> values) {
  const auto begin = static_cast<size_t>(job.begin), count = static_cast<size_t>(job.end - job.begin);
  switch (job.kind) {
    case Job::Kind::kElements:
      return Update(scalars, job.parameter, job.begin, gradients.dense(job.parameter).subspan(begin, count), values);
    case Job::Kind::kZeroGradient:
      return Update(scalars, job.parameter, job.begin, std::span(zeros_).first(count), values);
    case Job::Kind::kSeenRows:
    case Job::Kind::kAllRows:
      return UpdateRows(job, scalars, gradients.sparse(job.parameter), values);
  }
}

void Optimizer::UpdateRows(const Job& job, const cpu::UpdateScalars& scalars, const SparseRows& gradient,
                           std::span<float> values) {
  const int64_t width = layout_.declaration(job.parameter).shape.columns();
  const auto row_of = [&](size_t place) {
    return std::span(gradient.rows).subspan(place * static_cast<size_t>(width), static_cast<size_t>(width));
  };
  if (job.kind == Job::Kind::kSeenRows) {
    for (auto place = static_cast<size_t>(job.begin); place < static_cast<size_t>(job.end); ++place) {
      Update(scalars, job.parameter, gradient.ids[place] * width, row_of(place), values);
    }
    return;
  }
  const std::span<const float> zero_row = std::span(zeros_).first(static_cast<size_t>(width));
  auto next = std::lower_bound(gradient.ids.begin(), gradient.ids.end(), job.begin);
  for (int64_t row = job.begin; row < job.end; ++row) {
    const bool seen = next != gradient.ids.end() && *next == row;
    const auto place = static_cast<size_t>(next - gradient.ids.begin());
    Update(scalars, job.parameter, row * width, seen ? row_of(place) : zero_row, values);
    if (seen) ++next;
  }
}

void Optimizer::Update(const cpu::UpdateScalars& scalars, int32_t parameter, int64_t offset,
                       std::span<const float> gradient, std::span<float> values) {
  Moments& moments = moments_[static_cast<size_t>(parameter)];
  float* first = moments.first.empty() ? nullptr : moments.first.data() + offset;
  float* second = moments.second.empty() ? nullptr : moments.second.data() + offset;
  kernel_(scalars, static_cast<int64_t>(gradient.size()), gradient.data(), values.data() + offset, first, second);
}

std::vector<OptimizerTensor> Optimizer::SaveState() const {
  const KindEntry& entry = EntryOf(options_.kind);
  std::vector<OptimizerTensor> state{EncodeSteps(steps_)};
  for (int32_t p = 0; p < layout_.declared(); ++p) {
    const ParameterDeclaration& declaration = layout_.declaration(p);
    const Moments& moments = moments_[static_cast<size_t>(layout_.owner(p))];
    const auto save = [&](std::string_view name, const std::vector<float>& values) {
      if (values.empty()) return;
      state.push_back({fmt::format("{}/{}", name, declaration.name), declaration.shape, layout_.Read(p, values)});
    };
    save(entry.first, moments.first);
    save(entry.second, moments.second);
  }
  return state;
}

void Optimizer::LoadState(std::span<const OptimizerTensor> state) {
  const std::vector<const OptimizerTensor*> matched = MatchState(SaveState(), state);
  steps_ = DecodeSteps(*matched.front());
  auto next = matched.begin() + 1;
  for (int32_t p = 0; p < layout_.declared(); ++p) {
    Moments& moments = moments_[static_cast<size_t>(layout_.owner(p))];
    if (!moments.first.empty()) layout_.Write(p, (*next++)->values, moments.first);
    if (!moments.second.empty()) layout_.Write(p, (*next++)->values, moments.second);
  }
}

}  // namespace cavs
