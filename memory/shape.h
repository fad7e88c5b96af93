// Shape of one row of a value, or of a parameter: a vector [n] or a matrix [rows, columns].
// A tensor of the system is `rows x Shape`: the number of rows comes from the graphs, the Shape from F, once.
// Invariants: rank 1 or 2, every dimension >= 0. Immutable value type, safe to share between threads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "cavs/base/error.h"

namespace cavs {

class Shape {
 public:
  Shape() = default;
  // Shape{n} is a vector, Shape{rows, columns} a matrix. Throws std::invalid_argument for any other number.
  Shape(std::initializer_list<int64_t> dimensions) {  // NOLINT(google-explicit-constructor)
    if (dimensions.size() != 1 && dimensions.size() != 2) {
      ThrowInvalid("shape", fmt::format("expected one or two dimensions, got {}", dimensions.size()));
    }
    rank_ = static_cast<int>(dimensions.size());
    rows_ = rank_ == 2 ? *dimensions.begin() : 1;
    columns_ = *(dimensions.end() - 1);
  }
  static Shape Vector(int64_t width) { return Shape(1, 1, width); }
  static Shape Matrix(int64_t rows, int64_t columns) { return Shape(2, rows, columns); }

  int rank() const { return rank_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // Number of elements, which is the width of one row of the tensor.
  int64_t width() const { return rows_ * columns_; }

  // "[5]" or "[3, 4]".
  std::string ToString() const {
    return rank_ == 1 ? fmt::format("[{}]", columns_) : fmt::format("[{}, {}]", rows_, columns_);
  }
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  Shape(int rank, int64_t rows, int64_t columns) : rank_(rank), rows_(rows), columns_(columns) {}

  int rank_ = 1;
  int64_t rows_ = 1;
  int64_t columns_ = 0;
};

}  // namespace cavs
