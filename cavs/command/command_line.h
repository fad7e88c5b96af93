// The command line of `cavs`, checked in full against the table of flags before anything else sees it.
//
// Accepted, in any order and before or after the sub-command: --flag=value, --flag value, -flag=value, --switch,
// --noswitch, --flagfile=FILE (one --flag=value a line; blank lines and lines that begin with # are skipped), '-' for
// '_' within names. Of a repeated flag the last one counts. Everything else is a UsageError: unknown names, flags that
// the sub-command does not use, values out of range, stray words, missing flags. Pure functions; only flag files are
// read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cavs/command/flag_table.h"
#include "cavs/command/flag_values.h"

namespace cavs {

enum class Action : uint8_t { kRun, kHelp, kVersion };

struct CommandLine {
  Action action = Action::kRun;
  const SubCommandSpec* command = nullptr;  // never null for kRun; null for help on everything
  FlagValues flags;
  std::string_view data_flag;  // the name under which a sub-command's one data set was given: "data", "dev"
};

// Parses the words after the program's name. With kRun the flags that the sub-command needs are there, and its data
// have one name each: for train, --data has become --train; for the sub-commands that read one data set (all others but
// check),
// --train, --dev or --test has become --data. Throws UsageError.
CommandLine ParseCommandLine(std::span<const std::string> words);

// Sets the defaults that depend on other flags. ParseCommandLine does; so must whoever changes such a flag later.
void ApplyDependentDefaults(FlagValues& values);

}  // namespace cavs
