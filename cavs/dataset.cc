#include "cavs/dataset.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/models/tree_models.h"
#include "cavs/text.h"
#include "cavs/xxh64.h"
#include "graph/readers/listops.h"

namespace cavs {
namespace {

constexpr std::string_view kGenerate = "generate";

struct FormatEntry {
  CorpusFormat format;
  std::string_view name;
  int32_t classes;  // 0: what the caller says
};
constexpr std::array<FormatEntry, 3> kFormats = {
    {{CorpusFormat::kSst, "sst", 5}, {CorpusFormat::kTree, "tree", 0}, {CorpusFormat::kListOps, "listops", 10}}};

const FormatEntry& EntryOf(CorpusFormat format) { return kFormats[static_cast<size_t>(format)]; }

template <typename T>
void UpdateDigest(Xxh64* digest, const std::vector<T>& values) {
  const auto count = static_cast<uint64_t>(values.size());
  digest->Update(std::as_bytes(std::span(&count, 1)));
  digest->Update(std::as_bytes(std::span(values)));
}

// Sizes go in as well, so that no two corpora give the same bytes.
uint64_t DigestOf(const TreeCorpus& corpus, int32_t classes) {
  Xxh64 digest;
  digest.Update(std::as_bytes(std::span(&classes, 1)));
  for (int32_t word = 0; word < corpus.words.size(); ++word) {
    const std::string_view text = corpus.words.at(word);
    UpdateDigest(&digest, std::vector<char>(text.begin(), text.end()));
  }
  for (const Tree& tree : corpus.trees) {
    UpdateDigest(&digest, tree.child_begin);
    UpdateDigest(&digest, tree.child);
    UpdateDigest(&digest, tree.label);
    UpdateDigest(&digest, tree.word);
  }
  return digest.Digest();
}

// Leaves the trees behind the first `count`, which are drawn expressions.
void DropFirst(TreeCorpus* corpus, int64_t count) {
  corpus->trees.erase(corpus->trees.begin(), corpus->trees.begin() + count);
  ReaderStatistics statistics;
  statistics.max_arity = 2;
  for (const Tree& tree : corpus->trees) {
    CountTree(tree, &statistics);
    statistics.brackets += tree.vertex_count() / 2;
  }
  statistics.max_depth = statistics.max_levels;
  corpus->statistics = statistics;
}

TreeCorpus Draw(const CorpusOptions& options, DataPart part) {
  const bool capped = options.max_examples > 0;
  const int64_t held_out = capped ? std::min(options.max_examples, kGeneratedHeldOut) : kGeneratedHeldOut;
  ListOpsOptions drawing;
  drawing.seed = options.seed;
  drawing.count = options.generated_training > 0 ? options.generated_training
                  : capped                       ? options.max_examples
                                                 : kGeneratedTraining;
  if (part == DataPart::kTrain) return GenerateListOps(drawing);
  const bool test = part == DataPart::kTest;
  TreeCorpus corpus = std::move(GenerateListOpsSplit(drawing, test ? 2 * held_out : held_out).held_out);
  if (test) DropFirst(&corpus, held_out);
  return corpus;
}

bool IsNumber(std::string_view text) { return ParseInt(text).has_value() && text.front() != '-'; }

// In `tree:` any label that is no class is a tag; a number that is none among numbers that are is a mistake, though.
void RefuseNumbersAsTags(const std::string& file, const TreeCorpus& corpus, int32_t classes) {
  if (corpus.statistics.class_labels == 0) return;
  std::vector<bool> wrong(static_cast<size_t>(corpus.tags.size()));
  for (int32_t tag = 0; tag < corpus.tags.size(); ++tag)
    wrong[static_cast<size_t>(tag)] = IsNumber(corpus.tags.at(tag));
  for (const Tree& tree : corpus.trees) {
    for (const int32_t tag : tree.tag) {
      if (tag == Tree::kNone || !wrong[static_cast<size_t>(tag)]) continue;
      throw ParseError(file, tree.line, 0,
                       fmt::format("expected class labels 0 to {}, got '{}' (in the tree that begins here)",
                                   classes - 1, corpus.tags.at(tag)));
    }
  }
}

TreeCorpus ReadFile(const DataSource& source, const CorpusOptions& options, int32_t classes) {
  if (source.format == CorpusFormat::kListOps) return ReadListOpsFile(source.path, options.max_examples);
  BracketOptions brackets;
  brackets.sst = source.format == CorpusFormat::kSst;
  brackets.classes = classes;
  brackets.binarize = options.binarize;
  brackets.unary = options.unary;
  brackets.max_children = options.max_children;
  brackets.max_examples = options.max_examples;
  TreeCorpus corpus = ReadBracketFile(source.path, brackets);
  if (source.format == CorpusFormat::kTree) RefuseNumbersAsTags(source.path, corpus, classes);
  return corpus;
}

// The columns of the tree models.
struct TreeColumns {
  explicit TreeColumns(const Model& model)
      : all(model.columns()), word(all->Find(kWordColumn)), label(all->Find(kLabelColumn)) {
    if (word == kNone || label == kNone) {
      ThrowInvalid("dataset", fmt::format("expected a model with columns \"{}\" and \"{}\", got one without",
                                          kWordColumn, kLabelColumn));
    }
  }

