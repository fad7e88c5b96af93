// Makes the table of flags known to gflags, and gives gflags the command line once our own check has passed.
//
// Libraries in the executable that look flags up by name then see ours with their values. Only executables use this:
// the library itself never touches gflags. gflags keeps its registry per process, so there is at most one object of
// this class; it must outlive the last look-up. Construction and Assign belong to the main thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "cavs/command/flag_values.h"

namespace cavs {

class GflagsRegistry {
 public:
  // Registers every flag of the table, with its default.
  GflagsRegistry();

  GflagsRegistry(const GflagsRegistry&) = delete;
  GflagsRegistry& operator=(const GflagsRegistry&) = delete;

  // Gives gflags a command line with the flags that were given. Throws std::logic_error if gflags reads one otherwise
  // than we did.
  void Assign(const FlagValues& values);

 private:
  // gflags keeps pointers to a flag's name, help, value and default; a deque never moves them.
  template <typename T>
  struct Storage {
    std::string name;
    std::string help;
    T value;
    T initial;
  };
  template <typename T>
  static void Register(std::deque<Storage<T>>& storage, const FlagSpec& flag, const T& initial);

  std::deque<Storage<bool>> switches_;
  std::deque<Storage<int64_t>> integers_;
  std::deque<Storage<double>> numbers_;
  std::deque<Storage<std::string>> texts_;
};

}  // namespace cavs
