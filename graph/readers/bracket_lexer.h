// Splits bracketed text into `(`, `)` and words. One lexer serves every bracket format, so that all agree on blanks,
// line ends and byte-order marks. Holds a position in a TextFile that must outlive it; for one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/readers/text_file.h"

namespace cavs {

struct BracketToken {
  enum class Kind : uint8_t { kOpen, kClose, kWord, kEnd };

  Kind kind = Kind::kEnd;
  std::string_view text{};  // the token itself; empty at the end
  int64_t offset = 0;       // byte offset of its first character in the text
  int64_t line = 1;         // from 1
};

class BracketLexer {
 public:
  explicit BracketLexer(const TextFile& file) : text_(file.text()) {}

  // The next token; kEnd, as often as asked, after the last.
  BracketToken Next();

  // Lines that held nothing but blanks, among those that have been left behind.
  int64_t blank_lines() const { return blank_lines_; }

 private:
  std::string_view text_;
  size_t position_ = 0;
  int64_t line_ = 1;
  bool line_is_blank_ = true;
  int64_t blank_lines_ = 0;
};

}  // namespace cavs
