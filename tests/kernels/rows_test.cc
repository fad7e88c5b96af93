#include "vertex/kernels/rows.h"

#include <functional>
#include <map>

#include "tests/kernels/kernel_test_util.h"

namespace cavs::cpu {
namespace {

// Runs `body` at every size and addressing mode, for widths up to `max_width`.
void ForSizes(const std::function<void(Addressing, int64_t rows, int64_t width)>& body, int64_t max_width = 700) {
  for (const Addressing mode : {Addressing::kDense, Addressing::kStrided, Addressing::kIndexed}) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t width : kWidths) {
        if (width > max_width) continue;
        SCOPED_TRACE(testing::Message() << Name(mode) << " [" << rows << ", " << width << "]");
        body(mode, rows, width);
      }
    }
  }
}

using Want = std::function<double(int64_t row, int64_t column)>;

// dst holds `want` within `tolerance`, and nothing around it was touched.
void ExpectRows(const Rows2d& dst, const std::vector<float>& before, Operand operand, int64_t rows, int64_t width,
                double tolerance, const Want& want) {
  double worst = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < width && !dst.left_out(row); ++column) {
      worst = std::max(worst, std::abs(dst.At(row, column) - want(row, column)));
    }
  }
  EXPECT_LE(worst, tolerance);
  EXPECT_EQ(WrittenOutside(dst, before, operand, rows, width), 0);
}

class RowsTest : public testing::Test {
 protected:
  ThreadPool pool_{1};
};

TEST_F(RowsTest, CopyRows) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    Rows2d src(mode, rows, width, 1), dst(mode, rows, width, 2, true);
    const auto before = dst.values();
    CopyRows(dst.operand(), src.operand(), rows, width, pool_);
    ExpectRows(dst, before, dst.operand(), rows, width, 0, [&](auto r, auto c) { return src.At(r, c); });
  });
}

// Segments of 0 to 4 edges; the first edges of the buffer belong to nobody.
std::vector<int64_t> Segments(int64_t rows) {
  std::vector<int64_t> begin = {2};
  for (int64_t row = 0; row < rows; ++row) begin.push_back(begin.back() + (row * 7 + 1) % 5);
  return begin;
}

TEST_F(RowsTest, SegmentSumAndMax) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    const std::vector<int64_t> begin = Segments(rows);
    Rows2d src(mode, begin.back(), width, 1), sum(mode, rows, width, 2, true), max(mode, rows, width, 3, true);
    const auto sum_before = sum.values(), max_before = max.values();
    SegmentSum(sum.operand(), src.operand(), begin.data(), rows, width, pool_);
    SegmentMax(max.operand(), src.operand(), begin.data(), rows, width, pool_);
    const auto fold = [&](int64_t r, int64_t c, auto combine) {
      double value = 0;
      for (int64_t e = begin[r]; e < begin[r + 1]; ++e)
        value = e == begin[r] ? src.At(e, c) : combine(value, src.At(e, c));
      return value;
    };
    ExpectRows(sum, sum_before, sum.operand(), rows, width, 2e-6,
               [&](auto r, auto c) { return fold(r, c, std::plus<double>()); });
    ExpectRows(max, max_before, max.operand(), rows, width, 0,
               [&](auto r, auto c) { return fold(r, c, [](double a, double b) { return std::max(a, b); }); });
  });
}

// References of 0 to 130 rows; the first ones belong to nobody. Operands are dense, strided, one row for all, and
// indexed.
TEST_F(RowsTest, SumReferences) {
  constexpr int64_t kSourceRows = 40;
  constexpr int64_t kCounts[] = {2, 0, 1, 3, 64, 65, 130};
  for (const Addressing mode : {Addressing::kDense, Addressing::kStrided}) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t width : kWidths) {
        SCOPED_TRACE(testing::Message() << Name(mode) << " [" << rows << ", " << width << "]");
        std::vector<Rows2d> sources;
        for (const Addressing from :
             {Addressing::kDense, Addressing::kStrided, Addressing::kBroadcast, Addressing::kIndexed}) {
          sources.emplace_back(from, kSourceRows, width, sources.size());
        }
        std::vector<ConstOperand> operands;
        for (Rows2d& source : sources) operands.push_back(source.operand());
        CounterRandom random(5, static_cast<uint64_t>(rows));
        std::vector<RowReference> references;
        const auto refer = [&](int64_t count) {
          while (count > 0) {
            const RowReference next = {static_cast<int32_t>(random.Below(4)),
                                       static_cast<int32_t>(random.Below(kSourceRows))};
            if (sources[static_cast<size_t>(next.operand)].left_out(next.row)) continue;
            references.push_back(next);
            --count;
          }
          return std::ssize(references);
        };
        std::vector<int64_t> begin = {refer(2)};
        for (int64_t row = 0; row < rows; ++row) begin.push_back(refer(kCounts[row % 7]));
        Rows2d dst(mode, rows, width, 9, true);
        const auto before = dst.values();
        SumReferences(dst.operand(), operands.data(), references.data(), begin.data(), rows, width, pool_);
        ExpectRows(dst, before, dst.operand(), rows, width, 1e-4, [&](auto r, auto c) {
          double sum = 0;
          for (int64_t i = begin[static_cast<size_t>(r)]; i < begin[static_cast<size_t>(r) + 1]; ++i) {
            const RowReference& reference = references[static_cast<size_t>(i)];
            sum += sources[static_cast<size_t>(reference.operand)].At(reference.row, c);
          }
          return sum;
        });
      }
    }
  }
}

