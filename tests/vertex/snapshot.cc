#include "tests/vertex/snapshot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "backprop/differentiate.h"
#include "memory/device.h"
#include "tests/graph/random_policy.h"
#include "vertex/input_sharing.h"

namespace cavs {
namespace {

template <typename Row>
void Append(const Row& row, std::vector<double>* values) {
  values->insert(values->end(), row.begin(), row.end());
}

// What an Executor and an Interpreter have in common.
template <typename Run>
Snapshot TakeValues(const Program& f, const GraphBatch& batch, const Run& run) {
  Snapshot snapshot;
  for (size_t channel = 0; channel < f.signature->channels.size(); ++channel) {
    const ChannelDeclaration& declaration = f.signature->channels[channel];
    if (declaration.kind != ChannelKind::kState) continue;
    NamedTensor tensor{"state " + declaration.name, {}};
    for (int32_t vertex = 0; vertex < batch.vertex_count(); ++vertex) {
      Append(run.state(static_cast<int32_t>(channel), vertex), &tensor.values);
    }
    snapshot.push_back(std::move(tensor));
  }
  NamedTensor heads{"head vertices", {}};
  Append(run.head_vertices(), &heads.values);
  snapshot.push_back(std::move(heads));
  for (size_t i = 0; i < f.outputs.size(); ++i) {
    snapshot.push_back({"output " + f.outputs[i].name, {}});
    Append(run.output(i), &snapshot.back().values);
  }
  for (size_t i = 0; i < f.losses.size(); ++i) {
    snapshot.push_back({fmt::format("loss {}", i), {}});
    Append(run.loss_rows(i), &snapshot.back().values);
  }
  snapshot.push_back({"loss", {run.loss()}});
  return snapshot;
}

double LargestValue(const NamedTensor& tensor) {
  double largest = 0;
  for (const double value : tensor.values) largest = std::max(largest, std::abs(value));
  return largest;
}

// `floor` is the least scale.
double TensorDifference(const NamedTensor& reference, const NamedTensor& result, double floor) {
  if (reference.name != result.name || reference.values.size() != result.values.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double difference = 0;
  for (size_t i = 0; i < reference.values.size(); ++i) {
    if (!std::isfinite(reference.values[i]) || !std::isfinite(result.values[i])) {
      return std::numeric_limits<double>::infinity();
    }
    difference = std::max(difference, std::abs(reference.values[i] - result.values[i]));
  }
  return difference == 0 ? 0 : difference / std::max(LargestValue(reference), floor);
}

// A table for BatchingPolicy::kFsm, which may say what it likes.
std::shared_ptr<const FsmPolicy> RandomTable(const Program& f) {
  CounterRandom random(f.instructions.size());
  const auto types = static_cast<int32_t>(f.signature->types.size());
  return std::make_shared<const FsmPolicy>(testing::RandomFsmPolicy(random, types));
}

}  // namespace

Difference WorstDifference(const Snapshot& reference, const Snapshot& result) {
  if (reference.size() != result.size()) return {std::numeric_limits<double>::infinity(), "number of tensors"};
  double largest_gradient = 0;
  for (const NamedTensor& tensor : reference) {
    if (tensor.is_gradient) largest_gradient = std::max(largest_gradient, LargestValue(tensor));
  }
  Difference worst;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double floor = reference[i].is_gradient ? 0.01 * largest_gradient : 0;
    const double error = TensorDifference(reference[i], result[i], floor);
    if (error > worst.error) worst = {error, reference[i].name};
  }
  return worst;
}

Snapshot RunInterpreter(const Program& f, const GraphBatch& batch, const RunOptions& options, bool gradients,
                        Interpreter* interpreter) {
  interpreter->Forward(batch, options);
  Snapshot snapshot = TakeValues(f, batch, *interpreter);
  if (!gradients) return snapshot;
  interpreter->Backward();
  for (size_t i = 0; i < f.signature->parameters.size(); ++i) {
    snapshot.push_back(
        {"gradient of " + f.signature->parameters[i].name, interpreter->gradient(static_cast<int32_t>(i)), true});
  }
  return snapshot;
}

std::string RunPolicy::ToString() const {
  return fmt::format("batching={} memory={} threads={} sharing={} shards={}", BatchingPolicyName(batching),
                     PoolPolicyName(memory), threads, SharingPolicyName(sharing), shards);
}

std::string ToString(const PassOptions& passes) {
  return fmt::format("hoisting={:d} lazy_batching={:d} merging={:d} fusion={:d} in_place={:d} cse={:d} dead_code={:d}",
                     passes.hoisting, passes.lazy_batching, passes.merging, passes.fusion, passes.in_place,
                     passes.common_expressions, passes.dead_code);
}

std::vector<PassOptions> AllPassOptions() {
  std::vector<PassOptions> all;
  // Half of all combinations: any five passes are tried in all ways together.
  for (unsigned bits = 0; bits < 64; ++bits) {
    const auto on = [bits](unsigned bit) { return (bits >> bit & 1U) != 0; };
    all.push_back({.hoisting = on(0),
                   .lazy_batching = on(1),
                   .merging = on(5),
                   .fusion = on(2),
                   .in_place = std::popcount(bits) % 2 == 0,
                   .common_expressions = on(3),
                   .dead_code = on(4)});
  }
  return all;
}

std::vector<RunPolicy> AllRunPolicies() {
  std::vector<RunPolicy> all;
  for (const BatchingPolicy batching : {BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                        BatchingPolicy::kAgenda, BatchingPolicy::kFsm}) {
    for (const PoolPolicy memory : kPoolPolicies) {
      for (const int threads : {1, 2}) all.push_back({batching, memory, threads});
    }
    all.push_back({batching, PoolPolicy::kArena, /*threads=*/2, SharingPolicy::kOff, /*shards=*/2});
    all.push_back({batching, PoolPolicy::kPlanned, /*threads=*/2, SharingPolicy::kOff, /*shards=*/3});
  }
  return all;
}

bool ShardsKeepBits(const RunOptions& options, const PassOptions& passes) {
  return options.packed && passes.hoisting && passes.lazy_batching;
}

Runner::Runner(std::shared_ptr<const Executable> executable, const ParameterStore* parameters, const RunPolicy& policy)
    : executable_(std::move(executable)),
      parameters_(parameters),
      threads_(policy.threads),
      pool_(MakePool(policy.memory, MakeDevice(DeviceKind::kCpu))),
      scheduler_(MakeScheduler(policy.batching, RandomTable(executable_->forward()))),
      policy_(policy),
      sharer_(policy.sharing, executable_->inputs()),
      executor_(std::make_unique<Executor>(executable_, parameters, pool_.get(), &threads_)),
      gradients_(executable_->forward().signature) {}

Snapshot Runner::Run(const GraphBatch& batch, RunOptions options, bool gradients, bool adds) {
  options.backward = gradients;
  const bool shares = policy_.sharing != SharingPolicy::kOff && !(options.training && executable_->draws());
  cut_batch_ = batch;
  cut_batch_.Shard(policy_.shards);
  if (shares) {
    sharer_.Merge(cut_batch_, &shared_batch_, &merged_);
    const SharedVertices shared{&cut_batch_, merged_};
    scheduler_->Plan(shared_batch_, &schedule_);
    executor_->Forward(shared_batch_, schedule_, options, &shared);
  } else {
    scheduler_->Plan(cut_batch_, &schedule_);
    executor_->Forward(cut_batch_, schedule_, options);
  }
  const Program& f = executable_->forward();
  Snapshot snapshot = TakeValues(f, batch, *executor_);
  if (!gradients) return snapshot;
  if (!adds) gradients_.Clear();
  executor_->Backward(&gradients_);
  for (int32_t i = 0; i < parameters_->count(); ++i) {
    snapshot.push_back({"gradient of " + parameters_->declaration(i).name, {}, true});
    Append(gradients_.Get(i), &snapshot.back().values);
  }
  return snapshot;
}

namespace {

void LayOut(const std::shared_ptr<const Signature>& signature, ParameterStore* parameters) {
  ParameterStore laid_out(signature, 0, parameters->precision());
  for (int32_t i = 0; i < parameters->count(); ++i) laid_out.Set(i, parameters->Get(i));
  *parameters = std::move(laid_out);
}

}  // namespace

std::shared_ptr<const Executable> CompileAndPack(const Program& f, bool training, const PassOptions& passes,
                                                 ParameterStore* parameters, bool shares_inputs) {
  Program simplified = Simplify(f, passes);
  if (shares_inputs) simplified = ShareInputs(std::move(simplified), passes);
  Program gradient;
  if (training) gradient = Simplify(Differentiate(simplified), passes);
  std::shared_ptr<const Executable> executable =
      Executable::Compile(simplified, training ? &gradient : nullptr, passes);
  LayOut(simplified.signature, parameters);
  for (const int32_t parameter : executable->multiplied()) parameters->RequestPacked(parameter);
  parameters->Pack();
  return executable;
}

}  // namespace cavs
