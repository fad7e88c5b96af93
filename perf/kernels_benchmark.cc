// Rates of the CPU kernels on one core: products packed and plain, elementwise groups, row kernels.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "cavs/base/random.h"
#include "cavs/base/thread_pool.h"
#include "vertex/kernels/elementwise.h"
#include "vertex/kernels/gemm.h"
#include "vertex/kernels/rows.h"

namespace cavs::cpu {
namespace {

std::vector<float> Uniform(int64_t count, uint64_t stream) {
  CounterRandom random(1, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(random.Uniform() - 0.5);
  return values;
}

void CountFlops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * static_cast<double>(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

void CountFloats(benchmark::State& state, int64_t floats) { state.SetItemsProcessed(state.iterations() * floats); }

bool Refused(benchmark::State& state, Precision precision) {
  if (precision == Precision::kFp32 || HasFastBf16()) return false;
  state.SkipWithError(kNoFastBf16.data());
  return true;
}

// The operands of a product of [rows, k] with [k, n], of which a benchmark uses what it needs.
struct Product {
  explicit Product(const benchmark::State& state)
      : rows(state.range(0)),
        k(state.range(1)),
        n(state.range(2)),
        x(Uniform(rows * k, 1)),
        w(Uniform(k * n, 2)),
        y(Uniform(rows * n, 3)) {}

  double flops() const { return 2.0 * static_cast<double>(rows * k) * static_cast<double>(n); }

  int64_t rows, k, n;
  std::vector<float> x, w, y;
  ThreadPool pool{1};
  Gemm gemm{pool};
};

void TimeGemmPacked(benchmark::State& state, Precision precision) {
  if (Refused(state, precision)) return;
  Product p(state);
  PackedWeights packed(p.k, p.n, PackedWeights::Forms::kForwardAndTransposed, precision);
  packed.Pack(p.w.data(), p.n);
  for (auto _ : state) p.gemm.Multiply(p.rows, {p.x.data(), p.k}, packed, false, nullptr, false, {p.y.data(), p.n});
  CountFlops(state, p.flops());
}

void TimeGemmPackedTransposed(benchmark::State& state, Precision precision) {
  if (Refused(state, precision)) return;
  Product p(state);
  PackedWeights packed(p.k, p.n, PackedWeights::Forms::kForwardAndTransposed, precision);
  packed.Pack(p.w.data(), p.n);
  for (auto _ : state) p.gemm.Multiply(p.rows, {p.y.data(), p.n}, packed, true, nullptr, false, {p.x.data(), p.k});
  CountFlops(state, p.flops());
}

void TimeGemmPlain(benchmark::State& state) {
  Product p(state);
  for (auto _ : state) {
    p.gemm.MultiplyPlain(p.rows, p.k, p.n, {p.x.data(), p.k}, {p.w.data(), p.n}, false, nullptr, false,
                         {p.y.data(), p.n});
  }
  CountFlops(state, p.flops());
}

void TimeGemmPlainTransposed(benchmark::State& state) {
  Product p(state);
  for (auto _ : state) {
    p.gemm.MultiplyPlain(p.rows, p.k, p.n, {p.y.data(), p.n}, {p.w.data(), p.n}, true, nullptr, false,
                         {p.x.data(), p.k});
  }
  CountFlops(state, p.flops());
}

void TimeGemmParameterGradient(benchmark::State& state, Precision precision) {
  if (Refused(state, precision)) return;
  Product p(state);
  for (auto _ : state) {
    p.gemm.MultiplyTransposed(p.rows, p.k, p.n, {p.x.data(), p.k}, {p.y.data(), p.n}, true, {p.w.data(), p.n},
                              precision);
  }
  CountFlops(state, p.flops());
}

void TimePack(benchmark::State& state, Precision precision) {
  if (Refused(state, precision)) return;
  const int64_t k = state.range(0), n = state.range(1);
  const std::vector<float> w = Uniform(k * n, 1);
  PackedWeights packed(k, n, PackedWeights::Forms::kForwardAndTransposed, precision);
  for (auto _ : state) packed.Pack(w.data(), n);
  CountFloats(state, k * n);
}

void Products(benchmark::internal::Benchmark* b) {
  for (const int64_t rows : {1, 4, 16, 64, 256, 1024}) b->Args({rows, 512, 1280});
  for (const int64_t rows : {1, 4, 16, 64}) b->Args({rows, 128, 320});
}

BENCHMARK_CAPTURE(TimeGemmPacked, fp32, Precision::kFp32)->Apply(Products);
BENCHMARK_CAPTURE(TimeGemmPacked, bf16, Precision::kBf16)->Apply(Products);
BENCHMARK_CAPTURE(TimeGemmPackedTransposed, fp32, Precision::kFp32)->Apply(Products);
BENCHMARK_CAPTURE(TimeGemmPackedTransposed, bf16, Precision::kBf16)->Apply(Products);
BENCHMARK(TimeGemmPlain)->Apply(Products);
BENCHMARK(TimeGemmPlainTransposed)->Apply(Products);
BENCHMARK_CAPTURE(TimeGemmParameterGradient, fp32, Precision::kFp32)->Apply(Products);
BENCHMARK_CAPTURE(TimeGemmParameterGradient, bf16, Precision::kBf16)->Apply(Products);
BENCHMARK_CAPTURE(TimePack, fp32, Precision::kFp32)->Args({512, 1280})->Args({128, 320});
BENCHMARK_CAPTURE(TimePack, bf16, Precision::kBf16)->Args({512, 1280})->Args({128, 320});

// One operator over dense rows that stay in the L2 cache.
void TimeElementwise(benchmark::State& state, ElementwiseOp op) {
  constexpr int64_t kWidth = 256, kRows = 128;
  std::vector<float> x = Uniform(kRows * kWidth, 1), y = Uniform(kRows * kWidth, 2), z(x.size());
  ElementwiseProgram program{.inputs = 2, .outputs = 1, .temporaries = 0, .width = kWidth, .steps = {}};
  program.steps.push_back({.op = op, .dst = 2, .a = 0, .b = 1, .scalar = 1.25f, .threshold = 1u << 30});
  const std::vector<uint64_t> keys(kRows, 7);
  const Operand operands[] = {{x.data(), kWidth}, {y.data(), kWidth}, {z.data(), kWidth}};
  ThreadPool pool(1);
  for (auto _ : state) RunElementwise(program, kRows, operands, keys.data(), pool, false);
  CountFloats(state, kRows * kWidth);
}

BENCHMARK_CAPTURE(TimeElementwise, add, ElementwiseOp::kAdd);
BENCHMARK_CAPTURE(TimeElementwise, sigmoid, ElementwiseOp::kSigmoid);
BENCHMARK_CAPTURE(TimeElementwise, tanh, ElementwiseOp::kTanh);
BENCHMARK_CAPTURE(TimeElementwise, exp, ElementwiseOp::kExp);
BENCHMARK_CAPTURE(TimeElementwise, log, ElementwiseOp::kLog);
BENCHMARK_CAPTURE(TimeElementwise, dropout, ElementwiseOp::kDropout);
BENCHMARK_CAPTURE(TimeElementwise, tanh_grad, ElementwiseOp::kTanhGrad);

// The forward group of a binary Tree-LSTM: five gates with biases, two child cells through an index, 17 steps.
void TimeTreeLstmGroup(benchmark::State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  std::vector<float> gates = Uniform(rows * 5 * width, 1), bias = Uniform(5 * width, 2),
                     cells = Uniform(rows * width, 3);
  std::vector<float> c(cells.size()), h(cells.size());
  std::vector<int32_t> index(static_cast<size_t>(rows));
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(index.size() - 1 - i);
  std::vector<Operand> operands;
  for (int64_t g = 0; g < 5; ++g) operands.push_back({gates.data() + g * width, 5 * width});
  for (int64_t g = 0; g < 5; ++g) operands.push_back({bias.data() + g * width, 0});
  operands.insert(operands.end(), 2, {cells.data(), width, index.data()});
  operands.push_back({c.data(), width});
  operands.push_back({h.data(), width});
  ElementwiseProgram program{.inputs = 12, .outputs = 2, .temporaries = 5, .width = width, .steps = {}};
  const auto step = [&](ElementwiseOp op, int dst, int a, int b = 0) {
    program.steps.push_back(
        {.op = op, .dst = static_cast<int16_t>(dst), .a = static_cast<int16_t>(a), .b = static_cast<int16_t>(b)});
  };
  for (int g = 0; g < 5; ++g) step(ElementwiseOp::kAdd, 14 + g, g, 5 + g);
  for (int g = 0; g < 5; ++g) step(g == 2 ? ElementwiseOp::kTanh : ElementwiseOp::kSigmoid, 14 + g, 14 + g);
  step(ElementwiseOp::kMultiply, 14, 14, 16);
  step(ElementwiseOp::kMultiply, 17, 17, 10);
  step(ElementwiseOp::kMultiply, 18, 18, 11);
  step(ElementwiseOp::kAdd, 14, 14, 17);
  step(ElementwiseOp::kAdd, 12, 14, 18);
  step(ElementwiseOp::kTanh, 13, 12);
  step(ElementwiseOp::kMultiply, 13, 13, 15);
  ThreadPool pool(1);
  for (auto _ : state) RunElementwise(program, rows, operands.data(), nullptr, pool, false);
  CountFloats(state, rows * width);
}

BENCHMARK(TimeTreeLstmGroup)->Args({1, 64})->Args({64, 64})->Args({64, 256});

void TimeLogSoftmax(benchmark::State& state) {
  const int64_t rows = 256, width = state.range(0);
  std::vector<float> x = Uniform(rows * width, 1), y(x.size());
  ThreadPool pool(1);
  for (auto _ : state) LogSoftmax({y.data(), width}, {x.data(), width}, rows, width, pool);
  CountFloats(state, rows * width);
}

void TimeColumnSum(benchmark::State& state) {
  const int64_t rows = 1024, width = state.range(0);
  const std::vector<float> x = Uniform(rows * width, 1);
  std::vector<float> sum(static_cast<size_t>(width));
  ThreadPool pool(1);
  for (auto _ : state) ColumnSum(sum.data(), {x.data(), width}, rows, width, false, pool);
  CountFloats(state, rows * width);
}

void TimeMergeSparseRows(benchmark::State& state) {
  const int64_t rows = 1280, width = state.range(0);
  const std::vector<float> grads = Uniform(rows * width, 1);
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * i % 509);
  ThreadPool pool(1);
  SparseRows merged;
  for (auto _ : state) MergeSparseRows(ids.data(), {grads.data(), width}, rows, width, pool, &merged);
  CountFloats(state, rows * width);
}

BENCHMARK(TimeLogSoftmax)->Arg(5)->Arg(1000);
BENCHMARK(TimeColumnSum)->Arg(5)->Arg(1280);
BENCHMARK(TimeMergeSparseRows)->Arg(300);

}  // namespace
}  // namespace cavs::cpu

BENCHMARK_MAIN();