// 100,000 numbers near one: added one after another in f32 they lose three digits.
TEST_F(RowsTest, SumsOfManyReferencesKeepTheirDigits) {
  constexpr int32_t kTerms = 100000;
  constexpr int64_t kWidth = 3;
  const std::vector<float> x = Uniform(kTerms * kWidth, 1, 0.9, 1.1);
  const ConstOperand source = {x.data(), kWidth};
  std::vector<RowReference> references;
  references.reserve(kTerms);
  for (int32_t row = 0; row < kTerms; ++row) references.push_back({0, row});
  const int64_t begin[] = {0, 64 * 64, kTerms};
  float sums[2 * kWidth];
  SumReferences({sums, kWidth}, &source, references.data(), begin, 2, kWidth, pool_);
  for (size_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < kWidth; ++column) {
      double want = 0;
      for (int64_t i = begin[row]; i < begin[row + 1]; ++i) want += static_cast<double>(x[size_t(i * kWidth + column)]);
      EXPECT_NEAR(static_cast<double>(sums[row * kWidth + static_cast<size_t>(column)]), want, 1e-6 * want);
    }
  }
}

TEST_F(RowsTest, SegmentMaxGradGoesToTheFirstMaximum) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    const std::vector<int64_t> begin = Segments(rows);
    Rows2d src(mode, begin.back(), width, 1), dsrc(mode, begin.back(), width, 2, true), dy(mode, rows, width, 3);
    for (float& value : src.values()) value = std::round(value);  // many ties
    const auto before = dsrc.values();
    SegmentMaxGrad(dsrc.operand(), dy.operand(), src.operand(), begin.data(), rows, width, pool_);
    std::vector<double> want(static_cast<size_t>(begin.back() * width));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        int64_t first = begin[r];
        for (int64_t e = begin[r]; e < begin[r + 1]; ++e) first = src.At(e, c) > src.At(first, c) ? e : first;
        if (begin[r] < begin[r + 1]) want[static_cast<size_t>(first * width + c)] = dy.At(r, c);
      }
    }
    int64_t wrong = 0;
    for (int64_t e = 2; e < begin.back(); ++e) {
      for (int64_t c = 0; c < width && !dsrc.left_out(e); ++c) {
        wrong += dsrc.At(e, c) != want[static_cast<size_t>(e * width + c)];
      }
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(WrittenOutside(dsrc, before, dsrc.operand(), begin.back(), width), 0);
  });
}

TEST_F(RowsTest, SegmentMaxTreatsSpecialValuesAsStd) {
  const std::vector<float> src = {1, -kInfinity, kNan, 3, 2, kInfinity, 5, -kInfinity};  // [4, 2]
  const std::vector<int64_t> begin = {0, 4};
  float max[2], grad[8];
  const float dy[2] = {10, 20};
  SegmentMax({max, 2}, {src.data(), 2}, begin.data(), 1, 2, pool_);
  EXPECT_TRUE(std::isnan(max[0]));
  EXPECT_EQ(max[1], kInfinity);
  SegmentMaxGrad({grad, 2}, {dy, 2}, {src.data(), 2}, begin.data(), 1, 2, pool_);
  EXPECT_EQ(std::vector<float>(grad, grad + 8), (std::vector<float>{0, 0, 10, 0, 0, 20, 0, 0}));
}

double SoftmaxOf(const Rows2d& x, int64_t row, int64_t column, int64_t width) {
  double max = -1e300, sum = 0;
  for (int64_t c = 0; c < width; ++c) max = std::max(max, x.At(row, c));
  for (int64_t c = 0; c < width; ++c) sum += std::exp(x.At(row, c) - max);
  return std::exp(x.At(row, column) - max) / sum;
}

