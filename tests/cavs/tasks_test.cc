// Sentences and pairs from files to figures: conversion, vocabulary, training, evaluation, saving and loading.
#include <cmath>
#include <filesystem>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cavs/base/random.h"
#include "cavs/models/child_sum_tree_lstm.h"
#include "cavs/models/lstm_lm.h"
#include "cavs/models/ready_models.h"
#include "cavs/similarity.h"
#include "graph/readers/tree_pair_reader.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Corpus ReadSource(const std::string& source) { return ReadCorpus(ParseDataSource(source)); }

TrainedModel NewModel(const Corpus& corpus, int64_t layers = 1) {
  ModelConfig config = ConfigFor(corpus);
  config.hidden = 12;
  config.embed = 7;
  config.layers = layers;
  return TrainedModel::Create(config, MakeVocabulary(corpus));
}

struct SentenceTask {
  explicit SentenceTask(const std::string& text, int64_t layers = 1) {
    WriteText(folder.File("lm.txt"), text);
    corpus = ReadSource("lm:" + folder.File("lm.txt"));
    trained = NewModel(corpus, layers);
    data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  }

  ScratchFolder folder;
  Corpus corpus;
  TrainedModel trained = {{}, Vocabulary::FromWords(std::vector<std::string>{"<unk>"}, false), nullptr};
  Dataset data;
};

// Writes pairs of chains: how many words they share decides the score.
void WritePairs(const ScratchFolder& folder, int count, uint64_t seed) {
  CounterRandom random(seed);
  std::string tokens[2], parents[2], scores;
  for (int i = 0; i < count; ++i) {
    const int64_t same = random.Below(5);
    for (int side = 0; side < 2; ++side) {
      for (int64_t k = 0; k < 4; ++k) {
        tokens[side] += fmt::format("{}{} ", k < same ? "s" : side == 0 ? "l" : "r", k);
        parents[side] += fmt::format("{} ", k == 3 ? 0 : 4);
      }
      tokens[side] += '\n';
      parents[side] += '\n';
    }
    scores += i == 0 ? "None\n" : fmt::format("{}\n", 1 + same);
  }
  for (int side = 0; side < 2; ++side) {
    const std::string name = side == 0 ? "a" : "b";
    WriteText(folder.File(name + ".toks"), tokens[side]);
    WriteText(folder.File(name + ".parents"), parents[side]);
  }
  WriteText(folder.File("sim.txt"), scores);
}

TEST(SentenceTask, EveryVertexPredictsTheNextWord) {
  const SentenceTask task(" a b\n\nb\n");
  EXPECT_THAT(task.trained.vocabulary.words(), ElementsAre("<unk>", "<eos>", "a", "b"));
  ASSERT_EQ(task.data.size(), 2);
  const InputGraph& graph = task.data.graphs[0];
  EXPECT_THAT(graph.types(), ElementsAre(kTokenType, kTokenType, kTokenType));
  EXPECT_THAT(graph.children(), ElementsAre(kNone, 0, 1));
  EXPECT_THAT(graph.ids(graph.columns().Find(kWordColumn)), ElementsAre(1, 2, 3));
  EXPECT_THAT(graph.ids(graph.columns().Find(kLabelColumn)), ElementsAre(2, 3, 1));
  EXPECT_EQ(task.data.statistics.vertices, 5);
  EXPECT_EQ(task.data.Describe(1), task.folder.File("lm.txt") + ":3");
  EXPECT_EQ(task.trained.config.model, "lstm_lm");
  EXPECT_EQ(task.trained.config.label_names, task.trained.vocabulary.words());
}

