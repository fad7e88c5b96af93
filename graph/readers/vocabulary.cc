#include "graph/readers/vocabulary.h"

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {
namespace {

constexpr std::string_view kWhere = "Vocabulary";

}  // namespace

Vocabulary Vocabulary::FromCounts(const StringTable& table, std::span<const int64_t> counts, int64_t min_count) {
  CAVS_CHECK(std::ssize(counts) == table.size());
  if (min_count < 1) ThrowInvalid(kWhere, fmt::format("expected a min_count of at least 1, got {}", min_count));
  Vocabulary vocabulary;
  for (int32_t id = 0; id < table.size(); ++id) {
    const int64_t count = counts[static_cast<size_t>(id)];
    if (count == 0) continue;
    const bool known = count >= min_count && table.at(id) != kUnknownWord;
    if (known) vocabulary.table_.Intern(table.at(id));
    vocabulary.unknown_trained_ |= !known;
  }
  return vocabulary;
}

Vocabulary Vocabulary::FromWords(std::span<const std::string> words, bool unknown_trained) {
  if (words.empty() || words.front() != kUnknownWord) {
    ThrowInvalid(kWhere, fmt::format("expected {} as the first word, got {}", kUnknownWord,
                                     words.empty() ? "no words" : fmt::format("'{}'", words.front())));
  }
  Vocabulary vocabulary;
  vocabulary.unknown_trained_ = unknown_trained;
  for (const std::string& word : words.subspan(1)) {
    const int32_t row = vocabulary.size();
    if (vocabulary.table_.Intern(word) != row) {
      ThrowInvalid(kWhere, fmt::format("expected words that differ, got '{}' twice", word));
    }
  }
  return vocabulary;
}

int32_t Vocabulary::Lookup(std::string_view word) const {
  const int32_t row = table_.Find(word);
  return row == StringTable::kNone ? kUnknown : row;
}

std::vector<int32_t> Vocabulary::Map(const StringTable& table) const {
  std::vector<int32_t> rows(static_cast<size_t>(table.size()));
  for (int32_t id = 0; id < table.size(); ++id) rows[static_cast<size_t>(id)] = Lookup(table.at(id));
  return rows;
}

std::vector<std::string> Vocabulary::words() const {
  std::vector<std::string> words;
  words.reserve(static_cast<size_t>(size()));
  for (int32_t row = 0; row < size(); ++row) words.emplace_back(table_.at(row));
  return words;
}

Coverage Vocabulary::Cover(const StringTable& table, std::span<const int64_t> counts) const {
  CAVS_CHECK(std::ssize(counts) == table.size());
  Coverage coverage;
  for (int32_t id = 0; id < table.size(); ++id) {
    const int64_t count = counts[static_cast<size_t>(id)];
    if (count == 0) continue;
    coverage.tokens += count;
    ++coverage.types;
    if (table_.Find(table.at(id)) != StringTable::kNone) continue;
    coverage.unknown_tokens += count;
    ++coverage.unknown_types;
  }
  return coverage;
}

std::string DescribeCoverage(const Coverage& coverage, std::string_view name) {
  return fmt::format("{} of {} {} words unknown ({} of {} distinct)", coverage.unknown_tokens, coverage.tokens, name,
                     coverage.unknown_types, coverage.types);
}

}  // namespace cavs
