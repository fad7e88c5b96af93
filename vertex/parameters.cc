#include "vertex/parameters.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cavs/base/error.h"
#include "cavs/base/random.h"

namespace cavs {

struct ParameterStore::Packed {
  std::unique_ptr<cpu::PackedWeights> weights;
  bool requested = false;
  bool current = false;
};

namespace {

uint64_t HashName(std::string_view name) {
  uint64_t hash = 0;
  for (const char c : name) hash = HashCounter(hash, static_cast<unsigned char>(c));
  return hash;
}

void Initialize(const ParameterDeclaration& declaration, uint64_t seed, std::vector<float>* values) {
  const Initializer& initializer = declaration.initializer;
  CounterRandom random(seed, HashName(declaration.name));
  const double scale = initializer.scale;
  const auto uniform = [&](double half_range) {
    return static_cast<float>((2.0 * random.Uniform() - 1.0) * half_range);
  };
  switch (initializer.kind) {
    case Initializer::Kind::kConstant:
      std::fill(values->begin(), values->end(), initializer.scale);
      break;
    case Initializer::Kind::kValues:
      *values = initializer.values;
      break;
    case Initializer::Kind::kUniform:
      for (float& value : *values) value = uniform(scale);
      break;
    case Initializer::Kind::kNormal:
      for (float& value : *values) value = static_cast<float>(random.Normal() * scale);
      break;
    case Initializer::Kind::kGlorotUniform: {
      if (declaration.shape.rank() == 1) break;
      // Glorot and Bengio 2010, eq. 16.
      const double fan = static_cast<double>(declaration.shape.rows() + declaration.shape.columns());
      for (float& value : *values) value = uniform(scale * std::sqrt(6.0 / fan));
      break;
    }
  }
}

}  // namespace

ParameterStore::ParameterStore(std::shared_ptr<const Signature> signature, uint64_t seed, Precision precision)
    : signature_(std::move(signature)),
      precision_(precision),
      values_(signature_->parameters.size()),
      packed_(signature_->parameters.size()) {
  if (precision == Precision::kBf16 && !cpu::HasFastBf16()) {
    ThrowInvalid("precision", fmt::format("expected fp32, got bf16: {}", cpu::kNoFastBf16));
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    values_[i].resize(static_cast<size_t>(signature_->parameters[i].shape.width()));
    Initialize(signature_->parameters[i], seed, &values_[i]);
  }
}

ParameterStore::~ParameterStore() = default;

const ParameterDeclaration& ParameterStore::declaration(int32_t parameter) const {
  return signature_->parameters[static_cast<size_t>(parameter)];
}

int32_t ParameterStore::Find(std::string_view name) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (signature_->parameters[i].name == name) return static_cast<int32_t>(i);
  }
  return -1;
}

int64_t ParameterStore::total_elements() const {
  int64_t total = 0;
  for (const std::vector<float>& values : values_) total += std::ssize(values);
  return total;
}

void ParameterStore::Set(int32_t parameter, std::span<const float> values) {
  std::vector<float>& own = values_[static_cast<size_t>(parameter)];
  if (values.size() != own.size()) {
    ThrowInvalid("parameter", fmt::format("expected {} numbers for \"{}\", got {}", own.size(),
                                          declaration(parameter).name, values.size()));
  }
  std::copy(values.begin(), values.end(), own.begin());
  Changed(parameter);
}

void ParameterStore::Changed(int32_t parameter) { packed_[static_cast<size_t>(parameter)].current = false; }

void ParameterStore::RequestPacked(int32_t parameter) { packed_[static_cast<size_t>(parameter)].requested = true; }

void ParameterStore::Pack() {
  for (int32_t i = 0; i < count(); ++i) {
    Packed& packed = packed_[static_cast<size_t>(i)];
    if (!packed.requested || packed.current) continue;
    const Shape& shape = declaration(i).shape;
    if (packed.weights == nullptr) {
      packed.weights = std::make_unique<cpu::PackedWeights>(
          shape.rows(), shape.columns(), cpu::PackedWeights::Forms::kForwardAndTransposed, precision_);
    }
    packed.weights->Pack(values(i).data(), shape.columns());
    packed.current = true;
  }
}

const cpu::PackedWeights* ParameterStore::packed(int32_t parameter) const {
  const Packed& packed = packed_[static_cast<size_t>(parameter)];
  return packed.current ? packed.weights.get() : nullptr;
}

}  // namespace cavs
