#include "cavs/base/error.h"

namespace cavs {
namespace {

std::string DescribePlace(std::string_view file, int64_t line, int64_t column, std::string_view message) {
  return column > 0 ? fmt::format("{}:{}:{}: {}", file, line, column, message)
                    : fmt::format("{}:{}: {}", file, line, message);
}

}  // namespace

void ThrowInvalid(std::string_view where, std::string_view message) {
  throw std::invalid_argument(fmt::format("[{}] {}", where, message));
}

ParseError::ParseError(std::string_view file, int64_t line, int64_t column, std::string_view message)
    : std::runtime_error(DescribePlace(file, line, column, message)),
      place_{std::string(file), line, column, std::string(message)} {}

namespace internal {

void FailCheck(const char* file, int line, const char* condition, const std::string& text) {
  throw std::logic_error(
      fmt::format("internal error: {}:{}: {}{}{}", file, line, condition, text.empty() ? "" : ": ", text));
}

}  // namespace internal
}  // namespace cavs
