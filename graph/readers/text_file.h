// A whole text in memory, checked once: what every reader of text formats starts from.
//
// The bytes are valid UTF-8 (anything else is refused with its line), a byte-order mark at the start is dropped, and
// offsets are 64-bit. Line ends are `\n` or `\r\n`. The readers split on ASCII blanks only: U+00A0, U+2028, U+3000 and
// their like are part of the token that holds them. Immutable after construction, so safe to read from many threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cavs {

// Blank, tab, line feed, vertical tab, form feed or carriage return; never part of a longer UTF-8 sequence.
constexpr bool IsAsciiBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class TextFile {
 public:
  // Takes the bytes over. `name` is what errors call the text, usually its path. Throws ParseError where the bytes are
  // not UTF-8.
  TextFile(std::string name, std::string bytes);

  const std::string& name() const { return name_; }

  // The text without byte-order mark; offsets below are byte offsets into it.
  std::string_view text() const { return text_; }

  // Throws ParseError at the line and column of `offset` (0 <= offset <= text().size()).
  [[noreturn]] void Fail(int64_t offset, std::string_view message) const;

  // Throws ParseError with the sentence "no examples in NAME".
  [[noreturn]] void FailEmpty() const;

 private:
  std::string name_;
  std::string text_;
};

// Reads the file (or pipe) at `path`. Throws std::invalid_argument when it is missing, a folder or cannot be read, and
// ParseError where it is not UTF-8.
TextFile ReadTextFile(const std::string& path);

// Walks over the lines of a text, which must outlive it.
class LineReader {
 public:
  explicit LineReader(const TextFile& file) : text_(file.text()) {}

  // Moves to the next line; false at the end. A last line without line end counts, an empty rest does not.
  bool Next();

  // The current line, without its line end.
  std::string_view line() const { return line_; }

  // The current line's number, from 1.
  int64_t number() const { return number_; }

  // The byte offset in the text at which the current line begins.
  int64_t offset() const { return static_cast<int64_t>(begin_); }

 private:
  std::string_view text_;
  std::string_view line_;
  size_t begin_ = 0;
  size_t next_ = 0;
  int64_t number_ = 0;
};

// Walks over the tokens of a line, which ASCII blanks set apart. The line must outlive it.
class TokenReader {
 public:
  explicit TokenReader(std::string_view line) : line_(line) {}

  // Moves to the next token; false at the end.
  bool Next();

  std::string_view token() const { return token_; }

  // The byte offset in the line at which the current token begins.
  int64_t offset() const { return token_.data() - line_.data(); }

 private:
  std::string_view line_;
  std::string_view token_;
  size_t next_ = 0;
};

}  // namespace cavs
