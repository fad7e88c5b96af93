#include "graph/tuple_numbers.h"

#include <map>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "cavs/base/random.h"

namespace cavs {
namespace {

// Against a map; with few distinct tuples, of different lengths, some of which are the beginning of others.
TEST(TupleNumbers, EqualTuplesHaveOneNumberInOrderOfAppearance) {
  TupleNumbers numbers;
  CounterRandom random(1, 2);
  for (const int64_t count : {1, 50, 3000, 7}) {
    numbers.Clear(count);
    EXPECT_EQ(numbers.size(), 0);
    std::map<std::vector<int32_t>, int32_t> expected;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int32_t> tuple(static_cast<size_t>(random.Below(4)));
      for (int32_t& part : tuple) part = static_cast<int32_t>(random.Below(9)) - 1;
      const auto number = static_cast<int32_t>(expected.size());
      EXPECT_EQ(numbers.Number(tuple), expected.try_emplace(tuple, number).first->second);
    }
    EXPECT_EQ(numbers.size(), static_cast<int64_t>(expected.size()));
  }
}

TEST(TupleNumbers, HoldsAsManyAsWereAnnouncedAndTellsWhenThereAreMore) {
  TupleNumbers numbers;
  numbers.Clear(5);
  const auto add = [&](int32_t part) { return numbers.Number(std::vector<int32_t>{part}); };
  for (int32_t part = 0; part < 5; ++part) EXPECT_EQ(add(part), part);
  const auto add_many = [&] {
    for (int32_t part = 5; part < 100; ++part) add(part);
  };
  EXPECT_THROW(add_many(), std::logic_error);
}

}  // namespace
}  // namespace cavs
