// The words that a model knows, as rows of its lookup table. Row 0 is `<unk>`, which stands for all others.
//
// Built once from the counts of the training data and never again: held-out data, prediction and a loaded model use the
// words as they are. Immutable, so safe to use from many threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/readers/string_table.h"

namespace cavs {

// How much of a text a vocabulary knows. Tokens count occurrences, types count distinct words.
struct Coverage {
  int64_t tokens = 0;
  int64_t unknown_tokens = 0;
  int64_t types = 0;
  int64_t unknown_types = 0;
};

class Vocabulary {
 public:
  static constexpr std::string_view kUnknownWord = "<unk>";
  static constexpr int32_t kUnknown = 0;

  // The words of `table` that occur at least `min_count` times, in the table's order, after `<unk>`. `counts` holds the
  // occurrences of each word of the table; [table.size()]. A word that is spelled `<unk>` is row 0. Throws
  // std::invalid_argument unless min_count is at least 1.
  static Vocabulary FromCounts(const StringTable& table, std::span<const int64_t> counts, int64_t min_count = 1);

  // The words of a saved model, row by row. Throws std::invalid_argument unless the first is `<unk>` and all differ.
  static Vocabulary FromWords(std::span<const std::string> words, bool unknown_trained);

  // The row of a word in its look-up form (NormalizeToken); kUnknown for an unknown one.
  int32_t Lookup(std::string_view word) const;

  // The row of each word of `table`; [table.size()].
  std::vector<int32_t> Map(const StringTable& table) const;

  // Rows, `<unk>` included.
  int32_t size() const { return table_.size(); }

  // The words, row by row.
  std::vector<std::string> words() const;

  // Whether the training data holds a token that is row 0. If not, the vector of `<unk>` is never trained, and the user
  // of unknown words should be warned.
  bool unknown_trained() const { return unknown_trained_; }

  // How much this vocabulary knows of a text with these counts; [table.size()]. Words that do not occur are not
  // counted, and `<unk>` itself is a known word.
  Coverage Cover(const StringTable& table, std::span<const int64_t> counts) const;

 private:
  Vocabulary() { table_.Intern(kUnknownWord); }

  StringTable table_;
  bool unknown_trained_ = false;
};

// "1 of 3 dev words unknown (1 of 3 distinct)", for the text called `name`.
std::string DescribeCoverage(const Coverage& coverage, std::string_view name);

}  // namespace cavs
