// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nd/diagnostic.hpp"

namespace nd::core {

/// A file that appears whole or not at all: text goes to a file without a name (where the file system has them, else under a
/// temporary name) in the same folder, commit() flushes it to the disk and gives it its name. Without commit() (a failure, an exception) the temporary file is removed and an older file stays as it was.
/// Missing folders of the path are created. Thread-compatible; movable.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// After a failure nothing more is written; commit() reports it.
  void write(std::string_view text);
  /// Brings everything written so far to the disk; only the name is missing then. The reason when that failed (Errc::io).
  [[nodiscard]] std::optional<Diagnostic> prepare();
  /// The reason when the file could not be written (Errc::io).
  [[nodiscard]] std::optional<Diagnostic> commit();

 private:
  void fail(const char* doing);
  void discard();
  [[nodiscard]] bool name_it();
  std::string path_, temporary_;
  int descriptor_ = -1;
  bool nameless_ = false;  ///< no name until commit()
  std::string buffer_;
  std::optional<Diagnostic> failure_;
};

/// Whether two paths are one file: the same device and inode, or the same place after links where one does not exist yet.
[[nodiscard]] bool same_file(const std::string& a, const std::string& b);

/// Writes the whole text; the reason when it failed.
[[nodiscard]] std::optional<Diagnostic> write_file(const std::string& path, std::string_view text);

}  // namespace nd::core
