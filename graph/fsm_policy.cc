#include "graph/fsm_policy.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cavs/base/error.h"

namespace cavs {
namespace {

bool IsBefore(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

void Check(const FsmRule& rule) {
  std::vector<int32_t> types = rule.ready;
  std::sort(types.begin(), types.end());
  const bool distinct = std::adjacent_find(types.begin(), types.end()) == types.end();
  const bool known = std::find(types.begin(), types.end(), rule.chosen) != types.end();
  if (types.size() >= 2 && types.front() >= 0 && distinct && known) return;
  ThrowInvalid("fsm policy", fmt::format("expected rules that choose one of two or more different types, got {} of {}",
                                         rule.chosen, rule.ready));
}

void CheckAndSort(std::vector<FsmRule>* rules) {
  for (const FsmRule& rule : *rules) Check(rule);
  std::sort(rules->begin(), rules->end(),
            [](const FsmRule& a, const FsmRule& b) { return IsBefore(a.ready, b.ready); });
  const auto twice = std::adjacent_find(rules->begin(), rules->end(),
                                        [](const FsmRule& a, const FsmRule& b) { return a.ready == b.ready; });
  if (twice == rules->end()) return;
  ThrowInvalid("fsm policy", fmt::format("expected one rule for a state, got two for {}", twice->ready));
}

}  // namespace

FsmPolicy::FsmPolicy(FsmFallback fallback, std::vector<FsmRule> by_size, std::vector<FsmRule> by_set)
    : fallback_(fallback), by_size_(std::move(by_size)), by_set_(std::move(by_set)) {
  for (FsmRule& rule : by_set_) std::sort(rule.ready.begin(), rule.ready.end());
  CheckAndSort(&by_size_);
  CheckAndSort(&by_set_);
}

int32_t FsmPolicy::Find(std::span<const FsmRule> rules, std::span<const int32_t> ready) {
  const auto found =
      std::lower_bound(rules.begin(), rules.end(), ready,
                       [](const FsmRule& rule, std::span<const int32_t> state) { return IsBefore(rule.ready, state); });
  if (found == rules.end() || !std::equal(ready.begin(), ready.end(), found->ready.begin(), found->ready.end())) {
    return kNone;
  }
  return found->chosen;
}

std::string ToString(const FsmPolicy& policy, std::span<const std::string> type_names) {
  const auto name = [&](int32_t type) {
    return type < std::ssize(type_names) ? type_names[static_cast<size_t>(type)] : fmt::format("{}", type);
  };
  const auto join = [&](const std::vector<int32_t>& types, std::string_view separator) {
    std::string text;
    for (const int32_t type : types) text += fmt::format("{}{}", text.empty() ? "" : separator, name(type));
    return text;
  };
  std::string text;
  for (const FsmRule& rule : policy.by_size())
    text += fmt::format("{}: {}\n", join(rule.ready, " > "), name(rule.chosen));
  for (const FsmRule& rule : policy.by_set()) {
    text += fmt::format("{{{}}}: {}\n", join(rule.ready, ", "), name(rule.chosen));
  }
  return text + (policy.fallback() == FsmFallback::kAgenda ? "otherwise the type of the lowest average depth\n"
                                                           : "otherwise the type with the most ready vertices\n");
}

}  // namespace cavs
