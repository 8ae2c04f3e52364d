// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace nd::core {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18U;

/// Returns false on an error, with errno set.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);  // a failure shows when the file is opened
  if (std::filesystem::is_directory(path_, error)) {
    errno = EISDIR;
    fail("write");
    return;
  }
  // A device or pipe cannot be replaced by a rename: it is written directly.
  if (std::filesystem::exists(path_, error) && !std::filesystem::is_regular_file(path_, error)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("write");
    return;
  }
  temporary_ = path_ + ".XXXXXX";
  descriptor_ = ::mkstemp(temporary_.data());
  if (descriptor_ < 0) {
    temporary_.clear();
    fail("write");
    return;
  }
  // mkstemp makes private files; results are for everybody the umask admits.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(descriptor_, 0666U & ~mask) != 0) fail("set the mode of");
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)),
      failure_(std::move(other.failure_)) {}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::write(std::string_view text) {
  if (failure_) return;
  buffer_ += text;
  if (buffer_.size() < kBufferBytes) return;
  if (!write_all(descriptor_, buffer_)) fail("write");
  buffer_.clear();
}

std::optional<Diagnostic> AtomicFile::commit() {
  if (!failure_ && !write_all(descriptor_, buffer_)) fail("write");
  buffer_.clear();
  if (!failure_ && !temporary_.empty()) {
    if (::fsync(descriptor_) != 0) {
      fail("write");
    } else if (::close(std::exchange(descriptor_, -1)) != 0) {
      fail("write");
    } else if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      fail("write");
    } else {
      temporary_.clear();
    }
  }
  discard();
  return failure_;
}

void AtomicFile::fail(const char* doing) {
  if (failure_) return;
  const std::string reason = std::generic_category().message(errno);
  failure_ = make_diagnostic(Errc::io, SourceRef{path_, 0, 0, {}}, std::string("cannot ") + doing + " the file: " + reason);
}

void AtomicFile::discard() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) std::remove(std::exchange(temporary_, {}).c_str());
}

std::optional<Diagnostic> write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  return file.commit();
}

}  // namespace nd::core
