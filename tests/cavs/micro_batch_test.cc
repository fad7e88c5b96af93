// Minibatches at the memory limit: they run in parts with equal results, and only a graph that alone does not fit is
// refused.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cavs/base/random.h"
#include "cavs/evaluate.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Arenas hold whole pages.
constexpr int64_t kPage = 4096;

// Gradients of all parameters one after another, a table's as a full matrix.
std::vector<double> AllGradients(const Session& session, const Model& model) {
  std::vector<double> all;
  for (int32_t p = 0; p < model.parameters().count(); ++p) {
    const Gradients& gradients = session.gradients();
    const ParameterDeclaration& declaration = model.parameters().declaration(p);
    std::vector<double> values(static_cast<size_t>(declaration.shape.width()), 0.0);
    if (gradients.touched(p) && !declaration.is_lookup) {
      std::copy(gradients.dense(p).begin(), gradients.dense(p).end(), values.begin());
    } else if (gradients.touched(p)) {
      const SparseRows& sparse = gradients.sparse(p);
      const int64_t width = declaration.shape.columns();
      for (size_t i = 0; i < sparse.ids.size(); ++i) {
        std::copy_n(sparse.rows.begin() + static_cast<int64_t>(i) * width, width,
                    values.begin() + sparse.ids[i] * width);
      }
    }
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

double LargestDifference(const std::vector<double>& expected, const std::vector<double>& actual) {
  EXPECT_EQ(expected.size(), actual.size());
  double scale = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    scale = std::max(scale, std::abs(expected[i]));
    difference = std::max(difference, std::abs(expected[i] - actual[i]));
  }
  return difference / scale;
}

// One training step's gradients, and how they came about.
struct Outcome {
  std::vector<double> gradients;
  BatchReport report;
  MemoryStatistics memory;
  std::vector<int64_t> visited;  // examples
};

Outcome Accumulate(const Fixture& task, std::span<const Example> examples, const SessionOptions& options) {
  Session session(task.model(), options);
  session.set_step(3);
  Outcome outcome;
  outcome.report = session.Accumulate(examples, 0, [&] {
    for (int64_t g = 0; g < session.batch().graph_count(); ++g) outcome.visited.push_back(session.batch().example(g));
  });
  outcome.gradients = AllGradients(session, task.model());
  outcome.memory = session.memory();
  return outcome;
}

// What the hungriest example needs alone.
int64_t LargestAlone(const Fixture& task, const std::vector<Example>& examples, const SessionOptions& options) {
  int64_t largest = 0;
  for (const Example& example : examples) {
    largest = std::max(largest, Accumulate(task, {&example, 1}, options).memory.reserved);
  }
  return largest;
}

Fixture SentenceTask(double dropout) {
  const ScratchFolder folder;
  CounterRandom random(9);
  std::string text;
  for (int line = 0; line < 24; ++line) {
    for (int64_t words = 1 + random.Below(20); words > 0; --words) text += fmt::format("w{} ", random.Below(30));
    text += '\n';
  }
  WriteText(folder.File("lm.txt"), text);
  const Corpus corpus = ReadCorpus(ParseDataSource("lm:" + folder.File("lm.txt")));
  return Fixture(corpus, nullptr, {.model = "lstm_lm", .dropout = dropout});
}

struct Case {
  std::string name;
  std::string model;
  double dropout = 0;
  SharingPolicy sharing = SharingPolicy::kInputs;
  PoolPolicy memory = PoolPolicy::kPlanned;
};

class MicroBatches : public ::testing::TestWithParam<Case> {
 protected:
  static Fixture MakeTask() {
    if (GetParam().model == "lstm_lm") return SentenceTask(GetParam().dropout);
    return ListOpsTask(24, {.model = GetParam().model, .dropout = GetParam().dropout});
  }
  static SessionOptions Options() { return {.memory = GetParam().memory, .sharing = GetParam().sharing, .seed = 7}; }
};

TEST_P(MicroBatches, EqualTheWholeAtAnyLimit) {
  const Fixture task = MakeTask();
  const std::vector<Example> examples = Examples(task.train, 0, task.train.size());
  SessionOptions options = Options();
  const Outcome whole = Accumulate(task, examples, options);
  ASSERT_EQ(whole.report.parts, 1);
  const int64_t enough = whole.memory.peak + whole.memory.waste;
  const int64_t least = LargestAlone(task, examples, options);
  ASSERT_LT(2 * least, enough);
  double worst = 0;
  int64_t parts = 1;
  // The last one lets a single graph in at a time, and few together.
  for (const int64_t limit : {2 * enough, enough, enough * 9 / 10, enough / 2, enough / 3, 2 * least, least}) {
    options.memory_limit = std::max(limit, least);
    const Outcome split = Accumulate(task, examples, options);
    const double difference = LargestDifference(whole.gradients, split.gradients);
    worst = std::max(worst, difference);
    EXPECT_LE(difference, 1e-6) << limit;
    EXPECT_NEAR(split.report.loss, whole.report.loss, 1e-6 * whole.report.loss);
    EXPECT_EQ(split.report.parts > 1, limit < enough) << limit << " of " << enough;
    parts = std::max(parts, split.report.parts);
    EXPECT_EQ(split.report.graphs, whole.report.graphs);
    EXPECT_EQ(split.report.vertices, whole.report.vertices);
    EXPECT_EQ(split.report.predictions, whole.report.predictions);
    EXPECT_GE(split.report.tasks, whole.report.tasks);
    EXPECT_GE(split.report.counters.launches, whole.report.counters.launches);
    EXPECT_GT(split.report.times.backward, 0);
    EXPECT_EQ(split.visited, whole.visited) << "in the order of the examples";
    EXPECT_LE(split.memory.peak, options.memory_limit);
    EXPECT_LE(split.memory.reserved, options.memory_limit + kPage);
  }
  std::printf("[ measured ] %lld to %lld bytes, up to %lld parts: largest difference %.2e\n",
              static_cast<long long>(enough), static_cast<long long>(least), static_cast<long long>(parts), worst);
}

TEST_P(MicroBatches, AGraphThatAloneDoesNotFitIsRefused) {
  const Fixture task = MakeTask();
  const std::vector<Example> examples = Examples(task.train, 0, task.train.size());
  SessionOptions options = Options();
  options.memory_limit = 3000;
  Session session(task.model(), options);
  try {
    session.Accumulate(examples);
    FAIL() << "trained in 3000 bytes";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("[pool minibatch]"), HasSubstr("asked for "), HasSubstr("0 bytes in use"),
                                    HasSubstr("a cap of 3000 bytes"), HasSubstr(" vertices")));
  }
  EXPECT_EQ(session.memory().allocations, 0) << "refused before it began";
  // The first graph is refused, and nothing of any was added.
  for (int32_t p = 0; p < task.model().parameters().count(); ++p) EXPECT_FALSE(session.gradients().touched(p));
}

