// Prefetcher: passes over minibatches that are planned beside those that run.
//
// A thread of its own plans the next few minibatches while the caller computes. What comes out does not depend on that:
// minibatches come in order, the same bits as planned by the Session, and what planning one throws is thrown where that
// one is asked for. It plans as far ahead as a few thousand vertices reach, and at least one minibatch, so that small
// minibatches do not each pay for waking a thread; all memory is reused. PrefetchPolicy::kAuto has the thread work
// where the machine has at least two cores and planning takes a tenth of the time; else, or where the system has no
// thread to give, a minibatch is planned when asked for. A Prefetcher is used by one thread at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cavs/base/stop_watch.h"
#include "cavs/planner.h"
#include "cavs/session.h"

namespace cavs {

class Prefetcher {
 public:
  // Overwrites `examples` with those of a minibatch. May be called on the Prefetcher's thread.
  using Source = std::function<void(int64_t minibatch, std::vector<Example>* examples)>;

  // For runs of `session` that train, or not, by the batching policy that its Model keeps now. `session` must outlive
  // the Prefetcher, at whose end it forgets its last minibatch.
  Prefetcher(Session& session, bool training);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  // One pass: minibatches 0 to `minibatches` - 1. It may end early; behind its end nothing reads the source's data.
  class Pass {
   public:
    // One pass at a time; the Prefetcher must outlive it.
    Pass(Prefetcher* prefetcher, int64_t minibatches, Source source);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass();

    // The next minibatch, or null behind the last one. Ends the life of the one before it, and of what a Session knows
    // of that. Throws what planning or the source threw; the call after that goes on behind the minibatch.
    const PlannedBatch* Next();

   private:
    // Adds what the last minibatch took to what the Prefetcher knows of the last ones, once.
    void Count();

    Prefetcher* prefetcher_;
    int64_t minibatches_;
    int64_t next_ = 0;
    Source source_;
    StopWatch since_last_;            // call of Next
    std::optional<double> planning_;  // seconds, of the minibatch in use until it is counted
  };

 private:
  struct Slot {
    PlannedBatch planned;
    std::exception_ptr error;  // instead of a plan
    double seconds = 0;        // of the source and of planning
    int64_t vertices() const { return error == nullptr ? planned.batch().vertex_count() : 0; }
  };

  void Begin(const Source* source, int64_t minibatches);
  // Waits until the thread does nothing, and forgets what it did.
  void End();
  // Makes the next minibatch current_.
  void Take();
  // Has the thread work until it is far ahead, if it should and does not.
  void Fill();
  void Plan(const Source& source, int64_t minibatch, Slot* slot);
  std::unique_ptr<Slot> FreeSlot() noexcept;
  bool IsFarAhead() const;
  bool HasRoom() const;
  void Loop();

  // Whether minibatches should be planned ahead from now on.
  bool WantsThread() const;

  Session& session_;
  const bool training_;
  const bool has_cores_;           // two or more
  PrefetchPolicy policy_;          // kOff from when no thread could be made
  std::unique_ptr<Slot> current_;  // the minibatch in use, if any
  // Seconds of planning, and of all, over the last minibatches; older ones fade.
  double planning_ = 0, passing_ = 0;
  std::thread thread_;

  // Handed over with is_filling_ and is_busy_, as *source_ is: only who plans touches them.
  Planner planner_;
  std::vector<Example> examples_;  // of the minibatch that is being planned

  // Guarded by mutex_, all below. Each slot is in one of ahead_, free_, current_ or the hands of the thread; there are
  // as many as that can need, and both vectors have room for all, so that nothing can throw on the thread.
  std::mutex mutex_;
  std::condition_variable work_;   // the thread has something to do
  std::condition_variable ready_;  // the thread has done something
  const Source* source_ = nullptr;
  int64_t minibatches_ = 0, planned_ = 0;     // of the pass; how many of them are planned or being planned
  std::vector<std::unique_ptr<Slot>> ahead_;  // the next one first
  int64_t vertices_ahead_ = 0;
  std::vector<std::unique_ptr<Slot>> free_;
  bool is_filling_ = false;  // the thread plans on until it is far ahead
  bool is_busy_ = false;     // it does so now
  bool stops_ = false;
};

}  // namespace cavs
