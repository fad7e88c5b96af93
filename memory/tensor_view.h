// TensorView: a matrix of rows in memory that somebody else owns.
//
// Row r starts `r * ld` elements after `data`; ld >= width, so that a view can be a few columns of a wider matrix.
// Memory from a Pool or a DynamicTensor starts at a multiple of kAlignment; a view of columns need not.
// A value type: it is valid as long as the memory, and as safe to share between threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cavs/base/error.h"
#include "memory/dtype.h"

namespace cavs {

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t ld = 0;

  // A view of dense rows, ld = width.
  static TensorView Dense(void* data, DType dtype, int64_t rows, int64_t width) {
    return {data, dtype, rows, width, width};
  }

  int64_t elements() const { return rows * width; }
  bool dense() const { return ld == width; }

  // The first element of a row in [0, rows]; throws std::logic_error outside, or when T is not the view's type.
  template <typename T>
  T* Row(int64_t row) const {
    CAVS_CHECK(kDTypeOf<std::remove_const_t<T>> == dtype, "a view of {} read as another type", DTypeName(dtype));
    CAVS_CHECK(0 <= row && row <= rows, "row {} of a view of {} rows", row, rows);
    return static_cast<T*>(data) + row * ld;
  }

  // The rows [begin, end), or the columns [begin, end) of all rows. Throws std::logic_error outside of the view.
  TensorView Rows(int64_t begin, int64_t end) const {
    CAVS_CHECK(0 <= begin && begin <= end && end <= rows, "rows [{}, {}) of a view of {} rows", begin, end, rows);
    return {Offset(begin * ld), dtype, end - begin, width, ld};
  }
  TensorView Columns(int64_t begin, int64_t end) const {
    CAVS_CHECK(0 <= begin && begin <= end && end <= width, "columns [{}, {}) of a view of {}", begin, end, width);
    return {Offset(begin), dtype, rows, end - begin, ld};
  }

 private:
  void* Offset(int64_t elements) const { return static_cast<char*>(data) + elements * SizeOf(dtype); }
};

}  // namespace cavs
