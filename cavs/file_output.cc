#include "cavs/file_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace cavs {
namespace {

std::string ErrorText(int error) { return std::generic_category().message(error); }

// A name that no other writer uses: writers of one path in several processes or threads keep out of each other's way.
std::string TemporaryName(const std::string& path, const void* writer) {
  return fmt::format("{}.{}-{:x}.partial", path, getpid(), reinterpret_cast<uintptr_t>(writer));
}

// Closes the descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return file_; }

 private:
  int file_;
};

// A rename is durable once the folder is. File systems that cannot sync folders have nothing to add.
void SyncFolder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const Descriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) fsync(file.get());
}

}  // namespace

FileError::FileError(std::string_view path, std::string_view message)
    : std::runtime_error(fmt::format("[{}] {}", path, message)) {}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(TemporaryName(path_, this)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored))
    throw FileError(path_, "expected the name of a file, got a folder");
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) Fail("expected a place where a file can be written");
}

AtomicFile::~AtomicFile() {
  Close();
  if (!committed_) unlink(temporary_.c_str());
}

void AtomicFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("expected room for the whole file");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::Commit() {
  if (fsync(file_) != 0) Fail("expected a disk that keeps the file");
  Close();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) Fail("expected to replace the old file");
  committed_ = true;
  SyncFolder(path_);
}

void AtomicFile::Close() noexcept {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

void AtomicFile::Fail(std::string_view expected) const {
  throw FileError(path_, fmt::format("{}, got: {}", expected, ErrorText(errno)));
}

void WriteFile(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(text)));
  file.Commit();
}

bool BeginsWith(const std::string& path, std::string_view begin) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  if (std::filesystem::file_size(path, ignored) == 0) return true;
  std::string first(begin.size(), ' ');
  std::ifstream file(path, std::ios::binary);
  file.read(first.data(), std::ssize(first));
  first.resize(static_cast<size_t>(file.gcount()));
  return !first.empty() && begin.starts_with(first);
}

void EnsureWritableFolder(const std::string& path) {
  constexpr std::string_view kExpected = "expected a folder where files can be written";
  if (path.empty()) throw FileError(path, fmt::format("{}, got an empty name", kExpected));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // create_directories reports no error for a file of that name with some libraries, and an unclear one with others.
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored)) {
    throw FileError(path, fmt::format("{}, got a file", kExpected));
  }
  if (error) throw FileError(path, fmt::format("{}, got: {}", kExpected, error.message()));

  const std::string probe = TemporaryName(path + "/writable", &error);
  const Descriptor file(open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  // One byte, because a full disk or quota still lets an empty file be made.
  const bool written = file.get() >= 0 && write(file.get(), "x", 1) == 1;
  const int reason = errno;
  if (file.get() >= 0) unlink(probe.c_str());
  if (!written) throw FileError(path, fmt::format("{}, got: {}", kExpected, ErrorText(reason)));
}

}  // namespace cavs
