#include "cavs/base/utf8.h"

#include <cstddef>

namespace cavs {
namespace {

// The length of the well-formed sequence at the start of a non-empty text, 0 if there is none (Unicode, table 3-7:
// only the second byte's range depends on the first byte).
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

int64_t FindInvalidUtf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = SequenceLength(text.substr(offset));
    if (length == 0) return static_cast<int64_t>(offset);
    offset += length;
  }
  return -1;
}

}  // namespace cavs
