#include "graph/readers/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/base/utf8.h"

namespace cavs {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhere = "data file";

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void ThrowUnreadable(const std::string& path, const std::error_code& error) {
  ThrowInvalid(kWhere, fmt::format("expected a readable text file, got '{}': {}", path, error.message()));
}

}  // namespace

TextFile::TextFile(std::string name, std::string bytes) : name_(std::move(name)), text_(std::move(bytes)) {
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  if (const int64_t bad = FindInvalidUtf8(text_); bad >= 0) {
    Fail(bad,
         fmt::format("expected UTF-8, got byte 0x{:02X}", static_cast<unsigned char>(text_[static_cast<size_t>(bad)])));
  }
}

void TextFile::Fail(int64_t offset, std::string_view message) const {
  const std::string_view before = text().substr(0, static_cast<size_t>(offset));
  const int64_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
  throw ParseError(name_, line, static_cast<int64_t>(before.size() - line_begin) + 1, message);
}

void TextFile::FailEmpty() const { throw ParseError(name_, 1, 0, fmt::format("no examples in {}", name_)); }

TextFile ReadTextFile(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    ThrowInvalid(kWhere, fmt::format("expected a text file, got '{}', which does not exist", path));
  }
  if (std::filesystem::is_directory(status)) {
    ThrowInvalid(kWhere, fmt::format("expected a text file, got the folder '{}'", path));
  }
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) ThrowUnreadable(path, std::error_code(errno, std::generic_category()));
  std::string bytes;
  // Pipes have no size, so the size is a hint and the loop decides.
  if (const auto size = std::filesystem::file_size(path, error); !error) bytes.reserve(size);
  std::array<char, 1 << 16> block;
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) bytes.append(block.data(), count);
  if (std::ferror(file.get()) != 0) ThrowUnreadable(path, std::error_code(errno, std::generic_category()));
  return TextFile(path, std::move(bytes));
}

bool LineReader::Next() {
  if (next_ >= text_.size()) return false;
  begin_ = next_;
  const size_t end = std::min(text_.find('\n', begin_), text_.size());
  line_ = text_.substr(begin_, end - begin_);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  next_ = end + 1;
  ++number_;
  return true;
}

bool TokenReader::Next() {
  const auto rest = line_.begin() + static_cast<std::ptrdiff_t>(next_);
  const auto begin = std::find_if_not(rest, line_.end(), IsAsciiBlank);
  const auto end = std::find_if(begin, line_.end(), IsAsciiBlank);
  token_ = std::string_view(begin, end);
  next_ = static_cast<size_t>(end - line_.begin());
  return !token_.empty();
}

}  // namespace cavs
