// Planning ahead: the same minibatches and the same bits as without, whatever is thrown and wherever a pass ends.
#include "cavs/prefetcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cavs/evaluate.h"
#include "cavs/minibatches.h"
#include "cavs/model_file.h"
#include "tests/cavs/training_testing.h"

namespace cavs {
namespace {

constexpr PrefetchPolicy kPolicies[] = {PrefetchPolicy::kOff, PrefetchPolicy::kOn, PrefetchPolicy::kAuto};

// The parameters behind three epochs, and what the epochs reported.
struct Trained {
  std::vector<float> values;
  std::vector<double> losses;
  int64_t steps = 0;
  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained Train(const Sizes& sizes, const SessionOptions& session, bool shuffle = true) {
  const Fixture task = ListOpsTask(60, sizes);
  TrainerOptions options;
  options.epochs = 3;
  options.batch_size = 7;
  options.shuffle = shuffle;
  options.session = session;
  Trained trained;
  TrainerCallbacks callbacks;
  callbacks.on_epoch = [&](const EpochReport& report, const Evaluation* dev, bool) {
    trained.losses.push_back(report.train_loss);
    trained.losses.push_back(dev->loss);
    EXPECT_GT(report.wait_s, 0);
    EXPECT_GE(report.seconds, report.wait_s);
  };
  trained.steps = Trainer(task.model(), options).Run(task.train, &task.dev, callbacks).steps;
  trained.values = AllValues(task.model());
  return trained;
}

TEST(Prefetch, ChangesNoBitUnderAnyPolicy) {
  for (const BatchingPolicy batching : {BatchingPolicy::kSerial, BatchingPolicy::kDepth, BatchingPolicy::kFrontier,
                                        BatchingPolicy::kAgenda, BatchingPolicy::kFsm}) {
    for (const SharingPolicy sharing : {SharingPolicy::kOff, SharingPolicy::kInputs, SharingPolicy::kSubgraphs}) {
      SCOPED_TRACE(std::string(BatchingPolicyName(batching)) + " " + std::string(SharingPolicyName(sharing)));
      SessionOptions options{.batching = batching, .sharing = sharing, .prefetch = PrefetchPolicy::kOff};
      const Trained expected = Train({}, options);
      options.prefetch = PrefetchPolicy::kOn;
      EXPECT_EQ(Train({}, options), expected);
    }
  }
}

TEST(Prefetch, ChangesNoBitOfShardsPartsAndDropout) {
  const SessionOptions shards{.threads = 2, .parallel = ParallelPolicy::kShard};
  const SessionOptions parts{.memory = PoolPolicy::kPlanned, .memory_limit = 90000};
  for (SessionOptions options : {shards, parts}) {
    for (const double dropout : {0.0, 0.3}) {
      options.prefetch = PrefetchPolicy::kOff;
      const Trained expected = Train({.dropout = dropout}, options, /*shuffle=*/false);
      options.prefetch = PrefetchPolicy::kOn;
      EXPECT_EQ(Train({.dropout = dropout}, options, /*shuffle=*/false), expected) << dropout;
    }
  }
}

// A planned minibatch that does not fit is cut like one that was not planned.
TEST(Prefetch, MinibatchesMayRunInParts) {
  const Fixture task = ListOpsTask(40);
  Session session(task.model(), {.memory = PoolPolicy::kPlanned, .memory_limit = 60000});
  Prefetcher prefetcher(session, /*training=*/true);
  const Minibatches minibatches(task.train.graphs, 20);
  Prefetcher::Pass pass(&prefetcher, minibatches.size(), minibatches);
  while (const PlannedBatch* planned = pass.Next()) {
    const std::vector<Example> examples(planned->examples().begin(), planned->examples().end());
    const BatchReport expected = session.Accumulate(examples);
    EXPECT_GT(expected.parts, 1);
    const BatchReport& report = session.Accumulate(*planned);
    EXPECT_EQ(report.parts, expected.parts);
    EXPECT_EQ(report.loss, expected.loss);
    EXPECT_EQ(report.graphs, 20);
    EXPECT_GT(report.schedule_seconds, planned->seconds());
  }
}

TEST(Prefetch, AStoppedRunGoesOnAsIfItHadNot) {
  const ScratchFolder folder;
  const auto run = [&](PrefetchPolicy policy, const std::string& name, bool resume, int64_t steps) {
    const Fixture task = ListOpsTask(50);
    TrainerOptions options;
    options.epochs = 2;
    options.batch_size = 4;
    options.save_folder = folder.File(name);
    options.resume = resume;
    options.session.prefetch = policy;
    TrainerCallbacks callbacks;
    callbacks.should_stop = [&] { return --steps == 0; };
    const TrainingResult result = Trainer(task.model(), options).Run(task.train, &task.dev, callbacks);
    EXPECT_EQ(result.interrupted, steps == 0);
    return AllValues(task.model());
  };
  const std::vector<float> whole = run(PrefetchPolicy::kOff, "whole", false, 1000);
  for (const int64_t steps : {1, 5, 13, 14}) {
    const std::string name = fmt::format("{}", steps);
    run(PrefetchPolicy::kOn, name, false, steps);
    EXPECT_EQ(run(PrefetchPolicy::kOn, name, true, 1000), whole) << steps;
  }
}

TEST(Prefetch, ChangesNoPrediction) {
  const Fixture task = ListOpsTask(50);
  std::vector<std::vector<double>> answers;
  for (const PrefetchPolicy policy : kPolicies) {
    Evaluator evaluator(task.model(), {.prefetch = policy});
    std::vector<double>& answer = answers.emplace_back();
    for (int round = 0; round < 2; ++round) {
      evaluator.Predict(task.dev, 3, true, [&](const Prediction& prediction) {
        answer.push_back(static_cast<double>(prediction.example));
        for (const VertexPrediction& vertex : prediction.vertices) {
          answer.insert(answer.end(), vertex.probabilities.begin(), vertex.probabilities.end());
        }
      });
      answer.push_back(evaluator.Evaluate(task.dev, 4).loss);
    }
  }
  EXPECT_EQ(answers[1], answers[0]);
  EXPECT_EQ(answers[2], answers[0]);
}

// What planned the minibatches may be gone; sessions that ran them are as good as new.
TEST(Prefetch, LeavesNoMinibatchBehind) {
  const Fixture task = ListOpsTask(20);
  const auto expect_empty = [](Session& session) {
    EXPECT_EQ(session.batch().vertex_count(), 0);
    EXPECT_EQ(session.scheduled().vertex_count(), 0);
    EXPECT_EQ(session.schedule().task_count(), 0);
    EXPECT_THROW(session.executor().tensors(), std::logic_error);
    EXPECT_FALSE(session.FindNonFinite().found);
  };
  Session session(task.model());
  const double loss = session.Accumulate(Examples(task.train, 0, 20)).loss;
  {
    Prefetcher prefetcher(session, /*training=*/true);
    Prefetcher::Pass pass(&prefetcher, 2, Minibatches(task.train.graphs, 10));
    session.Accumulate(*pass.Next());
    EXPECT_GT(session.batch().vertex_count(), 0);
  }
  expect_empty(session);
  EXPECT_EQ(session.Accumulate(Examples(task.train, 0, 20)).loss, loss);
  TrainerOptions options;
  options.epochs = 1;
  Trainer trainer(task.model(), options);
  trainer.Run(task.train);
  expect_empty(trainer.session());
}

// States of earlier versions say nothing of waiting.
TEST(Prefetch, AStateWithoutTimesOfWaitingIsResumed) {
  const ScratchFolder folder;
  const auto run = [&](const std::string& name, int64_t epochs, bool resume) {
    const Fixture task = ListOpsTask(20);
    TrainerOptions options;
    options.epochs = epochs;
    options.save_folder = folder.File(name);
    options.resume = resume;
    const double wait_s = Trainer(task.model(), options).Run(task.train).best.wait_s;
    return std::pair(AllValues(task.model()), wait_s);
  };
  EXPECT_GT(run("parts", 1, false).second, 0);
  const std::string path = StatePath(folder.File("parts"));
  const ModelFile state = ReadModelFile(path, FileKind::kState);
  std::vector<NamedTensor> tensors;
  tensors.reserve(state.tensors.size());
  for (const StoredTensor& tensor : state.tensors) {
    if (tensor.name.ends_with(".wait_s")) continue;
    tensors.push_back({tensor.name, tensor.shape, tensor.type, tensor.bytes.data()});
  }
  EXPECT_EQ(tensors.size() + 2, state.tensors.size());
  WriteModelFile(path, tensors, state.metadata, FileKind::kState);
  EXPECT_EQ(run("parts", 1, true).second, 0) << "nothing is left to do but to read";
  EXPECT_EQ(run("parts", 2, true).first, run("whole", 2, false).first);
}

TEST(MinibatchesOfAnOrder, AreNoneWhereItIsEmpty) {
  const Fixture task = ListOpsTask(10);
  EXPECT_EQ(Minibatches(task.train.graphs, 3).size(), 4);
  EXPECT_EQ(Minibatches(task.train.graphs, 3, std::span<const int32_t>()).size(), 0);
  EXPECT_EQ(MessageOf([&] { Minibatches(task.train.graphs, 0); }), "[batch size] expected at least 1, got 0");
}

class Passes : public ::testing::TestWithParam<PrefetchPolicy> {
 protected:
  Passes() : session_(task_.model(), {.prefetch = GetParam()}), prefetcher_(session_, /*training=*/true) {}

