// FsmPolicy: the learned batching policy of ED-Batch (Chen et al., ICML 2023, arXiv 2302.03851), a finite-state
// machine.
//
// A state says which vertex types have ready vertices; a rule gives the type whose ready vertices become the next task.
// Rules come in two encodings of a state. Those "by size" name the types in order of their ready vertices, most first
// and equals by type ("sort" in the paper); those "by set" name them in ascending order, whatever their sizes ("base").
// The first are looked up before the second; a state that neither knows goes by `fallback`. Immutable, so that any
// number of threads may read one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/input_graph.h"

namespace cavs {

// In a state that is no rule's: the type with the most ready vertices, or that of the lowest average depth.
enum class FsmFallback : uint8_t { kFrontier, kAgenda };

struct FsmRule {
  std::vector<int32_t> ready;  // vertex types, at least two
  int32_t chosen = kNone;      // one of them
  friend bool operator==(const FsmRule&, const FsmRule&) = default;
};

class FsmPolicy {
 public:
  // Without rules: the fallback alone.
  explicit FsmPolicy(FsmFallback fallback = FsmFallback::kFrontier) : fallback_(fallback) {}
  // Rules in any order; the types of those by set in any order too. Throws std::invalid_argument when a rule names
  // fewer than two types, one twice, chooses none of them, or when two rules are for one state.
  FsmPolicy(FsmFallback fallback, std::vector<FsmRule> by_size, std::vector<FsmRule> by_set);

  FsmFallback fallback() const { return fallback_; }
  // Ascending by their states.
  std::span<const FsmRule> by_size() const { return by_size_; }
  std::span<const FsmRule> by_set() const { return by_set_; }

  // The type to run in a state, or kNone where there is no rule. Time: the logarithm of the number of rules.
  int32_t FindBySize(std::span<const int32_t> ready) const { return Find(by_size_, ready); }
  int32_t FindBySet(std::span<const int32_t> ready) const { return Find(by_set_, ready); }

  friend bool operator==(const FsmPolicy&, const FsmPolicy&) = default;

 private:
  static int32_t Find(std::span<const FsmRule> rules, std::span<const int32_t> ready);

  FsmFallback fallback_;
  std::vector<FsmRule> by_size_;
  std::vector<FsmRule> by_set_;
};

// One line a rule, for people: "leaf > node: node" by size, "{leaf, node}: node" by set, and the fallback. Names are
// those of the vertex types, by number; types beyond them are printed as numbers.
std::string ToString(const FsmPolicy& policy, std::span<const std::string> type_names = {});

// Puts types into the order of states by size; `count(type)` is the number of its ready vertices.
template <typename Count>
void OrderBySize(std::span<int32_t> types, Count count) {
  std::sort(types.begin(), types.end(),
            [&](int32_t a, int32_t b) { return count(a) != count(b) ? count(a) > count(b) : a < b; });
}

}  // namespace cavs
