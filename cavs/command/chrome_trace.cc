#include "cavs/command/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace cavs {
namespace {

// By level.
constexpr std::array<std::string_view, 5> kCategories = {"minibatch", "part", "phase", "task", "step"};

// Nanoseconds as microseconds, without loss.
std::string Microseconds(int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Arguments(const TraceSpan& span) {
  std::string text;
  const auto add = [&](std::string_view name, auto value) {
    if (value > 0) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, value);
  };
  add("rows", span.rows);
  add("flops", static_cast<int64_t>(span.flops));
  add("bytes", span.bytes);
  return text;
}

bool StartsBefore(const TraceSpan& a, const TraceSpan& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  if (a.level != b.level) return a.level < b.level;
  return a.end < b.end;
}

}  // namespace

std::string ToChromeTrace(const TraceLog& log) {
  std::vector<TraceSpan> spans = log.spans();
  std::stable_sort(spans.begin(), spans.end(), StartsBefore);
  const int64_t origin = spans.empty() ? 0 : spans.front().begin;
  std::string text = fmt::format("{}\n", kTraceBegin);
  text += R"({"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"cavs"}},)"
          "\n"
          R"({"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"session"}})";
  for (const TraceSpan& span : spans) {
    fmt::format_to(std::back_inserter(text),
                   ",\n{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":1,\"tid\":1,"
                   "\"args\":{{{}}}}}",
                   Quoted(span.name), kCategories[static_cast<size_t>(span.level)], Microseconds(span.begin - origin),
                   Microseconds(span.end - span.begin), Arguments(span));
  }
  fmt::format_to(std::back_inserter(text), "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_spans\":{}}}}}\n",
                 log.dropped());
  return text;
}

}  // namespace cavs
