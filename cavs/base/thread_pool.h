// A fixed set of threads that runs numbered jobs, and a parallel loop on top of it.
//
// The caller works too, as worker 0, and Run returns when every job is done. Workers that find nothing to do spin for
// about 50 us, then sleep; Run never waits for a worker that has not woken up in time to take a job. A pool belongs to
// one thread at a time: Run must not be called from two threads at once or from inside a job.
// A pool of size 1 starts no thread, runs everything inline and has no state: it may be shared by threads and nested.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cavs {

class ThreadPool {
 public:
  using Job = std::function<void(int64_t job, int worker)>;

  // Starts threads - 1 threads. Throws std::invalid_argument unless threads >= 1, and std::runtime_error when the
  // system gives fewer.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // The number of workers, the caller included.
  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls run(job, worker) for every job in [0, jobs), worker in [0, size()); jobs start in order, each once. If jobs
  // throw, those that have not started are dropped and the exception of the lowest job that threw is rethrown.
  void Run(int64_t jobs, const Job& run);

 private:
  // Ends all threads.
  void Stop();
  void WorkerLoop(int worker);
  void Drain(int worker);
  void Open();
  void CloseAndWait();

  // One word tells workers all they need: the run's number (high bits), whether it takes workers (kOpen), and how many
  // are inside. A worker enters with a compare-and-swap, so it can neither miss a close nor join a later run by
  // mistake.
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr uint64_t kInside = kOpen - 1;
  static constexpr uint64_t kNextRun = uint64_t{1} << 32;

  std::atomic<uint64_t> state_{0};
  std::atomic<int64_t> next_job_{0};
  std::atomic<bool> stop_{false};

  // Written by the caller while no worker is inside.
  const Job* run_ = nullptr;
  int64_t jobs_ = 0;
  bool running_ = false;

  std::atomic<int> sleeping_{0};  // workers that must be woken; changed under the mutex
  std::mutex mutex_;              // guards the sleeping of both sides and the two members below
  std::condition_variable wake_;
  std::condition_variable done_;
  std::exception_ptr error_;
  int64_t error_job_ = 0;

  std::vector<std::thread> threads_;
};

// Calls body(begin, end, worker) over [0, count) cut into chunks of `grain` (the last one may be shorter). The cuts
// never depend on the number of threads, so a reduction per chunk gives equal bits at any pool size.
void ParallelFor(ThreadPool& pool, int64_t count, int64_t grain,
                 const std::function<void(int64_t begin, int64_t end, int worker)>& body);

}  // namespace cavs
