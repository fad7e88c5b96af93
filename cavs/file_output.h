// Output to files that never harms what was there before.
//
// AtomicFile collects a new file under a temporary name in the folder of the old one; Commit syncs it and renames it
// into place, so a reader, a crash or a full disk sees the old file or the whole new one. An AtomicFile belongs to one
// thread; EnsureWritableFolder is safe to call from any.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cavs {

// A file or folder that cannot be used as it should. what() is one sentence, "[path] expected ..., got ...".
class FileError : public std::runtime_error {
 public:
  FileError(std::string_view path, std::string_view message);
};

class AtomicFile {
 public:
  // Opens the temporary file; throws FileError when the folder is missing or not writable, or `path` is a folder.
  explicit AtomicFile(std::string path);

  // Without Commit, removes the temporary file and leaves the old file as it was.
  ~AtomicFile();

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends bytes; throws FileError when the disk is full or fails.
  void Write(std::span<const std::byte> bytes);

  // Makes the file durable and puts it in place of the old one; the last call. Throws FileError.
  void Commit();

 private:
  void Close() noexcept;
  [[noreturn]] void Fail(std::string_view expected) const;

  std::string path_;
  std::string temporary_;
  int file_ = -1;
  bool committed_ = false;
};

// Writes the whole file through an AtomicFile. Throws FileError.
void WriteFile(const std::string& path, std::string_view text);

// Whether the regular file at `path` may give way to one that begins with `begin`: it is empty, or begins so as far as
// it goes. False for a file that cannot be read, and where there is none.
bool BeginsWith(const std::string& path, std::string_view begin);

// Creates the folder (and its parents) if there is none, and proves by a file that it removes again that files can be
// written there. Throws FileError otherwise.
void EnsureWritableFolder(const std::string& path);

}  // namespace cavs
