#include "cavs/corpus.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/text.h"
#include "cavs/xxh64.h"
#include "graph/readers/listops.h"
#include "graph/readers/sentence_reader.h"
#include "graph/readers/sick_reader.h"
#include "graph/readers/tree_pair_reader.h"

namespace cavs {
namespace {

constexpr std::string_view kGenerate = "generate";

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
  UpdateDigest(&digest, corpus.scores);
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

// Reads what a source holds into `trees` of the corpus, and says in `file` where trees begin, unless that is the path.
using ReadFunction = void (*)(const DataSource& source, const CorpusOptions& options, DataPart part, Corpus* corpus);

TreeCorpus ReadBracketed(const DataSource& source, const CorpusOptions& options, const Corpus& corpus) {
  BracketOptions brackets;
  brackets.sst = source.format == CorpusFormat::kSst;
  brackets.classes = corpus.classes;
  brackets.binarize = options.binarize;
  brackets.unary = options.unary;
  brackets.max_children = options.max_children;
  brackets.max_examples = options.max_examples;
  return ReadBracketFile(source.path, brackets);
}

void ReadSst(const DataSource& source, const CorpusOptions& options, DataPart, Corpus* corpus) {
  corpus->trees = ReadBracketed(source, options, *corpus);
}

void ReadTree(const DataSource& source, const CorpusOptions& options, DataPart, Corpus* corpus) {
  corpus->trees = ReadBracketed(source, options, *corpus);
  RefuseNumbersAsTags(source.path, corpus->trees, corpus->classes);
}

void ReadExpressions(const DataSource& source, const CorpusOptions& options, DataPart part, Corpus* corpus) {
  corpus->trees = source.generated ? Draw(options, part) : ReadListOpsFile(source.path, options.max_examples);
}

void ReadLm(const DataSource& source, const CorpusOptions& options, DataPart, Corpus* corpus) {
  corpus->trees = ReadSentenceFile(source.path, options.max_examples);
}

void ReadTreeLstm(const DataSource& source, const CorpusOptions& options, DataPart, Corpus* corpus) {
  corpus->trees = ReadTreePairs(source.path, options.max_examples);
  corpus->file = source.path + "/a.parents";
}

void ReadSickPart(const DataSource& source, const CorpusOptions& options, DataPart part, Corpus* corpus) {
  constexpr std::array<std::pair<SickPart, std::string_view>, 3> kParts = {
      {{SickPart::kTrain, "train"}, {SickPart::kDev, "dev"}, {SickPart::kTest, "test"}}};
  const auto& [sick_part, folder] = kParts[static_cast<size_t>(part)];
  corpus->trees = ReadSick(source.path, sick_part, options.max_examples);
  corpus->file = fmt::format("{}/{}/a.parents", source.path, folder);
}

// The words that count for a vocabulary: [words.size()].
using CountFunction = std::vector<int64_t> (*)(const TreeCorpus& trees, int64_t min_count);

std::vector<int64_t> CountOccurrences(const TreeCorpus& trees, int64_t) { return CountWords(trees); }

std::vector<int64_t> CountEveryToken(const TreeCorpus& trees, int64_t min_count) {
  return std::vector<int64_t>(static_cast<size_t>(trees.words.size()), min_count);
}

// Every sentence ends, however few there are.
std::vector<int64_t> CountWithEnds(const TreeCorpus& trees, int64_t min_count) {
  std::vector<int64_t> counts = CountWords(trees);
  int64_t& ends = counts[static_cast<size_t>(trees.words.Find(kEndOfSentence))];
  ends = std::max(ends, min_count);
  return counts;
}

std::vector<std::string> Numbers(int32_t from, int32_t count) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(count));
  for (int32_t number = from; number < from + count; ++number) names.push_back(std::to_string(number));
  return names;
}

constexpr int32_t kAsOptionsSay = -1;
constexpr int32_t kScores = kHighestScore - kLowestScore + 1;

struct FormatEntry {
  CorpusFormat format;
  std::string_view name;
  std::string_view forms;  // what may be written
  LearningTask task;
  int32_t classes;      // 0 where the vocabulary has them, or kAsOptionsSay
  int32_t first_label;  // what class 0 is called
  ReadFunction read;
  CountFunction count;
};

