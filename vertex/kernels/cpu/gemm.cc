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
#include "vertex/kernels/cpu/packing.h"

namespace cavs::cpu {
namespace {

// Rows of a job. A packed product reaches its peak rate at 64, but where every job reads weights that the caches next
// to the core do not hold, twice as many rows gain 10 % ([512, 1280]: 147 and 160 GFLOP/s). A plain one packs its
// weights in every job.
constexpr int64_t kPackedRows = 64;
constexpr int64_t kLargeWeights = 1 << 20;  // bytes
int64_t PackedRows(int64_t k, int64_t n, Precision precision) {
  const int64_t bytes = k * n * (precision == Precision::kBf16 ? 2 : 4);
  return bytes > kLargeWeights ? 2 * kPackedRows : kPackedRows;
}

constexpr int64_t kPlainRows = 256;
// Blocks of the result of a parameter gradient: narrow enough to keep cores busy, and wide enough for the rate, which
// halves when a tall result is cut into narrow columns (1024 x 640: 68 GFLOP/s, 1024 x 1280: 124).
constexpr int64_t kGradientRows = 2048;
constexpr int64_t kShortGradient = 512;
constexpr int64_t kColumnAlignment = 16;

// In bf16 rows are added in blocks that the caches hold, and a job computes whole rows of the result: oneDNN has a fast
// kernel only for results without gaps between rows.
constexpr int64_t kBf16GradientTerms = 512;
constexpr int64_t kBf16GradientRows = 128;
// Columns of a job that converts operands, whole panels, and the elements below which one thread converts them faster.
constexpr int64_t kConvertedColumns = 128;
constexpr int64_t kParallelConversion = 65536;

constexpr double kParallelMultiplications = 4e6;

int64_t Blocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

// Columns of a block of a gradient [k, n]: blocks are even in number and size, and the same for any number of threads.
int64_t GradientColumns(int64_t k, int64_t n) {
  const int64_t most = k <= kShortGradient ? 320 : 1280;
  const int64_t pairs = Blocks(n, 2 * most);
  return Blocks(Blocks(n, 2 * pairs), kColumnAlignment) * kColumnAlignment;
}

// On one thread when there is little to do: a product of 60 us is not done sooner by two, one of which has to wake up
// first.
template <typename Body>
void RunJobs(ThreadPool& pool, int64_t jobs, double multiplications, const Body& body) {
  if (jobs == 1 || multiplications < kParallelMultiplications) {
    for (int64_t job = 0; job < jobs; ++job) body(job, 0);
  } else {
    pool.Run(jobs, std::cref(body));
  }
}

double Multiplications(int64_t m, int64_t k, int64_t n) {
  return static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
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

void CopyMatrix(int64_t rows, int64_t columns, ConstMatrix src, Matrix dst) {
  for (int64_t row = 0; row < rows; ++row) std::copy_n(src.data + row * src.ld, columns, dst.data + row * dst.ld);
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

std::string_view Bf16InstructionSet() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_amx:
      return "AMX";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX512_BF16";
    default:
      return "";
  }
}

// The weights as the right operand of one direction of the product: in oneDNN's own layout, or in bf16 panels.
class PackedForm {
 public:
  PackedForm(const dnnl::engine& engine, int64_t rows, int64_t columns, Precision precision)
      : engine_(engine),
        precision_(precision),
        rows_(rows),
        columns_(columns),
        terms_(precision == Precision::kBf16 ? PadTerms(rows) : rows),
        descriptor_(PackedDescriptor(engine, terms_, columns, precision)),
        data_(hwy::AllocateAligned<uint8_t>(descriptor_.get_size())),
        memory_(descriptor_, engine, data_.get()),
        in_panels_(descriptor_ == PanelDescriptor(terms_, columns, precision)) {
    CAVS_CHECK(data_ != nullptr, "no {} bytes for packed weights", descriptor_.get_size());
  }

  // Of w [rows, columns], or of the transpose of w [columns, rows].
  void Pack(const dnnl::stream& stream, const float* w, int64_t ld, bool transpose) {
    if (precision_ == Precision::kBf16) {
      const auto pack = transpose ? Packing().pack_transposed : Packing().pack;
      return pack(w, ld, rows_, columns_, PanelWidth(columns_), reinterpret_cast<Bf16*>(data_.get()));
    }
    if (in_panels_) {
      const auto pack = transpose ? Packing().pack_f32_transposed : Packing().pack_f32;
      return pack(w, ld, rows_, columns_, reinterpret_cast<float*>(data_.get()));
    }
    const dnnl::memory::dims strides = transpose ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1};
    const dnnl::memory::desc plain({rows_, columns_}, dnnl::memory::data_type::f32, strides);
    const dnnl::memory source(plain, engine_, const_cast<float*>(w));
    if (!reorder_ || plain != source_descriptor_) {
      reorder_ = dnnl::reorder(source, memory_);
      source_descriptor_ = plain;
    }
    reorder_.execute(stream, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, memory_}});
  }

  const void* data() const { return data_.get(); }
  int64_t bytes() const { return static_cast<int64_t>(descriptor_.get_size()); }

 private:
  dnnl::engine engine_;
  Precision precision_;
  int64_t rows_, columns_;
  int64_t terms_;  // rows, with those of padding
  dnnl::memory::desc descriptor_;
  hwy::AlignedFreeUniquePtr<uint8_t[]> data_;
  dnnl::memory memory_;
  // oneDNN wants the panels of packing.h, which its own reordering takes three times as long to fill.
  bool in_panels_;
  dnnl::memory::desc source_descriptor_;
  dnnl::reorder reorder_;
};

