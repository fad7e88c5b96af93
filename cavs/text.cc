#include "cavs/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

namespace cavs {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <typename Number>
std::optional<Number> ParseWhole(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

// The bytes of a unit, 0 for a unit that does not exist.
int64_t BytesOfUnit(std::string_view unit) {
  std::string lower(unit);
  std::transform(lower.begin(), lower.end(), lower.begin(), Lower);
  if (lower.empty() || lower == "b") return 1;
  const size_t power = std::string_view("kmgt").find(lower[0]);
  if (power == std::string_view::npos) return 0;
  const std::string_view rest = std::string_view(lower).substr(1);
  int64_t base = 0;
  if (rest.empty() || rest == "ib") base = 1024;
  if (rest == "b") base = 1000;
  int64_t bytes = base;
  for (size_t i = 0; i < power; ++i) bytes *= base;
  return bytes;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

int64_t EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the dynamic programme suffice: a swap looks back two rows.
  std::vector<int64_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string_view NearestName(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view nearest;
  int64_t nearest_distance = std::numeric_limits<int64_t>::max();
  for (const std::string_view candidate : candidates) {
    const int64_t distance = EditDistance(name, candidate);
    const bool nearer = distance < nearest_distance ||
                        (distance == nearest_distance && CommonPrefix(name, candidate) > CommonPrefix(name, nearest));
    if (!nearer) continue;
    nearest = candidate;
    nearest_distance = distance;
  }
  return nearest;
}

std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<int64_t> ParseInt(std::string_view text) { return ParseWhole<int64_t>(text); }

std::optional<double> ParseDouble(std::string_view text) { return ParseWhole<double>(text); }

std::optional<int64_t> ParseSize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, digits);
  const int64_t unit = BytesOfUnit(text.substr(digits));
  if (unit == 0) return std::nullopt;
  // Whole numbers stay exact beyond the 53 bits of a double.
  if (const std::optional<int64_t> whole = ParseInt(number)) {
    if (*whole > std::numeric_limits<int64_t>::max() / unit) return std::nullopt;
    return *whole * unit;
  }
  const std::optional<double> fraction = ParseDouble(number);
  if (!fraction || *fraction * static_cast<double>(unit) >= 0x1p63) return std::nullopt;
  return static_cast<int64_t>(*fraction * static_cast<double>(unit));
}

std::string FormatSize(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.5 and more would print as 1024.
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  int digits = 2;
  if (value >= 9.995) digits = 1;
  if (value >= 99.95) digits = 0;
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit]);
}

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e12)));
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

}  // namespace cavs
