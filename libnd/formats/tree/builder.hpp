// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "formats/tree/node.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

/// Thrown inside the parsers only, where third-party code stands between the finding and the Result; parse_* catch it.
struct Refused {
  Diagnostic why;
};

/// Builds a ConfigNode from the events of any parser: keeps the limits, refuses duplicate keys and gives every node its
/// path. All methods throw Refused. Thread-compatible.
class TreeBuilder {
 public:
  TreeBuilder(std::string file, const ParseLimits& limits);

  void begin(NodeKind kind, Place place);  ///< sequence or mapping
  void end();
  void key(std::string text, Place place, bool quoted = true);
  void scalar(std::string text, bool quoted, Place place);
  void null(Place place);
  /// Puts a copy of a finished node (an alias); counted against the limits.
  void copy_of(const ConfigNode& node, Place place);
  /// A copy to keep (an anchor); counted against the limits.
  [[nodiscard]] ConfigNode counted_copy(const ConfigNode& node, Place place);

  [[nodiscard]] bool wants_key() const;
  [[nodiscard]] std::size_t depth() const { return frames_.size(); }
  /// The node put last; valid until the next call that changes the tree.
  [[nodiscard]] const ConfigNode& last() const;
  /// The finished tree with files and paths filled in. Refused when nothing was built.
  [[nodiscard]] ConfigNode finish();
  [[noreturn]] void refuse(Errc code, Place place, std::string message, std::string hint = {}) const;

 private:
  struct Frame {
    ConfigNode node;
    std::unordered_set<std::string> keys;
    std::string key;
    Place key_place;
    bool has_key = false;
    bool merge = false;  ///< the key in hand is a plain <<
    std::vector<ConfigNode> merged;
  };
  void put(ConfigNode node);
  void count(std::size_t bytes, Place place);
  void count_tree(const ConfigNode& node, Place place);
  void take_merge(Frame& frame, ConfigNode node) const;
  void apply_merge(Frame& frame);
  void name(ConfigNode& node, const std::string& path);

  std::string file_;
  ParseLimits limits_;
  std::vector<Frame> frames_;
  ConfigNode root_;
  bool has_root_ = false;
  std::size_t nodes_ = 0, bytes_ = 0;
};

}  // namespace nd::formats
