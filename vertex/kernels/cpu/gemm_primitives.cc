#include "vertex/kernels/cpu/gemm_primitives.h"

#include <omp.h>

#include <array>
#include <bit>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/base/random.h"
#include "vertex/kernels/cpu/packing.h"

namespace cavs::cpu {
namespace {

using Descriptor = dnnl::memory::desc;

constexpr auto kFloat = dnnl::memory::data_type::f32;

Descriptor RowMajor(int64_t rows, int64_t columns, int64_t ld, dnnl::memory::data_type type = kFloat) {
  return {{rows, columns}, type, {ld, 1}};
}

dnnl::memory::data_type OperandType(Precision precision) {
  return precision == Precision::kBf16 ? dnnl::memory::data_type::bf16 : kFloat;
}

// oneDNN's name of the panels of packing.h.
dnnl::memory::format_tag PanelTag(int64_t n, Precision precision) {
  using Tag = dnnl::memory::format_tag;
  if (precision == Precision::kFp32) return Tag::BA16a64b;
  switch (PanelWidth(n)) {
    case 16:
      return Tag::BA16a16b2a;
    case 32:
      return Tag::BA16a32b2a;
    case 48:
      return Tag::BA16a48b2a;
    default:
      return Tag::BA16a64b2a;
  }
}

// oneDNN never writes through its inputs, but its handles are not const.
void* Handle(const void* data) { return const_cast<void*>(data); }

void SetHandle(const dnnl::memory& memory, void* data) {
  dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(memory.get(), data), "could not set a memory handle");
}

dnnl::primitive_attr Attributes(bool accumulate) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

uint64_t Hash(const MatmulKey& key) {
  uint64_t hash = (key.bias ? 1u : 0u) | (key.accumulate ? 2u : 0u) | (key.precision == Precision::kBf16 ? 4u : 0u);
  for (const int64_t part : {key.m, key.k, key.n, key.lda, key.ldc}) {
    hash = (std::rotl(hash, 23) ^ static_cast<uint64_t>(part)) * kGoldenGamma;
  }
  return Mix(hash);
}

}  // namespace

SingleOpenMpThread::SingleOpenMpThread() : saved_(omp_get_max_threads()) {
  if (saved_ != 1) omp_set_num_threads(1);
}

SingleOpenMpThread::~SingleOpenMpThread() {
  if (saved_ != 1) omp_set_num_threads(saved_);
}

Descriptor PanelDescriptor(int64_t k, int64_t n, Precision precision) {
  return {{k, n}, OperandType(precision), PanelTag(n, precision)};
}

Descriptor PackedDescriptor(const dnnl::engine& engine, int64_t k, int64_t n, Precision precision) {
  if (precision == Precision::kBf16) return PanelDescriptor(k, n, precision);
  constexpr int64_t kRows = 64;
  const Descriptor any({k, n}, kFloat, dnnl::memory::format_tag::any);
  const dnnl::matmul::desc matmul(RowMajor(kRows, k, k), any, RowMajor(kRows, n, n));
  return dnnl::matmul::primitive_desc(matmul, Attributes(false), engine).weights_desc();
}

void* Scratch::Reserve(size_t bytes) {
  if (bytes > size_) {
    data_ = hwy::AllocateAligned<uint8_t>(bytes);
    CAVS_CHECK(data_ != nullptr, "no {} bytes of scratch memory", bytes);
    size_ = bytes;
  }
  return data_.get();
}

Matmul::Matmul(const dnnl::engine& engine, const MatmulKey& key) {
  const Descriptor a = RowMajor(key.m, key.k, key.lda, OperandType(key.precision));
  const Descriptor b = PackedDescriptor(engine, key.k, key.n, key.precision);
  const Descriptor c = RowMajor(key.m, key.n, key.ldc);
  const Descriptor bias = key.bias ? RowMajor(1, key.n, key.n) : Descriptor();
  const dnnl::matmul::desc matmul = key.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc descriptor(matmul, Attributes(key.accumulate), engine);
  primitive_ = dnnl::matmul(descriptor);
  a_ = dnnl::memory(a, engine, nullptr);
  b_ = dnnl::memory(b, engine, nullptr);
  c_ = dnnl::memory(c, engine, nullptr);
  if (key.bias) bias_ = dnnl::memory(bias, engine, nullptr);
  scratchpad_bytes_ = descriptor.scratchpad_desc().get_size();
  if (scratchpad_bytes_ > 0) scratchpad_ = dnnl::memory(descriptor.scratchpad_desc(), engine, nullptr);
}

// The C interface takes its arguments as an array; the C++ one would fill a hash map on every call.
void Matmul::Execute(const dnnl::stream& stream, Scratch& scratch, const void* a, const void* b, const float* bias,
                     float* c) const {
  SetHandle(a_, Handle(a));
  SetHandle(b_, Handle(b));
  SetHandle(c_, c);
  std::array<dnnl_exec_arg_t, 5> arguments = {
      {{DNNL_ARG_SRC, a_.get()}, {DNNL_ARG_WEIGHTS, b_.get()}, {DNNL_ARG_DST, c_.get()}}};
  size_t count = 3;
  if (scratchpad_) {
    SetHandle(scratchpad_, scratch.Reserve(scratchpad_bytes_));
    arguments[count++] = {DNNL_ARG_SCRATCHPAD, scratchpad_.get()};
  }
  if (bias_) {
    SetHandle(bias_, Handle(bias));
    arguments[count++] = {DNNL_ARG_BIAS, bias_.get()};
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(count), arguments.data()),
      "could not execute a matmul primitive");
}

const Matmul& MatmulTable::Get(const MatmulKey& key) {
  Slot* slot = &Find(key);
  if (slot->matmul == nullptr) {
    if (2 * (used_ + 1) > slots_.size()) {
      Grow();
      slot = &Find(key);
    }
    slot->matmul = std::make_unique<Matmul>(engine_, key);
    slot->key = key;
    ++used_;
  }
  return *slot->matmul;
}

MatmulTable::Slot& MatmulTable::Find(const MatmulKey& key) {
  const size_t mask = slots_.size() - 1;
  size_t i = Hash(key) & mask;
  while (slots_[i].matmul != nullptr && !(slots_[i].key == key)) i = (i + 1) & mask;
  return slots_[i];
}

void MatmulTable::Grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (Slot& slot : old) {
    if (slot.matmul != nullptr) Find(slot.key) = std::move(slot);
  }
}

}  // namespace cavs::cpu