TEST(SentenceTask, O11WordsOfTheDevFileAloneAreUnknownEverywhere) {
  const SentenceTask task(" the cat sat\n\n");
  WriteText(task.folder.File("dev"), "\n the dog sat\n");
  const Dataset dev =
      MakeDataset(ReadSource("lm:" + task.folder.File("dev")), task.trained.vocabulary, *task.trained.model);
  EXPECT_EQ(DescribeCoverage(dev.coverage, "dev"), "1 of 3 dev words unknown (1 of 3 distinct)");
  const InputGraph& graph = dev.graphs.at(0);
  EXPECT_THAT(graph.ids(graph.columns().Find(kWordColumn)), ElementsAre(1, 2, 0, 4));
  EXPECT_THAT(graph.ids(graph.columns().Find(kLabelColumn)), ElementsAre(2, 0, 4, 1));
  EXPECT_EQ(task.trained.vocabulary.size(), 5);
  EXPECT_FALSE(task.trained.vocabulary.unknown_trained());
}

TEST(SentenceTask, TheEndIsKnownHoweverRareItIs) {
  const SentenceTask task("a a a b\n");
  EXPECT_THAT(MakeVocabulary(task.corpus, 3).words(), ElementsAre("<unk>", "<eos>", "a"));
}

std::string SentencesOfLengthsOneToSeven() {
  std::string text;
  for (int length = 1; length <= 7; ++length) {
    for (int i = 0; i < length; ++i) text += fmt::format(" w{}", (length * i) % 5);
    text += '\n';
  }
  return text;
}

TEST(SentenceTask, O12PerplexityDoesNotDependOnTheBatchSize) {
  const SentenceTask task(SentencesOfLengthsOneToSeven(), 2);
  Evaluator evaluator(*task.trained.model);
  const Evaluation one = evaluator.Evaluate(task.data, 1);
  EXPECT_EQ(one.predictions, 35) << "28 words and 7 ends";
  EXPECT_DOUBLE_EQ(one.perplexity, std::exp(one.loss));
  EXPECT_TRUE(std::isnan(one.root_accuracy));
  EXPECT_TRUE(std::isnan(one.vertex_accuracy));
  EXPECT_TRUE(std::isnan(one.pearson));
  for (const int64_t batch_size : {2, 3, 7, 32}) {
    const Evaluation other = evaluator.Evaluate(task.data, batch_size);
    EXPECT_EQ(other.predictions, 35);
    EXPECT_NEAR(other.perplexity, one.perplexity, 1e-5 * one.perplexity) << batch_size;
  }
}

TEST(SentenceTask, O12WithAnOutputLayerOfZerosEveryWordIsAsLikely) {
  const SentenceTask task(SentencesOfLengthsOneToSeven());
  Model& model = *task.trained.model;
  for (const char* name : {"head.W", "head.b"}) model.Set(name, std::vector<float>(model.Get(name).size(), 0.0f));
  EXPECT_NEAR(Evaluator(model).Evaluate(task.data, 3).perplexity, task.trained.vocabulary.size(), 1e-5);
}

TEST(SentenceTask, TrainsSavesAndLoads) {
  const SentenceTask task("a b c d\nb c d a\nc d a b\nd a b c\n", 2);
  TrainerOptions options;
  options.epochs = 60;
  options.batch_size = 2;
  options.optimizer.kind = OptimizerKind::kAdam;
  options.optimizer.lr = 0.02;
  const double before = Evaluator(*task.trained.model).Evaluate(task.data, 4).perplexity;
  const TrainingResult result = Trainer(*task.trained.model, options).Run(task.data, &task.data);
  EXPECT_GT(before, 4);
  EXPECT_LT(result.best.dev_metric, 1.6) << "only the first word is not given by the one before";
  task.trained.Save(task.folder.File("model"));
  const TrainedModel loaded = TrainedModel::Load(task.folder.File("model"));
  EXPECT_EQ(loaded.config.layers, 2);
  EXPECT_EQ(loaded.config.label_names, task.trained.config.label_names);
  const Dataset again = MakeDataset(task.corpus, loaded.vocabulary, *loaded.model);
  EXPECT_EQ(Evaluator(*loaded.model).Evaluate(again, 4).perplexity,
            Evaluator(*task.trained.model).Evaluate(task.data, 4).perplexity);
}

