// The gradient of a lookup table: one summed row for each id that occurred. A plain value.
#pragma once

#include <cstdint>
#include <vector>

namespace cavs {

struct SparseRows {
  std::vector<int32_t> ids;  // ascending, distinct
  std::vector<float> rows;   // [ids.size(), width]
};

}  // namespace cavs
