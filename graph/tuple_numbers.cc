#include "graph/tuple_numbers.h"

#include <algorithm>
#include <bit>

#include "cavs/base/error.h"
#include "cavs/base/random.h"

namespace cavs {
namespace {

constexpr int32_t kFree = -1;

}  // namespace

void TupleNumbers::Clear(int64_t most) {
  parts_.clear();
  begin_.assign(1, 0);
  table_.assign(std::bit_ceil(2 * static_cast<size_t>(most) + 1), kFree);
}

int32_t TupleNumbers::Number(std::span<const int32_t> tuple) {
  uint64_t hash = tuple.size();
  for (const int32_t part : tuple) hash = Mix(hash ^ static_cast<uint32_t>(part));
  const size_t mask = table_.size() - 1;
  size_t place = static_cast<size_t>(hash) & mask;
  for (; table_[place] != kFree; place = (place + 1) & mask) {
    const auto other = static_cast<size_t>(table_[place]);
    const auto begin = parts_.begin() + begin_[other], end = parts_.begin() + begin_[other + 1];
    if (std::equal(begin, end, tuple.begin(), tuple.end())) return table_[place];
  }
  CAVS_CHECK(2 * static_cast<size_t>(size()) < mask, "more than {} distinct tuples", size());
  table_[place] = static_cast<int32_t>(size());
  parts_.insert(parts_.end(), tuple.begin(), tuple.end());
  begin_.push_back(std::ssize(parts_));
  return table_[place];
}

}  // namespace cavs