struct PackedWeights::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::unique_ptr<PackedForm> forward, transposed;
  bool packed = false;
};

PackedWeights::PackedWeights(int64_t k, int64_t n, Forms forms, Precision precision)
    : k_(k), n_(n), precision_(precision), impl_(std::make_unique<Impl>()) {
  CAVS_CHECK(k >= 0 && n >= 0, "weights [{}, {}]", k, n);
  CAVS_CHECK(precision == Precision::kFp32 || HasFastBf16(), "{}", kNoFastBf16);
  if (k == 0 || n == 0) return;
  const SingleOpenMpThread single;
  impl_->forward = std::make_unique<PackedForm>(impl_->engine, k, n, precision);
  if (forms == Forms::kForwardAndTransposed) {
    impl_->transposed = std::make_unique<PackedForm>(impl_->engine, n, k, precision);
  }
}

PackedWeights::~PackedWeights() = default;
PackedWeights::PackedWeights(PackedWeights&&) noexcept = default;
PackedWeights& PackedWeights::operator=(PackedWeights&&) noexcept = default;

void PackedWeights::Pack(const float* w, int64_t ld) {
  const SingleOpenMpThread single;
  if (impl_->forward) impl_->forward->Pack(impl_->stream, w, ld, false);
  if (impl_->transposed) impl_->transposed->Pack(impl_->stream, w, ld, true);
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
    for (int worker = 0; worker < pool.size(); ++worker) workers_.emplace_back(engine_);
  }

  ThreadPool& pool() { return pool_; }

  // C = A * B, with `key` holding all but m.
  void RunPacked(const MatmulKey& key, int64_t rows, const float* a, const void* b, const float* bias, float* c) {
    const int64_t most = PackedRows(key.k, key.n, key.precision);
    RunJobs(pool_, Blocks(rows, most), Multiplications(rows, key.k, key.n), [&](int64_t job, int worker) {
      const SingleOpenMpThread single;
      const int64_t first = job * most;
      MatmulKey chunk = key;
      chunk.m = std::min(most, rows - first);
      Worker& own = workers_[static_cast<size_t>(worker)];
      const void* const operand = DenseOperand(a + first * key.lda, &chunk, &own.inputs);
      RunDense(chunk, operand, b, bias, c + first * key.ldc, &own);
    });
  }

  // dst = x^T * dy in bf16, of at most kBf16GradientTerms rows.
  void RunBf16Gradient(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix dy, bool accumulate, Matrix dst) {
    const int64_t terms = PadTerms(rows);
    auto* const left = left_.Elements<Bf16>(k * terms);
    auto* const right = right_.Elements<Bf16>(PanelElements(rows, n));
    ConvertFactors(rows, k, n, x, dy, left, right);
    RunJobs(pool_, Blocks(k, kBf16GradientRows), Multiplications(rows, k, n), [&](int64_t job, int worker) {
      const SingleOpenMpThread single;
      const int64_t first = job * kBf16GradientRows;
      const MatmulKey key = {.m = std::min(kBf16GradientRows, k - first),
                             .k = terms,
                             .n = n,
                             .lda = terms,
                             .ldc = dst.ld,
                             .accumulate = accumulate,
                             .precision = Precision::kBf16};
      RunDense(key, left + first * terms, right, nullptr, dst.data + first * dst.ld,
               &workers_[static_cast<size_t>(worker)]);
    });
  }

 private:
  struct Worker {
    explicit Worker(const dnnl::engine& engine) : table(engine) {}
    MatmulTable table;
    Scratch inputs, results;
  };

  // Rows of A without gaps, in the precision and with the k and lda that `key` has then: A itself or a copy.
  // For packed weights oneDNN 2.6 has a fast kernel only where rows follow each other without gaps, and a reference
  // that is a thousand times slower otherwise.
  static const void* DenseOperand(const float* a, MatmulKey* key, Scratch* scratch) {
    const ConstMatrix source = {a, key->lda};
    const int64_t columns = key->k;
    if (key->precision == Precision::kBf16) {
      key->lda = key->k = PadTerms(columns);
      auto* const copy = scratch->Elements<Bf16>(key->m * key->k);
      Packing().convert(source.data, source.ld, key->m, columns, copy);
      return copy;
    }
    key->lda = columns;
    if (key->m == 1 || source.ld == columns) return a;
    auto* const copy = scratch->Elements<float>(key->m * columns);
    CopyMatrix(key->m, columns, source, {copy, columns});
    return copy;
  }

  // The product of operands without gaps; gaps between rows of C are filled through a copy, for the same reason.
  static void RunDense(const MatmulKey& key, const void* a, const void* b, const float* bias, float* c,
                       Worker* worker) {
    MatmulKey dense = key;
    dense.ldc = key.n;
    const bool copies = key.m > 1 && key.ldc != dense.ldc;
    float* const results = copies ? worker->results.Elements<float>(key.m * key.n) : c;
    if (copies && key.accumulate) CopyMatrix(key.m, key.n, {c, key.ldc}, {results, dense.ldc});
    MatmulTable& table = worker->table;
    table.Get(dense).Execute(table.stream(), table.scratch(), a, b, bias, results);
    if (copies) CopyMatrix(key.m, key.n, {results, dense.ldc}, {c, key.ldc});
  }

  // The operands of x^T * dy, by blocks of columns.
  void ConvertFactors(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix dy, Bf16* left, Bf16* right) {
    const PackingKernels& kernels = Packing();
    const int64_t terms = PadTerms(rows), panel = PanelWidth(n);
    const int64_t left_jobs = Blocks(k, kConvertedColumns);
    const auto convert = [&](int64_t job, int) {
      if (job < left_jobs) {
        const int64_t first = job * kConvertedColumns;
        kernels.transpose(x.data + first, x.ld, rows, std::min(kConvertedColumns, k - first), left + first * terms);
      } else {
        const int64_t first = (job - left_jobs) * kConvertedColumns;
        kernels.pack(dy.data + first, dy.ld, rows, std::min(kConvertedColumns, n - first), panel,
                     right + first * terms);
      }
    };
    const int64_t jobs = left_jobs + Blocks(n, kConvertedColumns);
    if (terms * (k + n) >= kParallelConversion) return pool_.Run(jobs, std::cref(convert));
    for (int64_t job = 0; job < jobs; ++job) convert(job, 0);
  }

  ThreadPool& pool_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::vector<Worker> workers_;
  Scratch left_, right_;  // operands of a parameter gradient
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
  const MatmulKey key = {.k = k,
                         .n = n,
                         .lda = x.ld,
                         .ldc = dst.ld,
                         .bias = bias != nullptr,
                         .accumulate = accumulate,
                         .precision = w.precision()};
  impl_->RunPacked(key, rows, x.data, form->data(), bias, dst.data);
}

