#include "memory/address_range.h"

#include <algorithm>
#include <new>
#include <utility>

#include "cavs/base/error.h"
#include "memory/alignment.h"

namespace cavs {
namespace {

constexpr int64_t kSmallestReservation = int64_t{1} << 20;
constexpr int64_t kSmallestGrowth = int64_t{1} << 16;

}  // namespace

AddressRange::AddressRange(std::shared_ptr<Device> device, int64_t bytes) : device_(std::move(device)) {
  CAVS_CHECK(bytes > 0, "a range of {} bytes", bytes);
  const int64_t page = device_->page_bytes();
  for (int64_t size = AlignUp(bytes, page); base_ == nullptr; size = AlignUp(size / 2, page)) {
    try {
      base_ = static_cast<char*>(device_->Reserve(size));
      reserved_ = size;
    } catch (const std::bad_alloc&) {
      if (size <= kSmallestReservation) throw;
    }
  }
}

AddressRange::~AddressRange() { device_->Release(base_, reserved_); }

void AddressRange::Commit(int64_t bytes, int64_t limit) {
  if (bytes > limit || bytes > reserved_) throw std::bad_alloc();
  if (bytes <= committed_) return;
  const int64_t target = AlignUp(bytes, device_->page_bytes());
  device_->Commit(base_ + committed_, target - committed_);
  committed_ = target;
}

void AddressRange::Grow(int64_t bytes, int64_t limit) {
  if (bytes > limit || bytes > reserved_) throw std::bad_alloc();
  if (bytes <= committed_) return;
  const int64_t wanted = committed_ + std::max(committed_ / 4, kSmallestGrowth);
  Commit(std::min({std::max(bytes, wanted), limit, reserved_}), limit);
}

}  // namespace cavs
