#include "cavs/session_options.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {
namespace {

// Names by value of the enum.
constexpr std::array<std::string_view, 3> kParallelPolicies = {"auto", "task", "shard"};
constexpr std::array<std::string_view, 3> kPrefetchPolicies = {"auto", "on", "off"};

size_t ParseChoice(std::string_view where, std::span<const std::string_view> names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  ThrowInvalid(where, fmt::format("expected one of {}, got '{}'", fmt::join(names, ", "), name));
}

}  // namespace

std::string_view ParallelPolicyName(ParallelPolicy policy) { return kParallelPolicies[static_cast<size_t>(policy)]; }

ParallelPolicy ParseParallelPolicy(std::string_view name) {
  return static_cast<ParallelPolicy>(ParseChoice("parallel", kParallelPolicies, name));
}

std::string_view PrefetchPolicyName(PrefetchPolicy policy) { return kPrefetchPolicies[static_cast<size_t>(policy)]; }

PrefetchPolicy ParsePrefetchPolicy(std::string_view name) {
  return static_cast<PrefetchPolicy>(ParseChoice("prefetch", kPrefetchPolicies, name));
}

}  // namespace cavs
