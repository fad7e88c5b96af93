// The library prints nothing by itself: whoever wants its messages hands in a callback.
//
// An empty callback means silence. A callback may be called from any thread that runs library code, one call at a time
// per Session, and must not throw. The text has no trailing newline and is only valid during the call.
#pragma once

#include <functional>
#include <string_view>

namespace cavs {

enum class LogLevel { kInfo, kWarning, kError };

using LogCallback = std::function<void(LogLevel level, std::string_view text)>;

}  // namespace cavs
