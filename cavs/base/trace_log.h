// TraceLog: what one thread did and when, as nested spans of time, for a picture of a run.
//
// A log holds at most `capacity` spans, in memory that is reserved when it is made; what comes after is counted and
// dropped, so tracing a long run costs no more than a short one. Times are nanoseconds of the steady clock. A log
// belongs to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cavs {

// From the outermost to the innermost; spans of one level do not overlap.
enum class TraceLevel : uint8_t {
  kMinibatch,
  kPart,   // planning, forward, backward, the optimizer
  kPhase,  // hoisted, recurrent, deferred
  kTask,   // the vertices that F runs for at once
  kStep,   // one kernel
};

struct TraceSpan {
  std::string_view name;  // a literal, or what Intern returned
  TraceLevel level = TraceLevel::kMinibatch;
  int64_t begin = 0, end = 0;  // nanoseconds
  int64_t rows = 0;            // 0: not known
  double flops = 0;            // useful floating-point operations of products
  int64_t bytes = 0;           // of operands and results
};

class TraceLog {
 public:
  explicit TraceLog(int64_t capacity) : capacity_(capacity) { spans_.reserve(static_cast<size_t>(capacity)); }
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;

  static int64_t Now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }

  // A copy of `name` that lives as long as the log.
  std::string_view Intern(std::string name) { return names_.emplace_back(std::move(name)); }

  void Add(const TraceSpan& span) {
    if (full()) {
      ++dropped_;
    } else {
      spans_.push_back(span);
    }
  }

  // In the order in which they ended.
  const std::vector<TraceSpan>& spans() const { return spans_; }
  int64_t dropped() const { return dropped_; }
  bool full() const { return std::ssize(spans_) >= capacity_; }

 private:
  int64_t capacity_;
  int64_t dropped_ = 0;
  std::vector<TraceSpan> spans_;
  std::deque<std::string> names_;  // never moves its strings
};

// Adds the span from its construction to its end. Does nothing without a log.
class TraceScope {
 public:
  // `log` must outlive the scope, `name` the log. `rows`: 0 where they are not known, or only later.
  TraceScope(TraceLog* log, TraceLevel level, std::string_view name, int64_t rows = 0)
      : log_(log), span_{.name = name, .level = level, .begin = log != nullptr ? TraceLog::Now() : 0, .rows = rows} {}
  ~TraceScope() {
    if (log_ == nullptr) return;
    span_.end = TraceLog::Now();
    log_->Add(span_);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  void set_rows(int64_t rows) { span_.rows = rows; }

 private:
  TraceLog* log_;
  TraceSpan span_;
};

}  // namespace cavs
