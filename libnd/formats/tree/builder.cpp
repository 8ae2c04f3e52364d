// SPDX-License-Identifier: Apache-2.0
#include "formats/tree/builder.hpp"

namespace nd::formats {

namespace {
constexpr std::size_t kBytesPerFileByte = 4;  // texts, keys and paths together, relative to ParseLimits::max_bytes
constexpr std::size_t kShownKey = 60;
}  // namespace

TreeBuilder::TreeBuilder(std::string file, const ParseLimits& limits) : file_(std::move(file)), limits_(limits) {}

void TreeBuilder::refuse(Errc code, Place place, std::string message, std::string hint) const {
  throw Refused{make_diagnostic(code, {file_, place.line, place.column, {}}, std::move(message), std::move(hint))};
}

void TreeBuilder::count(std::size_t bytes, Place place) {
  ++nodes_;
  bytes_ += bytes;
  if (nodes_ > limits_.max_nodes)
    refuse(Errc::out_of_range, place, "more than " + std::to_string(limits_.max_nodes) + " values, aliases expanded");
  if (bytes_ / kBytesPerFileByte > limits_.max_bytes) refuse(Errc::out_of_range, place, "too much text, aliases and paths expanded");
}

void TreeBuilder::count_tree(const ConfigNode& node, Place place) {
  count(node.text.size(), place);
  for (const auto& item : node.items) count_tree(item, place);
  for (const auto& [key, value] : node.members) {
    bytes_ += key.size();
    count_tree(value, place);
  }
}

void TreeBuilder::begin(NodeKind kind, Place place) {
  count(0, place);
  if (frames_.size() >= static_cast<std::size_t>(limits_.max_depth))
    refuse(Errc::out_of_range, place, "nested deeper than " + std::to_string(limits_.max_depth) + " levels");
  Frame frame;
  frame.node.kind = kind;
  frame.node.where.line = place.line;
  frame.node.where.column = place.column;
  frames_.push_back(std::move(frame));
}

void TreeBuilder::end() {
  apply_merge(frames_.back());
  ConfigNode node = std::move(frames_.back().node);
  frames_.pop_back();
  put(std::move(node));
}

void TreeBuilder::key(std::string text, Place place, bool quoted) {
  Frame& frame = frames_.back();
  bytes_ += text.size();
  if (!frame.keys.insert(text).second)
    refuse(Errc::duplicate_key, place, "the key '" + text.substr(0, kShownKey) + "' stands twice in one mapping", "remove one of the two");
  frame.merge = !quoted && text == "<<";
  frame.key = std::move(text);
  frame.key_place = place;
  frame.has_key = true;
}

void TreeBuilder::scalar(std::string text, bool quoted, Place place) {
  count(text.size(), place);
  ConfigNode node;
  node.kind = NodeKind::scalar;
  node.text = std::move(text);
  node.quoted = quoted;
  node.where.line = place.line;
  node.where.column = place.column;
  put(std::move(node));
}

void TreeBuilder::null(Place place) {
  count(0, place);
  // An empty value has no text of its own: its key says where it is.
  if (!frames_.empty() && frames_.back().has_key) place = frames_.back().key_place;
  ConfigNode node;
  node.where.line = place.line;
  node.where.column = place.column;
  put(std::move(node));
}

void TreeBuilder::copy_of(const ConfigNode& node, Place place) {
  ConfigNode copy = counted_copy(node, place);
  copy.where.line = place.line;
  copy.where.column = place.column;
  put(std::move(copy));
}

ConfigNode TreeBuilder::counted_copy(const ConfigNode& node, Place place) {
  count_tree(node, place);
  return node;
}

bool TreeBuilder::wants_key() const {
  return !frames_.empty() && frames_.back().node.kind == NodeKind::mapping && !frames_.back().has_key;
}

const ConfigNode& TreeBuilder::last() const {
  if (frames_.empty()) return root_;
  const Frame& frame = frames_.back();
  if (frame.node.kind == NodeKind::sequence) return frame.node.items.back();
  return frame.merge ? frame.merged.back() : frame.node.members.back().second;
}

void TreeBuilder::put(ConfigNode node) {
  if (frames_.empty()) {
    root_ = std::move(node);
    has_root_ = true;
    return;
  }
  Frame& frame = frames_.back();
  if (frame.node.kind == NodeKind::sequence) {
    frame.node.items.push_back(std::move(node));
    return;
  }
  frame.has_key = false;
  if (frame.merge) {
    take_merge(frame, std::move(node));
    return;
  }
  node.key_line = frame.key_place.line;
  node.key_column = frame.key_place.column;
  frame.node.members.emplace_back(std::move(frame.key), std::move(node));
}

void TreeBuilder::take_merge(Frame& frame, ConfigNode node) const {
  bool usable = node.is_mapping() || node.is_sequence();
  for (const auto& item : node.items) usable = usable && item.is_mapping();
  if (!usable)
    refuse(Errc::wrong_type, frame.key_place, "'<<' takes a mapping or a list of mappings", "quote it when it is an ordinary key");
  frame.merged.push_back(std::move(node));
}

void TreeBuilder::apply_merge(Frame& frame) {
  // As YAML 1.1's merge type: what the mapping states itself wins, then the earlier one of a list.
  const auto take = [this, &frame](const ConfigNode& source) {
    for (const auto& [key, value] : source.members) {
      if (!frame.keys.insert(key).second) continue;
      bytes_ += key.size();
      frame.node.members.emplace_back(key, counted_copy(value, {value.key_line, value.key_column}));
    }
  };
  for (const auto& source : frame.merged) {
    if (source.is_mapping()) take(source);
    for (const auto& item : source.items) take(item);
  }
}

void TreeBuilder::name(ConfigNode& node, const std::string& path) {
  bytes_ += path.size();
  if (bytes_ / kBytesPerFileByte > limits_.max_bytes)
    refuse(Errc::out_of_range, {node.where.line, node.where.column}, "too much text, aliases and paths expanded");
  node.where.file = file_;
  node.where.path = path;
  for (std::size_t i = 0; i < node.items.size(); ++i) name(node.items[i], path + "[" + std::to_string(i) + "]");
  for (auto& [key, value] : node.members) name(value, path.empty() ? key : path + "." + key);
}

ConfigNode TreeBuilder::finish() {
  if (!has_root_ || root_.is_null()) refuse(Errc::syntax, {1, 1}, "the document is empty");
  name(root_, {});
  return std::move(root_);
}

}  // namespace nd::formats
