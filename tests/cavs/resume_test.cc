// A run that was stopped and resumed against one that was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cavs/file_output.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kExamples = 50;

Fixture NewTask() { return ListOpsTask(kExamples, {.dropout = 0.25}); }

TrainerOptions RunOptionsFor(OptimizerKind kind, int threads, const std::string& folder) {
  TrainerOptions options;
  options.epochs = 3;
  options.batch_size = 7;  // eight steps an epoch, the last of one example
  options.seed = 5;
  options.optimizer.kind = kind;
  options.optimizer.lr = 0.02;
  options.optimizer.clip = 2;
  options.session.threads = threads;
  options.save_folder = folder;
  return options;
}

// Runs in a "process" of its own: a new model, which ends when `steps` more steps are done (0: at the end).
TrainingResult RunPart(TrainerOptions options, bool resume, int64_t steps) {
  const Fixture task = NewTask();
  options.resume = resume;
  TrainerCallbacks callbacks;
  callbacks.should_stop = [&steps] { return --steps == 0; };
  return Trainer(task.model(), options).Run(task.train, &task.dev, callbacks);
}

class Resume : public ::testing::TestWithParam<std::tuple<OptimizerKind, int>> {};

TEST_P(Resume, GivesTheBitsOfARunThatDidNotStop) {
  const auto [kind, threads] = GetParam();
  const ScratchFolder folder;
  const TrainerOptions whole = RunOptionsFor(kind, threads, folder.File("whole"));
  const TrainerOptions parts = RunOptionsFor(kind, threads, folder.File("parts"));
  const TrainingResult expected = RunPart(whole, false, 0);
  // In the middle of an epoch, twice; behind the last step of one; then to the end.
  EXPECT_TRUE(RunPart(parts, false, 3).interrupted);
  EXPECT_TRUE(RunPart(parts, true, 2).interrupted);
  EXPECT_TRUE(RunPart(parts, true, 11).interrupted);
  const TrainingResult result = RunPart(parts, true, 0);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.steps, 24);
  EXPECT_EQ(ReadText(LastModelPath(parts.save_folder)), ReadText(LastModelPath(whole.save_folder)));
  EXPECT_EQ(ReadText(BestModelPath(parts.save_folder)), ReadText(BestModelPath(whole.save_folder)));
  EXPECT_EQ(result.best.epoch, expected.best.epoch);
  EXPECT_EQ(result.best.train_loss, expected.best.train_loss) << "sums of an epoch go on too";
  EXPECT_EQ(result.best.dev_loss, expected.best.dev_loss);
  EXPECT_EQ(result.best.tasks, expected.best.tasks);
  EXPECT_EQ(result.best.examples, kExamples);
}

INSTANTIATE_TEST_SUITE_P(All, Resume,
                         ::testing::Combine(::testing::Values(OptimizerKind::kAdam, OptimizerKind::kAdagrad),
                                            ::testing::Values(1, 2)),
                         [](const auto& test) {
                           return std::string(OptimizerName(std::get<0>(test.param))) +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST(ResumeTest, GoesOnBehindASaveWithinAnEpoch) {
  const ScratchFolder folder;
  const TrainerOptions whole = RunOptionsFor(OptimizerKind::kAdam, 1, folder.File("whole"));
  TrainerOptions parts = RunOptionsFor(OptimizerKind::kAdam, 1, folder.File("parts"));
  RunPart(whole, false, 0);
  parts.save_every = 5;
  // A crash in the middle of epoch 2: what the run did behind its last save is lost.
  {
    const Fixture task = NewTask();
    TrainerCallbacks callbacks;
    callbacks.on_step = [](const StepReport& report) {
      if (report.step == 12) throw std::runtime_error("crash");
    };
    Trainer trainer(task.model(), parts);
    EXPECT_THROW(trainer.Run(task.train, &task.dev, callbacks), std::runtime_error);
  }
  std::vector<std::string> log;
  {
    const Fixture task = NewTask();
    parts.resume = true;
    TrainerCallbacks callbacks;
    callbacks.log = [&](LogLevel, std::string_view text) { log.emplace_back(text); };
    Trainer(task.model(), parts).Run(task.train, &task.dev, callbacks);
  }
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], HasSubstr("in epoch 2 behind 14 of 50 examples"));
  EXPECT_EQ(ReadText(LastModelPath(parts.save_folder)), ReadText(LastModelPath(whole.save_folder)));
}

