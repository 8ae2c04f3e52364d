// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <array>
#include <fstream>

#include "traces/chrome.hpp"

namespace nd::traces {

namespace {

/// Reads plain files as they are and gzip files unpacked: zlib looks at the first bytes.
class ZipBuffer : public std::streambuf {
 public:
  explicit ZipBuffer(const std::string& path) : file_(gzopen(path.c_str(), "rb")) {
    if (file_ != nullptr) gzbuffer(file_, 1U << 18U);
  }
  ZipBuffer(const ZipBuffer&) = delete;
  ZipBuffer& operator=(const ZipBuffer&) = delete;
  ~ZipBuffer() override {
    if (file_ != nullptr) gzclose(file_);
  }
  [[nodiscard]] bool open() const { return file_ != nullptr; }

 protected:
  int_type underflow() override {
    const int count = file_ == nullptr ? -1 : gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    if (count <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(*gptr());
  }

 private:
  gzFile file_;
  std::array<char, 1U << 16U> buffer_{};
};

class ZipStream : public std::istream {
 public:
  explicit ZipStream(const std::string& path) : std::istream(nullptr), buffer_(path) { rdbuf(&buffer_); }
  [[nodiscard]] bool open() const { return buffer_.open(); }

 private:
  ZipBuffer buffer_;
};

}  // namespace

std::unique_ptr<std::istream> open_stream(const std::string& path) {
  auto stream = std::make_unique<ZipStream>(path);
  if (!stream->open()) return nullptr;
  return stream;
}

}  // namespace nd::traces
