// What a pool or a DynamicTensor did with memory. All sizes in bytes. A value type.
#pragma once

#include <cstdint>

namespace cavs {

struct MemoryStatistics {
  int64_t live = 0;         // asked for by the tensors alive now
  int64_t peak = 0;         // the largest `live` since construction
  int64_t reserved = 0;     // held from the device now, free blocks and rounding included
  int64_t waste = 0;        // reserved - live when the peak was reached
  int64_t allocations = 0;  // tensors since construction
  int64_t needed = 0;       // most bytes that minibatches had still to read at one time (Pool::BookNeeded)

  // Books a change of `live`, and the peak with its waste. Set `reserved` first.
  void SetLive(int64_t bytes) {
    live = bytes;
    if (live < peak) return;
    peak = live;
    waste = reserved - live;
  }
};

}  // namespace cavs
