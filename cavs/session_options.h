// How a Session plans and runs minibatches. Plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/scheduler.h"
#include "graph/sharing.h"
#include "memory/pool.h"

namespace cavs {

enum class LossReduction : uint8_t {
  kMean,  // gradients are of the summed loss divided by the graphs of the step
  kSum,
};

// How the cores are used. In shards (GraphBatch::Shard), each recurring on a thread of its own; what does not recur is
// shared out inside of large kernels in any case.
enum class ParallelPolicy : uint8_t {
  kAuto,   // in shards of at least two graphs, where the minibatch is large enough; else as kTask
  kTask,   // inside of large kernels alone
  kShard,  // in as many shards as threads, or as graphs where these are fewer
};
// "auto", "task", "shard".
std::string_view ParallelPolicyName(ParallelPolicy policy);
// Throws std::invalid_argument that lists the names.
ParallelPolicy ParseParallelPolicy(std::string_view name);

// Whether passes over data (cavs/prefetcher.h) plan the next minibatches on one more thread while one runs. No bit of
// any result depends on it.
enum class PrefetchPolicy : uint8_t {
  kAuto,  // where the machine has at least two cores, and planning takes a share of the time that is worth it
  kOn,
  kOff,
};
// "auto", "on", "off".
std::string_view PrefetchPolicyName(PrefetchPolicy policy);
// Throws std::invalid_argument that lists the names.
PrefetchPolicy ParsePrefetchPolicy(std::string_view name);

struct SessionOptions {
  // kFsm plans by the policy that the Model keeps when the Session is made (cavs/learned_batching.h).
  BatchingPolicy batching = BatchingPolicy::kFrontier;
  PoolPolicy memory = PoolPolicy::kArena;
  int64_t memory_limit = 0;  // of what a minibatch computes, bytes; 0 for none
  // Equal work of a minibatch is done once: that of equal vertices, except in minibatches that draw dropout, and,
  // unless kOff, what is hoisted for equal inputs and does not depend on draws (vertex/input_sharing.h).
  SharingPolicy sharing = SharingPolicy::kInputs;
  int threads = 1;
  ParallelPolicy parallel = ParallelPolicy::kAuto;
  PrefetchPolicy prefetch = PrefetchPolicy::kAuto;  // of a Trainer and an Evaluator
  LossReduction loss = LossReduction::kMean;
  uint64_t seed = 1;  // of dropout
};

}  // namespace cavs
