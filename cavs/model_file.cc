#include "cavs/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "cavs/base/error.h"
#include "cavs/base/utf8.h"
#include "cavs/text.h"
#include "cavs/xxh64.h"

namespace cavs {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian and written from memory");

constexpr int64_t kVersion = 1;
// The limit of the format's other readers.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kLengthBytes = 8;
// The data begins at a multiple of this, so that it can be mapped as vectors.
constexpr uint64_t kAlignment = 64;

constexpr const char* kMetadataKey = "__metadata__";
constexpr const char* kFormatKey = "format";
constexpr const char* kVersionKey = "format_version";
constexpr const char* kDigestKey = "digest";

struct ElementTypeName {
  ElementType type;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<ElementTypeName, 4> kElementTypes = {{{ElementType::kF32, "F32", 4},
                                                           {ElementType::kF64, "F64", 8},
                                                           {ElementType::kI32, "I32", 4},
                                                           {ElementType::kI64, "I64", 8}}};

const ElementTypeName& Describe(ElementType type) {
  const size_t at = static_cast<size_t>(type);
  CAVS_CHECK(at < kElementTypes.size(), "element type {}", at);
  return kElementTypes[at];
}

std::string_view FormatName(FileKind kind) { return kind == FileKind::kModel ? "cavs-model" : "cavs-state"; }

std::string_view KindName(FileKind kind) {
  return kind == FileKind::kModel ? "a cavs model file" : "a cavs training-state file";
}

// product(shape) * element_bytes; nothing when a dimension is negative or the product does not fit.
std::optional<int64_t> BytesOf(const std::vector<int64_t>& shape, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

// The digest covers the header in one canonical spelling: its blanks, escapes and order of keys do not count. `header`
// has no digest entry.
Xxh64 StartDigest(const json& header) {
  Xxh64 digest;
  digest.Update(BytesOf(header.dump()));
  return digest;
}

std::string DigestText(const Xxh64& digest) { return fmt::format("xxh64:{:016x}", digest.Digest()); }

void RequireText(const std::string& path, std::string_view what, std::string_view text) {
  if (FindInvalidUtf8(text) >= 0) ThrowInvalid(path, fmt::format("expected a {} in UTF-8, got other bytes", what));
}

// One tensor of a file: where its bytes lie in the data section.
struct Entry {
  StoredTensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

json MakeHeader(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata,
                FileKind kind) {
  json header = json::object();
  int64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    RequireText(path, "tensor name", tensor.name);
    if (tensor.name == kMetadataKey) ThrowInvalid(path, fmt::format("expected a tensor name, got {}", kMetadataKey));
    const ElementTypeName& type = Describe(tensor.type);
    const std::optional<int64_t> bytes = BytesOf(tensor.shape, type.bytes);
    int64_t end = 0;
    if (!bytes || __builtin_add_overflow(offset, *bytes, &end)) {
      ThrowInvalid(path, fmt::format("expected sizes of at least 0 that fit in 64 bits, got [{}] for tensor '{}'",
                                     fmt::join(tensor.shape, ", "), tensor.name));
    }
    const json entry = {{"dtype", type.name}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    if (!header.emplace(tensor.name, entry).second) {
      ThrowInvalid(path, fmt::format("expected tensor names that differ, got '{}' twice", tensor.name));
    }
    offset = end;
  }
  json entries = {{kFormatKey, FormatName(kind)}, {kVersionKey, std::to_string(kVersion)}};
  for (const auto& [key, value] : metadata) {
    RequireText(path, "metadata key", key);
    RequireText(path, fmt::format("metadata value of '{}'", key), value);
    if (key == kDigestKey || !entries.emplace(key, value).second) {
      ThrowInvalid(path, fmt::format("expected metadata without reserved keys, got '{}'", key));
    }
  }
  header[kMetadataKey] = std::move(entries);
  return header;
}

// Reads one file front to back, and words what is wrong with it.
class Reader {
 public:
  Reader(const std::string& path, FileKind kind) : path_(path), kind_(kind) {}

  ModelFile Read() {
    Open();
    const json header = ReadHeader();
    return ReadData(header, Entries(header));
  }

 private:
  [[noreturn]] void Fail(std::string_view got) const {
    throw FileError(path_, fmt::format("expected {}, got {}", KindName(kind_), got));
  }

  [[noreturn]] void FailDamaged(std::string_view how) const { Fail(fmt::format("a damaged one: {}", how)); }

  void Open() {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path_, error);
    if (status.type() == std::filesystem::file_type::not_found) Fail("nothing: there is no such file");
    if (error) Fail(error.message());
    if (std::filesystem::is_directory(status)) Fail("a folder");
    if (!std::filesystem::is_regular_file(status)) Fail("something that is no ordinary file");
    file_size_ = std::filesystem::file_size(path_, error);
    if (error) Fail(error.message());
    file_.open(path_, std::ios::binary);
    if (!file_) Fail("a file that cannot be opened for reading");
  }

  void ReadBytes(void* bytes, uint64_t count) {
    file_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(count));
    if (!file_) Fail("a file that cannot be read to its end");
  }

  // The header as JSON, once the metadata has proved that it is ours; the digest is taken out of it.
  json ReadHeader() {
    if (file_size_ < kLengthBytes) Fail(fmt::format("a file of {} bytes", file_size_));
    uint64_t length = 0;
    ReadBytes(&length, kLengthBytes);
    if (length < 2 || length > kMaxHeaderBytes) Fail("a file of another format");
    const uint64_t present = std::min(length, file_size_ - kLengthBytes);
    std::string text(present, '\0');
    ReadBytes(text.data(), present);
    if (present == 0 || text[0] != '{') Fail("a file of another format");
    if (present < length) FailDamaged(fmt::format("it is cut short within its header, at {} bytes", file_size_));
    data_begin_ = kLengthBytes + length;

    json header = json::parse(text, nullptr, /*allow_exceptions=*/false);
    // The JSON parser takes a zero byte for the end of the text.
    if (!header.is_object() || text.find('\0') != std::string::npos) FailDamaged("its header is not JSON");
    TakeMetadata(header);
    return header;
  }

  void TakeMetadata(json& header) {
    const auto metadata = header.find(kMetadataKey);
    if (metadata == header.end()) Fail("a safetensors file of another program");
    const bool texts = metadata->is_object() &&
                       std::all_of(metadata->begin(), metadata->end(), [](const json& v) { return v.is_string(); });
    if (!texts) FailDamaged("its metadata are not text");
    for (const auto& [key, value] : metadata->items()) metadata_[key] = value.get<std::string>();

    const std::string format = TakeReserved(kFormatKey);
    const FileKind other = kind_ == FileKind::kModel ? FileKind::kState : FileKind::kModel;
    if (format == FormatName(other)) Fail(KindName(other));
    if (format != FormatName(kind_)) Fail("a safetensors file of another program");
    const std::optional<int64_t> version = ParseInt(TakeReserved(kVersionKey));
    if (!version || *version < 1) FailDamaged("it has no version");
    if (*version > kVersion) {
      Fail(fmt::format("one of a newer version (format {}, this program reads up to {})", *version, kVersion));
    }
    digest_ = TakeReserved(kDigestKey);
    metadata->erase(kDigestKey);
  }

  // Moves an entry out of the metadata; empty when there is none.
  std::string TakeReserved(const char* key) {
    const auto node = metadata_.extract(key);
    return node.empty() ? std::string() : node.mapped();
  }

  // The tensors in the order of their data, which must fill the rest of the file exactly.
  std::vector<Entry> Entries(const json& header) const {
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name != kMetadataKey) entries.push_back(ParseEntry(name, value));
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    uint64_t end = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != end) FailDamaged(fmt::format("the data of tensor '{}' are misplaced", entry.tensor.name));
      end = entry.end;
    }
    const uint64_t present = file_size_ - data_begin_;
    if (present < end) {
      FailDamaged(fmt::format("it is cut short, with {} of {} bytes", file_size_, data_begin_ + end));
    }
    if (present > end) FailDamaged(fmt::format("{} bytes follow its end", present - end));
    return entries;
  }

  Entry ParseEntry(const std::string& name, const json& value) const {
    const auto is_size = [](const json& number) {
      return number.is_number_unsigned() && number.get<uint64_t>() < uint64_t{1} << 62;
    };
    const auto has_sizes = [&](const char* key) {
      const auto found = value.find(key);
      return found != value.end() && found->is_array() && std::all_of(found->begin(), found->end(), is_size);
    };
    const std::string how = fmt::format("the entry of tensor '{}' is malformed", name);
    if (!value.is_object() || !has_sizes("shape") || !has_sizes("data_offsets")) FailDamaged(how);
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) FailDamaged(how);
    const auto type = std::find_if(kElementTypes.begin(), kElementTypes.end(), [&](const ElementTypeName& candidate) {
      return candidate.name == dtype->get_ref<const std::string&>();
    });
    const json& offsets = value.at("data_offsets");
    if (type == kElementTypes.end() || offsets.size() != 2) FailDamaged(how);

    Entry entry;
    entry.tensor = {name, value.at("shape").get<std::vector<int64_t>>(), type->type, {}};
    entry.begin = offsets[0].get<uint64_t>();
    entry.end = offsets[1].get<uint64_t>();
    const std::optional<int64_t> bytes = BytesOf(entry.tensor.shape, type->bytes);
    if (!bytes || entry.begin + static_cast<uint64_t>(*bytes) != entry.end) FailDamaged(how);
    return entry;
  }

  ModelFile ReadData(const json& header, std::vector<Entry> entries) {
    ModelFile result;
    Xxh64 digest = StartDigest(header);
    for (Entry& entry : entries) {
      std::vector<std::byte>& bytes = entry.tensor.bytes;
      bytes.resize(entry.end - entry.begin);
      ReadBytes(bytes.data(), bytes.size());
      digest.Update(bytes);
      result.tensors.push_back(std::move(entry.tensor));
    }
    if (DigestText(digest) != digest_) FailDamaged("its contents do not match its digest");
    result.metadata = std::move(metadata_);
    return result;
  }

  const std::string& path_;
  const FileKind kind_;
  std::ifstream file_;
  uint64_t file_size_ = 0;
  uint64_t data_begin_ = 0;
  Metadata metadata_;
  std::string digest_;
};

