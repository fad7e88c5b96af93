// Strings by number: each distinct string is stored once and named by an int32, counted from 0 in order of arrival.
// Append only: a number and a view of a string stay valid as long as the table, also when the table is moved.
// Adding needs exclusive access; looking up is safe from many threads.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cavs {

class StringTable {
 public:
  // What Find says of a string that is not there.
  static constexpr int32_t kNone = -1;

  StringTable() = default;
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;
  // The index refers to the strings of this table; a member-wise copy would refer to another's.
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;
  ~StringTable() = default;

  // The number of `text`, which is added if it is new.
  int32_t Intern(std::string_view text);

  // The number of `text`, or kNone.
  int32_t Find(std::string_view text) const;

  // The string numbered `id`; 0 <= id < size().
  std::string_view at(int32_t id) const { return strings_[static_cast<size_t>(id)]; }

  int32_t size() const { return static_cast<int32_t>(strings_.size()); }

 private:
  std::deque<std::string> strings_;  // a deque never moves its elements, so that the index may refer to them
  std::unordered_map<std::string_view, int32_t> index_;
};

}  // namespace cavs
