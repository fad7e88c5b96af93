// Measures elapsed wall time on the monotonic clock. Belongs to one thread at a time.
#pragma once

#include <chrono>
#include <utility>

namespace cavs {

class StopWatch {
 public:
  // Seconds since construction or the last Restart.
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // Returns Seconds() and starts again at zero.
  double Restart() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(start_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace cavs
