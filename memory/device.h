// Device: where numbers live and who computes on them. It hands out memory and moves bytes; it keeps no books (pools
// do) and owns no memory itself.
//
// Address ranges are reserved first and get memory as they are committed, so that what lies in them never moves.
// All member functions may be called from any thread. The CPU device completes everything at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cavs {

enum class DeviceKind : uint8_t { kCpu, kCuda };

// "cpu" or "cuda".
std::string_view DeviceKindName(DeviceKind kind);

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // One line for logs, such as "cpu (2 threads)".
  virtual std::string name() const = 0;

  // `bytes` > 0 at a multiple of kAlignment, contents undefined. The caller gives them back with Free(data, bytes).
  // Throws std::bad_alloc when there is no such memory.
  virtual void* Allocate(int64_t bytes) = 0;
  virtual void Free(void* data, int64_t bytes) = 0;

  // Bytes of a page: Reserve, Commit and Release take multiples of it.
  virtual int64_t page_bytes() const = 0;
  // Reserves addresses without memory. Throws std::bad_alloc when the address space refuses.
  virtual void* Reserve(int64_t bytes) = 0;
  // Puts memory, zeroed, behind a part of a reservation that has none. Throws std::bad_alloc when there is none.
  virtual void Commit(void* data, int64_t bytes) = 0;
  // Gives a whole reservation back, together with its memory.
  virtual void Release(void* base, int64_t bytes) = 0;

  // Copies between memory of this device and memory of the host, in any combination; the two must not overlap.
  virtual void Copy(void* dst, const void* src, int64_t bytes) = 0;
  virtual void FillZero(void* dst, int64_t bytes) = 0;
  // Returns when everything issued before is done; whoever synchronizes later sees it.
  virtual void Synchronize() = 0;
};

// Throws std::invalid_argument when this build or this machine has no such device.
std::shared_ptr<Device> MakeDevice(DeviceKind kind);

}  // namespace cavs