void Gemm::MultiplyPlain(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix w, bool transpose_weights,
                         const float* bias, bool accumulate, Matrix dst) {
  const int64_t terms = transpose_weights ? n : k;
  const int64_t columns = transpose_weights ? k : n;
  if (rows == 0 || columns == 0) return;
  if (terms == 0) return FillBias(rows, columns, bias, accumulate, dst);
  RunJobs(impl_->pool(), Blocks(rows, kPlainRows), Multiplications(rows, terms, columns), [&](int64_t job, int) {
    const int64_t first = job * kPlainRows;
    const int64_t count = std::min(kPlainRows, rows - first);
    const Matrix out = {dst.data + first * dst.ld, dst.ld};
    if (bias != nullptr) FillBias(count, columns, bias, accumulate, out);
    Sgemm(count, terms, columns, {x.data + first * x.ld, x.ld, false}, {w.data, w.ld, transpose_weights},
          accumulate || bias != nullptr, out);
  });
}

void Gemm::MultiplyTransposed(int64_t rows, int64_t k, int64_t n, ConstMatrix x, ConstMatrix dy, bool accumulate,
                              Matrix dst, Precision precision) {
  if (k == 0 || n == 0) return;
  if (rows == 0) return FillBias(k, n, nullptr, accumulate, dst);
  if (precision == Precision::kBf16) {
    CAVS_CHECK(HasFastBf16(), "{}", kNoFastBf16);
    for (int64_t first = 0; first < rows; first += kBf16GradientTerms) {
      impl_->RunBf16Gradient(std::min(kBf16GradientTerms, rows - first), k, n, {x.data + first * x.ld, x.ld},
                             {dy.data + first * dy.ld, dy.ld}, accumulate || first > 0, dst);
    }
    return;
  }
  const int64_t down = Blocks(k, kGradientRows);
  const int64_t columns = GradientColumns(k, n);
  RunJobs(impl_->pool(), down * Blocks(n, columns), Multiplications(rows, k, n), [&](int64_t job, int) {
    const int64_t i = job % down * kGradientRows;
    const int64_t j = job / down * columns;
    Sgemm(std::min(kGradientRows, k - i), rows, std::min(columns, n - j), {x.data + i, x.ld, true},
          {dy.data + j, dy.ld, false}, accumulate, {dst.data + i * dst.ld + j, dst.ld});
  });
}

double MeasureGemmRate(int64_t m, int64_t k, int64_t n, ThreadPool& pool, double seconds, Precision precision) {
  const auto uniform = [](int64_t count, uint64_t stream) {
    CounterRandom random(1, stream);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(random.Uniform() - 0.5);
    return values;
  };
  const std::vector<float> x = uniform(m * k, 0);
  const std::vector<float> w = uniform(k * n, 1);
  std::vector<float> y(static_cast<size_t>(m * n));
  PackedWeights packed(k, n, PackedWeights::Forms::kForward, precision);
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
