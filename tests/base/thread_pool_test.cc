#include "cavs/base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cavs {
namespace {

using ::testing::Each;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

class ThreadPoolTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, ::testing::Values(1, 2, 3, 8), ::testing::PrintToStringParamName());

TEST_P(ThreadPoolTest, RunsEveryJobOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (const int64_t jobs : {0, 1, 2, 7, 1000}) {
    std::vector<int> runs(static_cast<size_t>(jobs));
    pool.Run(jobs, [&](int64_t job, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, pool.size());
      ++runs[static_cast<size_t>(job)];
    });
    EXPECT_THAT(runs, Each(1)) << jobs << " jobs";
  }
}

// Plain writes on both sides: ThreadSanitizer proves that Run orders them.
TEST_P(ThreadPoolTest, PublishesResultsBetweenManyShortRuns) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(16, 0);
  for (int run = 0; run < 2000; ++run) {
    pool.Run(std::ssize(values), [&](int64_t job, int /*worker*/) { ++values[static_cast<size_t>(job)]; });
    if (run % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // let the workers fall asleep
  }
  EXPECT_THAT(values, Each(2000));
}

TEST_P(ThreadPoolTest, NoTwoJobsShareAWorker) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> by_worker(static_cast<size_t>(pool.size()));
  pool.Run(10000, [&](int64_t job, int worker) { by_worker[static_cast<size_t>(worker)] += job; });
  EXPECT_EQ(std::accumulate(by_worker.begin(), by_worker.end(), int64_t{0}), 9999 * 10000 / 2);
}

TEST_P(ThreadPoolTest, RethrowsTheLowestJobThatThrew) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    EXPECT_THAT(
        [&] {
          pool.Run(100, [](int64_t job, int /*worker*/) {
            if (job >= 5 && job % 5 == 0) throw std::runtime_error("job " + std::to_string(job));
          });
        },
        ThrowsMessage<std::runtime_error>(StrEq("job 5")));
  }
  int64_t sum = 0;
  pool.Run(1, [&](int64_t /*job*/, int /*worker*/) { ++sum; });
  std::atomic<int64_t> total{0};
  pool.Run(10, [&](int64_t job, int /*worker*/) { total += job; });
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(total, 45);
}

TEST_P(ThreadPoolTest, ParallelForCoversTheRangeInFixedChunks) {
  ThreadPool pool(GetParam());
  for (const int64_t count : {0, 1, 9, 10, 11, 1003}) {
    std::vector<int> covered(static_cast<size_t>(count));
    ParallelFor(pool, count, 10, [&](int64_t begin, int64_t end, int /*worker*/) {
      EXPECT_EQ(begin % 10, 0);
      EXPECT_EQ(end, std::min(begin + 10, count));
      for (int64_t i = begin; i < end; ++i) ++covered[static_cast<size_t>(i)];
    });
    EXPECT_THAT(covered, Each(1)) << count;
  }
  EXPECT_THROW(ParallelFor(pool, 10, 0, [](int64_t, int64_t, int) {}), std::logic_error);
}

// Two jobs that wait for each other can only finish on two threads, whether the other was spinning or asleep.
TEST(ThreadPool, UsesItsThreads) {
  ThreadPool pool(2);
  for (const int rest_ms : {0, 5}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
    std::atomic<int> arrived{0};
    pool.Run(2, [&](int64_t /*job*/, int /*worker*/) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

// Runs that come about when workers fall asleep, 50 us after the last one. All jobs of a run wait for each other, so
// that a worker which sleeps through the call shows.
TEST(ThreadPool, NoWorkerSleepsThroughACall) {
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    for (int run = 0; std::chrono::steady_clock::now() < end; ++run) {
      std::this_thread::sleep_for(std::chrono::microseconds(run * 7 % 90));
      std::atomic<int> arrived{0};
      std::atomic<bool> all{true};
      pool.Run(threads, [&](int64_t /*job*/, int /*worker*/) {
        ++arrived;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (arrived < threads && all) {
          if (std::chrono::steady_clock::now() > limit) all = false;
          std::this_thread::yield();
        }
      });
      ASSERT_TRUE(all) << arrived << " of " << threads << " came to run " << run;
    }
  }
}

TEST(ThreadPool, OfOneThreadServesManyAtOnceAndNested) {
  ThreadPool inline_pool(1), pool(3);
  std::vector<int64_t> sums(6);
  pool.Run(std::ssize(sums), [&](int64_t job, int /*worker*/) {
    inline_pool.Run(100, [&](int64_t i, int worker) {
      ASSERT_EQ(worker, 0);
      inline_pool.Run(2, [&](int64_t /*half*/, int /*worker*/) { sums[static_cast<size_t>(job)] += i; });
    });
  });
  EXPECT_THAT(sums, Each(2 * 4950));
}

TEST(ThreadPool, RefusesNestedRuns) {
  ThreadPool pool(2);
  const auto nested = [&] { pool.Run(2, [&](int64_t, int) { pool.Run(2, [](int64_t, int) {}); }); };
  EXPECT_THROW(nested(), std::logic_error);
}

TEST(ThreadPool, RefusesNoThreads) {
  EXPECT_THAT([] { ThreadPool pool(0); },
              ThrowsMessage<std::invalid_argument>(StrEq("[thread pool] expected at least 1 thread, got 0")));
}

}  // namespace
}  // namespace cavs