// By value of CorpusFormat.
constexpr std::array<FormatEntry, 6> kFormats = {{
    {CorpusFormat::kSst, "sst", "sst:FILE", LearningTask::kTreeClasses, 5, 0, ReadSst, CountOccurrences},
    {CorpusFormat::kTree, "tree", "tree:FILE", LearningTask::kTreeClasses, kAsOptionsSay, 0, ReadTree,
     CountOccurrences},
    {CorpusFormat::kListOps, "listops", "listops:FILE or listops:generate", LearningTask::kTreeClasses, kListOpsClasses,
     0, ReadExpressions, CountEveryToken},
    {CorpusFormat::kLm, "lm", "lm:FILE", LearningTask::kNextWord, 0, 0, ReadLm, CountWithEnds},
    {CorpusFormat::kTreeLstm, "treelstm", "treelstm:DIR", LearningTask::kSimilarity, kScores, kLowestScore,
     ReadTreeLstm, CountOccurrences},
    {CorpusFormat::kSick, "sick", "sick:DIR", LearningTask::kSimilarity, kScores, kLowestScore, ReadSickPart,
     CountOccurrences},
}};

const FormatEntry& EntryOf(CorpusFormat format) { return kFormats[static_cast<size_t>(format)]; }

// "expected sst:FILE, tree:FILE, ...".
std::string ExpectedForms() {
  std::string text = "expected ";
  for (const FormatEntry& entry : kFormats) {
    text += fmt::format("{}{}", &entry == &kFormats.front() ? "" : ", ", entry.forms);
  }
  return text;
}

}  // namespace

std::string_view CorpusFormatName(CorpusFormat format) { return EntryOf(format).name; }

std::optional<CorpusFormat> FindCorpusFormat(std::string_view name) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.name == name) return entry.format;
  }
  return std::nullopt;
}

LearningTask TaskOf(CorpusFormat format) { return EntryOf(format).task; }

std::string DataSource::ToString() const {
  return fmt::format("{}:{}", CorpusFormatName(format), generated ? kGenerate : std::string_view(path));
}

DataSource ParseDataSource(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) ThrowInvalid("data", fmt::format("{}, got '{}'", ExpectedForms(), text));
  const std::string_view name = text.substr(0, colon), path = text.substr(colon + 1);
  const std::optional<CorpusFormat> format = FindCorpusFormat(name);
  if (!format) ThrowInvalid("data", fmt::format("{}, got the unknown format '{}'", ExpectedForms(), name));
  if (path.empty()) ThrowInvalid("data", fmt::format("{}, got '{}' without a file or folder", ExpectedForms(), text));
  const bool generated = *format == CorpusFormat::kListOps && path == kGenerate;
  return {*format, generated ? std::string() : std::string(path), generated};
}

int32_t ClassesOf(CorpusFormat format, int32_t classes) {
  const int32_t own = EntryOf(format).classes;
  return own == kAsOptionsSay ? classes : own;
}

std::vector<std::string> LabelNames(CorpusFormat format, int32_t classes) {
  if (format == CorpusFormat::kSst) return {"very negative", "negative", "neutral", "positive", "very positive"};
  return Numbers(EntryOf(format).first_label, ClassesOf(format, classes));
}

Corpus ReadCorpus(const DataSource& source, const CorpusOptions& options, DataPart part) {
  Corpus corpus;
  corpus.name = source.ToString();
  corpus.format = source.format;
  corpus.file = source.path;
  corpus.classes = ClassesOf(source.format, options.classes);
  corpus.label_names = LabelNames(source.format, options.classes);
  EntryOf(source.format).read(source, options, part, &corpus);
  corpus.digest = DigestOf(corpus.trees, corpus.classes);
  return corpus;
}

Vocabulary MakeVocabulary(const Corpus& corpus, int64_t min_count) {
  return Vocabulary::FromCounts(corpus.trees.words, EntryOf(corpus.format).count(corpus.trees, min_count), min_count);
}

}  // namespace cavs
