#include "cavs/prefetcher.h"

#include <system_error>
#include <utility>

#include "cavs/base/error.h"

namespace cavs {
namespace {

// Waking a thread took 20 us of who does it (on a virtual machine, where it is dearest), planning 37 vertices 6 us.
constexpr int64_t kMinibatchesAhead = 32;
constexpr int64_t kVerticesAhead = 8192;
// Those ahead, the last of which may be in planning, and the one in use.
constexpr size_t kSlots = kMinibatchesAhead + 1;

// Planned on one core and read on another, a minibatch costs whoever runs it cache misses. Measured on two cores, with
// one and with two computing threads: where planning takes 3 percent of a step or less, as in training, speed changes
// by -2 to +2 percent, within noise; at 7 to 9 percent, as in inference at H = 64, by +4 to +7 percent on an idle
// machine, and by -9 to +7 where other processes want the cores; at 23 percent by +8 to +22.
constexpr double kShareWorthAThread = 0.1;
constexpr double kFading = 0.9;

}  // namespace

Prefetcher::Prefetcher(Session& session, bool training)
    : session_(session),
      training_(training),
      has_cores_(std::thread::hardware_concurrency() > 1),
      policy_(session.options().prefetch),
      planner_(session.MakePlanner()) {
  ahead_.reserve(kSlots);
  free_.reserve(kSlots);
  while (free_.size() < kSlots) free_.push_back(std::make_unique<Slot>());
}

Prefetcher::~Prefetcher() {
  session_.Forget();
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  work_.notify_one();
  thread_.join();
}

bool Prefetcher::WantsThread() const {
  if (policy_ != PrefetchPolicy::kAuto) return policy_ == PrefetchPolicy::kOn;
  return passing_ > 0 && planning_ >= kShareWorthAThread * passing_ && has_cores_;
}

bool Prefetcher::IsFarAhead() const {
  return std::ssize(ahead_) >= kMinibatchesAhead || vertices_ahead_ >= kVerticesAhead || planned_ == minibatches_;
}

// Half of what it may hold, so that the thread is woken for several minibatches at a time.
bool Prefetcher::HasRoom() const {
  if (planned_ == minibatches_) return false;
  return ahead_.empty() || (2 * std::ssize(ahead_) <= kMinibatchesAhead && 2 * vertices_ahead_ <= kVerticesAhead);
}

std::unique_ptr<Prefetcher::Slot> Prefetcher::FreeSlot() noexcept {
  std::unique_ptr<Slot> slot = std::move(free_.back());
  free_.pop_back();
  return slot;
}

void Prefetcher::Plan(const Source& source, int64_t minibatch, Slot* slot) {
  const StopWatch watch;
  slot->error = nullptr;
  try {
    source(minibatch, &examples_);
    planner_.Plan(examples_, training_, &slot->planned);
  } catch (...) {
    slot->error = std::current_exception();
  }
  slot->seconds = watch.Seconds();
}

void Prefetcher::Begin(const Source* source, int64_t minibatches) {
  CAVS_CHECK(source_ == nullptr, "a second pass before the end of the first");
  const std::lock_guard lock(mutex_);
  source_ = source;
  minibatches_ = minibatches;
  planned_ = 0;
}

void Prefetcher::End() {
  std::unique_lock lock(mutex_);
  is_filling_ = false;
  ready_.wait(lock, [this] { return !is_busy_; });
  source_ = nullptr;
  for (std::unique_ptr<Slot>& slot : ahead_) free_.push_back(std::move(slot));
  ahead_.clear();
  vertices_ahead_ = 0;
}

void Prefetcher::Take() {
  std::unique_lock lock(mutex_);
  if (current_ != nullptr) free_.push_back(std::move(current_));
  if (ahead_.empty() && !is_filling_) {
    current_ = FreeSlot();
    Plan(*source_, planned_++, current_.get());
  } else {
    ready_.wait(lock, [this] { return !ahead_.empty(); });
    current_ = std::move(ahead_.front());
    ahead_.erase(ahead_.begin());
    vertices_ahead_ -= current_->vertices();
  }
  Fill();
}

void Prefetcher::Fill() {
  if (is_filling_ || !HasRoom() || !WantsThread()) return;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error&) {
      policy_ = PrefetchPolicy::kOff;
      return;
    }
  }
  is_filling_ = true;
  work_.notify_one();
}

void Prefetcher::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return is_filling_ || stops_; });
    if (stops_) return;
    std::unique_ptr<Slot> slot = FreeSlot();
    const int64_t minibatch = planned_++;
    is_busy_ = true;
    lock.unlock();
    Plan(*source_, minibatch, slot.get());
    lock.lock();
    is_busy_ = false;
    vertices_ahead_ += slot->vertices();
    ahead_.push_back(std::move(slot));
    if (IsFarAhead()) is_filling_ = false;
    ready_.notify_one();
  }
}

Prefetcher::Pass::Pass(Prefetcher* prefetcher, int64_t minibatches, Source source)
    : prefetcher_(prefetcher), minibatches_(minibatches), source_(std::move(source)) {
  CAVS_CHECK(minibatches >= 0, "a pass over {} minibatches", minibatches);
  prefetcher_->Begin(&source_, minibatches_);
}

Prefetcher::Pass::~Pass() {
  Count();
  prefetcher_->End();
}

void Prefetcher::Pass::Count() {
  const double passed = since_last_.Restart();
  if (!planning_) return;
  prefetcher_->passing_ = kFading * prefetcher_->passing_ + passed;
  prefetcher_->planning_ = kFading * prefetcher_->planning_ + *planning_;
  planning_.reset();
}

const PlannedBatch* Prefetcher::Pass::Next() {
  Count();
  if (next_ == minibatches_) return nullptr;
  Prefetcher& owner = *prefetcher_;
  ++next_;
  owner.Take();
  Slot& slot = *owner.current_;
  if (slot.error != nullptr) std::rethrow_exception(std::exchange(slot.error, nullptr));
  planning_ = slot.seconds;
  slot.planned.set_waited(since_last_.Seconds());
  return &slot.planned;
}

}  // namespace cavs
