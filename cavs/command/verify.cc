#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "backprop/differentiate.h"
#include "cavs/command/commands.h"
#include "cavs/command/figures.h"
#include "cavs/command/inputs.h"
#include "cavs/command/metrics.h"
#include "cavs/command/progress.h"
#include "cavs/command/settings.h"
#include "vertex/interpreter.h"

namespace cavs {
namespace {

constexpr size_t kTensorsShown = 12;

double Infinity() { return std::numeric_limits<double>::infinity(); }

// How far a tensor lies from its reference.
struct Deviation {
  double reference = 0;   // largest absolute value
  double difference = 0;  // largest
  double relative() const { return difference == 0 ? 0 : difference / reference; }

  template <typename Actual>
  void Add(std::span<const double> expected, std::span<const Actual> actual) {
    if (expected.size() != actual.size()) difference = Infinity();
    for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
      const double apart = std::abs(expected[i] - static_cast<double>(actual[i]));
      reference = std::max(reference, std::abs(expected[i]));
      difference = std::max(difference, std::isfinite(apart) ? apart : Infinity());
    }
  }
};

struct TensorResult {
  std::string name;
  bool is_gradient = false;
  Deviation worst;  // of the minibatch where the relative difference is largest
  double largest_difference = 0;
};

// Largest deviations of all tensors over all minibatches.
class Comparison {
 public:
  void Add(const std::string& name, bool is_gradient, const Deviation& deviation) {
    const auto [place, is_new] = index_.try_emplace(name, results_.size());
    if (is_new) results_.push_back({name, is_gradient, {}, 0});
    TensorResult& result = results_[place->second];
    if (is_new || !(deviation.relative() <= result.worst.relative())) result.worst = deviation;
    result.largest_difference = std::max(result.largest_difference, deviation.difference);
  }

  // From the worst to the best.
  std::vector<TensorResult> Sorted() const {
    std::vector<TensorResult> sorted = results_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const TensorResult& a, const TensorResult& b) {
      return a.worst.relative() > b.worst.relative();
    });
    return sorted;
  }

  double MaxAbsolute(bool gradients) const {
    double largest = 0;
    for (const TensorResult& result : results_) {
      if (result.is_gradient == gradients) largest = std::max(largest, result.largest_difference);
    }
    return largest;
  }
  double MaxRelative(bool gradients) const {
    double largest = 0;
    for (const TensorResult& result : results_) {
      if (result.is_gradient == gradients) largest = std::max(largest, result.worst.relative());
    }
    return largest;
  }

 private:
  std::vector<TensorResult> results_;
  std::map<std::string, size_t> index_;
};

// Runs minibatches twice, by the executor under the chosen policies and by the interpreter, which knows F only as it
// was written: before any pass, one vertex at a time, in double precision.
class Verifier {
 public:
  Verifier(Model& model, const SessionOptions& options)
      : program_(model.program()),
        gradient_program_(Differentiate(program_)),
        interpreter_(program_, &gradient_program_, model.parameters()),
        training_(model, options),
        inference_(std::as_const(model), options) {}

  void Check(std::span<const Example> examples) {
    CheckTraining(examples);
    CheckInference(examples);
  }

  const Comparison& comparison() const { return comparison_; }
  int64_t vertices() const { return vertices_; }

 private:
  void CheckTraining(std::span<const Example> examples) {
    const SessionOptions& options = training_.options();
    RunOptions run;
    run.training = true;
    run.seed = options.seed;
    run.step = static_cast<uint64_t>(training_.step());
    if (options.loss == LossReduction::kMean) run.loss_scale = 1.0f / static_cast<float>(examples.size());
    const BatchReport& report = training_.Accumulate(examples, 0, [&] {
      interpreter_.Forward(training_.batch(), run);
      CompareValues(training_, "training");
    });
    vertices_ += report.vertices;
    if (report.parts > 1) {
      whole_.Clear();
      for (const Example& example : examples) whole_.Add(*example.graph, example.number);
      interpreter_.Forward(whole_, run);
    }
    interpreter_.Backward();
    CompareGradients();
    training_.DropGradients();
  }

  void CheckInference(std::span<const Example> examples) {
    RunOptions run;
    run.head = HeadRows::kAll;
    inference_.Forward(examples, HeadRows::kAll, [&] {
      interpreter_.Forward(inference_.batch(), run);
      CompareValues(inference_, "inference");
    });
  }

