// The text that a command writes to stdout.
//
// Lines are collected, and written when Flush is called or much has come together. When the reader has gone, as in
// `cavs predict ... | head`, whatever follows is dropped and `closed` says so; SIGPIPE must be ignored by the process.
// One thread at a time.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace cavs {

class Output {
 public:
  explicit Output(int descriptor) : descriptor_(descriptor) {}
  // Writes what is left, as far as that is possible.
  ~Output();

  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Appends text. Throws FileError when stdout cannot be written, for instance on a full disk.
  void Write(std::string_view text);
  void Flush();

  // A line for people, written at once.
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Write(fmt::format(format, std::forward<Args>(args)...));
    Write("\n");
    Flush();
  }

  // Whether nobody reads any more.
  bool closed() const { return closed_; }

 private:
  int descriptor_;
  bool closed_ = false;
  std::string buffer_;
};

// Writes to stderr as far as that is possible: a message that nobody can read is no reason to fail. Any thread.
void WriteStderr(std::string_view text) noexcept;

// Opens /dev/null in place of each standard stream that the caller has closed. Otherwise the next file that is opened
// would take its number, and messages would be written into that file. Called once, before any file is opened.
void OccupyStandardStreams() noexcept;

}  // namespace cavs
