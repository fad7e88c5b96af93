// Helpers of the readers' tests: texts in memory, error texts, temporary files and the shared data.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cavs/base/error.h"
#include "graph/readers/bracket_reader.h"
#include "graph/readers/text_file.h"
#include "graph/readers/tree.h"

namespace cavs {

inline TreeCorpus ReadText(std::string text, const BracketOptions& options = {}) {
  return ReadBrackets(TextFile("f", std::move(text)), options);
}

// The text of the ParseError that `run` throws; "" if it throws none.
template <typename Run>
std::string ParseErrorOf(Run run) {
  try {
    run();
  } catch (const ParseError& error) {
    return error.what();
  }
  return "";
}

inline std::string BracketError(std::string text, const BracketOptions& options = {}) {
  return ParseErrorOf([&] { ReadText(std::move(text), options); });
}

// A vertex and everything below it as brackets: `label:tag` (what there is of it), then the word or the children.
inline std::string Show(const TreeCorpus& corpus, const Tree& tree, int32_t v) {
  const auto i = static_cast<size_t>(v);
  std::string text = "(";
  if (tree.label[i] != Tree::kNone) text += std::to_string(tree.label[i]);
  if (!tree.tag.empty() && tree.tag[i] != Tree::kNone) text.append(":").append(corpus.tags.at(tree.tag[i]));
  if (tree.word[i] != Tree::kNone) text.append(" ").append(corpus.words.at(tree.word[i]));
  for (const int32_t child : tree.children(v)) text += " " + Show(corpus, tree, child);
  return text + ")";
}

inline std::string Show(const TreeCorpus& corpus, size_t i = 0) {
  return Show(corpus, corpus.trees.at(i), corpus.trees.at(i).root());
}

// Checks what every reader promises of a tree: sizes that fit, strict post order, root last, words at leaves alone.
inline void ExpectWellFormed(const Tree& tree) {
  const int32_t n = tree.vertex_count();
  ASSERT_GE(n, 1);
  ASSERT_EQ(std::ssize(tree.child_begin), n + 1);
  ASSERT_EQ(std::ssize(tree.child), n - 1);
  ASSERT_EQ(std::ssize(tree.word), n);
  ASSERT_TRUE(tree.tag.empty() || std::ssize(tree.tag) == n);
  std::vector<int32_t> pending;
  for (int32_t v = 0; v < n; ++v) {
    ASSERT_EQ(tree.is_leaf(v), tree.word[static_cast<size_t>(v)] != Tree::kNone);
    const auto children = tree.children(v);
    ASSERT_LE(children.size(), pending.size());
    ASSERT_TRUE(std::equal(children.rbegin(), children.rend(), pending.rbegin()));
    pending.resize(pending.size() - children.size());
    pending.push_back(v);
  }
  ASSERT_EQ(pending, std::vector<int32_t>{tree.root()});
}

// A folder that is removed again.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() / fmt::format("cavs_readers_{}_{}", getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path() const { return path_.string(); }

  // Writes a file and returns its path.
  std::string Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// The path of a shared data file, "" where it is absent.
inline std::string SharedData(const std::string& name) {
  const std::string path = std::string(CAVS_SHARED_DATA) + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace cavs