  void CompareValues(Session& session, std::string_view mode) {
    const Executor& executor = session.executor();
    const auto add = [&](std::string_view what, std::string_view name, const Deviation& deviation) {
      comparison_.Add(fmt::format("{} {} ({})", what, name, mode), false, deviation);
    };
    const std::vector<ChannelDeclaration>& channels = program_.signature->channels;
    for (int32_t channel = 0; channel < std::ssize(channels); ++channel) {
      const ChannelDeclaration& declaration = channels[static_cast<size_t>(channel)];
      if (declaration.kind != ChannelKind::kState) continue;
      Deviation deviation;
      for (int32_t vertex = 0; vertex < session.batch().vertex_count(); ++vertex) {
        deviation.Add(interpreter_.state(channel, vertex), executor.state(channel, vertex));
      }
      add("state", declaration.name, deviation);
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      Deviation deviation;
      deviation.Add(interpreter_.output(i), executor.output(i));
      add("output", program_.outputs[i].name, deviation);
    }
    for (size_t i = 0; i < program_.losses.size(); ++i) {
      Deviation deviation;
      deviation.Add(interpreter_.loss_rows(i), executor.loss_rows(i));
      add("loss", fmt::format("{}", i), deviation);
    }
  }

  void CompareGradients() {
    const std::vector<ParameterDeclaration>& parameters = program_.signature->parameters;
    for (int32_t p = 0; p < std::ssize(parameters); ++p) {
      Deviation deviation;
      deviation.Add<float>(interpreter_.gradient(p), training_.gradients().Get(p));
      comparison_.Add(fmt::format("gradient of {}", parameters[static_cast<size_t>(p)].name), true, deviation);
    }
  }

  Program program_;
  Program gradient_program_;
  Interpreter interpreter_;
  Session training_;
  Session inference_;
  Comparison comparison_;
  GraphBatch whole_;  // of a minibatch that ran in parts
  int64_t vertices_ = 0;
};

void PrintTable(const Comparison& comparison, Output& out) {
  const std::vector<TensorResult> tensors = comparison.Sorted();
  out.Line("{:<32} {:>12} {:>12} {:>12}", "worst tensors", "largest", "difference", "relative");
  for (size_t i = 0; i < std::min(tensors.size(), kTensorsShown); ++i) {
    const Deviation& worst = tensors[i].worst;
    out.Line("{:<32} {:>12.4g} {:>12.3e} {:>12.3e}", tensors[i].name, worst.reference, worst.difference,
             worst.relative());
  }
  if (tensors.size() > kTensorsShown) out.Line("and {} better ones", tensors.size() - kTensorsShown);
}

}  // namespace

void RunVerify(Invocation& call) {
  RequireMetricsPlace(call.flags);
  const SessionOptions session = SessionFrom(call.flags);
  const ModelAndData task = ReadModelAndData(call);
  MetricsWriter metrics(call.flags.Text("metrics"), /*append=*/false);
  metrics.Write("config", Configuration(call));
  if (task.batching) metrics.Write("batching", BatchingFields(*task.batching));
  call.out.Line("{}", DescribeConfiguration(call));

  Progress progress(ProgressOnStderr(call.flags.Bool("quiet")));
  progress.Begin("verifying", task.data.size(), std::string(Describe(task.data.task).examples));
  Verifier verifier(*task.trained.model, session);
  const int64_t batch_size = call.flags.Int("batch_size");
  for (int64_t begin = 0; begin < task.data.size(); begin += batch_size) {
    EndIfInterrupted(call.interrupt);
    std::vector<Example> examples;
    for (int64_t i = begin; i < std::min(begin + batch_size, task.data.size()); ++i) {
      examples.push_back({&task.data.graphs[static_cast<size_t>(i)], i});
    }
    verifier.Check(examples);
    progress.Update(begin + std::ssize(examples));
  }
  progress.End();

  const Comparison& comparison = verifier.comparison();
  PrintTable(comparison, call.out);
  const double value = comparison.MaxRelative(false), gradient = comparison.MaxRelative(true);
  const double tolerance = call.flags.Double("tolerance");
  call.out.Line("{} examples, {} vertices: values within {:.2e}, gradients within {:.2e} of the interpreter",
                task.data.size(), verifier.vertices(), value, gradient);
  const bool holds = value <= tolerance && gradient <= tolerance;
  metrics.Write("verify", {{"examples", task.data.size()},
                           {"vertices", verifier.vertices()},
                           {"max_abs_value", comparison.MaxAbsolute(false)},
                           {"max_rel_value", value},
                           {"max_abs_gradient", comparison.MaxAbsolute(true)},
                           {"max_rel_gradient", gradient},
                           {"tolerance", tolerance},
                           {"holds", holds}});
  if (holds) return;
  const TensorResult worst = comparison.Sorted().front();
  throw std::runtime_error(fmt::format("[verify] expected differences of at most {}, got {:.3e} for {}", tolerance,
                                       worst.worst.relative(), worst.name));
}

}  // namespace cavs
