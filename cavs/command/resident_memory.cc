#include "cavs/command/resident_memory.h"

#include <fstream>
#include <string>
#include <string_view>

namespace cavs {
namespace {

constexpr std::string_view kResetPeak = "5";  // proc(5), clear_refs

int64_t StatusBytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  std::string name, rest;
  for (int64_t kilobytes = 0; status >> name; std::getline(status, rest)) {
    if (name == field && status >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

}  // namespace

int64_t ResidentBytes() { return StatusBytes("VmRSS:"); }

int64_t PeakResidentBytes() { return StatusBytes("VmHWM:"); }

void ForgetPeakResidentBytes() { std::ofstream("/proc/self/clear_refs") << kResetPeak; }

}  // namespace cavs
