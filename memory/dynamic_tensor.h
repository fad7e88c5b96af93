// DynamicTensor: rows x width of one type, whose rows never move however many are added.
//
// It owns a reserved address range and commits memory as rows come, so growing copies nothing and pointers to rows stay
// good until the tensor's end. Rows are dense: row r starts r * width elements after the base, which is aligned to a
// page. Belongs to one thread at a time; rows may be read and written by many while nobody resizes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "memory/address_range.h"
#include "memory/statistics.h"
#include "memory/tensor_view.h"

namespace cavs {

class DynamicTensor {
 public:
  // Addresses that a tensor reserves unless told otherwise, in bytes: room for 2000 tensors in a process.
  static constexpr int64_t kDefaultReservation = int64_t{1} << 36;

  // No rows yet. `name` is for error texts. Throws std::invalid_argument unless width > 0.
  DynamicTensor(std::shared_ptr<Device> device, DType dtype, int64_t width, std::string name,
                int64_t reservation_bytes = kDefaultReservation);

  // Sets the number of rows. Rows that are kept keep their place and contents, a new row's contents are undefined;
  // memory is kept when rows go. Throws OutOfMemory (memory/pool.h), and changes nothing, when rows do not fit the
  // reservation or the device.
  void Resize(int64_t rows);
  // Ends a minibatch: no rows, memory kept.
  void Rewind() { Resize(0); }

  // All rows: [rows, width].
  TensorView view() const { return TensorView::Dense(range_.base(), dtype_, rows_, width_); }

  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  DType dtype() const { return dtype_; }
  const std::string& name() const { return name_; }
  // `allocations` counts the times that memory was committed.
  const MemoryStatistics& statistics() const { return statistics_; }

 private:
  AddressRange range_;
  DType dtype_;
  int64_t width_;
  int64_t rows_ = 0;
  std::string name_;
  MemoryStatistics statistics_;
};

}  // namespace cavs
