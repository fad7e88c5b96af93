// UTF-8 validation for everything that is read from files. Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace cavs {

// The byte offset of the first sequence that is not UTF-8 (overlong forms, surrogates, values above U+10FFFF and
// truncated sequences included), or -1 when all of the text is valid.
int64_t FindInvalidUtf8(std::string_view text);

}  // namespace cavs
