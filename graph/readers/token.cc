#include "graph/readers/token.h"

#include <array>
#include <utility>

namespace cavs {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 6> kBracketNames = {
    {{"-LRB-", '('}, {"-RRB-", ')'}, {"-LSB-", '['}, {"-RSB-", ']'}, {"-LCB-", '{'}, {"-RCB-", '}'}}};

}  // namespace

std::string NormalizeToken(std::string_view token) {
  if (token.size() == kBracketNames[0].first.size() && token.front() == '-') {
    for (const auto& [name, bracket] : kBracketNames) {
      if (token == name) return {bracket};
    }
  }
  std::string form;
  form.reserve(token.size());
  for (size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '\\' && i + 1 < token.size() && (token[i + 1] == '/' || token[i + 1] == '*');
    if (!escape) form.push_back(token[i]);
  }
  return form;
}

}  // namespace cavs
