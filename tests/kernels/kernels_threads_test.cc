// What must hold when kernels run in several threads: equal bits for every pool size, shared packed weights.
#include <array>
#include <thread>

#include "tests/kernels/kernel_test_util.h"
#include "vertex/kernels/elementwise.h"
#include "vertex/kernels/gemm.h"
#include "vertex/kernels/rows.h"

namespace cavs::cpu {
namespace {

TEST(KernelThreads, ProductsGiveTheSameBitsForEveryPoolSize) {
  constexpr int64_t kRows = 333, kK = 150, kN = 1500;
  const std::vector<float> x = Uniform(kRows * kK, 1), w = Uniform(kK * kN, 2), dy = Uniform(kRows * kN, 3);
  PackedWeights packed(kK, kN);
  packed.Pack(w.data(), kN);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    Gemm gemm(pool);
    std::vector<float> y(kRows * kN), plain(kRows * kN), dx(kRows * kK), dw(kK * kN);
    gemm.Multiply(kRows, {x.data(), kK}, packed, false, w.data(), false, {y.data(), kN});
    gemm.MultiplyPlain(kRows, kK, kN, {x.data(), kK}, {w.data(), kN}, false, w.data(), false, {plain.data(), kN});
    gemm.Multiply(kRows, {dy.data(), kN}, packed, true, nullptr, true, {dx.data(), kK});
    gemm.MultiplyTransposed(kRows, kK, kN, {x.data(), kK}, {dy.data(), kN}, false, {dw.data(), kN});
    std::vector<float> all;
    for (const auto* part : {&y, &plain, &dx, &dw}) all.insert(all.end(), part->begin(), part->end());
    if (first.empty()) first = all;
    EXPECT_TRUE(SameBits(all, first)) << threads << " threads";
  }
}

TEST(KernelThreads, RowKernelsGiveTheSameBitsForEveryPoolSize) {
  constexpr int64_t kRows = 700, kWidth = 150;
  const std::vector<float> x = Uniform(kRows * kWidth, 1), dy = Uniform(kRows * kWidth, 2);
  std::vector<int64_t> begin = {0};
  std::vector<int32_t> ids, labels;
  std::vector<RowReference> references;
  for (int32_t r = 0; r < kRows; ++r) {
    begin.push_back(std::min(kRows, begin.back() + r % 3));
    ids.push_back(static_cast<int32_t>(r * 37 % 101));
    labels.push_back(static_cast<int32_t>(r % kWidth));
    references.push_back({r % 2, r * 31 % static_cast<int32_t>(kRows)});
  }
  const ConstOperand in = {x.data(), kWidth}, gradient = {dy.data(), kWidth};
  const std::array referred = {in, gradient};
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    std::array<std::vector<float>, 6> out;
    for (auto& part : out) part.resize(static_cast<size_t>(kRows * kWidth));
    const auto to = [&](size_t i) { return Operand{out[i].data(), kWidth}; };
    SegmentSum(to(0), in, begin.data(), kRows, kWidth, pool);
    SegmentMaxGrad(to(1), gradient, in, begin.data(), kRows, kWidth, pool);
    LogSoftmax(to(2), in, kRows, kWidth, pool);
    CrossEntropyGrad(to(3), {x.data(), 0}, in, labels.data(), kRows, kWidth, pool);
    ColumnSum(out[4].data(), in, kRows, kWidth, false, pool);
    SumReferences(to(5), referred.data(), references.data(), begin.data(), kRows, kWidth, pool);
    SparseRows merged;
    MergeSparseRows(ids.data(), in, kRows, kWidth, pool, &merged);
    std::vector<float> all = merged.rows;
    for (const auto& part : out) all.insert(all.end(), part.begin(), part.end());
    if (first.empty()) first = all;
    EXPECT_TRUE(SameBits(all, first)) << threads << " threads";
  }
}

TEST(KernelThreads, SessionsShareOnePackedWeights) {
  constexpr int64_t kK = 96, kN = 320, kRounds = 60;
  const std::vector<float> w = Uniform(kK * kN, 1);
  PackedWeights packed(kK, kN);
  packed.Pack(w.data(), kN);
  const auto work = [&](std::vector<float>* results, uint64_t stream) {
    ThreadPool pool(2);
    Gemm gemm(pool);
    for (int64_t round = 0; round < kRounds; ++round) {
      const int64_t rows = 1 + round * 3 % 130;
      const std::vector<float> x = Uniform(rows * kK, stream);
      std::vector<float> y(static_cast<size_t>(rows * kN)), dx(static_cast<size_t>(rows * kK));
      gemm.Multiply(rows, {x.data(), kK}, packed, false, nullptr, false, {y.data(), kN});
      gemm.Multiply(rows, {y.data(), kN}, packed, true, nullptr, false, {dx.data(), kK});
      results->insert(results->end(), y.begin(), y.end());
      results->insert(results->end(), dx.begin(), dx.end());
    }
  };
  std::array<std::vector<float>, 2> alone, together;
  for (size_t i = 0; i < 2; ++i) work(&alone[i], i);
  std::thread other(work, &together[1], 1);
  work(&together[0], 0);
  other.join();
  EXPECT_TRUE(SameBits(alone[0], together[0]));
  EXPECT_TRUE(SameBits(alone[1], together[1]));
}

}  // namespace
}  // namespace cavs::cpu
