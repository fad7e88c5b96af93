// The learned batching policy through a model's life: learned, saved, loaded, resumed, and always the same answers.
#include "cavs/learned_batching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "cavs/base/random.h"
#include "cavs/graph_builder.h"
#include "cavs/model_file.h"
#include "cavs/models/model_sizes.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::HasSubstr;

// A tagger that reads in both directions over a lattice: "char" vertices form a chain, "word" vertices span several of
// them, and every vertex of the chain has a "tag", which pushes what the head reads. Tags can wait until the end; words
// should be taken when they are many.
class Tagger {
 public:
  explicit Tagger(const std::vector<std::string>& names = {"char", "word", "tag"}) {
    std::vector<VertexType> types;
    for (const std::string& name : names) types.push_back(model.VertexType(name, 2));
    const Expression words = model.Lookup("words", 10, kWidth);
    const State h = model.State("h", {kWidth});
    const Expression w = model.Parameter("w", {2 * kWidth, kWidth}), v = model.Parameter("v", {kWidth, kWidth});
    for (VertexType& type : types) {
      type.Define([&](Vertex& f) {
        const Expression x = Tanh(MatMul(Concat(f.Gather(0, h), f.Gather(1, h)), w) + f.Pull(words, kWordColumn));
        f.Scatter(h, x);
        f.Push("h", MatMul(x, v));
      });
    }
    const Expression logits = MatMul(model.Pushed("h"), model.Parameter("head", {kWidth, 3}));
    model.Output(kLogitsOutput, logits);
    model.Loss(CrossEntropy(logits, model.Label(kLabelColumn, 3)));
    char_ = types[0], word_ = types[1], tag_ = types[2];
  }

  Dataset Draw(int64_t count, uint64_t seed) {
    Dataset data;
    data.name = "drawn";
    CounterRandom random(seed);
    for (int64_t i = 0; i < count; ++i) data.graphs.push_back(DrawGraph(random));
    data.lines.resize(data.graphs.size());
    data.digest = seed;
    return data;
  }

  Model model;

 private:
  static constexpr int64_t kWidth = 4;

  InputGraph DrawGraph(CounterRandom& random) {
    GraphBuilder builder(model);
    const auto id = [&](int64_t limit) { return static_cast<int32_t>(random.Below(limit)); };
    std::vector<int32_t> chain;
    int32_t word = kNone;  // that ends at the next vertex of the chain
    for (int64_t length = 3 + random.Below(12); length > 0; --length) {
      const int32_t before = chain.empty() ? kNone : chain.back();
      chain.push_back(builder.Add(char_, {{kWordColumn, id(10)}}, {before, std::exchange(word, kNone)}));
      builder.Add(tag_, {{kWordColumn, id(10)}, {kLabelColumn, id(3)}}, {chain.back(), kNone});
      const int64_t back = 1 + random.Below(3);
      if (random.Below(2) == 0 && back <= std::ssize(chain)) {
        word = builder.Add(word_, {{kWordColumn, id(10)}}, {*(chain.end() - back), kNone});
      }
    }
    return builder.Build();
  }

  VertexType char_, word_, tag_;
};

constexpr BatchingSample kSample = {.batch_size = 6, .training = true};

TEST(LearnedBatching, LosesLessThanThePlainPolicies) {
  Tagger tagger;
  const Dataset data = tagger.Draw(60, 1);
  EXPECT_EQ(FsmPolicyOf(tagger.model), nullptr);
  const FsmReport report = LearnBatching(data.graphs, kSample, &tagger.model);
  EXPECT_EQ(report.minibatches, 8);
  EXPECT_LT(report.tasks, report.frontier_tasks);
  EXPECT_LE(report.tasks, report.agenda_tasks);
  EXPECT_GE(report.tasks, report.lower_bound);
  EXPECT_THAT(DescribeLearning(report), HasSubstr("tasks for 8 minibatches; frontier "));
  // The Sessions to come plan by it, and compute the same.
  const Dataset others = tagger.Draw(30, 2);
  int64_t tasks[2] = {0, 0};
  for (int64_t begin = 0; begin < 30; begin += 6) {
    double loss[2];
    for (const size_t fsm : {0u, 1u}) {
      Session session(tagger.model, {.batching = fsm == 1 ? BatchingPolicy::kFsm : BatchingPolicy::kFrontier});
      const BatchReport& run = session.Accumulate(Examples(others, begin, 6));
      loss[fsm] = run.loss;
      tasks[fsm] += run.tasks;
    }
    EXPECT_NEAR(loss[0], loss[1], 1e-5 * loss[0]);
  }
  EXPECT_LT(tasks[1], tasks[0]) << "what was learned holds for other graphs";
}

