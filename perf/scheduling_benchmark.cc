// Cost of packing and planning a minibatch, by policy, shape of the graphs and size: vertices/s, seconds per vertex,
// and tasks beside the fewest that are possible.
//
// And whether schedules of minibatches that come again could be kept instead: what it costs to find one by the shape of
// its minibatch, beside planning it.
//
// Minibatches grow by the number of their graphs, as a larger --batch_size makes them grow. Buffers are warm. The table
// of the fsm policy was learned from other graphs of the shape.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cavs/base/random.h"
#include "cavs/xxh64.h"
#include "graph/fsm_learner.h"
#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "tests/support/graph_shapes.h"

namespace cavs {
namespace {

constexpr int64_t kSizes[] = {1'000, 10'000, 100'000, 1'000'000};
// More graphs than these repeat them: what planning reads is laid out anew by packing.
constexpr int64_t kDistinctVertices = 1'000'000;

// A sentence.
InputGraph Chain(InputGraphBuilder& builder, CounterRandom& random) {
  return testing::MakeChain(builder, 5 + random.Below(36));
}

// The binarised parse of a sentence, at random.
InputGraph RandomTree(InputGraphBuilder& builder, CounterRandom& random) {
  return testing::MakeRandomTree(builder, random, 5 + random.Below(31));
}

InputGraph CompleteTree(InputGraphBuilder& builder, CounterRandom&) {
  constexpr int64_t kLeaves = 256;
  int64_t next = 0;
  const auto pick = [&](int64_t row) {
    next = next + 1 < row ? next : 0;
    return next++;
  };
  return testing::JoinLeaves(builder, kLeaves, pick, [] { return 1; });
}

// Four types; up to three children each, a few of them missing, from the last twenty vertices.
InputGraph RandomDag(InputGraphBuilder& builder, CounterRandom& random) {
  const int64_t vertices = 20 + random.Below(41);
  std::vector<int32_t> children;
  for (int64_t v = 0; v < vertices; ++v) {
    children.clear();
    for (int64_t slots = random.Below(4); slots > 0; --slots) {
      const int64_t back = 1 + random.Below(20);
      children.push_back(back > v ? kNone : static_cast<int32_t>(v - back));
    }
    builder.AddVertex(static_cast<int32_t>(random.Below(4)), children);
  }
  return builder.Build();
}

// Every token's layers, each a type of its own: a grid of three rows.
InputGraph Layers(InputGraphBuilder& builder, CounterRandom& random) {
  constexpr int32_t kLayers = 3;
  const auto length = static_cast<int32_t>(5 + random.Below(36));
  for (int32_t t = 0; t < length; ++t) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      const int32_t before = t == 0 ? kNone : (t - 1) * kLayers + layer;
      if (layer == 0) {
        builder.AddVertex(layer, {before});
      } else {
        builder.AddVertex(layer, {before, t * kLayers + layer - 1});
      }
    }
  }
  return builder.Build();
}

// A random binary tree whose inner vertices have one of three types: expressions of three operators.
InputGraph TypedTree(InputGraphBuilder& builder, CounterRandom& random) {
  const int64_t leaves = 5 + random.Below(31);
  return testing::JoinLeaves(
      builder, leaves, [&](int64_t row) { return random.Below(row - 1); },
      [&] { return static_cast<int32_t>(1 + random.Below(3)); });
}

// A sentence read in both directions, with a tag for each token: types 0 and 1, and 2 above both.
InputGraph Tagger(InputGraphBuilder& builder, CounterRandom& random) {
  const auto length = static_cast<int32_t>(5 + random.Below(36));
  for (int32_t t = 0; t < length; ++t) builder.AddVertex(0, {t == 0 ? kNone : t - 1});
  for (int32_t t = 0; t < length; ++t) builder.AddVertex(1, {t + 1 == length ? kNone : length + t + 1});
  for (int32_t t = 0; t < length; ++t) builder.AddVertex(2, {t, length + t});
  return builder.Build();
}

// Characters, the words that span them, and a tag for each character.
InputGraph Lattice(InputGraphBuilder& builder, CounterRandom& random) {
  return testing::MakeLattice(builder, random, 10 + random.Below(41));
}

using MakeGraph = InputGraph (*)(InputGraphBuilder&, CounterRandom&);

// Graphs of one shape with `vertices` vertices in all, or a few more.
class Minibatch {
 public:
  Minibatch(MakeGraph make, int64_t vertices, uint64_t seed) {
    InputGraphBuilder builder(MakeColumns({}));
    CounterRandom random(seed);
    int64_t count = 0;
    while (count < std::min(vertices, kDistinctVertices)) {
      graphs_.push_back(make(builder, random));
      count += graphs_.back().vertex_count();
    }
    for (const InputGraph& graph : graphs_) pointers_.push_back(&graph);
    examples_.resize(pointers_.size());
  }

