// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/readers/section.hpp"
#include "formats/tree/node.hpp"
#include "nd/result.hpp"

namespace nd::formats::megatron {

/// Typed access to a flat mapping of arguments. Collects every problem; remembers what was asked for. Thread-compatible.
class Fields {
 public:
  /// `root` must outlive the object.
  explicit Fields(const ConfigNode& root) : root_(root) {}

  /// Stated and not null, under the first of its spellings that is.
  [[nodiscard]] const ConfigNode* find(Names names);
  [[nodiscard]] bool has(Names names) { return find(names) != nullptr; }
  [[nodiscard]] std::optional<std::int64_t> integer(Names names);   ///< any whole number up to 2^40
  [[nodiscard]] std::optional<std::int64_t> positive(Names names);  ///< at least 1
  [[nodiscard]] std::optional<double> real(Names names);
  [[nodiscard]] std::optional<std::string> word(Names names);       ///< text of a scalar
  [[nodiscard]] std::optional<std::vector<std::string>> words(Names names);
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(Names names);  ///< a list, or "1,2,3"
  /// A switch: given without a value, or true / false.
  [[nodiscard]] std::optional<bool> flag(Names names);
  [[nodiscard]] bool on(Names names) { return flag(names).value_or(false); }
  void known(Names names) { known_.insert(names.begin(), names.end()); }

  [[nodiscard]] SourceRef where(Names names) const;
  [[nodiscard]] const ConfigNode& root() const { return root_; }
  [[nodiscard]] const std::set<std::string, std::less<>>& asked() const { return known_; }

  void error(Names names, Errc code, std::string message, std::string hint = {});
  void warn(Names names, Errc code, std::string message, std::string hint = {});
  void note(Names names, std::string message);

  std::vector<Diagnostic> problems, notes;

 private:
  /// Keeps a problem, once: arguments may be asked for in several places.
  void report(Diagnostic problem);
  /// The text of a scalar that is decided; else reported.
  [[nodiscard]] std::optional<std::string> text(const ConfigNode& node, std::string_view name, std::string_view wanted);
  [[nodiscard]] SourceRef place(const ConfigNode* node, std::string_view name) const;
  const ConfigNode& root_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> reported_;  ///< open names are reported once
};

}  // namespace nd::formats::megatron
