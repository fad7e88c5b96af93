// Counter-based random numbers: every value is a hash of a seed and of what it is for.
//
// Because nothing depends on the order of the draws, no batching, shard or thread count changes a result, and the state
// of a generator is one integer that a checkpoint can store. Integers are equal on all platforms; Normal() goes through
// the C library's logarithm and cosine. The functions are pure; a CounterRandom belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

namespace cavs {

// The increment of splitmix64: 2^64 divided by the golden ratio, odd.
inline constexpr uint64_t kGoldenGamma = 0x9E3779B97F4A7C15u;

// The finalizer of splitmix64: a bijection of 64-bit words in which every input bit affects every output bit.
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Hashes a seed and up to three counters; the order of the counters matters.
constexpr uint64_t HashCounter(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0) {
  uint64_t hash = Mix(seed + kGoldenGamma);
  hash = Mix((hash ^ a) + kGoldenGamma);
  hash = Mix((hash ^ b) + kGoldenGamma);
  return Mix((hash ^ c) + kGoldenGamma);
}

// A stream of random numbers. Streams of one seed are independent of each other.
class CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed, uint64_t stream = 0) : key_(HashCounter(seed, stream)) {}

  // 64 uniform bits.
  uint64_t Next() { return Mix(key_ + kGoldenGamma * ++position_); }

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Normal with mean 0 and variance 1. Always takes two draws.
  double Normal();

  // Uniform in [0, n), without bias. Throws std::logic_error unless n > 0. Rarely takes more than one draw.
  int64_t Below(int64_t n);

  // The number of draws so far. A generator of the same seed and stream that is set to it continues identically.
  uint64_t position() const { return position_; }
  void set_position(uint64_t position) { position_ = position; }

 private:
  uint64_t key_;
  uint64_t position_ = 0;
};

// Permutes the items uniformly (Fisher-Yates), equally on every platform for an equal generator.
template <typename T>
void Shuffle(std::span<T> items, CounterRandom& random) {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<size_t>(random.Below(static_cast<int64_t>(i)))]);
  }
}

// Whether dropout keeps a column of the row that `row_key` (a HashCounter) stands for. `threshold` is the probability
// to drop times 2^32. 32-bit arithmetic only, so that vector code computes the same bits.
constexpr bool DropoutKeep(uint64_t row_key, uint32_t column, uint32_t threshold) {
  uint32_t x = column * 0x9E3779B9u + static_cast<uint32_t>(row_key);
  x ^= x >> 16;
  x *= 0x85EBCA6Bu;
  x ^= static_cast<uint32_t>(row_key >> 32);
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  x ^= x >> 16;
  return x >= threshold;
}

}  // namespace cavs
