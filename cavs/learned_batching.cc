#include "cavs/learned_batching.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "cavs/base/stop_watch.h"

namespace cavs {
namespace {

using nlohmann::json;

constexpr int64_t kSampleMinibatches = 8;
constexpr int64_t kSampleVertices = 1 << 16;
// Sets the choice of graphs apart from whatever else is drawn from the seed.
constexpr uint64_t kSampleStream = 0x73616D706C65;  // "sample"

constexpr const char* kTypes = "types";
constexpr const char* kBySize = "by_size";
constexpr const char* kBySet = "by_set";
constexpr const char* kFallback = "otherwise";
// By value of FsmFallback.
constexpr std::array<std::string_view, 2> kFallbackNames = {"frontier", "agenda"};

std::vector<std::string> TypeNames(const Signature& signature) {
  std::vector<std::string> names;
  names.reserve(signature.types.size());
  for (const TypeDeclaration& type : signature.types) names.push_back(type.name);
  return names;
}

// A rule is [the ready types, the chosen one].
json RulesToJson(std::span<const FsmRule> rules, const std::vector<std::string>& names) {
  const auto name = [&](int32_t type) { return names.at(static_cast<size_t>(type)); };
  json result = json::array();
  for (const FsmRule& rule : rules) {
    json ready = json::array();
    for (const int32_t type : rule.ready) ready.push_back(name(type));
    result.push_back({std::move(ready), name(rule.chosen)});
  }
  return result;
}

// Reads the text of a policy in terms of a model's vertex types.
class PolicyReader {
 public:
  PolicyReader(std::string_view text, const Signature& signature)
      : value_(json::parse(text, nullptr, /*allow_exceptions=*/false)), names_(TypeNames(signature)) {}

  FsmPolicy Read() const {
    if (!value_.is_object()) Fail();
    for (const json& name : Array(value_, kTypes)) TypeOf(name);
    const auto fallback = value_.find(kFallback);
    if (fallback == value_.end() || !fallback->is_string()) Fail();
    const auto known = std::find(kFallbackNames.begin(), kFallbackNames.end(), fallback->get<std::string>());
    if (known == kFallbackNames.end()) Fail();
    return FsmPolicy(static_cast<FsmFallback>(known - kFallbackNames.begin()), Rules(kBySize), Rules(kBySet));
  }

 private:
  [[noreturn]] static void Fail() {
    ThrowInvalid("fsm policy", "expected the JSON object of a batching policy, got something else");
  }

  static const json& Array(const json& owner, const char* key) {
    const auto found = owner.find(key);
    if (found == owner.end() || !found->is_array()) Fail();
    return *found;
  }

  int32_t TypeOf(const json& name) const {
    if (!name.is_string()) Fail();
    const auto found = std::find(names_.begin(), names_.end(), name.get_ref<const std::string&>());
    if (found == names_.end()) {
      ThrowInvalid("fsm policy", fmt::format("expected vertex types of the model ({}), got \"{}\"",
                                             fmt::join(names_, ", "), name.get_ref<const std::string&>()));
    }
    return static_cast<int32_t>(found - names_.begin());
  }

  std::vector<FsmRule> Rules(const char* key) const {
    std::vector<FsmRule> rules;
    for (const json& item : Array(value_, key)) {
      if (!item.is_array() || item.size() != 2 || !item[0].is_array()) Fail();
      FsmRule rule;
      for (const json& name : item[0]) rule.ready.push_back(TypeOf(name));
      rule.chosen = TypeOf(item[1]);
      rules.push_back(std::move(rule));
    }
    return rules;
  }

  json value_;
  std::vector<std::string> names_;
};

// Minibatches as a Session would plan them.
std::vector<GraphBatch> DrawMinibatches(std::span<const InputGraph> graphs, const BatchingSample& sample,
                                        const Model& model) {
  std::vector<int64_t> order(graphs.size());
  std::iota(order.begin(), order.end(), 0);
  CounterRandom random(sample.seed, kSampleStream);
  Shuffle(std::span(order), random);
  const std::shared_ptr<const Executable> executable = model.executable(sample.training, sample.sharing);
  const bool shares = sample.sharing != SharingPolicy::kOff && !(sample.training && executable->draws());
  Sharer sharer(sample.sharing, executable->inputs());
  std::vector<int32_t> merged;

  std::vector<GraphBatch> batches;
  size_t next = 0;
  int64_t vertices = 0;
  while (next < order.size() && std::ssize(batches) < kSampleMinibatches && vertices < kSampleVertices) {
    GraphBatch batch;
    while (next < order.size() && batch.graph_count() < sample.batch_size &&
           vertices + batch.vertex_count() < kSampleVertices) {
      const int64_t example = order[next++];
      batch.Add(graphs[static_cast<size_t>(example)], example);
    }
    vertices += batch.vertex_count();
    if (shares) {
      GraphBatch shared;
      sharer.Merge(batch, &shared, &merged);
      batch = std::move(shared);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

}  // namespace

std::string FsmPolicyText(const FsmPolicy& policy, const Signature& signature) {
  const std::vector<std::string> names = TypeNames(signature);
  return json{{kTypes, names},
              {kBySize, RulesToJson(policy.by_size(), names)},
              {kBySet, RulesToJson(policy.by_set(), names)},
              {kFallback, kFallbackNames[static_cast<size_t>(policy.fallback())]}}
      .dump();
}

FsmPolicy ParseFsmPolicy(std::string_view text, const Signature& signature) {
  return PolicyReader(text, signature).Read();
}

std::shared_ptr<const FsmPolicy> FsmPolicyOf(const Model& model) {
  const auto entry = model.metadata().find(std::string(kFsmPolicyKey));
  if (entry == model.metadata().end()) return nullptr;
  return std::make_shared<const FsmPolicy>(ParseFsmPolicy(entry->second, *model.program().signature));
}

void KeepFsmPolicy(const FsmPolicy& policy, Model* model) {
  model->metadata()[std::string(kFsmPolicyKey)] = FsmPolicyText(policy, *model->program().signature);
}

FsmReport LearnBatching(std::span<const InputGraph> graphs, const BatchingSample& sample, Model* model) {
  if (graphs.empty()) ThrowInvalid("fsm policy", "expected at least one graph to learn from, got none");
  if (sample.batch_size < 1) {
    ThrowInvalid("fsm policy", fmt::format("expected a batch size of at least 1, got {}", sample.batch_size));
  }
  const StopWatch watch;
  LearnedFsm learned = LearnFsmPolicy(DrawMinibatches(graphs, sample, *model), {.seed = sample.seed});
  KeepFsmPolicy(learned.policy, model);
  learned.report.seconds = watch.Seconds();
  return learned.report;
}

std::string DescribeLearning(const FsmReport& report) {
  return fmt::format(
      "batching policy learned in {:.2f} s: {} tasks for {} minibatches; frontier {}, agenda {}, at least {}",
      report.seconds, report.tasks, report.minibatches, report.frontier_tasks, report.agenda_tasks, report.lower_bound);
}

}  // namespace cavs
