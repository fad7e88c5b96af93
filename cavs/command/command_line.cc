#include "cavs/command/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/corpus.h"
#include "cavs/text.h"

namespace cavs {
namespace {

// Flags of the command itself, which no sub-command owns.
constexpr std::array<std::string_view, 3> kGeneralFlags = {"help", "version", "flagfile"};

// Flag files may name others; deeper than this they name each other in a circle.
constexpr int kMaxFlagFileDepth = 8;

template <typename... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

const FlagSpec& FlagNamed(std::string_view name) {
  const FlagSpec* flag = FindFlag(name);
  CAVS_CHECK(flag != nullptr, "no flag --{}", name);
  return *flag;
}

std::string SubCommandNames() {
  std::vector<std::string_view> names;
  for (const SubCommandSpec& spec : SubCommands()) names.push_back(spec.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void RefuseUnknownFlag(std::string_view name) {
  std::vector<std::string> negated;
  for (const FlagSpec& flag : Flags()) {
    if (flag.type == FlagType::kSwitch) negated.push_back(fmt::format("no{}", flag.name));
  }
  std::vector<std::string_view> names(kGeneralFlags.begin(), kGeneralFlags.end());
  for (const FlagSpec& flag : Flags()) names.push_back(flag.name);
  names.insert(names.end(), negated.begin(), negated.end());
  Refuse("unknown flag --{}; did you mean --{}?", name, NearestName(name, names));
}

const SubCommandSpec& RequireSubCommand(std::string_view word) {
  if (const SubCommandSpec* spec = FindSubCommand(word)) return *spec;
  std::vector<std::string_view> names = {"help"};
  for (const SubCommandSpec& spec : SubCommands()) names.push_back(spec.name);
  Refuse("unknown sub-command '{}'; did you mean '{}'?", word, NearestName(word, names));
}

// "--name" and perhaps "=value", as one word.
struct FlagWord {
  std::string name;  // as in the table: without dashes in front, '_' within
  std::optional<std::string> value;
};

FlagWord SplitFlagWord(std::string_view word) {
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  const size_t equals = word.find('=');
  FlagWord flag;
  flag.name = word.substr(0, equals);
  std::replace(flag.name.begin(), flag.name.end(), '-', '_');
  if (equals != std::string_view::npos) flag.value = word.substr(equals + 1);
  return flag;
}

// A negative number is a value, so that it is refused as one.
bool LooksLikeFlag(std::string_view word) { return word.size() > 1 && word[0] == '-' && !ParseDouble(word); }

bool TakesValue(std::string_view name) {
  const FlagSpec* flag = FindFlag(name);
  return name == "flagfile" || (flag != nullptr && flag->type != FlagType::kSwitch);
}

// Reads words and flag files into values, without knowing the sub-command yet.
class WordReader {
 public:
  void ReadWords(std::span<const std::string> words) {
    for (size_t at = 0; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (word == "--") Refuse("unexpected word '--': flags and sub-command are the whole command line");
      if (word.size() < 2 || word[0] != '-') {
        plain_.push_back(word);
        continue;
      }
      FlagWord flag = SplitFlagWord(word);
      const bool value_follows = at + 1 < words.size() && !LooksLikeFlag(words[at + 1]);
      if (!flag.value && TakesValue(flag.name) && value_follows) flag.value = words[++at];
      ReadFlag(flag, 0);
    }
  }

  const std::vector<std::string>& plain() const { return plain_; }
  bool help() const { return help_; }
  bool version() const { return version_; }
  FlagValues& values() { return values_; }

 private:
  void ReadFlag(const FlagWord& word, int depth) {
    if (word.name == "flagfile") return ReadFlagFile(word.value.value_or(""), depth);
    if (word.name == "help" || word.name == "version") {
      if (word.value) Refuse("[--{}] expected no value, got '{}'", word.name, *word.value);
      (word.name == "help" ? help_ : version_) = true;
      return;
    }
    if (const FlagSpec* flag = FindFlag(word.name)) {
      const bool is_switch = flag->type == FlagType::kSwitch;
      if (!is_switch && !word.value)
        Refuse("[--{}] expected a value, as --{}={}, got none", flag->name, flag->name, flag->value);
      return values_.Set(*flag, word.value.value_or("true"));
    }
    ReadNegatedSwitch(word);
  }

  void ReadNegatedSwitch(const FlagWord& word) {
    const std::string_view name = word.name;
    const FlagSpec* flag = name.starts_with("no") ? FindFlag(name.substr(2)) : nullptr;
    if (flag == nullptr) RefuseUnknownFlag(name);
    if (flag->type != FlagType::kSwitch) Refuse("[--{}] expected a switch after 'no', got --{}", name, flag->name);
    if (word.value) Refuse("[--{}] expected no value, got '{}'", name, *word.value);
    values_.Set(*flag, "false");
  }

  void ReadFlagFile(const std::string& path, int depth) {
    if (path.empty()) Refuse("[--flagfile] expected the name of a file, got none");
    if (depth == kMaxFlagFileDepth) Refuse("[--flagfile] expected files that end, got '{}' in a circle", path);
    std::ifstream file(path);
    if (!file || file.peek() == std::ifstream::traits_type::eof()) {
      Refuse("[--flagfile] expected a file of flags, got '{}', which is empty or cannot be read", path);
    }
    int64_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      try {
        ReadFlagFileLine(line, depth);
      } catch (const UsageError& error) {
        Refuse("{}:{}: {}", path, number, error.what());
      }
    }
  }

  void ReadFlagFileLine(std::string_view line, int depth) {
    constexpr std::string_view kBlanks = " \t\r";
    const size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || line[first] == '#') return;
    line = line.substr(first, line.find_last_not_of(kBlanks) + 1 - first);
    if (line[0] != '-' || line == "-" || line == "--") Refuse("expected --flag=value, got '{}'", line);
    ReadFlag(SplitFlagWord(line), depth + 1);
  }

  std::vector<std::string> plain_;
  bool help_ = false;
  bool version_ = false;
  FlagValues values_;
};

// Refuses words beyond the `expected` ones.
void RefuseStrayWords(const std::vector<std::string>& plain, size_t expected) {
  if (plain.size() <= expected) return;
  const std::string& word = plain[expected];
  if (FindSubCommand(word) != nullptr) Refuse("expected one sub-command, got '{}' and '{}'", plain[expected - 1], word);
  if (word == "true" || word == "false") {
    Refuse("unexpected word '{}': a switch is written --switch, --noswitch or --switch={}", word, word);
  }
  Refuse("unexpected word '{}'", word);
}

void RefuseUnusedFlags(const FlagValues& values, const SubCommandSpec& command) {
  for (const FlagSpec& flag : Flags()) {
    if (!values.is_set(flag.name) || IsUsedBy(flag, command.command)) continue;
    Refuse("[--{}] is not used by '{}', only by {}", flag.name, command.name, fmt::join(UsersOf(flag), ", "));
  }
}

void RefuseLists(const FlagValues& values, const SubCommandSpec& command) {
  if (command.command == SubCommand::kAblate) return;
  for (const FlagSpec& flag : Flags()) {
    if (!values.is_list(flag)) continue;
    Refuse("[--{}] expected one value, got '{}'; only 'ablate' takes a list", flag.name,
           fmt::join(values.ValueTexts(flag), ","));
  }
}

// Lets several names of one data set become `target`; returns the one that was given, or nothing.
std::string_view UniteData(FlagValues& values, std::span<const std::string_view> names, std::string_view target) {
  std::string_view given;
  for (const std::string_view name : names) {
    if (!values.is_set(name)) continue;
    if (!given.empty()) Refuse("[--{}] expected one data set, got --{} too", name, given);
    given = name;
  }
  if (!given.empty() && given != target) values.Move(FlagNamed(given), FlagNamed(target));
  return given;
}

std::string_view UniteData(FlagValues& values, SubCommand command) {
  static constexpr std::array<std::string_view, 4> kNames = {"data", "train", "dev", "test"};
  if (command == SubCommand::kCheck) return {};
  if (command == SubCommand::kTrain) return UniteData(values, std::span(kNames).first(2), "train");
  return UniteData(values, kNames, "data");
}

void ApplyCommandDefaults(FlagValues& values, SubCommand command) {
  for (const CommandDefault& rule : CommandDefaults()) {
    if (rule.command == command) values.SetDefault(FlagNamed(rule.flag), rule.initial);
  }
}

// Without --model, the data say which task there is to learn, and the task has a model.
void ApplyModelOfTask(FlagValues& values, const SubCommandSpec& command) {
  const FlagSpec& model = FlagNamed("model");
  if (!IsUsedBy(model, command.command)) return;
  const std::string& data = values.Text(command.command == SubCommand::kTrain ? "train" : "data");
  values.SetDefault(model, Describe(TaskOf(ParseDataSource(data).format)).default_model);
}

void RequireFlags(const FlagValues& values, const SubCommandSpec& command) {
  for (const std::string_view alternatives : command.needs) {
    const std::vector<std::string_view> names = SplitText(alternatives, '|');
    const auto is_set = [&](std::string_view name) { return values.is_set(name); };
    if (names.empty() || std::any_of(names.begin(), names.end(), is_set)) continue;
    const FlagSpec& flag = FlagNamed(names.front());
    Refuse("'{}' needs --{}={}, as in: {}", command.name, flag.name, flag.value, command.example);
  }
}

// Flags that mean nothing, or two things, in company.
void RefuseBadCompany(const FlagValues& values) {
  for (const std::string_view name : {"resume", "save_every"}) {
    if (values.is_set(name) && !values.is_set("save")) Refuse("[--{}] expected --save=DIR too, got none", name);
  }
  if (values.Bool("resume") && values.is_set("load")) {
    Refuse("[--load] expected a new run, got --resume too, which reads its model from --save");
  }
  if (values.is_set("momentum") && values.Text("optimizer") != "momentum") {
    Refuse("[--momentum] expected --optimizer=momentum too, got '{}'", values.Text("optimizer"));
  }
}

CommandLine ParseHelp(WordReader& reader) {
  RefuseStrayWords(reader.plain(), 2);
  CommandLine result{Action::kHelp, nullptr, std::move(reader.values()), {}};
  if (reader.plain().size() == 2 && reader.plain()[1] != "help") result.command = &RequireSubCommand(reader.plain()[1]);
  for (const FlagSpec& flag : Flags()) {
    if (result.flags.is_set(flag.name)) Refuse("[--{}] is not used by 'help'", flag.name);
  }
  return result;
}

}  // namespace

void ApplyDependentDefaults(FlagValues& values) {
  for (const DependentDefault& rule : DependentDefaults()) {
    if (values.Text(rule.depends_on) == rule.value) values.SetDefault(FlagNamed(rule.flag), rule.initial);
  }
}

CommandLine ParseCommandLine(std::span<const std::string> words) {
  WordReader reader;
  reader.ReadWords(words);
  const std::vector<std::string>& plain = reader.plain();
  if (!plain.empty() && plain[0] == "help") return ParseHelp(reader);

  CommandLine result{Action::kRun, nullptr, std::move(reader.values()), {}};
  if (!plain.empty()) result.command = &RequireSubCommand(plain[0]);
  RefuseStrayWords(plain, 1);
  if (reader.version()) result.action = Action::kVersion;
  if (reader.help()) result.action = Action::kHelp;
  if (result.action != Action::kRun) return result;
  if (result.command == nullptr) {
    Refuse("expected a sub-command, got none: {} or help", SubCommandNames());
  }
  RefuseUnusedFlags(result.flags, *result.command);
  RefuseLists(result.flags, *result.command);
  result.data_flag = UniteData(result.flags, result.command->command);
  ApplyCommandDefaults(result.flags, result.command->command);
  ApplyDependentDefaults(result.flags);
  RequireFlags(result.flags, *result.command);
  ApplyModelOfTask(result.flags, *result.command);
  RefuseBadCompany(result.flags);
  return result;
}

}  // namespace cavs
