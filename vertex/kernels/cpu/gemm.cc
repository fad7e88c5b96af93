#include "vertex/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "cavs/base/stop_watch.h"
#include "vertex/kernels/cpu/gemm_primitives.h"

namespace cavs::cpu {
namespace {

// Rows of a job. A packed product reaches its peak rate at 64; a plain one packs its weights in every job.
constexpr int64_t kPackedRows = 64;
constexpr int64_t kPlainRows = 256;
// Blocks of the result of a parameter gradient: small enough to keep cores busy, and large enough for the rate, which
// halves when a tall result is cut into narrow columns (1024 x 640: 68 GFLOP/s, 1024 x 1280: 124).
constexpr int64_t kGradientRows = 2048;
constexpr int64_t kShortGradient = 512;
constexpr int64_t GradientColumns(int64_t rows) { return rows <= kShortGradient ? 640 : 1280; }

int64_t Blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

template <typename Body>
void RunJobs(ThreadPool& pool, int64_t jobs, const Body& body) {
  if (jobs == 1) {
    body(0, 0);
  } else {
    pool.Run(jobs, std::cref(body));
  }
}

// dst = or += bias, what a product over no terms gives; nullptr stands for zeros.
void FillBias(int64_t rows, int64_t columns, const float* bias, bool accumulate, Matrix dst) {
  if (accumulate && bias == nullptr) return;
  for (int64_t row = 0; row < rows; ++row) {
    float* const out = dst.data + row * dst.ld;
    for (int64_t column = 0; column < columns; ++column) {
      out[column] = (accumulate ? out[column] : 0.0f) + (bias != nullptr ? bias[column] : 0.0f);
    }
  }
}

struct Factor {
  const float* data;
  int64_t ld;
  bool transposed;
};

// c [m, n] = or += op(a) [m, k] * op(b) [k, n], on one thread.
void Sgemm(int64_t m, int64_t k, int64_t n, Factor a, Factor b, bool accumulate, Matrix c) {
  const auto flag = [](const Factor& factor) { return factor.transposed ? 'T' : 'N'; };
  const SingleOpenMpThread single;
  const dnnl_status_t status =
      dnnl_sgemm(flag(a), flag(b), m, n, k, 1.0f, a.data, a.ld, b.data, b.ld, accumulate ? 1.0f : 0.0f, c.data, c.ld);
  CAVS_CHECK(status == dnnl_success, "dnnl_sgemm [{}, {}, {}] failed with status {}", m, k, n,
             static_cast<int>(status));
}

}  // namespace

// The weights in oneDNN's own layout for one direction of the product.
class PackedForm {
 public:
  PackedForm(const dnnl::engine& engine, int64_t rows, int64_t columns)
      : engine_(engine),
        rows_(rows),
        columns_(columns),
        descriptor_(PackedDescriptor(engine, rows, columns)),
        data_(hwy::AllocateAligned<uint8_t>(descriptor_.get_size())),
        memory_(descriptor_, engine, data_.get()) {
    CAVS_CHECK(data_ != nullptr, "no {} bytes for packed weights", descriptor_.get_size());
  }

  void Pack(const dnnl::stream& stream, const float* w, int64_t row_stride, int64_t column_stride) {
    const dnnl::memory::desc plain({rows_, columns_}, dnnl::memory::data_type::f32, {row_stride, column_stride});
    const dnnl::memory source(plain, engine_, const_cast<float*>(w));
    if (!reorder_ || plain != source_descriptor_) {
      reorder_ = dnnl::reorder(source, memory_);
      source_descriptor_ = plain;
    }
    reorder_.execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, memory_}});
  }

  const float* data() const { return reinterpret_cast<const float*>(data_.get()); }
  int64_t bytes() const { return static_cast<int64_t>(descriptor_.get_size()); }

 private:
  dnnl::engine engine_;
  int64_t rows_, columns_;
  dnnl::memory::desc descriptor_;
  hwy::AlignedFreeUniquePtr<uint8_t[]> data_;
  dnnl::memory memory_;
  dnnl::memory::desc source_descriptor_;
  dnnl::reorder reorder_;
};

struct PackedWeights::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::unique_ptr<PackedForm> forward, transposed;
  bool packed = false;
};

PackedWeights::PackedWeights(int64_t k, int64_t n, Forms forms) : k_(k), n_(n), impl_(std::make_unique<Impl>()) {
  CAVS_CHECK(k >= 0 && n >= 0, "weights [{}, {}]", k, n);
  if (k == 0 || n == 0) return;
  const SingleOpenMpThread single;
  impl_->forward = std::make_unique<PackedForm>(impl_->engine, k, n);
  if (forms == Forms::kForwardAndTransposed) impl_->transposed = std::make_unique<PackedForm>(impl_->engine, n, k);
}

PackedWeights::~PackedWeights() = default;
PackedWeights::PackedWeights(PackedWeights&&) noexcept = default;
PackedWeights& PackedWeights::operator=(PackedWeights&&) noexcept = default;

void PackedWeights::Pack(const float* w, int64_t ld) {
  const SingleOpenMpThread single;
  if (impl_->forward) impl_->forward->Pack(impl_->stream, w, ld, 1);
  if (impl_->transposed) impl_->transposed->Pack(impl_->stream, w, 1, ld);
  impl_->stream.wait();
  impl_->packed = true;
}

