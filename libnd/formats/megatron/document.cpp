// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/document.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "core/text.hpp"
#include "formats/megatron/arguments.hpp"
#include "formats/shell/script.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

constexpr std::size_t kMostScript = 1U << 20U;  // bytes; launch scripts have a few thousand
constexpr std::string_view kTable = "- arguments -", kTableEnd = "end of arguments";

std::string suffix_of(const std::string& path) {
  std::string out = std::filesystem::path(path).extension().string();
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return out;
}

ConfigNode scalar_node(std::string text, const SourceRef& where) {
  ConfigNode out;
  out.kind = NodeKind::scalar;
  out.text = std::move(text);
  out.where = where;
  return out;
}

constexpr std::size_t kMostArguments = 5000;  // Megatron knows about 600

/// Adds a member; a later one replaces it.
void put(ConfigNode& root, const std::string& name, ConfigNode node) {
  if (root.members.size() >= kMostArguments) return;
  node.where.path = name;
  node.key_line = node.where.line;
  node.key_column = node.where.column;
  for (auto& [key, value] : root.members)
    if (key == name) {
      value = std::move(node);
      return;
    }
  root.members.emplace_back(name, std::move(node));
}

ConfigNode mapping_at(const std::string& path) {
  ConfigNode root;
  root.kind = NodeKind::mapping;
  root.where = {path, 1, 1, {}};
  return root;
}

class ScriptReader {
 public:
  ScriptReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<Document> read() {
    if (text_.size() > kMostScript) return make_error(Errc::out_of_range, {path_, 0, 0, {}}, "is larger than any launch script");
    const auto trace = shell::follow(megatron::command_text(text_), path_);
    if (!trace) return trace.error();
    auto arguments = megatron::find_arguments(*trace, path_);
    if (!arguments) return arguments.error();
    Document out{mapping_at(path_), trace->notes};
    out.notes.insert(out.notes.end(), arguments->notes.begin(), arguments->notes.end());
    if (arguments->list.size() >= kMostArguments) return make_error(Errc::out_of_range, {path_, 0, 0, {}}, "has more arguments than any training program");
    for (const auto& one : arguments->list) put(out.root, one.name, node_of(one));
    if (const auto world = megatron::world_size(*arguments, *trace); world && out.root.find("world_size") == nullptr)
      put(out.root, "world_size", scalar_node(*world, {path_, 0, 0, {}}));
    const auto on_npu = [](const auto& variable) {
      return variable.first.find("NPU") != std::string::npos || variable.first.find("HCCL") != std::string::npos || variable.first.find("ASCEND") != std::string::npos;
    };
    if (std::any_of(trace->variables.begin(), trace->variables.end(), on_npu))
      put(out.root, std::string(megatron::kOnNpu), scalar_node("true", {path_, 0, 0, {}}));
    add_defaults(*trace, out);
    return out;
  }

 private:
  [[nodiscard]] SourceRef place(const shell::Value& value) const {
    for (const auto& piece : value) {
      if (piece.sites.empty()) continue;
      const Place at = PlaceCursor(text_).at(piece.sites.front().begin);
      return {path_, at.line, at.column, {}};
    }
    return {path_, 0, 0, {}};
  }

  [[nodiscard]] ConfigNode node_of(const megatron::Argument& one) const {
    if (one.values.empty()) return scalar_node("true", place(one.flag));
    const std::size_t count = stated_values(one);
    if (count == 1) return scalar_node(shell::text_of(one.values.front()), place(one.values.front()));
    ConfigNode out;
    out.kind = NodeKind::sequence;
    out.where = place(one.values.front());
    for (std::size_t i = 0; i < count; ++i) out.items.push_back(scalar_node(shell::text_of(one.values[i]), place(one.values[i])));
    return out;
  }

  /// Without what stands behind the values and comes from outside: "--seq-length 4096 $EXTRA_ARGS".
  static std::size_t stated_values(const megatron::Argument& one) {
    std::size_t count = one.values.size();
    while (count > 1 && shell::all_open(shell::text_of(one.values[count - 1]))) --count;
    return count;
  }

  void add_defaults(const shell::Trace& trace, Document& out) const {
    std::vector<std::string> names;
    for (const auto& name : trace.defaults)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    constexpr std::size_t kShown = 12;
    std::string list;
    for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) list += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kShown) list += " and " + std::to_string(names.size() - kShown) + " more";
    if (!names.empty())
      out.notes.push_back({Severity::note, Errc::unsupported, {path_, 0, 0, {}}, "the script's own defaults are taken for what the environment may set: " + list, {}});
  }

  std::string_view text_;
  const std::string& path_;
};

