// AddressRange: a reserved stretch of a device's addresses, the front of which has memory behind it.
//
// Invariants: base() never changes; [base(), base() + committed()) can be used; committed() never shrinks and is a
// multiple of the device's page. Owns the reservation. Belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/device.h"

namespace cavs {

class AddressRange {
 public:
  // Reserves `bytes`, or less where the address space refuses so much (limits, sanitizers): halves down to 1 MiB, then
  // throws std::bad_alloc.
  AddressRange(std::shared_ptr<Device> device, int64_t bytes);
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();

  // Makes the first `bytes` usable, never more than `limit` bytes, rounded up to a page. Throws std::bad_alloc, and
  // changes nothing, when bytes exceed the limit or the reservation, or the device has no more memory.
  void Commit(int64_t bytes, int64_t limit);
  // The same, but commits a quarter more than before at least if it commits at all, so that growth by small pieces
  // takes few calls.
  void Grow(int64_t bytes, int64_t limit);

  char* base() const { return base_; }
  int64_t reserved() const { return reserved_; }
  int64_t committed() const { return committed_; }

 private:
  std::shared_ptr<Device> device_;
  char* base_ = nullptr;
  int64_t reserved_ = 0;
  int64_t committed_ = 0;
};

}  // namespace cavs
