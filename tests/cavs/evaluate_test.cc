#include "cavs/evaluate.h"

#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::HasSubstr;

TEST(Evaluate, FiguresDoNotDependOnTheBatchSize) {
  const Fixture task = ListOpsTask(40);
  Evaluator evaluator(task.model());
  const Evaluation one = evaluator.Evaluate(task.train, 1);
  EXPECT_EQ(one.examples, 40);
  EXPECT_EQ(one.root_predictions, 40);
  EXPECT_EQ(one.predictions, task.train.statistics.class_labels);
  for (const int64_t batch_size : {2, 3, 7, 32, 1000}) {
    const Evaluation other = evaluator.Evaluate(task.train, batch_size);
    EXPECT_NEAR(other.loss, one.loss, 1e-6 * one.loss) << batch_size;
    EXPECT_EQ(other.predictions, one.predictions) << batch_size;
    EXPECT_EQ(other.vertices, one.vertices) << batch_size;
    EXPECT_EQ(other.correct, one.correct) << batch_size;
    EXPECT_EQ(other.root_correct, one.root_correct) << batch_size;
  }
}

// A model whose every answer is class 3, with equal logits elsewhere.
void AlwaysAnswer(Model& model, int32_t answer, int64_t classes, float logit) {
  std::vector<float> bias(static_cast<size_t>(classes), 0.0f);
  bias[static_cast<size_t>(answer)] = logit;
  model.Set("head.b", bias);
  model.Set("head.W", std::vector<float>(model.Get("head.W").size(), 0.0f));
}

TEST(Evaluate, CountsRootsVerticesAndLossByHand) {
  const ScratchFolder folder;
  // Roots 3, 3, 0; vertices with class 3: five of nine.
  const Fixture task = FileTask(folder, "sst", "(3 (2 a) (3 b))\n(3 (3 a) (4 (3 b) (2 c)))\n(0 d)\n");
  AlwaysAnswer(task.model(), 3, 5, 2.0f);
  Evaluator evaluator(task.model());
  const Evaluation result = evaluator.Evaluate(task.train, 2);
  EXPECT_EQ(result.predictions, 9);
  EXPECT_EQ(result.correct, 5);
  EXPECT_EQ(result.root_predictions, 3);
  EXPECT_EQ(result.root_correct, 2);
  EXPECT_DOUBLE_EQ(result.root_accuracy, 2.0 / 3);
  EXPECT_DOUBLE_EQ(result.vertex_accuracy, 5.0 / 9);
  const double log_sum = std::log(4 + std::exp(2.0));
  EXPECT_NEAR(result.loss, log_sum - 2.0 * 5 / 9, 1e-6);
  AlwaysAnswer(task.model(), 3, 5, 0.0f);
  EXPECT_NEAR(evaluator.Evaluate(task.train, 25).loss, std::log(5.0), 1e-6);
}

TEST(Evaluate, OnlyLabelledVerticesCountAndNothingGivesNan) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "tree", "(X (2 a) (Y b))\n(3 (Z c) (Z d))\n");
  AlwaysAnswer(task.model(), 3, 5, 1.0f);
  const Evaluation result = Evaluator(task.model()).Evaluate(task.train, 8);
  EXPECT_EQ(result.predictions, 2);
  EXPECT_EQ(result.root_predictions, 1);
  EXPECT_EQ(result.root_accuracy, 1.0);
  const Fixture unlabelled = FileTask(folder, "tree", "(X (Y a) (Y b))\n");
  const Evaluation nothing = Evaluator(unlabelled.model()).Evaluate(unlabelled.train, 8);
  EXPECT_EQ(nothing.predictions, 0);
  EXPECT_TRUE(std::isnan(nothing.loss));
  EXPECT_TRUE(std::isnan(nothing.root_accuracy));
}

TEST(Evaluate, CountsByGroup) {
  const Fixture task = ListOpsTask(150);
  const Evaluation result = Evaluator(task.model()).Evaluate(task.dev, 16);
  ASSERT_FALSE(result.groups.empty());
  int64_t examples = 0, correct = 0;
  for (size_t i = 0; i < result.groups.size(); ++i) {
    const GroupAccuracy& group = result.groups[i];
    EXPECT_EQ(group.examples, std::count(task.dev.groups.begin(), task.dev.groups.end(), group.group));
    if (i > 0) {
      EXPECT_LT(result.groups[i - 1].group, group.group);
    }
    examples += group.examples;
    correct += group.correct;
  }
  EXPECT_EQ(examples, task.dev.size());
  EXPECT_EQ(correct, result.root_correct);
}

TEST(Predict, AnswersEveryExampleInOrder) {
  const Fixture task = ListOpsTask(30);
  Evaluator evaluator(task.model());
  const Evaluation evaluation = evaluator.Evaluate(task.train, 7);
  std::vector<Prediction> roots, all;
  evaluator.Predict(task.train, 7, false, [&](const Prediction& p) { roots.push_back(p); });
  evaluator.Predict(task.train, 1, true, [&](const Prediction& p) { all.push_back(p); });
  ASSERT_EQ(roots.size(), 30u);
  ASSERT_EQ(all.size(), 30u);
  int64_t correct = 0;
  for (size_t i = 0; i < roots.size(); ++i) {
    const InputGraph& graph = task.train.graphs[i];
    const VertexPrediction& root = roots[i].root;
    EXPECT_EQ(roots[i].example, static_cast<int64_t>(i));
    EXPECT_EQ(root.vertex, graph.roots()[0]);
    EXPECT_TRUE(roots[i].vertices.empty());
    ASSERT_EQ(std::ssize(all[i].vertices), graph.vertex_count());
    EXPECT_EQ(all[i].vertices.back().vertex, root.vertex);
    ASSERT_EQ(root.probabilities.size(), 10u);
    double sum = 0;
    for (const double p : root.probabilities) sum += p;
    EXPECT_NEAR(sum, 1, 1e-12);
    const auto best = std::max_element(root.probabilities.begin(), root.probabilities.end());
    EXPECT_EQ(best - root.probabilities.begin(), root.predicted);
    EXPECT_EQ(all[i].root.predicted, root.predicted);
    correct += root.predicted == root.label ? 1 : 0;
  }
  EXPECT_EQ(correct, evaluation.root_correct);
}

TEST(Predict, NamesTheExampleWhoseNumbersAreNotFinite) {
  const ScratchFolder folder;
  const Fixture task = FileTask(folder, "sst", "(3 (2 a) (3 b))\n(3 (3 a) (4 c))\n");
  std::vector<float> words = task.model().Get("words");
  const auto row = static_cast<size_t>(task.trained->vocabulary.Lookup("c"));
  words[row * 7] = std::numeric_limits<float>::quiet_NaN();
  task.model().Set("words", words);
  Evaluator evaluator(task.model());
  int taken = 0;
  EXPECT_THAT(MessageOf([&] { evaluator.Predict(task.train, 1, false, [&](const Prediction&) { ++taken; }); }),
              HasSubstr("trees.txt:2] expected finite numbers"));
  EXPECT_EQ(taken, 1);
  const Evaluation result = evaluator.Evaluate(task.train, 2);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_EQ(result.root_predictions, 2) << "counted, and wrong";
}

}  // namespace
}  // namespace cavs
