#include "cavs/command/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace cavs {
namespace {

constexpr int kExitCode = 1;

// A run that was started to outlive its terminal goes on without it.
bool IgnoresHangup() {
  struct sigaction action {};
  return sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t OurSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (!IgnoresHangup()) sigaddset(&signals, SIGHUP);
  return signals;
}

}  // namespace

Interrupt::Interrupt(std::function<void()> on_first) : on_first_(std::move(on_first)) {
  const sigset_t signals = OurSignals();
  signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || stop_ < 0) throw std::system_error(errno, std::generic_category(), "Interrupt");
  pthread_sigmask(SIG_BLOCK, &signals, &old_mask_);
  thread_ = std::thread([this] { Wait(); });
}

Interrupt::~Interrupt() {
  eventfd_write(stop_, 1);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
  close(signals_);
  close(stop_);
}

void Interrupt::Wait() {
  std::array<pollfd, 2> events = {{{signals_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (true) {
    if (poll(events.data(), events.size(), -1) < 0) continue;
    if (events[1].revents != 0) return;
    signalfd_siginfo signal{};
    if (read(signals_, &signal, sizeof(signal)) != static_cast<ssize_t>(sizeof(signal))) continue;
    // No destructors and no exit handlers: the other threads are in the middle of their work.
    if (requested_.exchange(true)) _exit(kExitCode);
    on_first_();
  }
}

}  // namespace cavs
