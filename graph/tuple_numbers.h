// TupleNumbers: numbers tuples of integers in the order in which they first appear; equal tuples have one number.
// Expected constant time for an integer; memory is reused. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cavs {

class TupleNumbers {
 public:
  // Forgets all tuples and makes room for `most` distinct ones, which must not be exceeded.
  void Clear(int64_t most);
  // The number of a tuple: what size() was before the call where the tuple is new.
  int32_t Number(std::span<const int32_t> tuple);
  int64_t size() const { return static_cast<int64_t>(begin_.size()) - 1; }

 private:
  std::vector<int32_t> parts_;        // of all tuples, one after another
  std::vector<int64_t> begin_ = {0};  // [tuples + 1]
  std::vector<int32_t> table_;        // open addressing: tuple or kFree
};

}  // namespace cavs
