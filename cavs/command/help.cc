#include "cavs/command/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cavs/text.h"

namespace cavs {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kIndent = 24;

// Appends `first` and then `text`, broken between words, from column `indent` on.
void AppendWrapped(std::string& out, std::string_view first, std::string_view text, size_t indent) {
  std::string line(first);
  if (line.size() >= indent) {
    out += line + '\n';
    line.clear();
  }
  line.resize(indent, ' ');
  size_t words = 0;
  for (const std::string_view word : SplitText(text, ' ')) {
    if (words > 0 && line.size() + 1 + word.size() > kWidth) {
      out += line + '\n';
      line.assign(indent, ' ');
      words = 0;
    }
    if (words++ > 0) line += ' ';
    line += word;
  }
  out += line + '\n';
}

// `command` is null where the help is about all of them.
std::string Default(const FlagSpec& flag, const SubCommandSpec* command) {
  if (!flag.initial_note.empty()) return std::string(flag.initial_note);
  if (flag.initial.empty()) return "none";
  std::string text(flag.initial);
  std::string others;
  for (const CommandDefault& rule : CommandDefaults()) {
    if (rule.flag != flag.name) continue;
    if (command == nullptr) others += fmt::format(", of {} {}", Describe(rule.command).name, rule.initial);
    if (command != nullptr && command->command == rule.command) text = rule.initial;
  }
  text += others;
  for (const DependentDefault& rule : DependentDefaults()) {
    if (rule.flag == flag.name) text += fmt::format(", with --{}={} {}", rule.depends_on, rule.value, rule.initial);
  }
  return text;
}

// "[graphs; default 25]"
std::string Facts(const FlagSpec& flag, const SubCommandSpec* command) {
  std::vector<std::string> facts;
  if (!flag.choices.empty()) {
    facts.push_back(fmt::format("{}", fmt::join(SplitText(flag.choices, '|'), ", ")));
  }
  if (!flag.unit.empty()) facts.emplace_back(flag.unit);
  if (flag.policy && command != nullptr && command->command == SubCommand::kAblate) facts.emplace_back("takes a list");
  if (!flag.zero_means.empty()) facts.push_back(fmt::format("0: {}", flag.zero_means));
  facts.push_back(fmt::format("default {}", Default(flag, command)));
  return fmt::format("[{}]", fmt::join(facts, "; "));
}

std::string Spelling(const FlagSpec& flag) {
  if (flag.type == FlagType::kSwitch) return fmt::format("--[no]{}", flag.name);
  return fmt::format("--{}={}", flag.name, flag.value);
}

void AppendFlags(std::string& out, const SubCommandSpec* command) {
  std::string_view group;
  for (const FlagSpec& flag : Flags()) {
    if (command != nullptr && !IsUsedBy(flag, command->command)) continue;
    if (flag.group != group) out += fmt::format("\n{}:\n", flag.group);
    group = flag.group;
    std::string text = fmt::format("{} {}", flag.help, Facts(flag, command));
    const std::vector<std::string_view> users = UsersOf(flag);
    if (command == nullptr && users.size() < SubCommands().size()) {
      text += fmt::format(" ({})", fmt::join(users, ", "));
    }
    AppendWrapped(out, fmt::format("  {}", Spelling(flag)), text, kIndent);
  }
  out += "\nGeneral:\n";
  AppendWrapped(out, "  --flagfile=FILE", "Read flags from a file, one --flag=value a line. [default none]", kIndent);
  AppendWrapped(out, "  --help", "Print this text.", kIndent);
  AppendWrapped(out, "  --version", "Print the version.", kIndent);
}

void AppendFormats(std::string& out) {
  out += "\nData formats, as FORMAT:PATH:\n";
  for (const DataFormat& format : DataFormats()) {
    AppendWrapped(out, fmt::format("  {}", format.name), format.help, kIndent / 2);
  }
}

void AppendOverview(std::string& out) {
  out += "cavs trains neural networks whose structure is another one for every example.\n";
  out += "\nUsage: cavs SUBCOMMAND [--flag=value ...], in any order\n\nSub-commands:\n";
  for (const SubCommandSpec& spec : SubCommands()) {
    AppendWrapped(out, fmt::format("  {}", spec.name), spec.summary, kIndent / 2);
  }
  AppendWrapped(out, "  help", "this text, or with the name of a sub-command its own", kIndent / 2);
}

}  // namespace

std::string HelpText(const SubCommandSpec* command) {
  std::string out;
  if (command == nullptr) {
    AppendOverview(out);
  } else {
    AppendWrapped(out, fmt::format("cavs {}:", command->name), command->summary, command->name.size() + 7);
    out += fmt::format("\nExample: {}\n", command->example);
  }
  AppendFlags(out, command);
  AppendFormats(out);
  out += "\nExit codes: 0 done, 1 refused input or failed run, 2 wrong command line.\n";
  return out;
}

}  // namespace cavs
