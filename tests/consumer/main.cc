// Uses the installed library as a stranger would; exits 0 if it works.
#include <memory/dynamic_tensor.h>
#include <memory/pool.h>
#include <cstdio>

int main() {
  const auto device = cavs::MakeDevice(cavs::DeviceKind::kCpu);
  cavs::DynamicTensor tensor(device, cavs::DType::kF32, 8, "h");
  tensor.Resize(100);
  tensor.view().Row<float>(99)[7] = 1.0f;
  const auto pool = cavs::MakePool(cavs::PoolPolicy::kArena, device);
  pool->Allocate(1000, "t");
  std::printf("consumer: %lld bytes live\n",
              static_cast<long long>(tensor.statistics().live + pool->statistics().live));
  return pool->statistics().live == 1000 ? 0 : 1;
}
