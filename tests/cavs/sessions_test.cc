// Sessions in threads of their own over one Model.
#include <thread>

#include <gtest/gtest.h>

#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

std::vector<double> Answers(const Model& model, const Dataset& data, int threads) {
  Evaluator evaluator(model, {.threads = threads});
  std::vector<double> answers;
  evaluator.Predict(data, 6, true, [&](const Prediction& prediction) {
    for (const VertexPrediction& vertex : prediction.vertices) {
      answers.insert(answers.end(), vertex.probabilities.begin(), vertex.probabilities.end());
    }
  });
  answers.push_back(evaluator.Evaluate(data, 5).loss);
  return answers;
}

TEST(Sessions, OfOneModelInSeveralThreadsEqualTheSerialRun) {
  const Fixture task = ListOpsTask(24);
  const std::vector<double> first = Answers(task.model(), task.train, 1);
  const std::vector<double> second = Answers(task.model(), task.dev, 1);
  for (const int inner : {1, 2}) {
    std::vector<double> parallel_first, parallel_second;
    std::thread a([&] { parallel_first = Answers(task.model(), task.train, inner); });
    std::thread b([&] { parallel_second = Answers(task.model(), task.dev, inner); });
    a.join();
    b.join();
    EXPECT_EQ(parallel_first, first) << inner;
    EXPECT_EQ(parallel_second, second) << inner;
  }
}

// Nothing has compiled the model before: the first of the threads does.
TEST(Sessions, MayBeTheFirstToUseAModel) {
  const Corpus corpus = ReadCorpus(ParseDataSource("listops:generate"), {.max_examples = 8});
  const TrainedModel fresh = TrainedModel::Create(ConfigFor(corpus), MakeVocabulary(corpus));
  std::vector<int64_t> counts(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < counts.size(); ++i) {
    threads.emplace_back([&, i] {
      const Dataset data = MakeDataset(corpus, fresh.vocabulary, *fresh.model);
      counts[i] = Evaluator(*fresh.model).Evaluate(data, 4).predictions;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counts[0], counts[1]);
  EXPECT_GT(counts[0], 0);
}

TEST(Sessions, TrainTwoModelsSideBySide) {
  const auto train = [](std::vector<float>* values) {
    const Fixture task = ListOpsTask(20, {.dropout = 0.2});
    TrainerOptions options;
    options.epochs = 2;
    options.batch_size = 6;
    options.session.threads = 2;
    Trainer(task.model(), options).Run(task.train, &task.dev);
    *values = AllValues(task.model());
  };
  std::vector<float> alone, first, second;
  train(&alone);
  std::thread a(train, &first), b(train, &second);
  a.join();
  b.join();
  EXPECT_EQ(first, alone);
  EXPECT_EQ(second, alone);
}

}  // namespace
}  // namespace cavs
