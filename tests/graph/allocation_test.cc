// Packing and planning minibatches allocate nothing once their buffers have grown. Every allocation of this executable
// is counted, so the test has an executable of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "graph/graph_batch.h"
#include "graph/schedule.h"
#include "graph/scheduler.h"
#include "tests/graph/random_graphs.h"
#include "tests/graph/random_policy.h"

namespace {

std::atomic<int64_t> allocation_count = 0;

}  // namespace

// Not inlined, as the compiler would then see malloc paired with operator delete and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocation_count;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace cavs {
namespace {

class Allocation : public ::testing::TestWithParam<BatchingPolicy> {};

TEST_P(Allocation, NoneOnceWarm) {
  CounterRandom random(3);
  const std::vector<InputGraph> graphs = testing::RandomGraphs(random, 50);
  std::vector<const InputGraph*> pointers(graphs.size());
  std::transform(graphs.begin(), graphs.end(), pointers.begin(), [](const InputGraph& graph) { return &graph; });
  const std::vector<int64_t> examples(graphs.size());
  const std::span<const InputGraph* const> all = pointers;

  GraphBatch batch;
  Schedule schedule;
  const auto scheduler =
      MakeScheduler(GetParam(), std::make_shared<const FsmPolicy>(testing::RandomFsmPolicy(random, 4)));
  const auto step = [&](size_t first, size_t count) {
    batch.Pack(all.subspan(first, count), std::span(examples).first(count));
    scheduler->Plan(batch, &schedule);
    return schedule.vertex_count();
  };
  step(0, 50);
  const int64_t before = allocation_count;
  EXPECT_GT(before, 0) << "allocations are not counted";
  int64_t vertices = step(0, 50) + step(10, 1) + step(20, 25);
  EXPECT_EQ(allocation_count, before);
  EXPECT_GT(vertices, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Allocation,
                         ::testing::Values(BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                           BatchingPolicy::kAgenda, BatchingPolicy::kFsm),
                         [](const auto& param) { return std::string(BatchingPolicyName(param.param)); });

}  // namespace
}  // namespace cavs