  void Pack(GraphBatch* batch) const { batch->Pack(pointers_, examples_); }

 private:
  std::vector<InputGraph> graphs_;
  std::vector<const InputGraph*> pointers_;
  std::vector<int64_t> examples_;
};

void CountVertices(benchmark::State& state, const GraphBatch& batch) {
  const auto vertices = static_cast<double>(batch.vertex_count()) * static_cast<double>(state.iterations());
  state.counters["vertices/s"] = benchmark::Counter(vertices, benchmark::Counter::kIsRate);
  state.counters["s/vertex"] = benchmark::Counter(vertices, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void TimePack(benchmark::State& state, MakeGraph make) {
  const Minibatch minibatch(make, state.range(0), 0);
  GraphBatch batch;
  minibatch.Pack(&batch);
  for (auto _ : state) minibatch.Pack(&batch);
  CountVertices(state, batch);
}

std::shared_ptr<const FsmPolicy> LearnTable(MakeGraph make, int64_t vertices) {
  constexpr uint64_t kMinibatches = 8;
  constexpr int64_t kMostVertices = 10'000;
  std::vector<Minibatch> minibatches;
  std::vector<GraphBatch> sample(kMinibatches);
  for (uint64_t i = 0; i < kMinibatches; ++i) {
    minibatches.emplace_back(make, std::min(vertices, kMostVertices), i + 1);
    minibatches.back().Pack(&sample[i]);
  }
  return std::make_shared<const FsmPolicy>(LearnFsmPolicy(sample).policy);
}

void TimePlan(benchmark::State& state, MakeGraph make, BatchingPolicy policy) {
  const Minibatch minibatch(make, state.range(0), 0);
  GraphBatch batch;
  minibatch.Pack(&batch);
  Schedule schedule;
  const auto scheduler =
      MakeScheduler(policy, policy == BatchingPolicy::kFsm ? LearnTable(make, state.range(0)) : nullptr);
  scheduler->Plan(batch, &schedule);
  for (auto _ : state) scheduler->Plan(batch, &schedule);
  CountVertices(state, batch);
  state.counters["tasks"] = static_cast<double>(schedule.task_count());
  state.counters["lower_bound"] = static_cast<double>(Report(batch, schedule).task_lower_bound);
}

// Reads what a run reads of a schedule, so that one from a cache pays for its distance.
int64_t Read(const Schedule& schedule) {
  int64_t sum = 0;
  const auto add = [&](const auto& values) { sum = std::accumulate(values.begin(), values.end(), sum); };
  add(schedule.row_of_vertex());
  for (int32_t type = 0; type < schedule.type_count(); ++type) {
    add(schedule.vertex_of_row(type));
    add(schedule.edge_begin(type));
    add(schedule.edge_child(type));
    add(schedule.edge_parent(type));
  }
  return sum;
}

// A schedule under the shape that it was made for. Hashes may collide, so that shapes are compared in full.
class KeptSchedule {
 public:
  KeptSchedule(const GraphBatch& batch, Scheduler* scheduler)
      : types_(batch.types().begin(), batch.types().end()),
        child_begin_(batch.child_begin().begin(), batch.child_begin().end()),
        children_(batch.children().begin(), batch.children().end()) {
    scheduler->Plan(batch, &schedule_);
  }

  static uint64_t Hash(const GraphBatch& batch) {
    Xxh64 hash;
    hash.Update(std::as_bytes(batch.types()));
    hash.Update(std::as_bytes(batch.child_begin()));
    hash.Update(std::as_bytes(batch.children()));
    return hash.Digest();
  }
  bool Fits(const GraphBatch& batch) const {
    const auto equal = [](const auto& kept, const auto& given) {
      return std::equal(kept.begin(), kept.end(), given.begin(), given.end());
    };
    return equal(types_, batch.types()) && equal(child_begin_, batch.child_begin()) &&
           equal(children_, batch.children());
  }
  const Schedule& schedule() const { return schedule_; }

 private:
  std::vector<int32_t> types_;
  std::vector<int64_t> child_begin_;
  std::vector<int32_t> children_;
  Schedule schedule_;
};

// Epochs over the same minibatches in the same order: the best case for keeping schedules, each of which is found.
constexpr uint64_t kMinibatchesOfEpoch = 64;

// `range(0)` is the size of a minibatch, 1 for one graph. Packs each minibatch, and plans it or finds its schedule.
void TimeEpoch(benchmark::State& state, MakeGraph make, BatchingPolicy policy, bool keeps) {
  std::vector<Minibatch> minibatches;
  minibatches.reserve(kMinibatchesOfEpoch);
  for (uint64_t i = 0; i < kMinibatchesOfEpoch; ++i) minibatches.emplace_back(make, state.range(0), i);
  const auto scheduler =
      MakeScheduler(policy, policy == BatchingPolicy::kFsm ? LearnTable(make, state.range(0)) : nullptr);
  GraphBatch batch;
  Schedule schedule;
  std::unordered_map<uint64_t, KeptSchedule> kept;
  int64_t vertices = 0;
  for (const Minibatch& minibatch : minibatches) {
    minibatch.Pack(&batch);
    vertices += batch.vertex_count();
    if (keeps) kept.try_emplace(KeptSchedule::Hash(batch), batch, scheduler.get());
  }
  for (auto _ : state) {
    for (const Minibatch& minibatch : minibatches) {
      minibatch.Pack(&batch);
      const Schedule* found = &schedule;
      if (keeps) {
        const KeptSchedule& candidate = kept.at(KeptSchedule::Hash(batch));
        if (!candidate.Fits(batch)) return state.SkipWithError("two shapes have one hash");
        found = &candidate.schedule();
      } else {
        scheduler->Plan(batch, &schedule);
      }
      benchmark::DoNotOptimize(Read(*found));
    }
  }
  const double all = static_cast<double>(vertices) * static_cast<double>(state.iterations());
  state.counters["s/vertex"] = benchmark::Counter(all, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void RegisterAll() {
  const std::pair<const char*, MakeGraph> shapes[] = {
      {"chains", Chain},  {"complete_trees", CompleteTree}, {"random_trees", RandomTree}, {"random_dags", RandomDag},
      {"layers", Layers}, {"typed_trees", TypedTree},       {"taggers", Tagger},          {"lattices", Lattice}};
  const auto sizes = [](benchmark::internal::Benchmark* b) {
    for (const int64_t size : kSizes) b->Arg(size);
    b->Unit(benchmark::kMicrosecond);
  };
  for (const auto& shape : shapes) {
    sizes(benchmark::RegisterBenchmark(fmt::format("pack/{}", shape.first).c_str(), TimePack, shape.second));
    for (const BatchingPolicy policy : {BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                        BatchingPolicy::kAgenda, BatchingPolicy::kFsm}) {
      const std::string name = fmt::format("plan/{}/{}", BatchingPolicyName(policy), shape.first);
      sizes(benchmark::RegisterBenchmark(name.c_str(), TimePlan, shape.second, policy));
    }
    for (const BatchingPolicy policy : {BatchingPolicy::kFrontier, BatchingPolicy::kAgenda, BatchingPolicy::kFsm}) {
      for (const bool keeps : {false, true}) {
        const std::string name =
            fmt::format("epoch/{}/{}/{}", keeps ? "find" : "plan", BatchingPolicyName(policy), shape.first);
        benchmark::RegisterBenchmark(name.c_str(), TimeEpoch, shape.second, policy, keeps)
            ->Arg(1)
            ->Arg(1'000)
            ->Arg(10'000)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace
}  // namespace cavs

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  cavs::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
