#include "graph/readers/string_table.h"

#include <limits>

#include "cavs/base/error.h"

namespace cavs {

int32_t StringTable::Intern(std::string_view text) {
  if (const auto found = index_.find(text); found != index_.end()) return found->second;
  CAVS_CHECK(strings_.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()));
  const int32_t id = size();
  index_.emplace(strings_.emplace_back(text), id);
  return id;
}

int32_t StringTable::Find(std::string_view text) const {
  const auto found = index_.find(text);
  return found == index_.end() ? kNone : found->second;
}

}  // namespace cavs
