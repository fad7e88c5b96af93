// The settings that `cavs ablate` compares: every policy of the table of flags may vary. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cavs/command/flag_values.h"

namespace cavs {

inline constexpr size_t kMostSettings = 64;  // as `help` says

struct Setting {
  std::string name;   // what differs from the base, "batching=depth fusion=false"; "base" for that itself
  std::string flag;   // the one flag that differs, in a star; empty for the base and in a full grid
  std::string value;  // of that flag
  FlagValues flags;   // one value for every policy
};

struct AblationGrid {
  std::vector<Setting> settings;  // the base first
  std::string base;               // the base's values of the policies that vary: "batching=frontier fusion=true"
};

// The base has the first value of every list and the present value of every other flag. Policies with lists vary; where
// no flag has a list, all do that the command line gave no value. --grid=star changes one of them at a time, full
// combines all. Throws UsageError when nothing varies, and for more than kMostSettings settings.
AblationGrid MakeGrid(const FlagValues& flags);

}  // namespace cavs
