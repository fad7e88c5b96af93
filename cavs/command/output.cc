#include "cavs/command/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>

#include "cavs/file_output.h"

namespace cavs {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

}  // namespace

Output::~Output() {
  try {
    Flush();
  } catch (const std::exception&) {
    // The run has ended; whoever needs every byte has called Flush.
    closed_ = true;
  }
}

void Output::Write(std::string_view text) {
  if (closed_) return;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) Flush();
}

void Output::Flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !closed_) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    closed_ = true;
    const int reason = errno;
    if (reason == EPIPE) break;
    buffer_.clear();
    throw FileError("stdout", fmt::format("expected an output that can be written, got: {}",
                                          std::generic_category().message(reason)));
  }
  buffer_.clear();
}

void WriteStderr(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void OccupyStandardStreams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is `stream`. For reading only, so that results written to it are not lost in silence.
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

}  // namespace cavs
