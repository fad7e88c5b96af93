// A TraceLog in the Chrome trace event format, which chrome://tracing, Perfetto and others draw. Pure function.
#pragma once

#include <string>
#include <string_view>

#include "cavs/base/trace_log.h"

namespace cavs {

// What a trace begins with.
inline constexpr std::string_view kTraceBegin = R"({"traceEvents":[)";

// {"traceEvents": [...]}: a complete event ("X") for each span, parents before children, on the track of one thread;
// microseconds from the first span on, to three places. `otherData` says how many spans were dropped.
std::string ToChromeTrace(const TraceLog& log);

}  // namespace cavs
