// The host as a Device. Every call is complete when it returns; thread-safe.
#pragma once

#include <atomic>

#include "memory/device.h"

namespace cavs {

class CpuDevice final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string name() const override;

  void* Allocate(int64_t bytes) override;
  void Free(void* data, int64_t bytes) override;

  int64_t page_bytes() const override;
  void* Reserve(int64_t bytes) override;
  void Commit(void* data, int64_t bytes) override;
  void Release(void* base, int64_t bytes) override;

  void Copy(void* dst, const void* src, int64_t bytes) override;
  void FillZero(void* dst, int64_t bytes) override;
  void Synchronize() override;

 private:
  // Orders the threads that synchronize, as a device's queue would.
  std::atomic<int64_t> synchronized_{0};
};

}  // namespace cavs
