#include "cavs/command/gflags_registry.h"

#include <fmt/format.h>
#include <gflags/gflags.h>

#include <vector>

#include "cavs/base/error.h"

namespace cavs {
namespace {

// gflags knows no units: sizes are given to it in bytes.
std::string TextForGflags(const FlagValues& values, const FlagSpec& flag) {
  return fmt::format("--{}={}", flag.name, values.ValueText(flag));
}

}  // namespace

template <typename T>
void GflagsRegistry::Register(std::deque<Storage<T>>& storage, const FlagSpec& flag, const T& initial) {
  Storage<T>& entry =
      storage.emplace_back(Storage<T>{std::string(flag.name), std::string(flag.help), initial, initial});
  gflags::FlagRegisterer(entry.name.c_str(), entry.help.c_str(), "cavs/command/flag_list.cc", &entry.value,
                         &entry.initial);
}

GflagsRegistry::GflagsRegistry() {
  const FlagValues defaults;
  for (const FlagSpec& flag : Flags()) {
    switch (flag.type) {
      case FlagType::kSwitch:
        Register(switches_, flag, defaults.Bool(flag.name));
        break;
      case FlagType::kInt:
      case FlagType::kSize:
        Register(integers_, flag, defaults.Int(flag.name));
        break;
      case FlagType::kDouble:
        Register(numbers_, flag, defaults.Double(flag.name));
        break;
      case FlagType::kText:
      case FlagType::kChoice:
      case FlagType::kData:
        Register(texts_, flag, defaults.Text(flag.name));
        break;
    }
  }
}

void GflagsRegistry::Assign(const FlagValues& values) {
  std::vector<std::string> words = {"cavs"};
  for (const FlagSpec& flag : Flags()) {
    if (values.is_set(flag.name)) words.push_back(TextForGflags(values, flag));
  }
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(words.size());
  char** arguments = pointers.data();
  gflags::ParseCommandLineNonHelpFlags(&count, &arguments, /*remove_flags=*/false);

  for (const FlagSpec& flag : Flags()) {
    if (!values.is_set(flag.name)) continue;
    std::string text;
    CAVS_CHECK(gflags::GetCommandLineOption(std::string(flag.name).c_str(), &text), "gflags has no --{}", flag.name);
    const bool equal =
        flag.type == FlagType::kDouble ? std::stod(text) == values.Double(flag.name) : text == values.ValueText(flag);
    CAVS_CHECK(equal, "gflags reads --{} as {}", flag.name, text);
  }
}

}  // namespace cavs