TEST_F(RowsTest, SoftmaxAndLogSoftmax) {
  ForSizes(
      [&](Addressing mode, int64_t rows, int64_t width) {
        Rows2d x(mode, rows, width, 1, false, -30, 30), y(mode, rows, width, 2, true), z(mode, rows, width, 3, true);
        const auto y_before = y.values(), z_before = z.values();
        Softmax(y.operand(), x.operand(), rows, width, pool_);
        LogSoftmax(z.operand(), x.operand(), rows, width, pool_);
        ExpectRows(y, y_before, y.operand(), rows, width, 5e-7,
                   [&](auto r, auto c) { return SoftmaxOf(x, r, c, width); });
        ExpectRows(z, z_before, z.operand(), rows, width, 1e-5,
                   [&](auto r, auto c) { return std::log(SoftmaxOf(x, r, c, width)); });
      },
      150);
}

TEST_F(RowsTest, SoftmaxOfExtremeRows) {
  const std::vector<float> x = {1e38f, -1e38f, 0, -kInfinity, 1, 1, kNan, 0, 0, kInfinity, 0, 0};  // [4, 3]
  float y[12], z[12];
  Softmax({y, 3}, {x.data(), 3}, 4, 3, pool_);
  LogSoftmax({z, 3}, {x.data(), 3}, 4, 3, pool_);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(z[0], 0);
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(z[3], -kInfinity);
  EXPECT_FLOAT_EQ(y[4], 0.5f);
  for (int i = 6; i < 9; ++i) EXPECT_TRUE(std::isnan(y[i]) && std::isnan(z[i]));
  EXPECT_TRUE(std::isnan(y[9]) && std::isnan(z[9]));
}

TEST_F(RowsTest, SoftmaxGradients) {
  ForSizes(
      [&](Addressing mode, int64_t rows, int64_t width) {
        Rows2d dy(mode, rows, width, 1), y(mode, rows, width, 2, false, 0, 1.0 / static_cast<double>(width));
        Rows2d dx(mode, rows, width, 3, true), log_dx(mode, rows, width, 4, true);
        const auto before = dx.values(), log_before = log_dx.values();
        SoftmaxGrad(dx.operand(), dy.operand(), y.operand(), rows, width, pool_);
        LogSoftmaxGrad(log_dx.operand(), dy.operand(), y.operand(), rows, width, pool_);
        const auto reduce = [&](int64_t r, bool weighted) {
          double sum = 0;
          for (int64_t c = 0; c < width; ++c) sum += dy.At(r, c) * (weighted ? y.At(r, c) : 1.0);
          return sum;
        };
        ExpectRows(dx, before, dx.operand(), rows, width, 2e-6,
                   [&](auto r, auto c) { return y.At(r, c) * (dy.At(r, c) - reduce(r, true)); });
        ExpectRows(log_dx, log_before, log_dx.operand(), rows, width, 1e-4,
                   [&](auto r, auto c) { return dy.At(r, c) - std::exp(y.At(r, c)) * reduce(r, false); });
      },
      150);
}

TEST_F(RowsTest, RowSumAndColumnSum) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    Rows2d src(mode, rows, width, 1), dst(mode, rows, 1, 2, true);
    const auto before = dst.values();
    RowSum(dst.operand(), src.operand(), rows, width, pool_);
    ExpectRows(dst, before, dst.operand(), rows, 1, 1e-4, [&](auto r, auto) {
      double sum = 0;
      for (int64_t c = 0; c < width; ++c) sum += src.At(r, c);
      return sum;
    });
    for (const bool accumulate : {false, true}) {
      std::vector<float> columns = Uniform(width, 3);
      const std::vector<float> old = columns;
      ColumnSum(columns.data(), src.operand(), rows, width, accumulate, pool_);
      for (int64_t c = 0; c < width; ++c) {
        double sum = accumulate ? static_cast<double>(old[static_cast<size_t>(c)]) : 0;
        for (int64_t r = 0; r < rows; ++r) sum += src.At(r, c);
        ASSERT_NEAR(columns[static_cast<size_t>(c)], sum, 5e-5);
      }
    }
  });
}