TEST(ResumeTest, AddsEpochsToAFinishedRun) {
  const ScratchFolder folder;
  TrainerOptions whole = RunOptionsFor(OptimizerKind::kMomentum, 1, folder.File("whole"));
  TrainerOptions parts = RunOptionsFor(OptimizerKind::kMomentum, 1, folder.File("parts"));
  RunPart(whole, false, 0);
  parts.epochs = 1;
  EXPECT_EQ(RunPart(parts, false, 0).steps, 8);
  EXPECT_EQ(RunPart(parts, true, 0).steps, 8) << "nothing is left to do";
  parts.epochs = 3;
  EXPECT_EQ(RunPart(parts, true, 0).steps, 24);
  EXPECT_EQ(ReadText(LastModelPath(parts.save_folder)), ReadText(LastModelPath(whole.save_folder)));
}

TEST(ResumeTest, RefusesAnotherRunNamingBothValues) {
  const ScratchFolder folder;
  const TrainerOptions options = RunOptionsFor(OptimizerKind::kAdam, 1, folder.File("run"));
  RunPart(options, false, 2);
  const std::string before = ReadText(StatePath(options.save_folder));
  const auto message = [&](auto change) {
    TrainerOptions changed = options;
    change(&changed);
    return MessageOf([&] { RunPart(changed, true, 1); });
  };
  EXPECT_THAT(message([](TrainerOptions* o) { o->batch_size = 9; }), HasSubstr("expected batch_size 7 as in the run"));
  EXPECT_THAT(message([](TrainerOptions* o) { o->batch_size = 9; }), HasSubstr("got 9"));
  EXPECT_THAT(message([](TrainerOptions* o) { o->optimizer.lr = 0.5; }), AllOf(HasSubstr("lr 0.02"), HasSubstr("0.5")));
  EXPECT_THAT(message([](TrainerOptions* o) { o->optimizer.kind = OptimizerKind::kSgd; }),
              AllOf(HasSubstr("optimizer adam"), HasSubstr("got sgd")));
  EXPECT_THAT(message([](TrainerOptions* o) { o->seed = 6; }), AllOf(HasSubstr("seed 5"), HasSubstr("got 6")));
  const auto resume = [&](const Fixture& task, const Dataset* dev) {
    TrainerOptions resumed = options;
    resumed.resume = true;
    return MessageOf([&] { Trainer(task.model(), resumed).Run(task.train, dev); });
  };
  const Fixture wider = ListOpsTask(kExamples, {.hidden = 13, .dropout = 0.25});
  EXPECT_THAT(resume(wider, &wider.dev), AllOf(HasSubstr("the model's hidden '12'"), HasSubstr("got '13'")));
  const Fixture shorter = ListOpsTask(kExamples - 1, {.dropout = 0.25});
  EXPECT_THAT(resume(shorter, &shorter.dev), AllOf(HasSubstr("50 examples"), HasSubstr("got 49 examples")));
  const Fixture same = NewTask();
  const std::vector<float> initial = AllValues(same.model());
  EXPECT_THAT(resume(same, nullptr), AllOf(HasSubstr("dev data 50 examples"), HasSubstr("got none")));
  EXPECT_EQ(AllValues(same.model()), initial) << "a refused state changes nothing";
  EXPECT_EQ(ReadText(StatePath(options.save_folder)), before);
}

TEST(ResumeTest, RefusesAStateThatIsNone) {
  const ScratchFolder folder;
  TrainerOptions options = RunOptionsFor(OptimizerKind::kAdam, 1, folder.File("run"));
  EXPECT_THAT(MessageOf([&] { RunPart(options, true, 1); }), HasSubstr("there is no such file"));
  RunPart(options, false, 2);
  const std::string path = StatePath(options.save_folder), bytes = ReadText(path);
  WriteText(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(MessageOf([&] { RunPart(options, true, 1); }), HasSubstr("cut short"));
  std::string damaged = bytes;
  damaged[bytes.size() - 5] ^= 4;
  WriteText(path, damaged);
  EXPECT_THAT(MessageOf([&] { RunPart(options, true, 1); }), HasSubstr("damaged"));
  WriteText(path, ReadText(LastModelPath(options.save_folder)));
  EXPECT_THAT(MessageOf([&] { RunPart(options, true, 1); }), HasSubstr("got a cavs model file"));
  options.save_folder.clear();
  EXPECT_THAT(MessageOf([&] { RunPart(options, true, 1); }), HasSubstr("expected a save folder"));
}

}  // namespace
}  // namespace cavs