TEST(LearnedBatching, TextNamesTypesByName) {
  Tagger tagger;
  const Signature& signature = *tagger.model.program().signature;
  const FsmPolicy policy(FsmFallback::kAgenda, {{{2, 0}, 0}, {{0, 1, 2}, 1}}, {{{0, 1}, 1}, {{1, 2}, 2}});
  const std::string text = FsmPolicyText(policy, signature);
  EXPECT_EQ(ParseFsmPolicy(text, signature), policy);
  // The types of another model may have other numbers.
  Tagger turned({"tag", "char", "word"});
  EXPECT_EQ(ParseFsmPolicy(text, *turned.model.program().signature),
            FsmPolicy(FsmFallback::kAgenda, {{{0, 1}, 1}, {{1, 2, 0}, 2}}, {{{1, 2}, 2}, {{0, 2}, 0}}));
  Tagger foreign({"char", "syllable", "tag"});
  EXPECT_EQ(MessageOf([&] { ParseFsmPolicy(text, *foreign.model.program().signature); }),
            "[fsm policy] expected vertex types of the model (char, syllable, tag), got \"word\"");
}

TEST(LearnedBatching, RefusesOtherTexts) {
  Tagger tagger;
  const Signature& signature = *tagger.model.program().signature;
  for (const char* text :
       {"", "[]", "{", R"({"types":[],"by_size":[],"by_set":[]})", R"({"by_size":[],"by_set":[],"otherwise":"agenda"})",
        R"({"types":[],"by_size":[],"by_set":[],"otherwise":"fold"})",
        R"({"types":[1],"by_size":[],"by_set":[],"otherwise":"agenda"})",
        R"({"types":[],"by_size":[["char"]],"by_set":[],"otherwise":"agenda"})",
        R"({"types":[],"by_size":{},"by_set":[],"otherwise":"agenda"})",
        R"({"types":[],"by_size":[],"by_set":[[["char","word"],7]],"otherwise":"agenda"})"}) {
    EXPECT_EQ(MessageOf([&] { ParseFsmPolicy(text, signature); }),
              "[fsm policy] expected the JSON object of a batching policy, got something else")
        << text;
  }
  EXPECT_THAT(MessageOf([&] {
                ParseFsmPolicy(R"({"types":[],"by_size":[],"by_set":[[["char","word"],"tag"]],"otherwise":"agenda"})",
                               signature);
              }),
              HasSubstr("expected rules that choose one of two or more different types"));
  tagger.model.metadata()[std::string(kFsmPolicyKey)] = "no policy";
  EXPECT_THAT(MessageOf([&] { Session(tagger.model, {.batching = BatchingPolicy::kFsm}); }), HasSubstr("fsm policy"));
  EXPECT_EQ(MessageOf([&] { Session session(tagger.model); }), "") << "others do not look at it";
  EXPECT_THAT(MessageOf([&] { LearnBatching({}, kSample, &tagger.model); }), HasSubstr("at least one graph"));
}

TrainerOptions FsmOptions(const std::string& folder) {
  TrainerOptions options;
  options.epochs = 2;
  options.batch_size = 6;
  options.session.batching = BatchingPolicy::kFsm;
  options.save_folder = folder;
  return options;
}

