// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace nd {

/// What went wrong, for programs. Append-only.
enum class Errc {
  io,             ///< a file cannot be read or written
  syntax,         ///< the text is not what its format demands
  unknown_key,    ///< a key nobody reads
  duplicate_key,  ///< the same key twice in one mapping
  missing_field,  ///< a needed field is absent
  wrong_type,     ///< the value is of another type
  out_of_range,   ///< the value is of the right type but not allowed
  conflict,       ///< two statements contradict each other
  unsupported,    ///< understood, but not something that can be priced
  empty_space,    ///< no candidate is left
  internal,       ///< a bug of ours
};

enum class Severity { note, warning, error };

/// A place in an input: 1-based line and column; 0 = unknown. `path` is the field path ("parallelism.pp"), a JSON
/// pointer, or the option ("-d"). Any part may be empty.
struct SourceRef {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;

  friend bool operator==(const SourceRef&, const SourceRef&) = default;
};

/// One message for a person: where, what, and what to do about it.
struct Diagnostic {
  Severity severity = Severity::error;
  Errc code = Errc::internal;
  SourceRef where;
  std::string message;
  std::string hint;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// "error: file:line:column: path: message (hint)"; unknown parts of the place are left out.
[[nodiscard]] std::string to_text(const Diagnostic& diagnostic);
[[nodiscard]] std::string to_text(const SourceRef& where);
[[nodiscard]] const char* to_text(Errc code);

/// One or more diagnostics of which at least one is an error.
struct Error {
  std::vector<Diagnostic> diagnostics;

  Error() = default;
  explicit Error(Diagnostic one) { diagnostics.push_back(std::move(one)); }
  explicit Error(std::vector<Diagnostic> all) : diagnostics(std::move(all)) {}
  /// The code of the first diagnostic of severity error.
  [[nodiscard]] Errc code() const;
};

/// Convenience for the common case of one error.
[[nodiscard]] Error make_error(Errc code, SourceRef where, std::string message, std::string hint = {});
[[nodiscard]] Diagnostic make_diagnostic(Errc code, SourceRef where, std::string message, std::string hint = {});

}  // namespace nd
