#include "cavs/command/output.h"

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

}  // namespace cavs
