// The library's ways to report that something went wrong.
//
// User faults (graphs, files, shapes, options, devices) are standard exceptions whose text reads
// "[where] expected ..., got ..."; readers throw ParseError, which carries the place in the file. A broken invariant of
// the library itself is a std::logic_error raised by CAVS_CHECK, in every build type: it never aborts the process.
// Everything here is safe to call from any thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cavs {

// Throws std::invalid_argument with the text "[where] message".
[[noreturn]] void ThrowInvalid(std::string_view where, std::string_view message);

// A fault in an input file. Lines count from 1; columns count bytes from 1, and 0 means that no column applies.
// what() is "file:line:column: message", or "file:line: message" without a column.
class ParseError : public std::runtime_error {
 public:
  ParseError(std::string_view file, int64_t line, int64_t column, std::string_view message);

  const std::string& file() const { return place_.file; }
  int64_t line() const { return place_.line; }
  int64_t column() const { return place_.column; }
  const std::string& message() const { return place_.message; }

 private:
  struct Place {
    std::string file;
    int64_t line;
    int64_t column;
    std::string message;
  };
  Place place_;
};

namespace internal {

// Throws std::logic_error with the text "internal error: file:line: condition: text"; ": text" is left out when empty.
[[noreturn]] void FailCheck(const char* file, int line, const char* condition, const std::string& text = {});

}  // namespace internal
}  // namespace cavs

// CAVS_CHECK(condition) and CAVS_CHECK(condition, "format {}", args...): an invariant of the library, not of its input.
// The message is formatted only when the condition is false.
#define CAVS_CHECK(condition, ...)                                                                          \
  do {                                                                                                      \
    if (!(condition)) [[unlikely]]                                                                          \
      ::cavs::internal::FailCheck(__FILE__, __LINE__, #condition __VA_OPT__(, ::fmt::format(__VA_ARGS__))); \
  } while (false)
