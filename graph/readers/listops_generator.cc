#include <fmt/format.h>

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "graph/readers/listops.h"
#include "graph/readers/listops_builder.h"

namespace cavs {
namespace {

constexpr std::string_view kWhere = "GenerateListOps";

// Draws in a row without a new expression, after which the options are held to have no further ones.
constexpr int64_t kMaxRejected = 10000;

void CheckOptions(const ListOpsOptions& options) {
  const auto check = [](bool good, std::string_view expected, auto got) {
    if (!good) ThrowInvalid(kWhere, fmt::format("expected {}, got {}", expected, got));
  };
  check(options.count >= 1, "a count of at least 1", options.count);
  check(options.min_arguments >= 1, "min_arguments of at least 1", options.min_arguments);
  check(options.max_arguments >= options.min_arguments, "max_arguments not below min_arguments", options.max_arguments);
  check(options.max_depth >= 1, "max_depth of at least 1", options.max_depth);
  check(options.nesting >= 0.0 && options.nesting <= 1.0, "nesting from 0 to 1", options.nesting);
}

class ListOpsGenerator {
 public:
  ListOpsGenerator(const ListOpsOptions& options, uint64_t stream) : options_(options), random_(options.seed, stream) {}

  // The next expression; valid until the one after it is drawn.
  const Tree& Draw();

 private:
  // An operator whose arguments are being drawn.
  struct Application {
    int32_t vertex;
    int64_t missing;
  };

  void OpenApplication();

  const ListOpsOptions& options_;
  CounterRandom random_;
  ListOpsBuilder builder_;
  std::vector<Application> open_;  // outermost first
};

void ListOpsGenerator::OpenApplication() {
  const auto op = static_cast<int32_t>(kListOpsMin + random_.Below(kListOpsClose - kListOpsMin));
  const int64_t arguments =
      options_.min_arguments + random_.Below(int64_t{options_.max_arguments} - options_.min_arguments + 1);
  open_.push_back({builder_.AddOperator(op), arguments});
}

const Tree& ListOpsGenerator::Draw() {
  builder_.Start(0);
  OpenApplication();
  while (!open_.empty()) {
    int32_t complete = Tree::kNone;
    if (open_.back().missing == 0) {
      complete = builder_.Finish(open_.back().vertex, builder_.AddClose());
      open_.pop_back();
      if (open_.empty()) break;
    } else if (std::ssize(open_) < options_.max_depth && random_.Uniform() < options_.nesting) {
      OpenApplication();
      continue;
    } else {
      complete = builder_.AddDigit(static_cast<int32_t>(random_.Below(kListOpsClasses)));
    }
    Application& application = open_.back();
    application.vertex = builder_.Apply(application.vertex, complete);
    --application.missing;
  }
  return builder_.tree();
}

// Two expressions are the same if and only if their tokens are.
std::string Key(const Tree& tree) {
  std::string key;
  for (const int32_t word : tree.word) {
    if (word != Tree::kNone) key.push_back(static_cast<char>('a' + word));
  }
  return key;
}

TreeCorpus Collect(ListOpsGenerator* generator, int64_t count, const std::unordered_set<std::string>& excluded) {
  TreeCorpus corpus;
  corpus.words = ListOpsWords();
  int64_t rejected = 0;
  while (corpus.statistics.trees < count) {
    const Tree& tree = generator->Draw();
    if (excluded.contains(Key(tree))) {
      if (++rejected < kMaxRejected) continue;
      ThrowInvalid(kWhere, fmt::format("expected options that leave {} expressions outside the training data, got {}",
                                       count, corpus.statistics.trees));
    }
    rejected = 0;
    CountTree(tree, &corpus.statistics);
    corpus.statistics.brackets += tree.vertex_count() / 2;
    corpus.trees.push_back(tree);
  }
  corpus.statistics.max_arity = 2;
  corpus.statistics.max_depth = corpus.statistics.max_levels;
  return corpus;
}

}  // namespace

TreeCorpus GenerateListOps(const ListOpsOptions& options) {
  CheckOptions(options);
  ListOpsGenerator generator(options, options.stream);
  return Collect(&generator, options.count, {});
}

ListOpsSplit GenerateListOpsSplit(const ListOpsOptions& options, int64_t held_out) {
  if (held_out < 1) ThrowInvalid(kWhere, fmt::format("expected at least 1 held-out expression, got {}", held_out));
  ListOpsSplit split{.train = GenerateListOps(options), .held_out = {}};
  std::unordered_set<std::string> trained;
  for (const Tree& tree : split.train.trees) trained.insert(Key(tree));
  ListOpsGenerator generator(options, options.stream + 1);
  split.held_out = Collect(&generator, held_out, trained);
  return split;
}

}  // namespace cavs
