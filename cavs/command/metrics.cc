#include "cavs/command/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cavs/file_output.h"

namespace cavs {
namespace {

// What every line begins with.
constexpr std::string_view kBegin = R"({"event":)";

[[noreturn]] void Fail(const std::string& path) {
  const std::string reason = std::generic_category().message(errno);
  throw FileError(path, fmt::format("expected a file for metrics that can be written, got: {}", reason));
}

}  // namespace

bool MayHoldMetrics(const std::string& path) {
  std::error_code ignored;
  // A run that was killed may have left less than a line.
  return !std::filesystem::is_regular_file(path, ignored) || BeginsWith(path, kBegin);
}

MetricsWriter::MetricsWriter(const std::string& path, bool append) : path_(path) {
  if (path_.empty()) return;
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
  // Pipes and terminals may allow writing only.
  if (file_ < 0 && errno == EACCES) file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) Fail(path_);
  if (append) EndUnfinishedLine();
}

MetricsWriter::~MetricsWriter() {
  if (file_ >= 0) close(file_);
}

void MetricsWriter::Write(std::string_view event, const nlohmann::ordered_json& fields) {
  if (!enabled()) return;
  nlohmann::ordered_json line = {{"event", event}};
  line.update(fields);
  // File names need not be UTF-8; a line of metrics must be.
  WriteAll(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

void MetricsWriter::WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail(path_);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// A run that was killed may have left half a line: ours must not continue it.
void MetricsWriter::EndUnfinishedLine() {
  struct stat status {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return;
  char last = '\n';
  if (pread(file_, &last, 1, status.st_size - 1) == 1 && last != '\n') WriteAll("\n");
}

}  // namespace cavs