bool PackedWeights::packed() const { return impl_->packed; }

int64_t PackedWeights::bytes() const {
  return (impl_->forward ? impl_->forward->bytes() : 0) + (impl_->transposed ? impl_->transposed->bytes() : 0);
}

class Gemm::Impl {
 public:
  explicit Impl(ThreadPool& pool) : pool_(pool) {
    for (int worker = 0; worker < pool.size(); ++worker) tables_.emplace_back(engine_);
  }

  ThreadPool& pool() { return pool_; }

  // C = A * B, with `key` holding all but m.
  void RunPacked(const MatmulKey& key, int64_t rows, const float* a, const float* b, const float* bias, float* c) {
    RunJobs(pool_, Blocks(rows, kPackedRows), [&](int64_t job, int worker) {
      const SingleOpenMpThread single;
      const int64_t first = job * kPackedRows;
      MatmulKey chunk = key;
      chunk.m = std::min(kPackedRows, rows - first);
      MatmulTable& table = tables_[static_cast<size_t>(worker)];
      table.Get(chunk).Execute(table.stream(), table.scratch(), a + first * key.lda, b, bias, c + first * key.ldc);
    });
  }

 private:
  ThreadPool& pool_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::vector<MatmulTable> tables_;  // by worker
};

Gemm::Gemm(ThreadPool& pool) : impl_(std::make_unique<Impl>(pool)) {}
Gemm::~Gemm() = default;

void Gemm::Multiply(int64_t rows, ConstMatrix x, const PackedWeights& w, bool transpose_weights, const float* bias,
                    bool accumulate, Matrix dst) {
  const int64_t k = transpose_weights ? w.n() : w.k();
  const int64_t n = transpose_weights ? w.k() : w.n();
  if (rows == 0 || n == 0) return;
  if (k == 0) return FillBias(rows, n, bias, accumulate, dst);
  const PackedForm* const form = transpose_weights ? w.impl_->transposed.get() : w.impl_->forward.get();
  CAVS_CHECK(form != nullptr && w.packed(), "weights [{}, {}] were not packed for this product", w.k(), w.n());
  const MatmulKey key = {.k = k, .n = n, .lda = x.ld, .ldc = dst.ld, .bias = bias != nullptr, .accumulate = accumulate};
  impl_->RunPacked(key, rows, x.data, form->data(), bias, dst.data);
}

void Gemm::MultiplyPlain(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix w, bool transpose_weights,
                         const float* bias, bool accumulate, Matrix dst) {
  const int64_t terms = transpose_weights ? n : k;
  const int64_t columns = transpose_weights ? k : n;
  if (rows == 0 || columns == 0) return;
  if (terms == 0) return FillBias(rows, columns, bias, accumulate, dst);
  RunJobs(impl_->pool(), Blocks(rows, kPlainRows), [&](int64_t job, int) {
    const int64_t first = job * kPlainRows;
    const int64_t count = std::min(kPlainRows, rows - first);
    const Matrix out = {dst.data + first * dst.ld, dst.ld};
    if (bias != nullptr) FillBias(count, columns, bias, accumulate, out);
    Sgemm(count, terms, columns, {x.data + first * x.ld, x.ld, false}, {w.data, w.ld, transpose_weights},
          accumulate || bias != nullptr, out);
  });
}

void Gemm::MultiplyTransposed(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix dy, bool accumulate,
                              Matrix dst) {
  if (k == 0 || n == 0) return;
  if (rows == 0) return FillBias(k, n, nullptr, accumulate, dst);
  const int64_t down = Blocks(k, kGradientRows);
  const int64_t columns = GradientColumns(k);
  RunJobs(impl_->pool(), down * Blocks(n, columns), [&](int64_t job, int) {
    const int64_t i = job % down * kGradientRows;
    const int64_t j = job / down * columns;
    Sgemm(std::min(kGradientRows, k - i), rows, std::min(columns, n - j), {x.data + i, x.ld, true},
          {dy.data + j, dy.ld, false}, accumulate, {dst.data + i * dst.ld + j, dst.ld});
  });
}

double MeasureGemmRate(int64_t m, int64_t k, int64_t n, ThreadPool& pool, double seconds) {
  const auto uniform = [](int64_t count, uint64_t stream) {
    CounterRandom random(1, stream);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(random.Uniform() - 0.5);
    return values;
  };
  const std::vector<float> x = uniform(m * k, 0);
  const std::vector<float> w = uniform(k * n, 1);
  std::vector<float> y(static_cast<size_t>(m * n));
  PackedWeights packed(k, n, PackedWeights::Forms::kForward);
  packed.Pack(w.data(), n);
  Gemm gemm(pool);
  const auto run = [&] { gemm.Multiply(m, {x.data(), k}, packed, false, nullptr, false, {y.data(), n}); };
  run();
  double best = 0;
  const StopWatch total;
  do {
    const StopWatch watch;
    run();
    best = std::max(best, 2.0 * static_cast<double>(m * k) * static_cast<double>(n) / watch.Seconds());
  } while (total.Seconds() < seconds);
  return best * 1e-9;
}

}  // namespace cavs::cpu