  std::shared_ptr<const ColumnSet> all;
  int word;
  int label;
};

// Turns trees into graphs, one after another; keeps its buffers.
class TreeConverter {
 public:
  TreeConverter(const TreeColumns& columns, std::vector<int32_t> rows_of_words)
      : columns_(columns), rows_(std::move(rows_of_words)) {
    parts_.columns.resize(static_cast<size_t>(columns.all->size()));
  }

  InputGraph Convert(const Tree& tree, const std::string& where) {
    const auto vertices = static_cast<size_t>(tree.vertex_count());
    parts_.types.clear();
    parts_.child_begin.assign(1, 0);
    parts_.children.clear();
    for (GraphParts::ColumnValues& column : parts_.columns) column.ids.assign(vertices, kNone);
    std::vector<int32_t>& words = parts_.columns[static_cast<size_t>(columns_.word)].ids;
    for (int32_t v = 0; v < tree.vertex_count(); ++v) {
      const std::span<const int32_t> children = tree.children(v);
      if (children.size() > 2) {
        ThrowInvalid(where, fmt::format("expected at most 2 children, got {}", children.size()));
      }
      parts_.types.push_back(children.empty() ? kLeafType : kNodeType);
      parts_.children.insert(parts_.children.end(), children.begin(), children.end());
      if (children.size() == 1) parts_.children.push_back(kNone);
      parts_.child_begin.push_back(std::ssize(parts_.children));
      const auto i = static_cast<size_t>(v);
      if (children.empty()) words[i] = rows_[static_cast<size_t>(tree.word[i])];
    }
    parts_.columns[static_cast<size_t>(columns_.label)].ids = tree.label;
    return InputGraph(columns_.all, parts_);
  }

 private:
  const TreeColumns& columns_;
  std::vector<int32_t> rows_;  // of the lookup table, by number of the word in its corpus
  GraphParts parts_;
};

}  // namespace

std::string_view CorpusFormatName(CorpusFormat format) { return EntryOf(format).name; }

std::optional<CorpusFormat> FindCorpusFormat(std::string_view name) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.name == name) return entry.format;
  }
  return std::nullopt;
}

std::string DataSource::ToString() const {
  return fmt::format("{}:{}", CorpusFormatName(format), generated ? kGenerate : std::string_view(path));
}

