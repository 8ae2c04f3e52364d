// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace nd::testing {

/// A file with this text that is gone when the test is.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text) : path_((std::filesystem::temp_directory_path() / ("nd_" + std::to_string(getpid()) + "_" + name)).string()) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace nd::testing
