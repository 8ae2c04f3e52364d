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
#ifdef O_TMPFILE
  // A file without a name: whatever kills the process, nothing is left behind.
  descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  nameless_ = descriptor_ >= 0;
#endif
  if (!nameless_) {
    temporary_ = path_ + ".XXXXXX";
    descriptor_ = ::mkstemp(temporary_.data());
    if (descriptor_ < 0) {
      temporary_.clear();
      fail("write");
      return;
    }
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
      nameless_(std::exchange(other.nameless_, false)),
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

std::optional<Diagnostic> AtomicFile::prepare() {
  const bool replaces = nameless_ || !temporary_.empty();
  if (!failure_ && replaces && (!write_all(descriptor_, buffer_) || ::fsync(descriptor_) != 0)) fail("write");
  if (replaces) buffer_.clear();
  return failure_;
}

std::optional<Diagnostic> AtomicFile::commit() {
  if (!prepare() && !write_all(descriptor_, buffer_)) fail("write");  // what is left goes to a device or pipe
  buffer_.clear();
  if (!failure_ && (nameless_ || !temporary_.empty())) {
    if (!name_it()) {
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

/// Gives a nameless file a temporary name, which the rename then replaces; linking cannot replace an existing file itself.
bool AtomicFile::name_it() {
  if (!nameless_) return true;
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string name = path_ + "." + std::to_string(::getpid()) + "." + std::to_string(i);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
      nameless_ = false;
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
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

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  // Neither needs to exist yet: compare where the names lead.
  const auto first = std::filesystem::weakly_canonical(a, error), second = std::filesystem::weakly_canonical(b, error);
  return !error && !first.empty() && first == second;
}

std::optional<Diagnostic> write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  return file.commit();
}

}  // namespace nd::core
