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
    : layout_(std::move(signature)),
      precision_(precision),
      values_(static_cast<size_t>(layout_.total())),
      packed_(static_cast<size_t>(layout_.total())) {
  if (precision == Precision::kBf16 && !cpu::HasFastBf16()) {
    ThrowInvalid("precision", fmt::format("expected fp32, got bf16: {}", cpu::kNoFastBf16));
  }
  for (int32_t i = 0; i < layout_.total(); ++i) {
    if (layout_.owns(i)) Own(i).resize(static_cast<size_t>(declaration(i).shape.width()));
  }
  for (int32_t i = 0; i < count(); ++i) {
    if (layout_.owns(i)) {
      Initialize(declaration(i), seed, &Own(i));
    } else {
      std::vector<float> initial(static_cast<size_t>(declaration(i).shape.width()));
      Initialize(declaration(i), seed, &initial);
      Set(i, initial);
    }
  }
}

ParameterStore::ParameterStore(ParameterStore&&) noexcept = default;
ParameterStore& ParameterStore::operator=(ParameterStore&&) noexcept = default;
ParameterStore::~ParameterStore() = default;

int32_t ParameterStore::Find(std::string_view name) const {
  for (int32_t i = 0; i < count(); ++i) {
    if (declaration(i).name == name) return i;
  }
  return -1;
}

int64_t ParameterStore::total_elements() const {
  int64_t total = 0;
  for (int32_t i = 0; i < count(); ++i) total += declaration(i).shape.width();
  return total;
}

std::vector<float>& ParameterStore::Own(int32_t parameter) {
  CAVS_CHECK(layout_.owns(parameter), "\"{}\" lies in another parameter", declaration(parameter).name);
  return values_[static_cast<size_t>(parameter)];
}

std::vector<float> ParameterStore::Get(int32_t parameter) const {
  return layout_.Read(parameter, values(layout_.owner(parameter)));
}

void ParameterStore::Set(int32_t parameter, std::span<const float> values) {
  const ParameterDeclaration& own = declaration(parameter);
  if (std::ssize(values) != own.shape.width()) {
    ThrowInvalid("parameter",
                 fmt::format("expected {} numbers for \"{}\", got {}", own.shape.width(), own.name, values.size()));
  }
  layout_.Write(parameter, values, Own(layout_.owner(parameter)));
  Changed(parameter);
}

void ParameterStore::Changed(int32_t parameter) {
  packed_[static_cast<size_t>(layout_.owner(parameter))].current = false;
}

void ParameterStore::RequestPacked(int32_t parameter) { packed_[static_cast<size_t>(parameter)].requested = true; }

void ParameterStore::Pack() {
  for (int32_t i = 0; i < layout_.total(); ++i) {
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
