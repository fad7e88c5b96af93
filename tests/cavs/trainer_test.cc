#include "cavs/trainer.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cavs/file_output.h"
#include "cavs/models/tree_models.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TrainerOptions SmallRun(int64_t epochs = 3) {
  TrainerOptions options;
  options.epochs = epochs;
  options.batch_size = 8;
  return options;
}

// The gradients of one step over `parts` calls of equal size.
std::vector<float> GradientsOf(const Fixture& task, int64_t parts, LossReduction loss) {
  Session session(task.model(), {.loss = loss});
  for (int64_t part = 0; part < parts; ++part) session.Accumulate(Examples(task.train, part * 8 / parts, 8 / parts), 8);
  std::vector<float> values;
  for (int32_t p = 0; p < task.model().parameters().count(); ++p) {
    const std::vector<float> part = session.gradients().Get(p);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

TEST(Accumulate, OneBatchOfEightEqualsTwoOfFour) {
  const Fixture task = ListOpsTask(8);
  for (const LossReduction loss : {LossReduction::kMean, LossReduction::kSum}) {
    const std::vector<float> whole = GradientsOf(task, 1, loss);
    float scale = 0;
    for (const float x : whole) scale = std::max(scale, std::fabs(x));
    ASSERT_GT(scale, 0);
    for (const int64_t parts : {2, 4, 8}) {
      const std::vector<float> sum = GradientsOf(task, parts, loss);
      ASSERT_EQ(sum.size(), whole.size());
      for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], whole[i], 2e-6 * scale) << i;
    }
  }
}

TEST(Trainer, GivesEqualBitsAtAnyNumberOfThreads) {
  std::vector<float> expected;
  std::optional<TrainingResult> first;
  for (const int threads : {1, 2, 3}) {
    const Fixture task = ListOpsTask(60, {.hidden = 48, .embed = 32, .dropout = 0.3});
    TrainerOptions options = SmallRun(2);
    options.batch_size = 25;
    options.optimizer = {.kind = OptimizerKind::kAdam, .lr = 0.01, .weight_decay = 1e-4, .clip = 1};
    options.session.threads = threads;
    const TrainingResult result = Trainer(task.model(), options).Run(task.train, &task.dev);
    if (!first) {
      expected = AllValues(task.model());
      first = result;
    }
    EXPECT_EQ(AllValues(task.model()), expected) << threads;
    EXPECT_EQ(result.best.train_loss, first->best.train_loss) << threads;
    EXPECT_EQ(result.best.dev_loss, first->best.dev_loss) << threads;
  }
}

TEST(Trainer, ReportsEveryEpochAndSavesBestAndLast) {
  const ScratchFolder folder;
  const Fixture task = ListOpsTask(100);
  TrainerOptions options = SmallRun(4);
  options.save_folder = folder.File("new/run");
  std::vector<EpochReport> epochs;
  int64_t steps = 0, best = 0;
  TrainerCallbacks callbacks;
  callbacks.on_step = [&](const StepReport& report) {
    ++steps;
    EXPECT_EQ(report.step, steps);
    EXPECT_EQ(report.total, 100);
    EXPECT_GT(report.loss, 0);
  };
  callbacks.on_epoch = [&](const EpochReport& report, const Evaluation* dev, bool is_best) {
    ASSERT_NE(dev, nullptr);
    EXPECT_EQ(dev->loss, report.dev_loss);
    EXPECT_FALSE(dev->groups.empty());
    if (is_best) best = report.epoch;
    epochs.push_back(report);
  };
  const TrainingResult result = Trainer(task.model(), options).Run(task.train, &task.dev, callbacks);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.steps, 4 * 13);
  EXPECT_EQ(steps, result.steps);
  ASSERT_EQ(epochs.size(), 4u);
  for (size_t i = 0; i < epochs.size(); ++i) {
    const EpochReport& epoch = epochs[i];
    EXPECT_EQ(epoch.epoch, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(epoch.examples, 100);
    EXPECT_EQ(epoch.vertices, task.train.statistics.vertices);
    EXPECT_EQ(epoch.predictions, task.train.statistics.class_labels);
    EXPECT_GT(epoch.seconds, epoch.schedule_s);
    EXPECT_GT(epoch.schedule_s, 0);
    EXPECT_GT(epoch.examples_per_s(), 0);
    EXPECT_GT(epoch.vertices_per_s(), epoch.examples_per_s());
    EXPECT_GT(epoch.launches, epoch.tasks);
    EXPECT_GT(epoch.mean_width(), 1);
    EXPECT_GT(epoch.peak_bytes, 0);
    EXPECT_LT(epoch.train_loss, std::log(10.0) + 0.5) << "per prediction";
  }
  EXPECT_LT(epochs.back().train_loss, epochs.front().train_loss);
  EXPECT_EQ(result.best.epoch, best);

  EXPECT_THAT(folder.Names(), UnorderedElementsAre("new"));
  const TrainedModel last = TrainedModel::Load(LastModelPath(options.save_folder));
  EXPECT_EQ(AllValues(*last.model), AllValues(task.model()));
  const TrainedModel saved = TrainedModel::Load(BestModelPath(options.save_folder));
  const Evaluation evaluation = Evaluator(*saved.model).Evaluate(task.dev, options.batch_size);
  EXPECT_EQ(evaluation.loss, result.best.dev_loss) << "the best model is that of the best epoch";
  EXPECT_EQ(evaluation.root_accuracy, result.best.dev_accuracy);
}

