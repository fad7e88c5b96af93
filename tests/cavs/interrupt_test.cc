#include "cavs/command/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

namespace cavs {
namespace {

bool WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

TEST(Interrupt, TheFirstSignalIsARequest) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::atomic<int> calls{0};
    const Interrupt interrupt([&calls] { ++calls; });
    EXPECT_FALSE(interrupt.requested());
    kill(getpid(), signal);
    EXPECT_TRUE(WaitFor([&] { return calls == 1; }));
    EXPECT_TRUE(interrupt.requested());
  }
}

TEST(Interrupt, CountsWhereSignalsWereIgnored) {
  const auto old = signal(SIGINT, SIG_IGN);
  {
    const Interrupt interrupt([] {});
    kill(getpid(), SIGINT);
    EXPECT_TRUE(WaitFor([&] { return interrupt.requested(); }));
  }
  signal(SIGINT, old);
}

TEST(Interrupt, AHangupThatWasIgnoredStaysSo) {
  const auto old = signal(SIGHUP, SIG_IGN);
  {
    const Interrupt interrupt([] {});
    kill(getpid(), SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(interrupt.requested());
  }
  signal(SIGHUP, old);
}

TEST(InterruptDeathTest, TheSecondSignalEndsTheProcessAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto interrupted_twice = [] {
    const Interrupt interrupt([] {});
    kill(getpid(), SIGINT);
    WaitFor([&] { return interrupt.requested(); });
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(10));
    std::_Exit(7);
  };
  EXPECT_EXIT(interrupted_twice(), ::testing::ExitedWithCode(1), "");
}

TEST(InterruptDeathTest, SignalsHaveTheirOldMeaningAfterwards) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto interrupted_afterwards = [] {
    {
      const Interrupt interrupt([] {});
    }
    signal(SIGTERM, SIG_DFL);
    kill(getpid(), SIGTERM);
    std::_Exit(7);
  };
  EXPECT_EXIT(interrupted_afterwards(), ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace cavs
