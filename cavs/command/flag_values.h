// The values of the flags: every flag of the table at its default or at what the command line gave, of the right type
// and within its range. A plain value without globals; const use is safe from any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cavs/command/flag_table.h"

namespace cavs {

// Something is wrong in the command line itself: exit code 2. what() is one line for people.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class FlagValues {
 public:
  // Every flag at its default.
  FlagValues();

  // The value of a flag. A name that the table does not have, or has with another type, is a std::logic_error.
  bool Bool(std::string_view name) const;                // kSwitch
  int64_t Int(std::string_view name) const;              // kInt; kSize in bytes
  double Double(std::string_view name) const;            // kDouble
  const std::string& Text(std::string_view name) const;  // kText, kChoice, kData; empty when not given

  // Whether the command line gave the flag.
  bool is_set(std::string_view name) const;

  // Sets a flag as the command line gives it. A policy takes a list too, "a,b", of which the first is its value. Throws
  // UsageError, "[--name] expected ..., got ...", for a value that the flag does not take.
  void Set(const FlagSpec& flag, std::string_view text);

  // Changes the default of a flag; one that the command line gave keeps its value.
  void SetDefault(const FlagSpec& flag, std::string_view text);

  // Gives `target` the value of `source`, and `source` its default again.
  void Move(const FlagSpec& source, const FlagSpec& target);

  // The value as it could be written on a command line: "true", "25", "0.05", "sst:train.txt"; empty for none.
  std::string ValueText(const FlagSpec& flag) const;

  // All values of the list that the flag was given, each as ValueText writes it; one where it is no list.
  std::vector<std::string> ValueTexts(const FlagSpec& flag) const;
  bool is_list(const FlagSpec& flag) const;

  // Name -> value of the flags that the sub-command uses, in the order of the table; null for those without a value,
  // an array for a list.
  nlohmann::ordered_json ToJson(SubCommand command) const;

 private:
  using Value = std::variant<bool, int64_t, double, std::string>;
  struct Slot {
    std::vector<Value> values;  // one, or those of a list
    bool is_set = false;
  };

  static Value Parse(const FlagSpec& flag, std::string_view text);
  static Slot DefaultSlot(const FlagSpec& flag);
  const Slot& Find(std::string_view name) const;
  template <typename T>
  const T& Get(std::string_view name) const;

  std::vector<Slot> slots_;  // in the order of the table
};

}  // namespace cavs
