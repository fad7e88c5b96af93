#include "cavs/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cavs {
namespace {

static_assert(std::endian::native == std::endian::little, "the checksum reads little-endian words in place");

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

template <typename Word>
uint64_t Load(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t Round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

uint64_t Merge(uint64_t hash, uint64_t lane) { return (hash ^ Round(0, lane)) * kPrime1 + kPrime4; }

}  // namespace

Xxh64::Xxh64() : lanes_{kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1} {}

void Xxh64::Consume(const std::byte* stripe) {
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = Round(lanes_[i], Load<uint64_t>(stripe + 8 * i));
}

void Xxh64::Update(std::span<const std::byte> bytes) {
  const size_t held = length_ % kStripe;
  length_ += bytes.size();
  if (held > 0) {
    const size_t taken = std::min(kStripe - held, bytes.size());
    std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < kStripe) return;
    Consume(pending_.data());
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) Consume(bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

uint64_t Xxh64::Digest() const {
  uint64_t hash = kPrime5;
  if (length_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = Merge(hash, lane);
  }
  hash += length_;

  const std::byte* at = pending_.data();
  size_t left = length_ % kStripe;
  for (; left >= 8; left -= 8, at += 8) {
    hash = std::rotl(hash ^ Round(0, Load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ (Load<uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    left -= 4;
    at += 4;
  }
  for (; left > 0; --left, ++at) hash = std::rotl(hash ^ (Load<uint8_t>(at) * kPrime5), 11) * kPrime1;

  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace cavs
