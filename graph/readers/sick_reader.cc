#include "graph/readers/sick_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cavs/base/error.h"
#include "graph/readers/tree_pair_reader.h"

namespace cavs {
namespace {

constexpr std::array<std::string_view, 5> kColumns = {"pair_ID", "sentence_A", "sentence_B", "relatedness_score",
                                                      "entailment_judgment"};
constexpr size_t kScore = 3;

struct PartNames {
  std::string_view table;
  std::string_view trees;
};
// By value of SickPart.
constexpr std::array<PartNames, 3> kParts = {
    {{"SICK_train.txt", "train"}, {"SICK_trial.txt", "dev"}, {"SICK_test_annotated.txt", "test"}}};

using Cells = std::array<std::string_view, kColumns.size()>;

Cells SplitRow(const TextFile& file, const LineReader& lines) {
  const std::string_view line = lines.line();
  const auto columns = static_cast<size_t>(std::count(line.begin(), line.end(), '\t')) + 1;
  if (columns != kColumns.size()) {
    file.Fail(lines.offset(), fmt::format("expected {} columns between tabs, got {}", kColumns.size(), columns));
  }
  Cells cells;
  size_t begin = 0;
  for (std::string_view& cell : cells) {
    const size_t end = std::min(line.find('\t', begin), line.size());
    cell = line.substr(begin, end - begin);
    begin = end + 1;
  }
  return cells;
}

bool IsBlank(std::string_view line) { return std::all_of(line.begin(), line.end(), IsAsciiBlank); }

}  // namespace

std::vector<SickRow> ReadSickTable(const TextFile& file, int64_t max_rows) {
  LineReader lines(file);
  if (!lines.Next()) file.FailEmpty();
  if (const Cells header = SplitRow(file, lines); header != kColumns) {
    file.Fail(lines.offset(),
              fmt::format("expected the header '{}', got '{}'", fmt::join(kColumns, " "), fmt::join(header, " ")));
  }
  std::vector<SickRow> rows;
  while ((max_rows == 0 || std::ssize(rows) < max_rows) && lines.Next()) {
    if (IsBlank(lines.line())) continue;
    const Cells cells = SplitRow(file, lines);
    const int64_t score_at = lines.offset() + (cells[kScore].data() - lines.line().data());
    rows.push_back({.id = std::string(cells[0]),
                    .sentence_a = std::string(cells[1]),
                    .sentence_b = std::string(cells[2]),
                    .score = ParseScore(file, score_at, cells[kScore]),
                    .judgment = std::string(cells[4]),
                    .line = lines.number()});
  }
  if (rows.empty()) file.FailEmpty();
  return rows;
}

TreeCorpus ReadSick(const std::string& folder, SickPart part, int64_t max_examples) {
  const PartNames& names = kParts[static_cast<size_t>(part)];
  const TextFile table = ReadTextFile(fmt::format("{}/{}", folder, names.table));
  const std::vector<SickRow> rows = ReadSickTable(table, max_examples);
  TreePairReader pairs(fmt::format("{}/{}", folder, names.trees));
  TreeCorpus corpus;
  for (const SickRow& row : rows) {
    if (!pairs.Next(&corpus)) {
      throw ParseError(
          table.name(), row.line, 0,
          fmt::format("expected the {} pairs that {} has, got another", corpus.trees.size(), pairs.name()));
    }
    corpus.scores.push_back(row.score);
  }
  const bool whole = max_examples == 0 || std::ssize(rows) < max_examples;
  if (whole && pairs.Next(&corpus)) {
    throw ParseError(table.name(), rows.back().line + 1, 0,
                     fmt::format("expected a row for each pair of {}, got the end of the file", pairs.name()));
  }
  return corpus;
}

}  // namespace cavs