// An epoch is better by its perplexity, which falls, not by a figure that rises.
TEST(SentenceTask, TheBestModelHasTheLowestPerplexity) {
  const SentenceTask task("a b c d\nb c d a\n");
  TrainerOptions options;
  options.epochs = 5;
  options.optimizer.lr = 0.5;
  TrainerCallbacks callbacks;
  double lowest = std::numeric_limits<double>::infinity();
  int64_t best = 0;
  callbacks.on_epoch = [&](const EpochReport& report, const Evaluation* dev, bool is_best) {
    EXPECT_EQ(report.dev_metric, dev->perplexity);
    EXPECT_EQ(is_best, dev->perplexity < lowest) << report.epoch;
    if (is_best) best = report.epoch;
    lowest = std::min(lowest, dev->perplexity);
  };
  EXPECT_EQ(Trainer(*task.trained.model, options).Run(task.data, &task.data, callbacks).best.epoch, best);
  EXPECT_GT(best, 1);
}

TEST(PairTask, APairIsAVertexAboveTwoTrees) {
  const ScratchFolder folder;
  WritePairs(folder, 3, 1);
  const Corpus corpus = ReadSource("treelstm:" + folder.File(""));
  EXPECT_THAT(corpus.label_names, ElementsAre("1", "2", "3", "4", "5"));
  const TrainedModel trained = NewModel(corpus);
  EXPECT_EQ(trained.config.model, "child_sum_tree_lstm");
  const Dataset data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  const InputGraph& graph = data.graphs[1];
  const int target = graph.columns().Find(kTargetColumn);
  EXPECT_THAT(graph.types(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, kPairType));
  EXPECT_THAT(graph.children(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(graph.children(8), ElementsAre(3, 7));
  EXPECT_EQ(graph.ids(graph.columns().Find(kWordColumn))[8], kNone);
  EXPECT_EQ(std::ssize(graph.row(target, 8)), 5);
  EXPECT_TRUE(graph.row(target, 3).empty());
  EXPECT_TRUE(data.graphs[0].row(target, 8).empty()) << "None";
  EXPECT_THAT(data.Describe(2), HasSubstr("a.parents:3"));
}

TEST(PairTask, LearnsToScoreAndKeepsItsFiguresWhenLoaded) {
  const ScratchFolder folder;
  WritePairs(folder, 60, 2);
  const Corpus corpus = ReadSource("treelstm:" + folder.File(""));
  TrainedModel trained = NewModel(corpus);
  const Dataset data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  TrainerOptions options;
  options.epochs = 30;
  options.batch_size = 10;
  options.optimizer.kind = OptimizerKind::kAdam;
  options.optimizer.lr = 0.02;
  const TrainingResult result = Trainer(*trained.model, options).Run(data, &data);
  EXPECT_GT(result.best.dev_metric, 0.95);
  Evaluator evaluator(*trained.model);
  const Evaluation one = evaluator.Evaluate(data, 1), all = evaluator.Evaluate(data, 100);
  EXPECT_EQ(one.predictions, 59) << "one pair has no score";
  EXPECT_NEAR(one.pearson, all.pearson, 1e-6);
  EXPECT_NEAR(one.spearman, all.spearman, 1e-2) << "float noise may swap neighbours";
  EXPECT_NEAR(one.mse, all.mse, 1e-5);
  EXPECT_TRUE(std::isnan(one.root_accuracy));
  EXPECT_TRUE(std::isnan(one.perplexity));
  trained.Save(folder.File("model"));
  const TrainedModel loaded = TrainedModel::Load(folder.File("model"));
  const Dataset again = MakeDataset(corpus, loaded.vocabulary, *loaded.model);
  EXPECT_EQ(Evaluator(*loaded.model).Evaluate(again, 100).pearson, all.pearson);
}

TEST(PairTask, PredictionsAreExpectedScores) {
  const ScratchFolder folder;
  WritePairs(folder, 5, 3);
  const Corpus corpus = ReadSource("treelstm:" + folder.File(""));
  const TrainedModel trained = NewModel(corpus);
  const Dataset data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  std::vector<double> scores, truths;
  Evaluator evaluator(*trained.model);
  evaluator.Predict(data, 2, /*all_vertices=*/false, [&](const Prediction& prediction) {
    EXPECT_EQ(prediction.root.vertex, 8);
    EXPECT_EQ(prediction.root.score, ExpectedScore(prediction.root.probabilities));
    if (std::isnan(prediction.root.true_score)) return;
    scores.push_back(prediction.root.score);
    truths.push_back(prediction.root.true_score);
  });
  EXPECT_THAT(truths,
              ::testing::Pointwise(::testing::DoubleNear(1e-6),
                                   std::vector<double>(corpus.trees.scores.begin() + 1, corpus.trees.scores.end())));
  EXPECT_NEAR(Pearson(scores, truths), evaluator.Evaluate(data, 2).pearson, 1e-6);
}

TEST(Tasks, ModelsAndDataMustBeOfOneTask) {
  const SentenceTask task("a b\n");
  ModelConfig config = task.trained.config;
  const auto refusal = [&] { return MessageOf([&] { TrainedModel::Create(config, MakeVocabulary(task.corpus)); }); };
  config.model = "tree_lstm";
  EXPECT_EQ(refusal(), "[model] expected one of lstm_lm for lm data, got \"tree_lstm\"");
  config.model = "lstm";
  EXPECT_THAT(refusal(), HasSubstr("child_sum_tree_lstm, got \"lstm\""));
  config.format = CorpusFormat::kSst;
  config.model = "tree_lstm";
  config.layers = 2;
  EXPECT_EQ(refusal(), "[model] expected one layer for \"tree_lstm\", got 2");
  WriteText(task.folder.File("sst"), "(3 (2 a) (2 b))\n");
  EXPECT_THAT(MessageOf([&] {
                MakeDataset(ReadSource("sst:" + task.folder.File("sst")), task.trained.vocabulary, *task.trained.model);
              }),
              AllOf(HasSubstr("expected data of 4 classes"), HasSubstr("got 5")));
}

TEST(Tasks, PairsWithoutAnyScoreAreNotTrainedOn) {
  const ScratchFolder folder;
  WritePairs(folder, 1, 1);
  const Corpus corpus = ReadSource("treelstm:" + folder.File(""));
  const TrainedModel trained = NewModel(corpus);
  const Dataset data = MakeDataset(corpus, trained.vocabulary, *trained.model);
  EXPECT_THAT(MessageOf([&] { Trainer(*trained.model, {}).Run(data); }), HasSubstr("expected pairs with a score"));
}

TEST(Tasks, EveryTaskHasADefaultModelOfItsOwnAndAFigure) {
  for (const LearningTask task : {LearningTask::kTreeClasses, LearningTask::kNextWord, LearningTask::kSimilarity}) {
    EXPECT_EQ(FindReadyModel(Describe(task).default_model).task, task);
    EXPECT_FALSE(MetricsOf(task).empty());
  }
}

TEST(Tasks, SickTakesItsPartFromTheFlag) {
  const std::string path = std::string(CAVS_SHARED_DATA) + "/sick";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "shared data absent";
  const DataSource source = ParseDataSource("sick:" + path);
  EXPECT_EQ(ReadCorpus(source).trees.trees.size(), 4500u);
  const Corpus dev = ReadCorpus(source, {.max_examples = 7}, DataPart::kDev);
  EXPECT_EQ(dev.trees.trees.size(), 7u);
  EXPECT_EQ(dev.file, path + "/dev/a.parents");
  EXPECT_NE(dev.digest, ReadCorpus(source, {.max_examples = 7}, DataPart::kTest).digest);
}

}  // namespace
}  // namespace cavs
