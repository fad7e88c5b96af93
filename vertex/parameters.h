// ParameterStore: the values of a model's parameters, and their packed forms for the GEMM.
// Values are plain row-major f32, [rows, columns] as declared. Packed forms are derived: writers of values call
// `Changed`, and whoever ends a writing step calls `Pack`; a run only ever reads them. Values are f32 in every
// precision: with kBf16 packed forms are bf16, and products with parameters and their gradients round their operands.
// Thread-safety: concurrent readers are safe; writing needs exclusive access.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "vertex/kernels/gemm.h"
#include "vertex/signature.h"

namespace cavs {

class ParameterStore {
 public:
  // Initial values are drawn from (seed, parameter name, element).
  // Throws std::invalid_argument for kBf16 on a processor without it.
  ParameterStore(std::shared_ptr<const Signature> signature, uint64_t seed, Precision precision = Precision::kFp32);
  ParameterStore(const ParameterStore&) = delete;
  ParameterStore& operator=(const ParameterStore&) = delete;
  ~ParameterStore();

  Precision precision() const { return precision_; }
  int32_t count() const { return static_cast<int32_t>(values_.size()); }
  const ParameterDeclaration& declaration(int32_t parameter) const;
  // -1 when there is none of this name.
  int32_t Find(std::string_view name) const;

  std::span<float> values(int32_t parameter) { return values_[static_cast<size_t>(parameter)]; }
  std::span<const float> values(int32_t parameter) const { return values_[static_cast<size_t>(parameter)]; }
  int64_t total_elements() const;

  // Overwrites a parameter. Throws std::invalid_argument when the number of elements differs.
  void Set(int32_t parameter, std::span<const float> values);
  // Marks packed forms of a parameter as out of date.
  void Changed(int32_t parameter);
  // Renews packed forms that are out of date, of the parameters that `Executable` multiplies by.
  void Pack();
  // Asks for a packed form of a parameter from the next Pack on.
  void RequestPacked(int32_t parameter);
  // The packed form, or null when there is none that is current.
  const cpu::PackedWeights* packed(int32_t parameter) const;

 private:
  std::shared_ptr<const Signature> signature_;
  Precision precision_;
  std::vector<std::vector<float>> values_;
  struct Packed;
  std::vector<Packed> packed_;
};

}  // namespace cavs
