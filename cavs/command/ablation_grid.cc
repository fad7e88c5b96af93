#include "cavs/command/ablation_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cavs/command/command_line.h"
#include "cavs/command/settings.h"

namespace cavs {
namespace {

// A policy that varies, and its values: the base's first.
struct Axis {
  const FlagSpec* flag;
  std::vector<std::string> values;
};

void AddValue(const FlagSpec& flag, const std::string& text, Axis* axis) {
  FlagValues parsed;
  parsed.Set(flag, text);
  // One thread for each core is a number on this machine, and perhaps one that is in the list already.
  const std::string value = flag.name == "threads" ? fmt::format("{}", ThreadsFrom(parsed)) : parsed.ValueText(flag);
  if (std::find(axis->values.begin(), axis->values.end(), value) == axis->values.end()) axis->values.push_back(value);
}

std::vector<Axis> AxesOf(const FlagValues& flags) {
  const auto is_list = [&](const FlagSpec& flag) { return flags.is_list(flag); };
  const bool lists = std::any_of(Flags().begin(), Flags().end(), is_list);
  std::vector<Axis> axes;
  for (const FlagSpec& flag : Flags()) {
    if (!flag.policy || (lists ? !is_list(flag) : flags.is_set(flag.name))) continue;
    Axis axis{&flag, {}};
    for (const std::string& text : flags.ValueTexts(flag)) AddValue(flag, text, &axis);
    if (!lists) {
      for (const std::string_view text : ValuesToTry(flag)) AddValue(flag, std::string(text), &axis);
    }
    if (axis.values.size() > 1) axes.push_back(std::move(axis));
  }
  return axes;
}

size_t CountSettings(const std::vector<Axis>& axes, bool full) {
  size_t count = 1;
  for (const Axis& axis : axes) count = full ? count * axis.values.size() : count + axis.values.size() - 1;
  return count;
}

void RefuseLarge(const std::vector<Axis>& axes, bool full) {
  const size_t count = CountSettings(axes, full);
  if (count <= kMostSettings) return;
  std::vector<std::string> factors;
  factors.reserve(axes.size());
  for (const Axis& axis : axes) factors.push_back(fmt::format("{} of --{}", axis.values.size(), axis.flag->name));
  throw UsageError(fmt::format("[--grid] expected at most {} settings, got {}: {}; shorter lists{} make fewer",
                               kMostSettings, count, fmt::join(factors, full ? " x " : " + "),
                               full ? " or --grid=star" : ""));
}

// The setting in which axis i has its value number choice[i].
Setting SettingOf(const FlagValues& base, const std::vector<Axis>& axes, const std::vector<size_t>& choice) {
  Setting setting{"", "", "", base};
  for (size_t i = 0; i < axes.size(); ++i) {
    if (choice[i] == 0) continue;
    const std::string& value = axes[i].values[choice[i]];
    setting.flags.Set(*axes[i].flag, value);
    setting.name += fmt::format("{}{}={}", setting.name.empty() ? "" : " ", axes[i].flag->name, value);
  }
  ApplyDependentDefaults(setting.flags);
  if (setting.name.empty()) setting.name = "base";
  return setting;
}

// The next combination, the last axis fastest; false behind the last one.
bool Advance(const std::vector<Axis>& axes, std::vector<size_t>* choice) {
  for (size_t i = axes.size(); i-- > 0;) {
    if (++(*choice)[i] < axes[i].values.size()) return true;
    (*choice)[i] = 0;
  }
  return false;
}

std::vector<Setting> Star(const FlagValues& base, const std::vector<Axis>& axes) {
  std::vector<size_t> choice(axes.size(), 0);
  std::vector<Setting> settings = {SettingOf(base, axes, choice)};
  for (size_t i = 0; i < axes.size(); ++i) {
    for (choice[i] = 1; choice[i] < axes[i].values.size(); ++choice[i]) {
      Setting& setting = settings.emplace_back(SettingOf(base, axes, choice));
      setting.flag = axes[i].flag->name;
      setting.value = axes[i].values[choice[i]];
    }
    choice[i] = 0;
  }
  return settings;
}

std::vector<Setting> Full(const FlagValues& base, const std::vector<Axis>& axes) {
  std::vector<size_t> choice(axes.size(), 0);
  std::vector<Setting> settings;
  do {
    settings.push_back(SettingOf(base, axes, choice));
  } while (Advance(axes, &choice));
  return settings;
}

}  // namespace

AblationGrid MakeGrid(const FlagValues& flags) {
  const std::vector<Axis> axes = AxesOf(flags);
  const bool full = flags.Text("grid") == "full";
  if (axes.empty()) {
    throw UsageError("[ablate] expected a policy that varies, got one value for each; give a list, as --threads=1,2");
  }
  RefuseLarge(axes, full);
  FlagValues base = flags;
  AblationGrid grid;
  for (const Axis& axis : axes) {
    base.Set(*axis.flag, axis.values.front());
    grid.base += fmt::format("{}{}={}", grid.base.empty() ? "" : " ", axis.flag->name, axis.values.front());
  }
  grid.settings = full ? Full(base, axes) : Star(base, axes);
  return grid;
}

}  // namespace cavs