/// "  hidden_size ......... 4096" between the lines that open and close the table; a log may put anything before the name.
Result<Document> read_table(std::string_view text, const std::string& path) {
  Document out{mapping_at(path), {}};
  int number = 0;
  bool inside = false;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string_view line = core::trim(text.substr(from, end - from));
    from = end + 1;
    ++number;
    if (line.find(kTableEnd) != std::string_view::npos) break;
    if (line.find(kTable) != std::string_view::npos) {
      inside = true;
      continue;
    }
    const std::size_t dots = line.find(" ...");
    if (!inside || dots == std::string_view::npos) continue;
    const std::string_view before = core::trim(line.substr(0, dots));
    const std::string name(before.substr(before.find_last_of(" \t") == std::string_view::npos ? 0 : before.find_last_of(" \t") + 1));
    std::size_t value_at = dots + 1;
    while (value_at < line.size() && line[value_at] == '.') ++value_at;
    const std::string value(core::trim(line.substr(value_at)));
    const SourceRef where{path, number, 1, {}};
    ConfigNode node = scalar_node(value, where);
    if (value == "None") {
      node.kind = NodeKind::null;
    } else if (value.starts_with('[')) {
      if (const auto list = parse_yaml(value, path); list && list->is_sequence()) node.kind = NodeKind::sequence, node.items = list->items;
    }
    if (!name.empty()) put(out.root, name, std::move(node));
  }
  if (out.root.members.empty()) return make_error(Errc::syntax, {path, 0, 0, {}}, "the table of arguments is empty");
  return out;
}

bool is_table(std::string_view text) { return text.find(kTable) != std::string_view::npos && text.find(" ....") != std::string_view::npos; }

/// ["--num-layers", "12", ...] as a mapping; nullopt when it is no such list.
std::optional<ConfigNode> listed(const ConfigNode& root, const std::string& path) {
  if (!root.is_sequence() || root.items.empty()) return std::nullopt;
  ConfigNode out = mapping_at(path);
  ConfigNode value;
  std::string name;
  const auto finish = [&] {
    if (name.empty()) return;
    if (value.items.empty()) value = scalar_node("true", value.where);
    if (value.items.size() == 1) {
      ConfigNode only = value.items.front();
      value = std::move(only);
    }
    put(out, name, std::move(value));
  };
  if (root.items.size() > 4 * kMostArguments) return std::nullopt;
  for (const auto& item : root.items) {
    if (!item.is_scalar()) return std::nullopt;
    if (item.text.starts_with("--")) {
      finish();
      const std::size_t equals = item.text.find('=');
      name = item.text.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
      std::replace(name.begin(), name.end(), '-', '_');
      value = ConfigNode();
      value.kind = NodeKind::sequence;
      value.where = item.where;
      if (equals != std::string::npos) value.items.push_back(scalar_node(item.text.substr(equals + 1), item.where));
    } else if (name.empty()) {
      return std::nullopt;
    } else {
      // A list of words has no types: "8" in quotes is the number an argument would be.
      value.items.push_back(scalar_node(item.text, item.where));
    }
  }
  finish();
  return out;
}

}  // namespace

std::string megatron::command_text(std::string_view text) {
  std::string out(text);
  if (!core::trim(text).starts_with("--")) return out;
  bool comment = false, line_start = true;
  for (char& c : out) {
    if (line_start && c == '#') comment = true;
    if (c == '\n') comment = false;
    line_start = c == '\n' || (line_start && (c == ' ' || c == '\t'));
    if (comment || c == '\n' || c == '\r') c = ' ';
  }
  return out;
}

bool is_script(std::string_view text, const std::string& path) {
  const std::string suffix = suffix_of(path);
  if (suffix == ".sh" || suffix == ".bash" || suffix == ".slurm" || suffix == ".sbatch" || suffix == ".args") return true;
  constexpr std::array<std::string_view, 4> kTrees{".yaml", ".yml", ".json", ".toml"};
  if (std::find(kTrees.begin(), kTrees.end(), suffix) != kTrees.end()) return false;
  const std::string_view start = core::trim(text);
  return start.starts_with("#!") || start.starts_with("--") || text.find(" --tensor-model-parallel-size") != std::string_view::npos;
}

Result<Document> read_any(std::string_view text, const std::string& path) {
  if (auto problem = text_problem(text, path)) return Error(std::move(*problem));
  text = without_bom(text);
  const std::string suffix = suffix_of(path);
  if (suffix != ".yaml" && suffix != ".yml" && suffix != ".json" && suffix != ".toml" && is_table(text)) return read_table(text, path);
  if (is_script(text, path)) return ScriptReader(text, path).read();
  auto root = parse_document(text, path);
  if (!root) return root.error();
  if (auto list = listed(*root, path)) return Document{std::move(*list), {}};
  return Document{*std::move(root), {}};
}

}  // namespace nd::formats
