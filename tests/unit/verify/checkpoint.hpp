// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace nd::testing {

/// A folder that is gone when the test is.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& name) : path_(std::filesystem::temp_directory_path() / ("nd_verify_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;
  ~CheckpointFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string path(const std::string& file) const { return (path_ / file).string(); }

 private:
  std::filesystem::path path_;
};

struct FakeTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// A safetensors file whose buffer is a hole of the file system: header and size are real, nothing is stored.
inline void write_safetensors(const std::string& path, const std::vector<FakeTensor>& tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::uint64_t at = 0;
  for (const FakeTensor& tensor : tensors) {
    std::uint64_t elements = 1;
    std::string shape;
    for (const std::int64_t dimension : tensor.shape) {
      elements *= static_cast<std::uint64_t>(dimension);
      shape += (shape.empty() ? "" : ",") + std::to_string(dimension);
    }
    header += ",\"" + tensor.name + "\":{\"dtype\":\"BF16\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + 2 * elements) + "]}";
    at += 2 * elements;
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  std::ofstream out(path, std::ios::binary);
  for (unsigned byte = 0; byte < 8; ++byte) out.put(static_cast<char>((header.size() >> (8 * byte)) & 0xffU));
  out << header;
  out.close();
  std::filesystem::resize_file(path, 8 + header.size() + at);
}

/// A file with this header text, claimed length and buffer size.
inline void write_raw(const std::string& path, const std::string& header, std::uint64_t length, std::uint64_t buffer) {
  std::ofstream out(path, std::ios::binary);
  for (unsigned byte = 0; byte < 8; ++byte) out.put(static_cast<char>((length >> (8 * byte)) & 0xffU));
  out << header;
  out.close();
  std::filesystem::resize_file(path, 8 + header.size() + buffer);
}

}  // namespace nd::testing
