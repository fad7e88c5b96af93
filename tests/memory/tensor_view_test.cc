#include "memory/tensor_view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "memory/alignment.h"
#include "memory/shape.h"

namespace cavs {
namespace {

TEST(DType, SizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kF32), 4);
  EXPECT_EQ(SizeOf(DType::kI32), 4);
  EXPECT_EQ(SizeOf(DType::kBF16), 2);
  EXPECT_EQ(DTypeName(DType::kF32), "f32");
  EXPECT_EQ(DTypeName(DType::kI32), "i32");
  EXPECT_EQ(DTypeName(DType::kBF16), "bf16");
}

TEST(Shape, PrintsAndCompares) {
  EXPECT_EQ(Shape::Vector(5).ToString(), "[5]");
  EXPECT_EQ(Shape::Matrix(3, 4).ToString(), "[3, 4]");
  EXPECT_EQ(Shape::Matrix(3, 4).width(), 12);
  EXPECT_EQ(Shape::Matrix(int64_t{1} << 20, int64_t{1} << 20).width(), int64_t{1} << 40);
  EXPECT_EQ(Shape::Vector(4), Shape::Vector(4));
  EXPECT_NE(Shape::Vector(4), Shape::Matrix(1, 4));
}

TEST(AlignUp, RoundsToTheNextMultiple) {
  EXPECT_EQ(AlignUp(0, 64), 0);
  EXPECT_EQ(AlignUp(1, 64), 64);
  EXPECT_EQ(AlignUp(64, 64), 64);
  EXPECT_EQ(AlignUp((int64_t{1} << 40) + 1, 64), (int64_t{1} << 40) + 64);
}

TEST(TensorView, RowsAndColumnsOfAMatrix) {
  std::vector<float> values(4 * 5);
  std::iota(values.begin(), values.end(), 0.0f);
  const TensorView whole = TensorView::Dense(values.data(), DType::kF32, 4, 5);
  EXPECT_TRUE(whole.dense());
  EXPECT_EQ(whole.elements(), 20);
  EXPECT_EQ(whole.Row<float>(2)[3], 13);
  const TensorView part = whole.Rows(1, 4).Columns(2, 4);
  EXPECT_FALSE(part.dense());
  EXPECT_EQ(part.rows, 3);
  EXPECT_EQ(part.width, 2);
  EXPECT_EQ(part.ld, 5);
  EXPECT_EQ(part.Row<const float>(0)[0], 7);
  EXPECT_EQ(part.Row<float>(2)[1], 18);
}

TEST(TensorView, RefusesWhatItDoesNotHold) {
  std::vector<float> values(6);
  const TensorView view = TensorView::Dense(values.data(), DType::kF32, 2, 3);
  EXPECT_THROW(view.Row<int32_t>(0), std::logic_error);
  EXPECT_THROW(view.Row<float>(3), std::logic_error);
  EXPECT_THROW(view.Rows(1, 3), std::logic_error);
  EXPECT_THROW(view.Columns(2, 1), std::logic_error);
}

}  // namespace
}  // namespace cavs
