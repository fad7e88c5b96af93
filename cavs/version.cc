#include "cavs/version.h"

namespace cavs {

std::string_view Version() { return CAVS_VERSION; }

}  // namespace cavs
