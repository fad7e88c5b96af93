#include "memory/dynamic_tensor.h"

#include <limits>
#include <new>
#include <utility>

#include "cavs/base/error.h"
#include "memory/pool.h"

namespace cavs {

DynamicTensor::DynamicTensor(std::shared_ptr<Device> device, DType dtype, int64_t width, std::string name,
                             int64_t reservation_bytes)
    : range_(std::move(device), reservation_bytes), dtype_(dtype), width_(width), name_(std::move(name)) {
  if (width < 1) ThrowInvalid("tensor " + name_, fmt::format("expected a width >= 1, got {}", width));
}

void DynamicTensor::Resize(int64_t rows) {
  CAVS_CHECK(rows >= 0, "{} rows for {}", rows, name_);
  const int64_t row_bytes = width_ * SizeOf(dtype_);
  const int64_t committed = range_.committed();
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t bytes = rows > kNoLimit / row_bytes ? kNoLimit : rows * row_bytes;
  try {
    range_.Grow(bytes, kNoLimit);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory({.pool = name_,
                       .tensor = fmt::format("{} rows", rows),
                       .bytes_asked = bytes,
                       .bytes_in_use = statistics_.live,
                       .cap_bytes = range_.reserved()});
  }
  rows_ = rows;
  statistics_.reserved = range_.committed();
  statistics_.allocations += range_.committed() > committed ? 1 : 0;
  statistics_.SetLive(bytes);
}

}  // namespace cavs
