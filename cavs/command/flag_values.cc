#include "cavs/command/flag_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/text.h"

namespace cavs {
namespace {

[[noreturn]] void Refuse(const FlagSpec& flag, std::string_view expected, std::string_view got) {
  throw UsageError(fmt::format("[--{}] expected {}, got '{}'", flag.name, expected, got));
}

size_t IndexOf(const FlagSpec& flag) { return static_cast<size_t>(&flag - Flags().data()); }

std::string FormatBound(double bound) {
  return std::nearbyint(bound) == bound ? fmt::format("{:.0f}", bound) : fmt::format("{}", bound);
}

std::string DescribeRange(const Range& range) {
  std::string low = fmt::format("{} {}", range.low_open ? "more than" : "at least", FormatBound(range.low));
  if (range.high == std::numeric_limits<double>::max()) return low;
  return fmt::format("{} and {} {}", low, range.high_open ? "less than" : "at most", FormatBound(range.high));
}

bool IsWithin(const Range& range, double value) {
  const bool above = range.low_open ? value > range.low : value >= range.low;
  const bool below = range.high_open ? value < range.high : value <= range.high;
  return above && below;
}

bool ParseSwitch(const FlagSpec& flag, std::string_view text) {
  constexpr std::array<std::string_view, 5> kTrue = {"true", "1", "t", "yes", "y"};
  constexpr std::array<std::string_view, 5> kFalse = {"false", "0", "f", "no", "n"};
  if (std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), text) != kFalse.end()) return false;
  Refuse(flag, "true or false", text);
}

int64_t ParseWholeNumber(const FlagSpec& flag, std::string_view text) {
  const std::optional<int64_t> value = ParseInt(text);
  if (value && IsWithin(flag.range, static_cast<double>(*value))) return *value;
  Refuse(flag, fmt::format("a whole number of {}", DescribeRange(flag.range)), text);
}

double ParseNumber(const FlagSpec& flag, std::string_view text) {
  const std::optional<double> value = ParseDouble(text);
  if (value && std::isfinite(*value) && IsWithin(flag.range, *value)) return *value;
  Refuse(flag, fmt::format("a number of {}", DescribeRange(flag.range)), text);
}

int64_t ParseBytes(const FlagSpec& flag, std::string_view text) {
  if (const std::optional<int64_t> bytes = ParseSize(text)) return *bytes;
  Refuse(flag, "a size such as 1048576, 512MiB, 2GiB or 1500MB", text);
}

std::string ParseChoice(const FlagSpec& flag, std::string_view text) {
  const std::vector<std::string_view> choices = SplitText(flag.choices, '|');
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string(text);
  const std::string note = flag.choices_note.empty() ? "" : fmt::format(" ({})", flag.choices_note);
  Refuse(flag, fmt::format("{}{}", fmt::join(choices, " or "), note), text);
}

std::string ParseData(const FlagSpec& flag, std::string_view text) {
  const size_t colon = text.find(':');
  std::vector<std::string_view> formats;
  for (const DataFormat& format : DataFormats()) formats.push_back(format.name);
  const bool known = std::find(formats.begin(), formats.end(), text.substr(0, colon)) != formats.end();
  if (known && colon != std::string_view::npos && colon + 1 < text.size()) return std::string(text);
  Refuse(flag, fmt::format("FORMAT:PATH with the format {}", fmt::join(formats, " or ")), text);
}

// Null for an empty text.
template <typename Value>
nlohmann::ordered_json JsonOf(const Value& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) {
          if (held.empty()) return nullptr;
        }
        return held;
      },
      value);
}

std::string ParseName(const FlagSpec& flag, std::string_view text) {
  if (text.empty()) Refuse(flag, fmt::format("a name for {}", flag.value), text);
  return std::string(text);
}

}  // namespace

FlagValues::FlagValues() {
  slots_.reserve(Flags().size());
  for (const FlagSpec& flag : Flags()) slots_.push_back(DefaultSlot(flag));
}

