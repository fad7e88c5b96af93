#include "graph/readers/bracket_lexer.h"

namespace cavs {

BracketToken BracketLexer::Next() {
  for (; position_ < text_.size() && IsAsciiBlank(text_[position_]); ++position_) {
    if (text_[position_] != '\n') continue;
    blank_lines_ += line_is_blank_ ? 1 : 0;
    line_is_blank_ = true;
    ++line_;
  }
  BracketToken token{.offset = static_cast<int64_t>(position_), .line = line_};
  if (position_ == text_.size()) return token;
  line_is_blank_ = false;
  const size_t begin = position_++;
  if (text_[begin] == '(') {
    token.kind = BracketToken::Kind::kOpen;
  } else if (text_[begin] == ')') {
    token.kind = BracketToken::Kind::kClose;
  } else {
    token.kind = BracketToken::Kind::kWord;
    const auto ends_word = [](char c) { return c == '(' || c == ')' || IsAsciiBlank(c); };
    while (position_ < text_.size() && !ends_word(text_[position_])) ++position_;
  }
  token.text = text_.substr(begin, position_ - begin);
  return token;
}

}  // namespace cavs
