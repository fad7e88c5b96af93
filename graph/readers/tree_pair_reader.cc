#include "graph/readers/tree_pair_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {
namespace {

constexpr std::string_view kUnscored = "None";

TextFile ReadPart(const std::string& folder, std::string_view name) {
  return ReadTextFile(fmt::format("{}/{}", folder, name));
}

double ReadScore(const TextFile& file, const LineReader& lines) {
  TokenReader tokens(lines.line());
  if (!tokens.Next()) file.Fail(lines.offset(), "expected a score or 'None', got a line without any");
  const std::string_view text = tokens.token();
  const int64_t offset = lines.offset() + tokens.offset();
  if (tokens.Next()) file.Fail(lines.offset() + tokens.offset(), "expected one score a line, got another token");
  return text == kUnscored ? kNoScore : ParseScore(file, offset, text);
}

}  // namespace

double ParseScore(const TextFile& file, int64_t offset, std::string_view text) {
  double score = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  const bool number = error == std::errc() && end == text.data() + text.size();
  if (!number || !(score >= kLowestScore && score <= kHighestScore)) {
    file.Fail(offset, fmt::format("expected a score from {} to {}, got '{}'", kLowestScore, kHighestScore, text));
  }
  return score;
}

TreePairReader::TreePairReader(const std::string& folder)
    : folder_(folder),
      a_tokens_(ReadPart(folder, "a.toks")),
      a_parents_(ReadPart(folder, "a.parents")),
      b_tokens_(ReadPart(folder, "b.toks")),
      b_parents_(ReadPart(folder, "b.parents")),
      a_(a_tokens_, a_parents_),
      b_(b_tokens_, b_parents_) {}

bool TreePairReader::Next(TreeCorpus* corpus) {
  Tree pair;
  const bool has_a = a_.Next(&corpus->words, &pair);
  const int32_t a_root = pair.vertex_count() - 1;
  const bool has_b = b_.Next(&corpus->words, &pair);
  if (has_a != has_b) {
    const TextFile& shorter = has_a ? b_tokens_ : a_tokens_;
    const TextFile& longer = has_a ? a_tokens_ : b_tokens_;
    throw ParseError(shorter.name(), (has_a ? b_ : a_).line() + 1, 0,
                     fmt::format("expected as many lines as in {}, got the end of the file", longer.name()));
  }
  if (!has_a) return false;
  pair.child.insert(pair.child.end(), {a_root, pair.vertex_count() - 1});
  pair.child_begin.push_back(static_cast<int32_t>(pair.child.size()));
  pair.label.push_back(Tree::kNone);
  pair.word.push_back(Tree::kNone);
  pair.line = a_.line();
  ReaderStatistics& statistics = corpus->statistics;
  CountTree(corpus->trees.emplace_back(std::move(pair)), &statistics);
  statistics.max_depth = statistics.max_levels;
  statistics.max_arity = std::max<int64_t>({2, a_.max_arity(), b_.max_arity()});
  statistics.unused_tokens = a_.unused_tokens() + b_.unused_tokens();
  return true;
}

TreeCorpus ReadTreePairs(const std::string& folder, int64_t max_examples) {
  TreePairReader pairs(folder);
  const TextFile scores = ReadPart(folder, "sim.txt");
  LineReader lines(scores);
  TreeCorpus corpus;
  while (max_examples == 0 || std::ssize(corpus.trees) < max_examples) {
    const bool has_pair = pairs.Next(&corpus), has_score = lines.Next();
    if (has_pair != has_score) {
      throw ParseError(scores.name(), std::max<int64_t>(lines.number() + (has_score ? 0 : 1), 1), 0,
                       fmt::format("expected a score for each pair of {}, got {}", folder,
                                   has_score ? "another line" : "the end of the file"));
    }
    if (!has_pair) break;
    corpus.scores.push_back(ReadScore(scores, lines));
  }
  if (corpus.trees.empty()) scores.FailEmpty();
  return corpus;
}

}  // namespace cavs