TEST(LearnedBatching, TrainerLearnsOnceAndSavesIt) {
  const ScratchFolder folder;
  Tagger tagger;
  const Dataset train = tagger.Draw(40, 1), dev = tagger.Draw(10, 2);
  std::vector<FsmReport> reports;
  TrainerCallbacks callbacks;
  callbacks.on_batching = [&](const FsmReport& report) { reports.push_back(report); };
  const TrainingResult result = Trainer(tagger.model, FsmOptions(folder.File("run"))).Run(train, &dev, callbacks);
  ASSERT_EQ(reports.size(), 1u);
  const auto learned = FsmPolicyOf(tagger.model);
  ASSERT_NE(learned, nullptr);
  Tagger plain;
  TrainerOptions frontier = FsmOptions(folder.File("frontier"));
  frontier.session.batching = BatchingPolicy::kFrontier;
  const TrainingResult expected = Trainer(plain.model, frontier).Run(train, &dev, callbacks);
  EXPECT_EQ(reports.size(), 1u) << "other policies learn nothing";
  EXPECT_EQ(FsmPolicyOf(plain.model), nullptr);
  EXPECT_LT(result.best.tasks, expected.best.tasks);
  EXPECT_NEAR(result.best.train_loss, expected.best.train_loss, 1e-4);
  for (const std::string& path : {BestModelPath(folder.File("run")), LastModelPath(folder.File("run"))}) {
    Tagger loaded;
    loaded.model.Load(path);
    EXPECT_EQ(*FsmPolicyOf(loaded.model), *learned);
    // A model that keeps a policy goes on with it.
    TrainerOptions more = FsmOptions("");
    Trainer(loaded.model, more).Run(train, nullptr, callbacks);
    EXPECT_EQ(reports.size(), 1u);
  }
}

TEST(LearnedBatching, ResumedRunsKeepThePolicy) {
  const ScratchFolder folder;
  const auto run = [](const TrainerOptions& options, int64_t steps, std::vector<FsmReport>* reports) {
    Tagger tagger;
    const Dataset train = tagger.Draw(40, 1);
    TrainerCallbacks callbacks;
    callbacks.on_batching = [&](const FsmReport& report) { reports->push_back(report); };
    callbacks.should_stop = [&steps] { return --steps == 0; };
    Trainer(tagger.model, options).Run(train, nullptr, callbacks);
    return *FsmPolicyOf(tagger.model);
  };
  std::vector<FsmReport> reports;
  const FsmPolicy learned = run(FsmOptions(folder.File("whole")), 0, &reports);
  TrainerOptions parts = FsmOptions(folder.File("parts"));
  run(parts, 4, &reports);
  EXPECT_EQ(reports.size(), 2u);
  parts.resume = true;
  EXPECT_EQ(run(parts, 5, &reports), learned);
  EXPECT_EQ(run(parts, 0, &reports), learned);
  EXPECT_EQ(reports.size(), 2u) << "it came from the state";
  EXPECT_EQ(ReadText(LastModelPath(folder.File("parts"))), ReadText(LastModelPath(folder.File("whole"))));
}

// A run that began without a policy learns one when it goes on with kFsm.
TEST(LearnedBatching, ResumedRunsMayChangeThePolicy) {
  const ScratchFolder folder;
  TrainerOptions options = FsmOptions(folder.File("run"));
  options.session.batching = BatchingPolicy::kFrontier;
  int64_t learned = 0;
  for (const bool resume : {false, true}) {
    Tagger tagger;
    const Dataset train = tagger.Draw(40, 1);
    TrainerCallbacks callbacks;
    callbacks.on_batching = [&](const FsmReport&) { ++learned; };
    if (!resume) callbacks.should_stop = [] { return true; };
    options.resume = resume;
    Trainer(tagger.model, options).Run(train, nullptr, callbacks);
    EXPECT_EQ(learned, resume ? 1 : 0);
    options.session.batching = BatchingPolicy::kFsm;
  }
}

}  // namespace
}  // namespace cavs
