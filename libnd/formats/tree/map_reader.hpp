// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tree/node.hpp"

namespace nd::formats {

/// Reads one mapping field by field, remembers which keys were asked for and collects every problem in `sink`.
/// finish() reports the keys nobody asked for, with the nearest known one. Thread-compatible.
class MapReader {
 public:
  /// `node` must outlive the reader. A node that is no mapping is reported (wrong_type) and reads as empty.
  MapReader(const ConfigNode& node, std::vector<Diagnostic>& sink);

  [[nodiscard]] bool has(std::string_view key) const;
  /// The child, marked as read; nullptr when absent or null.
  [[nodiscard]] const ConfigNode* child(std::string_view key);
  /// Absent or null: nullopt. Wrong type: reported, nullopt.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key);
  [[nodiscard]] std::optional<std::int64_t> positive(std::string_view key);  ///< also out_of_range below 1 or above 2^40
  [[nodiscard]] std::optional<double> real(std::string_view key);
  [[nodiscard]] std::optional<bool> boolean(std::string_view key);
  [[nodiscard]] std::optional<std::string> string(std::string_view key);
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view key);
  [[nodiscard]] std::optional<std::vector<std::string>> strings(std::string_view key);
  /// Reports missing_field at the mapping's own position.
  void require(std::string_view key, std::string_view what_for);
  /// Marks keys as known without reading them (accepted, not priced).
  void ignore(std::initializer_list<std::string_view> keys);
  void ignore_rest();
  /// unknown_key errors for all members not asked for.
  void finish();
  /// Position of a key's value, of the mapping when absent.
  [[nodiscard]] SourceRef where(std::string_view key) const;
  [[nodiscard]] const ConfigNode& node() const { return node_; }
  /// Keys asked for or ignored so far.
  [[nodiscard]] const std::set<std::string, std::less<>>& known() const { return known_; }
  void error(std::string_view key, Errc code, std::string message, std::string hint = {});

 private:
  const ConfigNode& node_;
  std::vector<Diagnostic>& sink_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace nd::formats
