// Model files and training-state files: named tensors and text metadata in the safetensors format.
//
// Layout: the header's length (8 bytes, little-endian), a JSON header padded with spaces, the tensors' data without
// gaps, row-major and little-endian. Any safetensors reader can open the files. Three reserved metadata entries mark
// them as ours: "format" ("cavs-model" or "cavs-state"), "format_version", and "digest", an XXH64 over the rest of the
// header (as compact JSON with sorted keys) and the data. A file is written under a temporary name in the same folder,
// synced and renamed: readers see the old file or the new one, never a part. All functions are safe to call from any
// thread; two writers of one path leave one of the two files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cavs/file_output.h"

namespace cavs {

enum class FileKind : uint8_t { kModel, kState };

// kI64 and kF64 serve counters and the optimizer's state.
enum class ElementType : uint8_t { kF32, kF64, kI32, kI64 };

// Bytes of one element.
int64_t SizeOf(ElementType type);

// A tensor to be written; refers to the caller's memory: product(shape) contiguous elements of `type`.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  ElementType type = ElementType::kF32;
  const void* data = nullptr;
};

// A tensor that was read; owns its elements.
struct StoredTensor {
  std::string name;
  std::vector<int64_t> shape;
  ElementType type = ElementType::kF32;
  std::vector<std::byte> bytes;

  // product(shape).
  int64_t count() const;

  // The elements in row-major order; throws std::logic_error if T is not the type that `type` names.
  template <typename T>
  std::span<const T> Values() const;
};

using Metadata = std::map<std::string, std::string>;

struct ModelFile {
  Metadata metadata;                  // without the reserved entries
  std::vector<StoredTensor> tensors;  // in the order in which they were written

  // Null when the file has no tensor of that name.
  const StoredTensor* Find(std::string_view name) const;
};

// Writes the file, replacing an old one of that name in one step. Throws std::invalid_argument for a name that is used
// twice or reserved, text that is not UTF-8 or a negative size, and FileError when the file cannot be written; then
// the old file is unchanged and nothing new is left in the folder.
void WriteModelFile(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata,
                    FileKind kind = FileKind::kModel);

// Reads a file of the given kind. Throws FileError when it is missing, of another kind or program, of a newer version,
// cut short or damaged.
ModelFile ReadModelFile(const std::string& path, FileKind kind = FileKind::kModel);

}  // namespace cavs