TEST_F(RowsTest, OuterAndItsGradients) {
  for (const Addressing mode : {Addressing::kDense, Addressing::kStrided, Addressing::kIndexed}) {
    for (const int64_t rows : {0, 1, 7, 65}) {
      for (const auto& [a, b] : {std::pair<int64_t, int64_t>{1, 1}, {3, 16}, {17, 3}, {5, 40}}) {
        SCOPED_TRACE(testing::Message() << Name(mode) << " " << rows << " rows, " << a << " x " << b);
        const int64_t n = b;
        Rows2d x(mode, rows, a, 1), y(mode, rows, b, 2), z(mode, rows, a * b, 3, true), dz(mode, rows, a * b, 4);
        Rows2d dx(mode, rows, a, 5, true), dy(mode, rows, b, 6, true);
        const auto z_before = z.values(), dx_before = dx.values(), dy_before = dy.values();
        Outer(z.operand(), x.operand(), y.operand(), rows, a, b, pool_);
        OuterGradX(dx.operand(), dz.operand(), y.operand(), rows, a, b, pool_);
        OuterGradY(dy.operand(), dz.operand(), x.operand(), rows, a, b, pool_);
        const int64_t m = a;
        ExpectRows(z, z_before, z.operand(), rows, a * b, 1e-6,
                   [&](auto r, auto c) { return x.At(r, c / n) * y.At(r, c % n); });
        ExpectRows(dx, dx_before, dx.operand(), rows, a, 1e-5, [&](auto r, auto i) {
          double sum = 0;
          for (int64_t j = 0; j < n; ++j) sum += dz.At(r, i * n + j) * y.At(r, j);
          return sum;
        });
        ExpectRows(dy, dy_before, dy.operand(), rows, b, 1e-5, [&](auto r, auto j) {
          double sum = 0;
          for (int64_t i = 0; i < m; ++i) sum += dz.At(r, i * n + j) * x.At(r, i);
          return sum;
        });
      }
    }
  }
}

TEST_F(RowsTest, CrossEntropyAndItsGradient) {
  ForSizes(
      [&](Addressing mode, int64_t rows, int64_t classes) {
        Rows2d logits(mode, rows, classes, 1, false, -20, 20), loss(mode, rows, 1, 2, true);
        Rows2d dloss(mode, rows, 1, 3), grad(mode, rows, classes, 4, true);
        std::vector<int32_t> labels(static_cast<size_t>(rows));
        for (size_t r = 0; r < labels.size(); ++r) {
          labels[r] = r % 4 == 1 ? -1 : static_cast<int32_t>(r % static_cast<size_t>(classes));
        }
        const auto loss_before = loss.values(), grad_before = grad.values();
        CrossEntropy(loss.operand(), logits.operand(), labels.data(), rows, classes, pool_);
        CrossEntropyGrad(grad.operand(), dloss.operand(), logits.operand(), labels.data(), rows, classes, pool_);
        ExpectRows(loss, loss_before, loss.operand(), rows, 1, 1e-5, [&](auto r, auto) {
          const int32_t label = labels[static_cast<size_t>(r)];
          return label < 0 ? 0 : -std::log(SoftmaxOf(logits, r, label, classes));
        });
        ExpectRows(grad, grad_before, grad.operand(), rows, classes, 1e-6, [&](auto r, auto c) {
          const int32_t label = labels[static_cast<size_t>(r)];
          return label < 0 ? 0 : (SoftmaxOf(logits, r, c, classes) - (c == label ? 1 : 0)) * dloss.At(r, 0);
        });
      },
      150);
}

TEST_F(RowsTest, CrossEntropyKeepsAConfidentGradientAndRefusesBadLabels) {
  const float logits[2] = {20, 0};
  const float one = 1;
  float grad[2], loss;
  const int32_t label = 0;
  CrossEntropyGrad({grad, 2}, {&one, 1}, {logits, 2}, &label, 1, 2, pool_);
  EXPECT_FLOAT_EQ(grad[0], -2.0611537e-9f);
  for (const int32_t bad : {2, -2}) {
    EXPECT_THROW(CrossEntropy({&loss, 1}, {logits, 2}, &bad, 1, 2, pool_), std::logic_error);
    EXPECT_THROW(CrossEntropyGrad({grad, 2}, {&one, 1}, {logits, 2}, &bad, 1, 2, pool_), std::logic_error);
  }
  const float wide[2] = {-kInfinity, kNan};
  CrossEntropy({&loss, 1}, {wide, 2}, &label, 1, 2, pool_);
  EXPECT_TRUE(std::isnan(loss));
  const float impossible[2] = {-kInfinity, 0};
  CrossEntropy({&loss, 1}, {impossible, 2}, &label, 1, 2, pool_);
  EXPECT_EQ(loss, kInfinity);
}

