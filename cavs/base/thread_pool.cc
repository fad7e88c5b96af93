#include "cavs/base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {
namespace {

constexpr std::chrono::microseconds kSpinTime{50};
constexpr int kSpinsPerClockRead = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until `ready` holds or kSpinTime has passed; returns whether it holds.
template <typename Ready>
bool SpinUntil(const Ready& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (ready()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) ThrowInvalid("thread pool", fmt::format("expected at least 1 thread, got {}", threads));
  threads_.reserve(static_cast<size_t>(threads - 1));
  try {
    for (int worker = 1; worker < threads; ++worker) {
      threads_.emplace_back([this, worker] { WorkerLoop(worker); });
    }
  } catch (const std::system_error& error) {
    const size_t started = threads_.size() + 1;
    Stop();
    throw std::runtime_error(
        fmt::format("[thread pool] expected {} threads, got {}: {}", threads, started, error.code().message()));
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true, std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Run(int64_t jobs, const Job& run) {
  if (threads_.empty() || jobs <= 1) {
    for (int64_t job = 0; job < jobs; ++job) run(job, 0);
    return;
  }
  CAVS_CHECK(!running_, "a job called Run on the pool that runs it");
  running_ = true;
  run_ = &run;
  jobs_ = jobs;
  next_job_.store(0, std::memory_order_relaxed);
  Open();
  Drain(0);
  CloseAndWait();
  running_ = false;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// A worker that goes to sleep first counts itself and then looks at the state once more, and here it is the other way
// round; both in one total order, so that either the worker sees the run or the run sees the sleeper.
void ThreadPool::Open() {
  const uint64_t idle = state_.load(std::memory_order_relaxed);
  state_.store((idle + kNextRun) | kOpen, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
  { const std::lock_guard lock(mutex_); }
  wake_.notify_all();
}

void ThreadPool::CloseAndWait() {
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto idle = [this] { return (state_.load(std::memory_order_acquire) & kInside) == 0; };
  if (SpinUntil(idle)) return;
  std::unique_lock lock(mutex_);
  done_.wait(lock, idle);
}

void ThreadPool::Drain(int worker) {
  while (true) {
    const int64_t job = next_job_.fetch_add(1, std::memory_order_relaxed);
    if (job >= jobs_) return;
    try {
      (*run_)(job, worker);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      // All jobs below this one have started, so the lowest job that throws is the same in every run.
      if (!error_ || job < error_job_) {
        error_ = std::current_exception();
        error_job_ = job;
      }
      next_job_.store(jobs_, std::memory_order_relaxed);
    }
  }
}

void ThreadPool::WorkerLoop(int worker) {
  uint64_t last_run = 0;
  const auto called = [&] {
    const uint64_t state = state_.load(std::memory_order_seq_cst);
    return stop_.load(std::memory_order_acquire) || ((state & kOpen) != 0 && state / kNextRun != last_run);
  };
  while (true) {
    if (!SpinUntil(called)) {
      std::unique_lock lock(mutex_);
      sleeping_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, called);
      sleeping_.fetch_sub(1, std::memory_order_seq_cst);
    }
    if (stop_.load(std::memory_order_acquire)) return;
    uint64_t state = state_.load(std::memory_order_acquire);
    if ((state & kOpen) == 0 || state / kNextRun == last_run) continue;
    if (!state_.compare_exchange_strong(state, state + 1, std::memory_order_acq_rel)) continue;
    last_run = state / kNextRun;
    Drain(worker);
    if ((state_.fetch_sub(1, std::memory_order_acq_rel) & (kOpen | kInside)) == 1) {
      const std::lock_guard lock(mutex_);  // the caller is either still spinning or already waiting
      done_.notify_one();
    }
  }
}

void ParallelFor(ThreadPool& pool, int64_t count, int64_t grain,
                 const std::function<void(int64_t begin, int64_t end, int worker)>& body) {
  CAVS_CHECK(grain > 0, "a grain of {}", grain);
  pool.Run((count + grain - 1) / grain, [&](int64_t chunk, int worker) {
    const int64_t begin = chunk * grain;
    body(begin, std::min(begin + grain, count), worker);
  });
}

}  // namespace cavs