DataSource ParseDataSource(std::string_view text) {
  constexpr std::string_view kExpected = "expected sst:FILE, tree:FILE, listops:FILE or listops:generate";
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) ThrowInvalid("data", fmt::format("{}, got '{}'", kExpected, text));
  const std::string_view name = text.substr(0, colon), path = text.substr(colon + 1);
  const std::optional<CorpusFormat> format = FindCorpusFormat(name);
  if (!format) ThrowInvalid("data", fmt::format("{}, got the unknown format '{}'", kExpected, name));
  if (path.empty()) ThrowInvalid("data", fmt::format("{}, got '{}' without a file", kExpected, text));
  const bool generated = *format == CorpusFormat::kListOps && path == kGenerate;
  return {*format, generated ? std::string() : std::string(path), generated};
}

int32_t ClassesOf(CorpusFormat format, int32_t classes) {
  const int32_t own = EntryOf(format).classes;
  return own > 0 ? own : classes;
}

std::vector<std::string> LabelNames(CorpusFormat format, int32_t classes) {
  if (format == CorpusFormat::kSst) return {"very negative", "negative", "neutral", "positive", "very positive"};
  const int32_t count = ClassesOf(format, classes);
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int32_t label = 0; label < count; ++label) names.push_back(std::to_string(label));
  return names;
}

Corpus ReadCorpus(const DataSource& source, const CorpusOptions& options, DataPart part) {
  Corpus corpus;
  corpus.name = source.ToString();
  corpus.format = source.format;
  corpus.file = source.path;
  corpus.classes = ClassesOf(source.format, options.classes);
  corpus.label_names = LabelNames(source.format, options.classes);
  corpus.trees = source.generated ? Draw(options, part) : ReadFile(source, options, corpus.classes);
  corpus.digest = DigestOf(corpus.trees, corpus.classes);
  return corpus;
}

Vocabulary MakeVocabulary(const Corpus& corpus, int64_t min_count) {
  const StringTable& words = corpus.trees.words;
  if (corpus.format != CorpusFormat::kListOps) {
    return Vocabulary::FromCounts(words, CountWords(corpus.trees), min_count);
  }
  return Vocabulary::FromCounts(words, std::vector<int64_t>(static_cast<size_t>(words.size()), 1));
}

std::string Dataset::Describe(int64_t example) const {
  const bool known = example >= 0 && example < std::ssize(lines) && !file.empty();
  const int64_t line = known ? lines[static_cast<size_t>(example)] : 0;
  return line > 0 ? fmt::format("{}:{}", file, line) : fmt::format("example {}", example);
}

Dataset MakeDataset(const Corpus& corpus, const Vocabulary& vocabulary, const Model& model) {
  const TreeColumns columns(model);
  const Column& label = (*columns.all)[columns.label];
  if (label.id_limit != corpus.classes) {
    ThrowInvalid(corpus.name,
                 fmt::format("expected data of {} classes, as the model has, got {}", label.id_limit, corpus.classes));
  }
  const Column& word = (*columns.all)[columns.word];
  if (word.id_limit != vocabulary.size()) {
    ThrowInvalid("vocabulary",
                 fmt::format("expected {} words, as the model has, got {}", word.id_limit, vocabulary.size()));
  }
  Dataset data;
  data.name = corpus.name;
  data.file = corpus.file;
  data.statistics = corpus.trees.statistics;
  data.coverage = vocabulary.Cover(corpus.trees.words, CountWords(corpus.trees));
  data.majority = RootMajority(corpus.trees.trees);
  data.digest = corpus.digest;
  const bool grouped = corpus.format == CorpusFormat::kListOps;
  if (grouped) data.group_name = "depth";
  TreeConverter converter(columns, vocabulary.Map(corpus.trees.words));
  data.graphs.reserve(corpus.trees.trees.size());
  for (const Tree& tree : corpus.trees.trees) {
    data.lines.push_back(tree.line);
    data.graphs.push_back(converter.Convert(tree, data.Describe(std::ssize(data.graphs))));
    if (grouped) data.groups.push_back(OperatorDepth(tree));
  }
  return data;
}

}  // namespace cavs
