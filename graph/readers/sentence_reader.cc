#include "graph/readers/sentence_reader.h"

#include <numeric>
#include <utility>
#include <vector>

#include "graph/readers/token.h"

namespace cavs {
namespace {

Tree ChainOf(std::vector<int32_t> words, int64_t line) {
  const size_t vertices = words.size();
  Tree tree;
  tree.child_begin.resize(vertices + 1);
  std::iota(tree.child_begin.begin() + 1, tree.child_begin.end(), 0);
  tree.child.resize(vertices - 1);
  std::iota(tree.child.begin(), tree.child.end(), 0);
  tree.label.assign(vertices, Tree::kNone);
  tree.word = std::move(words);
  tree.line = line;
  return tree;
}

}  // namespace

TreeCorpus ReadSentences(const TextFile& file, int64_t max_examples) {
  TreeCorpus corpus;
  corpus.words.Intern(kEndOfSentence);
  LineReader lines(file);
  std::vector<int32_t> words;
  while ((max_examples == 0 || std::ssize(corpus.trees) < max_examples) && lines.Next()) {
    words.clear();
    TokenReader tokens(lines.line());
    while (tokens.Next()) words.push_back(corpus.words.Intern(NormalizeToken(tokens.token())));
    if (words.empty()) {
      ++corpus.statistics.blank_lines;
      continue;
    }
    CountTree(corpus.trees.emplace_back(ChainOf(words, lines.number())), &corpus.statistics);
  }
  if (corpus.trees.empty()) file.FailEmpty();
  corpus.statistics.max_depth = corpus.statistics.max_levels;
  corpus.statistics.max_arity = corpus.statistics.max_levels > 1 ? 1 : 0;
  return corpus;
}

TreeCorpus ReadSentenceFile(const std::string& path, int64_t max_examples) {
  return ReadSentences(ReadTextFile(path), max_examples);
}

}  // namespace cavs
