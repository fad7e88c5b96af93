#include "memory/cpu_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "cavs/base/error.h"
#include "memory/alignment.h"

namespace cavs {

std::string CpuDevice::name() const { return fmt::format("cpu ({} threads)", std::thread::hardware_concurrency()); }

void* CpuDevice::Allocate(int64_t bytes) {
  void* data = std::aligned_alloc(static_cast<size_t>(kAlignment), static_cast<size_t>(AlignUp(bytes, kAlignment)));
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void CpuDevice::Free(void* data, int64_t /*bytes*/) { std::free(data); }

int64_t CpuDevice::page_bytes() const { return sysconf(_SC_PAGESIZE); }

void* CpuDevice::Reserve(int64_t bytes) {
  // MAP_NORESERVE: what is committed counts when it is touched, not before.
  void* base = mmap(nullptr, static_cast<size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  // Huge pages halve the time of the first touch; where there are none, refusing costs nothing.
  madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return base;
}

void CpuDevice::Commit(void* data, int64_t bytes) {
  if (mprotect(data, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

void CpuDevice::Release(void* base, int64_t bytes) { munmap(base, static_cast<size_t>(bytes)); }

void CpuDevice::Copy(void* dst, const void* src, int64_t bytes) {
  if (bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
}

void CpuDevice::FillZero(void* dst, int64_t bytes) {
  if (bytes > 0) std::memset(dst, 0, static_cast<size_t>(bytes));
}

void CpuDevice::Synchronize() { synchronized_.fetch_add(1, std::memory_order_seq_cst); }

}  // namespace cavs
