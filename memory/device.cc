#include "memory/device.h"

#include "cavs/base/error.h"
#include "memory/cpu_device.h"

namespace cavs {

std::string_view DeviceKindName(DeviceKind kind) { return kind == DeviceKind::kCpu ? "cpu" : "cuda"; }

std::shared_ptr<Device> MakeDevice(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return std::make_shared<CpuDevice>();
  ThrowInvalid("device", "expected cpu, got cuda: this build has no CUDA back end");
}

}  // namespace cavs
