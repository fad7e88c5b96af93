// The table of everything that the command line of `cavs` may hold: sub-commands and flags. The parser, the help text
// and the hand-over to gflags all follow this table, so none of them can disagree with it.
//
// The tables are made once and never changed: views into them stay valid for the whole run and are safe to read from
// any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace cavs {

enum class SubCommand : uint8_t { kTrain, kEval, kPredict, kCheck, kVerify, kExplain, kBench, kAblate };

// A set of sub-commands.
using SubCommandSet = uint32_t;

constexpr SubCommandSet SetOf(SubCommand command) { return SubCommandSet{1} << static_cast<uint8_t>(command); }

struct SubCommandSpec {
  SubCommand command;
  std::string_view name;
  std::string_view summary;
  std::string_view example;
  // Flags that must be given, "a|b" where one of several will do. Unused places are empty.
  std::string_view needs[2];
};

enum class FlagType : uint8_t {
  kSwitch,  // --flag, --noflag, --flag=true|false
  kInt,
  kDouble,
  kSize,    // bytes, with an optional unit
  kText,    // a file or folder
  kChoice,  // one of `choices`
  kData,    // FORMAT:PATH with a format of DataFormats()
};

// The values that a number may take; integers in it are exact up to 2^53.
struct Range {
  double low = 0;
  double high = std::numeric_limits<double>::max();
  bool low_open = false;   // `low` itself is refused
  bool high_open = false;  // `high` itself is refused
};

struct FlagSpec {
  std::string_view name;
  FlagType type;
  SubCommandSet used_by;
  std::string_view group;    // heading in the help
  std::string_view initial;  // the default as it would be written; empty for none
  std::string_view value;    // what stands for the value in the help: "N", "FILE"
  std::string_view help;
  std::string_view unit = {};
  std::string_view choices = {};       // "a|b|c"
  std::string_view choices_note = {};  // added to the message that refuses another choice
  Range range = {};
  std::string_view zero_means = {};    // what 0 stands for in the help, where it is no number
  std::string_view initial_note = {};  // the default in words, where it depends on the data
  // A choice of how to run, not of what: every value gives the same answers. `ablate` takes a list of values and
  // compares them; without a list it tries all choices of the flag, or of a number those of `tried`.
  bool policy = false;
  std::string_view tried = {};  // "a|b"
};

// A default that depends on another flag: `flag` starts as `initial` where `depends_on` is `value`.
struct DependentDefault {
  std::string_view flag;
  std::string_view depends_on;
  std::string_view value;
  std::string_view initial;
};

// A default that one sub-command has for itself.
struct CommandDefault {
  std::string_view flag;
  SubCommand command;
  std::string_view initial;
};

struct DataFormat {
  std::string_view name;
  std::string_view help;
};

std::span<const SubCommandSpec> SubCommands();
std::span<const FlagSpec> Flags();
std::span<const DependentDefault> DependentDefaults();
std::span<const CommandDefault> CommandDefaults();
std::span<const DataFormat> DataFormats();

const SubCommandSpec& Describe(SubCommand command);

// Null when there is no sub-command or flag of that name.
const SubCommandSpec* FindSubCommand(std::string_view name);
const FlagSpec* FindFlag(std::string_view name);

// The values that `ablate` tries of a policy to which the command line gave none.
std::vector<std::string_view> ValuesToTry(const FlagSpec& flag);

inline bool IsUsedBy(const FlagSpec& flag, SubCommand command) { return (flag.used_by & SetOf(command)) != 0; }

// The names of the sub-commands that use the flag, in the order of the table.
std::vector<std::string_view> UsersOf(const FlagSpec& flag);

}  // namespace cavs
