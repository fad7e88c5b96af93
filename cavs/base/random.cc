#include "cavs/base/random.h"

#include <cmath>
#include <numbers>

#include "cavs/base/error.h"

namespace cavs {

double CounterRandom::Normal() {
  // Box-Muller without the second value: keeping it would be state beside the counter. 1 - u is in (0, 1].
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * Uniform());
}

int64_t CounterRandom::Below(int64_t n) {
  CAVS_CHECK(n > 0, "Below({}) has no values to choose from", n);
  const auto bound = static_cast<uint64_t>(n);
  // The high word of draw * bound is uniform once the draws whose low word falls below 2^64 mod bound are rejected.
  const uint64_t reject = (0 - bound) % bound;
  while (true) {
    const unsigned __int128 product = static_cast<unsigned __int128>(Next()) * bound;
    if (static_cast<uint64_t>(product) >= reject) return static_cast<int64_t>(product >> 64);
  }
}

}  // namespace cavs
