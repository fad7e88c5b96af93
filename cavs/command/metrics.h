// Numbers for machines: a file of JSON lines, each an object that begins with "event".
//
// Every line is in the file when Write returns. Numbers that are not finite become null. Without a path the writer
// takes everything and writes nothing. One thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cavs {

// Whether a writer may replace or continue what is at `path`: nothing, an empty file, a file that begins as metrics do,
// or no regular file.
bool MayHoldMetrics(const std::string& path);

class MetricsWriter {
 public:
  // Opens the file, so that a bad path is found before anything is computed: throws FileError. `append` keeps the lines
  // that are there (a run that resumes); otherwise the file starts empty.
  MetricsWriter(const std::string& path, bool append);
  ~MetricsWriter();

  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // Appends {"event": event, ...fields}. Throws FileError when the disk is full or fails.
  void Write(std::string_view event, const nlohmann::ordered_json& fields);

  bool enabled() const { return file_ >= 0; }

 private:
  void WriteAll(std::string_view text);
  void EndUnfinishedLine();

  std::string path_;
  int file_ = -1;
};

}  // namespace cavs