FlagValues::Value FlagValues::Parse(const FlagSpec& flag, std::string_view text) {
  switch (flag.type) {
    case FlagType::kSwitch:
      return ParseSwitch(flag, text);
    case FlagType::kInt:
      return ParseWholeNumber(flag, text);
    case FlagType::kDouble:
      return ParseNumber(flag, text);
    case FlagType::kSize:
      return ParseBytes(flag, text);
    case FlagType::kChoice:
      return ParseChoice(flag, text);
    case FlagType::kData:
      return ParseData(flag, text);
    case FlagType::kText:
      break;
  }
  return ParseName(flag, text);
}

FlagValues::Slot FlagValues::DefaultSlot(const FlagSpec& flag) {
  const bool none = flag.initial.empty();
  return {{none ? Value(std::string()) : Parse(flag, flag.initial)}, false};
}

bool FlagValues::Bool(std::string_view name) const { return Get<bool>(name); }
int64_t FlagValues::Int(std::string_view name) const { return Get<int64_t>(name); }
double FlagValues::Double(std::string_view name) const { return Get<double>(name); }
const std::string& FlagValues::Text(std::string_view name) const { return Get<std::string>(name); }
bool FlagValues::is_set(std::string_view name) const { return Find(name).is_set; }

void FlagValues::Set(const FlagSpec& flag, std::string_view text) {
  const bool is_list = flag.policy && text.find(',') != std::string_view::npos;
  std::vector<Value> values;
  for (const std::string_view part : is_list ? SplitText(text, ',') : std::vector<std::string_view>{text}) {
    Value value = Parse(flag, part);
    if (std::find(values.begin(), values.end(), value) != values.end()) Refuse(flag, "different values", text);
    values.push_back(std::move(value));
  }
  slots_[IndexOf(flag)] = {std::move(values), true};
}

void FlagValues::SetDefault(const FlagSpec& flag, std::string_view text) {
  Slot& slot = slots_[IndexOf(flag)];
  if (!slot.is_set) slot.values = {Parse(flag, text)};
}

void FlagValues::Move(const FlagSpec& source, const FlagSpec& target) {
  slots_[IndexOf(target)] = slots_[IndexOf(source)];
  slots_[IndexOf(source)] = DefaultSlot(source);
}

std::string FlagValues::ValueText(const FlagSpec& flag) const { return ValueTexts(flag).front(); }

std::vector<std::string> FlagValues::ValueTexts(const FlagSpec& flag) const {
  std::vector<std::string> texts;
  for (const Value& slot : slots_[IndexOf(flag)].values) {
    texts.push_back(std::visit([](const auto& value) { return fmt::format("{}", value); }, slot));
  }
  return texts;
}

bool FlagValues::is_list(const FlagSpec& flag) const { return slots_[IndexOf(flag)].values.size() > 1; }

nlohmann::ordered_json FlagValues::ToJson(SubCommand command) const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const FlagSpec& flag : Flags()) {
    if (!IsUsedBy(flag, command)) continue;
    nlohmann::ordered_json& entry = json[std::string(flag.name)];
    const std::vector<Value>& values = slots_[IndexOf(flag)].values;
    if (values.size() == 1) {
      entry = JsonOf(values.front());
    } else {
      for (const Value& value : values) entry.push_back(JsonOf(value));
    }
  }
  return json;
}

const FlagValues::Slot& FlagValues::Find(std::string_view name) const {
  const FlagSpec* flag = FindFlag(name);
  CAVS_CHECK(flag != nullptr, "no flag --{}", name);
  return slots_[IndexOf(*flag)];
}

template <typename T>
const T& FlagValues::Get(std::string_view name) const {
  const T* value = std::get_if<T>(&Find(name).values.front());
  CAVS_CHECK(value != nullptr, "flag --{} is of another type", name);
  return *value;
}

}  // namespace cavs
