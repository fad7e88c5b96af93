// Random tables for BatchingPolicy::kFsm: whatever a table says, schedules must be valid and answers the same.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cavs/base/random.h"
#include "graph/fsm_policy.h"

namespace cavs::testing {

// Rules for about half of the sets of `types` types, which must be few, and for a random order of half of them.
inline FsmPolicy RandomFsmPolicy(CounterRandom& random, int32_t types) {
  std::vector<FsmRule> by_size, by_set;
  for (uint32_t set = 0; set < uint32_t{1} << types; ++set) {
    std::vector<int32_t> ready;
    for (int32_t type = 0; type < types; ++type) {
      if ((set >> type & 1U) != 0) ready.push_back(type);
    }
    if (ready.size() < 2) continue;
    const auto any = [&] { return ready[static_cast<size_t>(random.Below(std::ssize(ready)))]; };
    if (random.Below(2) == 0) by_set.push_back({ready, any()});
    Shuffle(std::span(ready), random);
    if (random.Below(2) == 0) by_size.push_back({ready, any()});
  }
  const FsmFallback fallback = random.Below(2) == 0 ? FsmFallback::kFrontier : FsmFallback::kAgenda;
  return FsmPolicy(fallback, std::move(by_size), std::move(by_set));
}

}  // namespace cavs::testing
