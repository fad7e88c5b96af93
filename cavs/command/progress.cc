#include "cavs/command/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cavs/command/output.h"
#include "cavs/text.h"

namespace cavs {
namespace {

// Seconds between two drawings.
constexpr double kTerminalPeriod = 0.1;
constexpr double kPlainPeriod = 10;

constexpr int kBarCells = 20;

std::string Bar(double share) {
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBarCells);
  std::string bar(full, '=');
  if (full < kBarCells) bar += '>';
  bar.resize(kBarCells, ' ');
  return "[" + bar + "]";
}

std::string Rate(double per_second) {
  return per_second < 10 ? fmt::format("{:.2f}", per_second) : fmt::format("{:.0f}", per_second);
}

// The longest beginning of `text` that fits and does not cut a UTF-8 character; each character counts its bytes.
std::string_view Cut(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0u) == 0x80u) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

ProgressOptions ProgressOnStderr(bool quiet) {
  ProgressOptions options;
  options.quiet = quiet;
  options.terminal = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (options.terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.columns = size.ws_col;
  options.write = WriteStderr;
  options.seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return options;
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {}

Progress::~Progress() { Wipe(); }

void Progress::Begin(std::string title, int64_t total, std::string unit) {
  Wipe();
  title_ = std::move(title);
  unit_ = std::move(unit);
  total_ = total;
  done_ = 0;
  begin_ = options_.seconds();
  next_ = begin_ + (options_.terminal ? kTerminalPeriod : kPlainPeriod);
}

void Progress::Update(int64_t done, std::string_view note) {
  if (options_.quiet) return;
  done_ = done;
  const double now = options_.seconds();
  if (now < next_) return;
  next_ = now + (options_.terminal ? kTerminalPeriod : kPlainPeriod);
  const std::string text = Describe(now - begin_, note);
  if (options_.terminal) {
    Draw(text);
  } else {
    options_.write(text + '\n');
  }
}

void Progress::End() { Wipe(); }

void Progress::Line(std::string_view text) {
  if (options_.quiet) return;
  const std::string bar = drawn_;
  Wipe();
  options_.write(fmt::format("{}\n", text));
  if (!bar.empty()) Draw(bar);
}

std::string Progress::Describe(double elapsed, std::string_view note) const {
  const double rate = elapsed > 0 ? static_cast<double>(done_) / elapsed : 0;
  std::string text = title_;
  if (total_ > 0) {
    const double share = static_cast<double>(done_) / static_cast<double>(total_);
    if (options_.terminal) text += ' ' + Bar(share);
    text += fmt::format(" {:3.0f}%  {}/{} {}", std::min(share, 1.0) * 100, done_, total_, unit_);
  } else {
    text += fmt::format("  {} {}", done_, unit_);
  }
  text += fmt::format("  {} {}/s", Rate(rate), unit_);
  if (total_ > 0 && rate > 0) {
    text += fmt::format("  {} left", FormatDuration(static_cast<double>(std::max<int64_t>(total_ - done_, 0)) / rate));
  }
  if (!note.empty()) text += fmt::format("  {}", note);
  return text;
}

void Progress::Draw(std::string_view text) {
  // A full last column would make some terminals begin a new line.
  const std::string_view shown = Cut(text, static_cast<size_t>(std::max(options_.columns - 1, 1)));
  const size_t stale = drawn_.size() > shown.size() ? drawn_.size() - shown.size() : 0;
  options_.write(fmt::format("\r{}{:{}}", shown, "", stale));
  drawn_ = shown;
}

void Progress::Wipe() {
  if (drawn_.empty()) return;
  options_.write(fmt::format("\r{:{}}\r", "", drawn_.size()));
  drawn_.clear();
}

}  // namespace cavs
