// SPDX-License-Identifier: Apache-2.0
#include "nd/diagnostic.hpp"

#include <array>
#include <cstddef>

#include "nd/result.hpp"

namespace nd {

namespace {
constexpr std::array<const char*, 11> kCodeText{"io",         "syntax",       "unknown_key", "duplicate_key", "missing_field", "wrong_type",
                                                "out_of_range", "conflict", "unsupported", "empty_space",   "internal"};
static_assert(kCodeText.size() == static_cast<std::size_t>(Errc::internal) + 1);

constexpr std::array<const char*, 3> kSeverityText{"note", "warning", "error"};
}  // namespace

const char* to_text(Errc code) { return kCodeText.at(static_cast<std::size_t>(code)); }

std::string to_text(const SourceRef& where) {
  std::string out = where.file;
  if (where.line > 0) {
    out += ":" + std::to_string(where.line);
    if (where.column > 0) out += ":" + std::to_string(where.column);
  }
  if (!where.path.empty()) out += (out.empty() ? "" : ": ") + where.path;
  return out;
}

std::string to_text(const Diagnostic& diagnostic) {
  std::string out = std::string(kSeverityText.at(static_cast<std::size_t>(diagnostic.severity))) + ": ";
  const std::string place = to_text(diagnostic.where);
  if (!place.empty()) out += place + ": ";
  out += diagnostic.message;
  if (!diagnostic.hint.empty()) out += " (" + diagnostic.hint + ")";
  return out;
}

Errc Error::code() const {
  for (const auto& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::error) return diagnostic.code;
  return Errc::internal;
}

Diagnostic make_diagnostic(Errc code, SourceRef where, std::string message, std::string hint) {
  return {Severity::error, code, std::move(where), std::move(message), std::move(hint)};
}

Error make_error(Errc code, SourceRef where, std::string message, std::string hint) {
  return Error(make_diagnostic(code, std::move(where), std::move(message), std::move(hint)));
}

namespace detail {
void check_failed(const char* condition, const char* file, int line) {
  throw InternalError("broken invariant: " + std::string(condition) + " at " + file + ":" + std::to_string(line));
}
}  // namespace detail

}  // namespace nd
