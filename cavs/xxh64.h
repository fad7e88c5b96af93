// XXH64, the 64-bit checksum of Yann Collet's xxHash family: finds damage, is no protection against an attacker.
//
// Bytes may come in pieces of any size; the result depends only on their sequence and equals that of other
// implementations with seed 0. An object belongs to one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cavs {

class Xxh64 {
 public:
  Xxh64();

  // Appends bytes to the sequence.
  void Update(std::span<const std::byte> bytes);

  // The checksum of all bytes so far. More bytes may follow.
  uint64_t Digest() const;

 private:
  static constexpr size_t kStripe = 32;

  void Consume(const std::byte* stripe);

  std::array<uint64_t, 4> lanes_;
  std::array<std::byte, kStripe> pending_{};
  uint64_t length_ = 0;
};

}  // namespace cavs
