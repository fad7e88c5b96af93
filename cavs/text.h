// Small helpers for text that people write and read: the nearest name for a typing mistake, exact parsing of numbers
// and of sizes with units, and sizes and durations for messages.
//
// Parsing takes the whole text or nothing: blanks, signs other than '-', trailing letters and values that do not fit
// give std::nullopt. All functions are pure and safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cavs {

// The number of insertions, deletions, replacements and swaps of neighbours (bytes) that turn `a` into `b`.
int64_t EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `name` by edit distance; of equally near ones that with the longest common prefix, then the
// first. Empty when there are no candidates. The result refers to the candidate's characters.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates);

// The parts of `text` between `separator`s; empty text has no parts. The parts refer to the characters of `text`.
std::vector<std::string_view> SplitText(std::string_view text, char separator);

// A decimal integer.
std::optional<int64_t> ParseInt(std::string_view text);

// A decimal number with optional fraction and exponent. "nan" and "inf" parse as such; the caller judges them.
std::optional<double> ParseDouble(std::string_view text);

// A size in bytes: a number that is not negative, with an optional fraction and a unit. "KiB MiB GiB TiB" and the bare
// letters "K M G T" are powers of 1024, "kB MB GB TB" powers of 1000; "B" or no unit is bytes. Case does not matter.
// Fractions of a byte are cut off.
std::optional<int64_t> ParseSize(std::string_view text);

// "0 B", "1023 B", "1.50 KiB", "12.0 MiB", "345 GiB": three digits and a unit of 1024.
std::string FormatSize(int64_t bytes);

// "0:07", "12:34", "1:02:03": minutes and seconds, with hours when there are any. Negative counts as 0.
std::string FormatDuration(double seconds);

}  // namespace cavs