template <typename T>
constexpr ElementType kTypeOf = ElementType::kF32;
template <>
constexpr ElementType kTypeOf<double> = ElementType::kF64;
template <>
constexpr ElementType kTypeOf<int32_t> = ElementType::kI32;
template <>
constexpr ElementType kTypeOf<int64_t> = ElementType::kI64;

}  // namespace

int64_t SizeOf(ElementType type) { return Describe(type).bytes; }

int64_t StoredTensor::count() const { return static_cast<int64_t>(bytes.size()) / SizeOf(type); }

template <typename T>
std::span<const T> StoredTensor::Values() const {
  CAVS_CHECK(type == kTypeOf<T>, "tensor '{}' holds {}", name, Describe(type).name);
  return {reinterpret_cast<const T*>(bytes.data()), static_cast<size_t>(count())};
}

template std::span<const float> StoredTensor::Values<float>() const;
template std::span<const double> StoredTensor::Values<double>() const;
template std::span<const int32_t> StoredTensor::Values<int32_t>() const;
template std::span<const int64_t> StoredTensor::Values<int64_t>() const;

const StoredTensor* ModelFile::Find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

void WriteModelFile(const std::string& path, std::span<const NamedTensor> tensors, const Metadata& metadata,
                    FileKind kind) {
  json header = MakeHeader(path, tensors, metadata, kind);
  const auto data = [](const NamedTensor& tensor) {
    const std::optional<int64_t> bytes = BytesOf(tensor.shape, SizeOf(tensor.type));
    return std::span(static_cast<const std::byte*>(tensor.data), static_cast<size_t>(bytes.value()));
  };
  Xxh64 digest = StartDigest(header);
  for (const NamedTensor& tensor : tensors) digest.Update(data(tensor));
  header[kMetadataKey][kDigestKey] = DigestText(digest);

  std::string text = header.dump();
  text.append((kAlignment - (kLengthBytes + text.size()) % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    ThrowInvalid(path,
                 fmt::format("expected names and metadata of at most {} bytes, got {}", kMaxHeaderBytes, text.size()));
  }
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.Write(std::as_bytes(std::span(&length, 1)));
  file.Write(BytesOf(text));
  for (const NamedTensor& tensor : tensors) file.Write(data(tensor));
  file.Commit();
}

ModelFile ReadModelFile(const std::string& path, FileKind kind) { return Reader(path, kind).Read(); }

}  // namespace cavs