  // Takes up to `most` minibatches of a pass; returns the number of the first example of each.
  std::vector<int64_t> Take(const Prefetcher::Source& source, int64_t minibatches, int64_t most) {
    std::vector<int64_t> taken;
    Prefetcher::Pass pass(&prefetcher_, minibatches, source);
    while (std::ssize(taken) < most) {
      const PlannedBatch* planned = pass.Next();
      if (planned == nullptr) break;
      taken.push_back(planned->examples().front().number);
      EXPECT_EQ(planned->schedule().vertex_count(), planned->scheduled().vertex_count());
      EXPECT_GT(planned->seconds(), 0);
      EXPECT_GT(planned->waited(), 0);
    }
    return taken;
  }

  // Notes the threads that it is called on. What it does takes far longer than the tests do with the results.
  Prefetcher::Source SlowSource(std::set<std::thread::id>* threads) const {
    return [threads, minibatches = Minibatches(task_.train.graphs, 10)](int64_t minibatch, auto* examples) {
      threads->insert(std::this_thread::get_id());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      minibatches(minibatch, examples);
    };
  }

  // Threads of its own that the Prefetcher should have planned on.
  static size_t OwnThreads() { return GetParam() == PrefetchPolicy::kOff ? 0 : 1; }

  static bool NeedsMoreCores() {
    return GetParam() == PrefetchPolicy::kAuto && std::thread::hardware_concurrency() < 2;
  }

