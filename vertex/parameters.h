// ParameterStore: the values of a model's parameters, and their packed forms for the GEMM.
// Values are plain f32, laid out as ParameterLayout says. Packed forms are derived: writers of values call `Changed`,
// and whoever ends a writing step calls `Pack`; a run only ever reads them. Values are f32 in every precision: with
// kBf16 packed forms are bf16, and products with parameters and their gradients round their operands.
// Thread-safety: concurrent readers are safe; writing needs exclusive access.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "vertex/kernels/gemm.h"
#include "vertex/parameter_layout.h"
#include "vertex/signature.h"

namespace cavs {

class ParameterStore {
 public:
  // `signature` is that of the Programs that run, with the parameters that passes merged. Initial values are drawn from
  // (seed, parameter name, element), wherever they lie.
  // Throws std::invalid_argument for kBf16 on a processor without it.
  ParameterStore(std::shared_ptr<const Signature> signature, uint64_t seed, Precision precision = Precision::kFp32);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;
  ParameterStore(ParameterStore&&) noexcept;
  ParameterStore& operator=(ParameterStore&&) noexcept;
  ~ParameterStore();

  Precision precision() const { return precision_; }
  const ParameterLayout& layout() const { return layout_; }
  // Declared parameters: the numbers below this.
  int32_t count() const { return layout_.declared(); }
  const ParameterDeclaration& declaration(int32_t parameter) const { return layout_.declaration(parameter); }
  // A declared parameter; -1 when there is none of this name.
  int32_t Find(std::string_view name) const;
  // Of all declared parameters.
  int64_t total_elements() const;

  // A copy of the values of any parameter, [rows * columns], row-major.
  std::vector<float> Get(int32_t parameter) const;
  // Overwrites a parameter. Throws std::invalid_argument when the number of elements differs.
  void Set(int32_t parameter, std::span<const float> values);

  // The values in place, of a parameter that owns them.
  std::span<float> values(int32_t parameter) { return Own(parameter); }
  std::span<const float> values(int32_t parameter) const { return const_cast<ParameterStore*>(this)->Own(parameter); }

  // Marks packed forms of a parameter as out of date, with those that it is a part of.
  void Changed(int32_t parameter);
  // Renews packed forms that are out of date, of the parameters that `Executable` multiplies by.
  void Pack();
  // Asks for a packed form of a parameter that owns its values from the next Pack on.
  void RequestPacked(int32_t parameter);
  // The packed form, or null when there is none that is current.
  const cpu::PackedWeights* packed(int32_t parameter) const;

 private:
  std::vector<float>& Own(int32_t parameter);

  ParameterLayout layout_;
  Precision precision_;
  std::vector<std::vector<float>> values_;  // by parameter; empty for one that another owns
  struct Packed;
  std::vector<Packed> packed_;
};

}  // namespace cavs
