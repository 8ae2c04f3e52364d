// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nd/diagnostic.hpp"

namespace nd::core {

/// A file that appears whole or not at all: text goes to a temporary name in the same folder, commit() flushes it to the disk and
/// renames it. Without commit() (a failure, an exception) the temporary file is removed and an older file stays as it was.
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
  /// The reason when the file could not be written (Errc::io).
  [[nodiscard]] std::optional<Diagnostic> commit();

 private:
  void fail(const char* doing);
  void discard();
  std::string path_, temporary_;
  int descriptor_ = -1;
  std::string buffer_;
  std::optional<Diagnostic> failure_;
};

/// Writes the whole text; the reason when it failed.
[[nodiscard]] std::optional<Diagnostic> write_file(const std::string& path, std::string_view text);

}  // namespace nd::core