TEST_F(RowsTest, SquaredErrorAndItsGradient) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    Rows2d x(mode, rows, width, 1), t(mode, rows, width, 2), dloss(mode, rows, 1, 3);
    Rows2d loss(mode, rows, 1, 4, true), dx(mode, rows, width, 5, true);
    const auto loss_before = loss.values(), dx_before = dx.values();
    SquaredError(loss.operand(), x.operand(), t.operand(), rows, width, pool_);
    SquaredErrorGrad(dx.operand(), dloss.operand(), x.operand(), t.operand(), rows, width, pool_);
    ExpectRows(loss, loss_before, loss.operand(), rows, 1, 2e-3, [&](auto r, auto) {
      double sum = 0;
      for (int64_t c = 0; c < width; ++c) sum += std::pow(x.At(r, c) - t.At(r, c), 2);
      return 0.5 * sum;
    });
    ExpectRows(dx, dx_before, dx.operand(), rows, width, 2e-6,
               [&](auto r, auto c) { return (x.At(r, c) - t.At(r, c)) * dloss.At(r, 0); });
  });
}

TEST_F(RowsTest, KlDivergenceAndItsGradient) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    Rows2d x(mode, rows, width, 1), t(mode, rows, width, 2), dloss(mode, rows, 1, 3);
    Rows2d loss(mode, rows, 1, 4, true), dx(mode, rows, width, 5, true);
    const auto loss_before = loss.values(), dx_before = dx.values();
    KlDivergence(loss.operand(), x.operand(), t.operand(), rows, width, pool_);
    KlDivergenceGrad(dx.operand(), dloss.operand(), t.operand(), rows, width, pool_);
    ExpectRows(loss, loss_before, loss.operand(), rows, 1, 2e-3, [&](auto r, auto) {
      double sum = 0;
      for (int64_t c = 0; c < width; ++c) {
        const double target = t.At(r, c);
        if (target > 0) sum += target * (std::log(target) - x.At(r, c));
      }
      return sum;
    });
    ExpectRows(dx, dx_before, dx.operand(), rows, width, 2e-6,
               [&](auto r, auto c) { return -std::max<double>(t.At(r, c), 0) * dloss.At(r, 0); });
  });
}

TEST_F(RowsTest, KlDivergenceOfAnImpossibleValueCountsWhereItIsATargetOnly) {
  const float x[2] = {0, -kInfinity};
  const float certain[2] = {1, 0}, impossible[2] = {0, 1};
  float loss;
  KlDivergence({&loss, 1}, {x, 2}, {certain, 2}, 1, 2, pool_);
  EXPECT_EQ(loss, 0.0f);
  KlDivergence({&loss, 1}, {x, 2}, {impossible, 2}, 1, 2, pool_);
  EXPECT_EQ(loss, kInfinity);
}

TEST_F(RowsTest, MergeSparseRowsSumsByIdInOrder) {
  ForSizes([&](Addressing mode, int64_t rows, int64_t width) {
    std::vector<int32_t> ids(static_cast<size_t>(rows));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i * 31 % 23) - 1;
    Rows2d grads(mode, rows, width, 1);
    std::map<int32_t, std::vector<float>> want;
    for (int64_t r = 0; r < rows; ++r) {
      const int32_t id = ids[static_cast<size_t>(r)];
      if (id < 0) continue;
      std::vector<float>& sum = want.try_emplace(id, static_cast<size_t>(width), -0.0f).first->second;
      for (int64_t c = 0; c < width; ++c) sum[static_cast<size_t>(c)] += static_cast<float>(grads.At(r, c));
    }
    SparseRows merged;
    merged.ids = {5, 5};  // from an earlier call
    merged.rows = {1, 2, 3};
    MergeSparseRows(ids.data(), grads.operand(), rows, width, pool_, &merged);
    ASSERT_EQ(merged.ids.size(), want.size());
    ASSERT_EQ(merged.rows.size(), want.size() * static_cast<size_t>(width));
    size_t i = 0;
    for (const auto& [id, sum] : want) {
      EXPECT_EQ(merged.ids[i], id);
      const auto first = merged.rows.begin() + static_cast<int64_t>(i++) * width;
      EXPECT_TRUE(SameBits(std::vector<float>(first, first + width), sum));
    }
  });
}

TEST_F(RowsTest, BroadcastSourcesAndWideMissingRows) {
  std::vector<float> row = Uniform(5000, 1), dst(3 * 5000);
  CopyRows({dst.data(), 5000}, {row.data(), 0}, 3, 5000, pool_);
  for (size_t i = 0; i < dst.size(); ++i) ASSERT_EQ(dst[i], row[i % 5000]);
  const int32_t missing = -1;
  Softmax({dst.data(), 5000}, {row.data(), 5000, &missing}, 1, 5000, pool_);
  EXPECT_FLOAT_EQ(dst[4999], 1.0f / 5000);
}

}  // namespace
}  // namespace cavs::cpu
