// The learned batching policy of a Model: learning it from a sample of graphs, and keeping it with the model.
//
// A policy is an entry of the model's metadata, so that it is saved and loaded with the parameters, and any Session
// with BatchingPolicy::kFsm plans by it. The text names vertex types by name: it fits any model with the same names.
// Thread-safety: as Model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cavs/model.h"
#include "graph/fsm_learner.h"
#include "graph/fsm_policy.h"
#include "graph/sharing.h"

namespace cavs {

// The metadata entry.
inline constexpr std::string_view kFsmPolicyKey = "fsm_policy";

// A JSON object of the names of all vertex types, the rules and the fallback.
std::string FsmPolicyText(const FsmPolicy& policy, const Signature& signature);
// Reads it back. Throws std::invalid_argument when it is no such object or names vertex types that the model lacks.
FsmPolicy ParseFsmPolicy(std::string_view text, const Signature& signature);

// The policy that the model keeps, or null when it has none. Throws as ParseFsmPolicy.
std::shared_ptr<const FsmPolicy> FsmPolicyOf(const Model& model);
void KeepFsmPolicy(const FsmPolicy& policy, Model* model);

struct BatchingSample {
  int64_t batch_size = 25;
  SharingPolicy sharing = SharingPolicy::kInputs;  // of the Sessions to come
  bool training = false;                           // whether these train: then a model with dropout shares nothing
  uint64_t seed = 1;                               // of the choice of graphs, and of learning
};

// Learns a policy from at most eight minibatches that are drawn from `graphs`, and keeps it. Takes about a second at
// most. Throws std::invalid_argument without graphs.
FsmReport LearnBatching(std::span<const InputGraph> graphs, const BatchingSample& sample, Model* model);

// One sentence: how many tasks the policy and the plain ones need for the sample, and how long learning took.
std::string DescribeLearning(const FsmReport& report);

}  // namespace cavs