TEST(Trainer, ShufflesFromTheSeedOrNotAtAll) {
  const auto values = [](uint64_t seed, bool shuffle) {
    const Fixture task = ListOpsTask(40);
    TrainerOptions options = SmallRun(1);
    options.seed = seed;
    options.shuffle = shuffle;
    Trainer(task.model(), options).Run(task.train);
    return AllValues(task.model());
  };
  EXPECT_EQ(values(1, true), values(1, true));
  EXPECT_NE(values(1, true), values(2, true));
  EXPECT_NE(values(1, true), values(1, false));
  EXPECT_EQ(values(1, false), values(2, false));
}

// A file whose third tree alone holds the word "bad", which the model maps to NaN.
Fixture PoisonedTask(const ScratchFolder& folder) {
  Fixture task = FileTask(folder, "sst",
                          "(3 (2 a) (3 b))\n(1 (3 a) (4 c))\n(1 (3 a) (4 bad))\n(2 (2 b) (1 c))\n(4 (2 c) (1 a))\n");
  std::vector<float> words = task.model().Get("words");
  words[static_cast<size_t>(task.trained->vocabulary.Lookup("bad")) * 7 + 2] = kNan;
  task.model().Set("words", words);
  return task;
}

TEST(Trainer, StopsAtANumberThatIsNotFinite) {
  const ScratchFolder folder;
  const Fixture task = PoisonedTask(folder);
  TrainerOptions options = SmallRun();
  options.batch_size = 2;
  options.shuffle = false;
  Trainer trainer(task.model(), options);
  try {
    trainer.Run(task.train);
    FAIL() << "a NaN went unnoticed";
  } catch (const NonFiniteError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the loss of step 2 is nan"), HasSubstr("lookup \"word\" words"),
                                    HasSubstr("at vertex 1 of " + folder.File("trees.txt") + ":3")));
  }
}

TEST(Trainer, SkipsAndCountsMinibatchesThatAreNotFinite) {
  const ScratchFolder folder;
  const Fixture task = PoisonedTask(folder);
  TrainerOptions options = SmallRun(2);
  options.batch_size = 2;
  options.shuffle = false;
  options.on_nan = OnNan::kSkip;
  std::vector<std::string> messages;
  TrainerCallbacks callbacks;
  callbacks.log = [&](LogLevel level, std::string_view text) {
    EXPECT_EQ(level, LogLevel::kWarning);
    messages.emplace_back(text);
  };
  callbacks.on_epoch = [&](const EpochReport& report, const Evaluation*, bool is_best) {
    EXPECT_TRUE(std::isfinite(report.train_loss));
    EXPECT_EQ(report.steps, 3);
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.examples, 3) << "two of five were in the skipped minibatch";
    EXPECT_EQ(report.predictions, 9);
    EXPECT_TRUE(is_best || report.epoch > 1);
  };
  const TrainingResult result = Trainer(task.model(), options).Run(task.train, nullptr, callbacks);
  EXPECT_EQ(result.skipped, 2);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_THAT(messages[1], AllOf(HasSubstr("step 5"), HasSubstr("was skipped")));
  for (const float value : task.model().Get("node.U")) ASSERT_TRUE(std::isfinite(value));
}

