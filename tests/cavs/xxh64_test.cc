#include "cavs/xxh64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cavs {
namespace {

uint64_t Hash(std::string_view text) {
  Xxh64 hash;
  hash.Update(std::as_bytes(std::span(text)));
  return hash.Digest();
}

// Values of the reference implementation with seed 0.
TEST(Xxh64, EqualsTheReference) {
  EXPECT_EQ(Hash(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(Hash("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(Hash("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(Hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(Xxh64, DoesNotDependOnThePieces) {
  std::vector<std::byte> bytes(257);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  const std::span<const std::byte> all(bytes);
  for (size_t length = 0; length <= bytes.size(); ++length) {
    Xxh64 whole;
    whole.Update(all.first(length));
    for (const size_t piece : {1, 3, 8, 31, 32, 33, 100}) {
      Xxh64 pieces;
      for (size_t at = 0; at < length; at += piece) pieces.Update(all.subspan(at, std::min(piece, length - at)));
      ASSERT_EQ(pieces.Digest(), whole.Digest()) << length << " bytes in pieces of " << piece;
    }
  }
}

TEST(Xxh64, SeesEveryBit) {
  const std::string text(100, 'x');
  const uint64_t hash = Hash(text);
  for (size_t at = 0; at < text.size() * 8; ++at) {
    std::string flipped = text;
    flipped[at / 8] = static_cast<char>(flipped[at / 8] ^ (1 << at % 8));
    ASSERT_NE(Hash(flipped), hash) << "bit " << at;
  }
}

}  // namespace
}  // namespace cavs