INSTANTIATE_TEST_SUITE_P(
    All, MicroBatches,
    ::testing::Values(Case{"planned", "tree_lstm"}, Case{"planned_dropout", "tree_lstm", 0.3},
                      Case{"planned_subgraphs", "tree_lstm", 0, SharingPolicy::kSubgraphs},
                      Case{"planned_alone", "tree_rnn", 0, SharingPolicy::kOff},
                      Case{"planned_sentences", "lstm_lm", 0.2},
                      Case{"arena", "tree_lstm", 0.3, SharingPolicy::kInputs, PoolPolicy::kArena},
                      Case{"arena_sentences", "lstm_lm", 0, SharingPolicy::kOff, PoolPolicy::kArena},
                      Case{"pool", "tree_fc", 0, SharingPolicy::kInputs, PoolPolicy::kPool},
                      Case{"malloc", "tree_lstm", 0, SharingPolicy::kSubgraphs, PoolPolicy::kMalloc}),
    [](const auto& test) { return test.param.name; });

TEST(MemoryLimit, AnEvaluationInPartsEqualsTheWhole) {
  const Fixture task = ListOpsTask(40);
  Evaluator whole(task.model(), {.memory = PoolPolicy::kPlanned});
  const Evaluation expected = whole.Evaluate(task.train, 40);
  Evaluator limited(task.model(), {.memory = PoolPolicy::kPlanned, .memory_limit = whole.session().memory().peak / 3});
  const Evaluation result = limited.Evaluate(task.train, 40);
  EXPECT_NEAR(result.loss, expected.loss, 1e-6 * expected.loss);
  EXPECT_EQ(result.examples, 40);
  EXPECT_EQ(result.predictions, expected.predictions);
  EXPECT_EQ(result.correct, expected.correct);
  EXPECT_EQ(result.root_correct, expected.root_correct);
  const auto predict = [&](Evaluator& evaluator) {
    std::vector<Prediction> predictions;
    evaluator.Predict(task.train, 40, true, [&](const Prediction& p) { predictions.push_back(p); });
    return predictions;
  };
  const std::vector<Prediction> all = predict(whole), parts = predict(limited);
  ASSERT_EQ(parts.size(), 40u);
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].example, static_cast<int64_t>(i));
    EXPECT_EQ(parts[i].root.predicted, all[i].root.predicted);
    ASSERT_EQ(parts[i].vertices.size(), all[i].vertices.size());
  }
  EXPECT_LE(limited.session().memory().peak, whole.session().memory().peak / 3);
}