TEST(Trainer, NeverTakesFiguresThatAreNotFiniteForTheBest) {
  const ScratchFolder folder;
  const Fixture task = PoisonedTask(folder);
  TrainerOptions options = SmallRun(2);
  options.on_nan = OnNan::kSkip;
  options.batch_size = 1;
  options.save_folder = folder.File("run");
  const TrainingResult result = Trainer(task.model(), options).Run(task.train, &task.train);
  EXPECT_EQ(result.best.epoch, 0) << "the dev loss is NaN in every epoch";
  EXPECT_FALSE(std::filesystem::exists(BestModelPath(options.save_folder)));
  EXPECT_TRUE(std::filesystem::exists(LastModelPath(options.save_folder)));
}

// The square root of zero has no finite slope: the loss is fine, its gradient is not.
TEST(Trainer, NamesTheParameterAndExampleOfABadGradient) {
  Model model;
  const Expression words = model.Lookup("words", 3, 5, Initializer::Constant(1));
  model.VertexType("leaf", 0).Define([&](Vertex& v) { v.Push("h", Sqrt(v.Pull(words, kWordColumn))); });
  model.Loss(CrossEntropy(model.Pushed("h"), model.Label(kLabelColumn, 5)));
  std::vector<float> values(15, 1.0f);
  values[2 * 5] = 0;
  model.Set("words", values);
  Dataset data;
  data.file = "f";
  InputGraphBuilder builder(model.columns());
  for (const int32_t word : {0, 1, 2, 0}) {
    builder.AddVertex(0);
    builder.SetId(model.columns()->Find(kWordColumn), 0, word);
    builder.SetId(model.columns()->Find(kLabelColumn), 0, 1);
    data.graphs.push_back(builder.Build());
    data.lines.push_back(data.size() * 10);
  }
  TrainerOptions options = SmallRun(1);
  EXPECT_THAT(MessageOf([&] { Trainer(model, options).Run(data); }),
              AllOf(HasSubstr("step 1"), HasSubstr("\"words\""), HasSubstr("at f:30")));
  EXPECT_EQ(model.Get("words")[0], 1.0f) << "nothing was changed";
  options.on_nan = OnNan::kSkip;
  EXPECT_THAT(MessageOf([&] { Trainer(model, options).Run(data); }),
              HasSubstr("expected a minibatch with finite numbers in epoch 1, got 1, all skipped"));
}

// The weights are one matrix in memory; the message knows them as they were declared.
TEST(Trainer, NamesThePartOfAMergedParameter) {
  Model model;
  const Expression fine = model.Parameter("fine", {1, 5}, Initializer::Constant(1));
  const Expression bad = model.Parameter("bad", {1, 5}, Initializer::Constant(0));
  model.VertexType("leaf", 0).Define([&](Vertex& v) {
    const Expression x = v.PullRow("x", 1);
    v.Push("h", Tanh(MatMul(x, fine)) + Sqrt(MatMul(x, bad)));
  });
  model.Loss(CrossEntropy(model.Pushed("h"), model.Label(kLabelColumn, 5)));
  ASSERT_FALSE(model.parameters().layout().owns(model.parameters().Find("bad")));
  Dataset data;
  data.file = "f";
  InputGraphBuilder builder(model.columns());
  builder.AddVertex(0);
  builder.SetRow(model.columns()->Find("x"), 0, std::array{1.0f});
  builder.SetId(model.columns()->Find(kLabelColumn), 0, 1);
  data.graphs.push_back(builder.Build());
  data.lines.push_back(1);
  EXPECT_THAT(MessageOf([&] { Trainer(model, SmallRun(1)).Run(data); }), HasSubstr("that of parameter \"bad\""));
}

