// Reads safetensors files: named arrays with text metadata. tensor_file.py writes them.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace peers {

// One file, open. Throws std::runtime_error or a JSON error for what it does not hold.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path) : file_(path, std::ios::binary) {
    uint64_t length = 0;
    file_.read(reinterpret_cast<char*>(&length), sizeof(length));
    std::string text(length, ' ');
    file_.read(text.data(), static_cast<std::streamsize>(length));
    if (!file_) throw std::runtime_error("cannot read " + path);
    header_ = nlohmann::json::parse(text);
    data_begin_ = sizeof(length) + length;
  }

  bool Has(const std::string& name) const { return header_.contains(name); }
  std::string Text(const std::string& key) const { return header_.at("__metadata__").at(key); }
  int Number(const std::string& key) const { return std::stoi(Text(key)); }

  template <typename T>
  std::vector<T> Values(const std::string& name) {
    const nlohmann::json& offsets = header_.at(name).at("data_offsets");
    const auto begin = offsets.at(0).get<uint64_t>(), end = offsets.at(1).get<uint64_t>();
    std::vector<T> values((end - begin) / sizeof(T));
    file_.seekg(static_cast<std::streamoff>(data_begin_ + begin));
    file_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(end - begin));
    return values;
  }

 private:
  std::ifstream file_;
  nlohmann::json header_;
  uint64_t data_begin_ = 0;
};

}  // namespace peers
