// The memory that the system holds for this process, from /proc; 0 where there is no such file.
#pragma once

#include <cstdint>

namespace cavs {

// Bytes now, and at their highest since the process began or ForgetPeakResidentBytes was called.
int64_t ResidentBytes();
int64_t PeakResidentBytes();

// Lowers the peak to what is resident now, where the system can.
void ForgetPeakResidentBytes();

}  // namespace cavs
