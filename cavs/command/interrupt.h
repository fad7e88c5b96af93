// Ctrl-C, termination and a terminal that closes: the first SIGINT, SIGTERM or SIGHUP asks the run to save and end
// (exit code 1), the second ends the process at once with exit code 1. Files are replaced by renaming only, so neither
// harms what was saved before; the second may leave a file that ends in ".partial".
//
// The signals are blocked in every thread and taken by a thread of this object, so nothing runs in a signal handler and
// no global is needed. Create the object in main before any other thread, at most one at a time; requested() is safe
// from any thread.
#pragma once

#include <csignal>

#include <atomic>
#include <functional>
#include <thread>

namespace cavs {

class Interrupt {
 public:
  // `on_first` is called once, on this object's thread, when the first signal comes. SIGINT and SIGTERM count also
  // where the parent had them ignored, as shells do for background jobs; SIGHUP does not, as that is what nohup does.
  // Throws std::system_error when the system has no room.
  explicit Interrupt(std::function<void()> on_first);

  // Ends the thread and gives the signals back their old meaning.
  ~Interrupt();

  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Whether a signal has come.
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  void Wait();

  std::function<void()> on_first_;
  std::atomic<bool> requested_{false};
  sigset_t old_mask_{};
  int signals_ = -1;
  int stop_ = -1;
  std::thread thread_;
};

}  // namespace cavs
