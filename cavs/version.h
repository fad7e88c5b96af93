// The version of this library, "0.1.0". Safe to call from any thread.
#pragma once

#include <string_view>

namespace cavs {

std::string_view Version();

}  // namespace cavs