  Fixture task_ = ListOpsTask(200);
  Session session_;
  Prefetcher prefetcher_;
};

INSTANTIATE_TEST_SUITE_P(All, Passes, ::testing::ValuesIn(kPolicies),
                         [](const auto& instance) { return std::string(PrefetchPolicyName(instance.param)); });

TEST_P(Passes, GiveEveryMinibatchOnceAndInOrder) {
  for (const int64_t batch_size : {1, 3, 200}) {
    const Minibatches minibatches(task_.train.graphs, batch_size);
    const std::vector<int64_t> taken = Take(minibatches, minibatches.size(), 1000);
    ASSERT_EQ(std::ssize(taken), (200 + batch_size - 1) / batch_size);
    for (int64_t i = 0; i < std::ssize(taken); ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], i * batch_size);
  }
  EXPECT_TRUE(Take(Minibatches({}, 3), 0, 1000).empty());
}

TEST_P(Passes, ArePlannedOnAThreadWhereThatIsAskedForOrPays) {
  if (NeedsMoreCores()) GTEST_SKIP() << "one core";
  std::set<std::thread::id> threads;
  Take(SlowSource(&threads), 20, 20);
  threads.erase(std::this_thread::get_id());
  EXPECT_EQ(threads.size(), OwnThreads());
}

// There is nothing to plan ahead in them, but the next pass may be longer.
TEST_P(Passes, OfOneMinibatchAreMeasuredToo) {
  if (NeedsMoreCores()) GTEST_SKIP() << "one core";
  std::set<std::thread::id> threads;
  for (int pass = 0; pass < 3; ++pass) Take(SlowSource(&threads), 1, 1);
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_EQ(std::ssize(Take(SlowSource(&threads), 2, 2)), 2);
  EXPECT_EQ(threads.size(), 1 + OwnThreads());
}

TEST_P(Passes, MayEndAnywhereAndThenLeaveTheirDataAlone) {
  for (int64_t most = 0; most < 40; ++most) {
    // Gone when the pass is over: the address sanitizer sees who reads it later.
    const auto order = std::make_unique<std::vector<int32_t>>(200);
    std::iota(order->rbegin(), order->rend(), 0);
    const Minibatches minibatches(task_.train.graphs, 2, *order);
    const std::vector<int64_t> taken = Take(minibatches, minibatches.size(), most);
    ASSERT_EQ(std::ssize(taken), most);
    for (int64_t i = 0; i < most; ++i) EXPECT_EQ(taken[static_cast<size_t>(i)], 199 - 2 * i);
  }
}

TEST_P(Passes, ThrowAtTheMinibatchThatIsTheCause) {
  const Minibatches minibatches(task_.train.graphs, 5);
  const auto source = [&](int64_t minibatch, std::vector<Example>* examples) {
    if (minibatch % 7 == 4) throw std::invalid_argument(fmt::format("minibatch {}", minibatch));
    minibatches(minibatch, examples);
  };
  Optimizer optimizer = session_.MakeOptimizer();
  for (int round = 0; round < 3; ++round) {
    Prefetcher::Pass pass(&prefetcher_, minibatches.size(), source);
    for (int64_t i = 0; i < minibatches.size(); ++i) {
      SCOPED_TRACE(i);
      if (i % 7 == 4) {
        EXPECT_EQ(MessageOf([&] { pass.Next(); }), fmt::format("minibatch {}", i));
        continue;
      }
      const PlannedBatch* planned = pass.Next();
      ASSERT_NE(planned, nullptr);
      EXPECT_EQ(planned->examples().front().number, 5 * i);
      session_.Train(*planned, optimizer);
      if (round == 1 && i == 9) break;
    }
  }
}

TEST_P(Passes, LeaveTheSessionToOtherMinibatches) {
  const Minibatches minibatches(task_.train.graphs, 20);
  const std::vector<Example> others = Examples(task_.train, 100, 3);
  const auto losses = [&](bool between) {
    std::vector<double> result;
    Prefetcher::Pass pass(&prefetcher_, minibatches.size(), minibatches);
    while (const PlannedBatch* planned = pass.Next()) {
      if (between) session_.Accumulate(others);
      result.push_back(session_.Accumulate(*planned).loss);
      EXPECT_EQ(&session_.batch(), &planned->batch());
      if (between) {
        EXPECT_FALSE(session_.FindNonFinite().found);
      }
    }
    return result;
  };
  EXPECT_EQ(losses(true), losses(false));
}

// What planned minibatches are good for is checked, not assumed.
TEST_P(Passes, AreForTrainingOrNot) {
  const Minibatches minibatches(task_.train.graphs, 20);
  Prefetcher::Pass pass(&prefetcher_, minibatches.size(), minibatches);
  const PlannedBatch* planned = pass.Next();
  EXPECT_THROW(session_.Forward(*planned, HeadRows::kRoots, [] {}), std::logic_error);
  EXPECT_EQ(session_.Accumulate(*planned).loss, session_.Accumulate(Examples(task_.train, 0, 20)).loss);
}

TEST(ForwardOnlySessions, VisitNothingAndHaveNoGradients) {
  const Fixture task = ListOpsTask(10);
  Session session(std::as_const(task.model()));
  EXPECT_EQ(session.Forward(Examples(task.train, 0, 10), HeadRows::kRoots, {}).graphs, 10);
  Prefetcher prefetcher(session, /*training=*/false);
  Prefetcher::Pass pass(&prefetcher, 1, Minibatches(task.train.graphs, 10));
  EXPECT_EQ(session.Forward(*pass.Next(), HeadRows::kRoots, {}).graphs, 10);
  EXPECT_THROW(session.gradients(), std::logic_error);
  EXPECT_THROW(session.DropGradients(), std::logic_error);
}

TEST(PrefetchPolicyNames, AreParsed) {
  for (const PrefetchPolicy policy : kPolicies) EXPECT_EQ(ParsePrefetchPolicy(PrefetchPolicyName(policy)), policy);
  EXPECT_EQ(MessageOf([] { ParsePrefetchPolicy("yes"); }), "[prefetch] expected one of auto, on, off, got 'yes'");
}

}  // namespace
}  // namespace cavs