// Whoever reads results behind Forward gets those of all examples, or an error.
TEST(MemoryLimit, ForwardWithoutAVisitorNeverSplits) {
  const Fixture task = ListOpsTask(20);
  const std::vector<Example> examples = Examples(task.train, 0, 20);
  Session whole(std::as_const(task.model()));
  whole.Forward(examples);
  Session limited(std::as_const(task.model()), {.memory_limit = whole.memory().peak / 2});
  EXPECT_THROW(limited.Forward(examples), OutOfMemory);
  EXPECT_THROW(limited.executor().output(0), std::logic_error);
  int64_t graphs = 0;
  const BatchReport& report =
      limited.Forward(examples, HeadRows::kRoots, [&] { graphs += limited.batch().graph_count(); });
  EXPECT_EQ(graphs, 20);
  EXPECT_GT(report.parts, 1);
}

TEST(MemoryLimit, NonFiniteNumbersAreFoundInAnyPart) {
  for (const PoolPolicy memory : kPoolPolicies) {
    const Fixture task = ListOpsTask(24);
    const std::vector<Example> examples = Examples(task.train, 0, 24);
    SessionOptions options{.memory = memory, .sharing = SharingPolicy::kOff};
    const Outcome whole = Accumulate(task, examples, options);
    const int64_t alone = LargestAlone(task, examples, options);
    // Somebody's word, not the first one's.
    const InputGraph& last = *examples.back().graph;
    const int column = last.columns().Find("word");
    int32_t bad = kNone;
    for (const int32_t word : last.ids(column)) {
      const std::span<const int32_t> first = examples.front().graph->ids(column);
      if (word != kNone && std::find(first.begin(), first.end(), word) == first.end()) bad = word;
    }
    ASSERT_NE(bad, kNone);
    const int32_t words = task.model().parameters().Find("words");
    task.model().parameters().values(words)[static_cast<size_t>(bad) * 7] = std::numeric_limits<float>::quiet_NaN();
    task.model().parameters().Changed(words);
    for (const int64_t limit : {int64_t{0}, whole.memory.peak / 2, alone}) {
      options.memory_limit = limit;
      Session session(task.model(), options);
      EXPECT_FALSE(std::isfinite(session.Accumulate(examples).loss));
      const NonFinite place = session.FindNonFinite();
      ASSERT_TRUE(place.found) << PoolPolicyName(memory) << " " << limit;
      const InputGraph& graph = *examples[static_cast<size_t>(place.example)].graph;
      EXPECT_EQ(graph.ids(column)[static_cast<size_t>(place.vertex)], bad) << PoolPolicyName(memory) << " " << limit;
      if (limit > 0) {
        EXPECT_LE(session.memory().peak, limit);
        EXPECT_LE(session.memory().reserved, limit + kPage);
      }
    }
  }
}

// The parts of a minibatch follow from its examples, not from what the session has run before.
TEST(MemoryLimit, AResumedRunRepeatsTheParts) {
  constexpr int64_t kLimit = 100000;
  const ScratchFolder folder;
  const auto run = [&](const std::string& name, bool resume, int64_t steps) {
    const Fixture task = ListOpsTask(50, {.dropout = 0.25});
    TrainerOptions options;
    options.epochs = 2;
    options.batch_size = 16;
    options.session.memory = PoolPolicy::kPlanned;
    options.session.memory_limit = kLimit;
    options.save_folder = folder.File(name);
    options.resume = resume;
    Trainer trainer(task.model(), options);
    TrainerCallbacks callbacks;
    callbacks.should_stop = [&] { return --steps == 0; };
    trainer.Run(task.train, &task.dev, callbacks);
    EXPECT_GT(trainer.session().memory().peak, kLimit / 2) << "nothing is near the limit";
    return ReadText(LastModelPath(options.save_folder));
  };
  const std::string whole = run("whole", false, 0);
  run("parts", false, 3);
  EXPECT_EQ(run("parts", true, 0), whole);
}

TEST(Planned, InferenceTakesAFractionOfTraining) {
  const Fixture task = ListOpsTask(64, {.hidden = 32, .embed = 32});
  const std::vector<Example> examples = Examples(task.train, 0, 64);
  const auto peak = [&](PoolPolicy memory, bool training) {
    const SessionOptions options{.memory = memory};
    if (training) return Accumulate(task, examples, options).memory.peak;
    Session session(std::as_const(task.model()), options);
    session.Forward(examples);
    return session.memory().peak;
  };
  const int64_t arena = peak(PoolPolicy::kArena, true), training = peak(PoolPolicy::kPlanned, true),
                inference = peak(PoolPolicy::kPlanned, false);
  std::printf("[ measured ] training: arena %lld, planned %lld; inference planned %lld\n",
              static_cast<long long>(arena), static_cast<long long>(training), static_cast<long long>(inference));
  EXPECT_LT(training, arena);
  EXPECT_LT(inference * 3, training);
}

}  // namespace
}  // namespace cavs