TEST(Trainer, RefusesWhatItCannotTrainOn) {
  const ScratchFolder folder;
  const Fixture unlabelled = FileTask(folder, "tree", "(X (Y a) (Y b))\n");
  EXPECT_THAT(MessageOf([&] { Trainer(unlabelled.model(), {}).Run(unlabelled.train); }),
              HasSubstr("expected vertices with a class as label, got none"));
  EXPECT_THAT(MessageOf([&] { Trainer(unlabelled.model(), {}).Run(Dataset{}); }), HasSubstr("at least one example"));
  TrainerOptions options = SmallRun();
  options.batch_size = 0;
  EXPECT_THAT(MessageOf([&] { Trainer(unlabelled.model(), options); }), HasSubstr("batch size of at least 1, got 0"));
}

TEST(Trainer, FindsAnUnwritableFolderBeforeTraining) {
  const ScratchFolder folder;
  const Fixture task = ListOpsTask(4);
  WriteText(folder.File("file"), "");
  TrainerOptions options = SmallRun();
  options.save_folder = folder.File("file");
  EXPECT_THROW(Trainer(task.model(), options), FileError);
}

TEST(TrainedModel, IsSavedAndLoadedWhole) {
  const ScratchFolder folder;
  const Fixture task = ListOpsTask(10, {.model = "tree_rnn", .hidden = 9, .embed = 5, .dropout = 0.25});
  const std::string path = folder.File("m.safetensors");
  task.trained->Save(path);
  const TrainedModel loaded = TrainedModel::Load(path);
  EXPECT_EQ(loaded.config.model, "tree_rnn");
  EXPECT_EQ(loaded.config.hidden, 9);
  EXPECT_EQ(loaded.config.embed, 5);
  EXPECT_EQ(loaded.config.dropout, 0.25);
  EXPECT_EQ(loaded.config.format, CorpusFormat::kListOps);
  EXPECT_EQ(loaded.config.examples, 10);
  EXPECT_EQ(loaded.config.data_digest, task.trained->config.data_digest);
  EXPECT_EQ(loaded.config.label_names, task.trained->config.label_names);
  EXPECT_EQ(loaded.vocabulary.words(), task.trained->vocabulary.words());
  EXPECT_EQ(loaded.model->metadata(), task.model().metadata());
  EXPECT_EQ(AllValues(*loaded.model), AllValues(task.model()));
  const CorpusOptions reading = ReadingOptions(loaded.config);
  EXPECT_EQ(reading.generated_training, 10);
  EXPECT_EQ(reading.classes, 10);
}

TEST(TrainedModel, RefusesDamagedAndForeignFilesInOneSentence) {
  const ScratchFolder folder;
  const Fixture task = ListOpsTask(3);
  const std::string path = folder.File("m.safetensors");
  task.trained->Save(path);
  std::string bytes = ReadText(path);
  bytes[bytes.size() / 2] ^= 1;
  WriteText(folder.File("damaged"), bytes);
  WriteText(folder.File("short"), bytes.substr(0, bytes.size() - 9));
  WriteText(folder.File("text"), "(3 (2 a) (2 b))\n");
  for (const std::string name : {"damaged", "short", "text", "missing"}) {
    const std::string message = MessageOf([&] { TrainedModel::Load(folder.File(name)); });
    EXPECT_THAT(message, AllOf(HasSubstr("[" + folder.File(name) + "] expected a cavs model file"), HasSubstr("got")));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  Model& model = task.model();
  model.metadata()["hidden"] = "-3";
  model.Save(path);
  EXPECT_THAT(MessageOf([&] { TrainedModel::Load(path); }),
              HasSubstr("expected a whole number from 1 up as \"hidden\" in the metadata, got '-3'"));
  model.metadata()["hidden"] = "13";
  model.Save(path);
  EXPECT_THAT(MessageOf([&] { TrainedModel::Load(path); }), AllOf(HasSubstr("39"), HasSubstr("36")));
  model.metadata().erase("vocabulary");
  model.Save(path);
  EXPECT_THAT(MessageOf([&] { TrainedModel::Load(path); }), HasSubstr("with \"vocabulary\" in its metadata, got none"));
}

}  // namespace
}  // namespace cavs
