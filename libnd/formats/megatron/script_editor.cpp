// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/script_editor.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/text.hpp"
#include "formats/megatron/arguments.hpp"
#include "formats/megatron/document.hpp"
#include "formats/shell/script.hpp"
#include "formats/shell/value.hpp"

namespace nd::formats::megatron {

namespace {

using shell::Span;
using shell::Value;

constexpr std::size_t kDeepestSite = 4;

std::string option(std::string_view name) {
  std::string out = "--" + std::string(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// One replacement in the text.
struct Edit {
  Span span;
  std::string text;
};

/// Names and values of a document, for comparing before and after.
std::map<std::string, std::string> flat_values(const ConfigNode& root) {
  std::map<std::string, std::string> out;
  for (const auto& [name, node] : root.members) {
    std::string text = node.text;
    for (const auto& item : node.items) text += "\n" + item.text;
    out[name] = text;
  }
  return out;
}

class ScriptEditor {
 public:
  ScriptEditor(const std::string& text, Arguments arguments) : text_(text), arguments_(std::move(arguments)) {}

  /// Edits at one depth of references: 0 the literal itself, 1 the first place that refers to it, ...
  std::optional<std::string> at_depth(const std::vector<Change>& changes, const std::vector<std::pair<Value, std::string>>& launcher, std::size_t depth) {
    edits_.clear();
    added_.clear();
    for (const auto& change : changes)
      if (!make(change, depth)) return std::nullopt;
    for (const auto& [value, text] : launcher)
      if (!replace(value, text, depth)) return std::nullopt;
    if (!added_.empty() && !insert()) return std::nullopt;
    return applied();
  }

 private:
  bool make(const Change& change, std::size_t depth) {
    const auto index = arguments_.find(change.name);
    if (!change.value) return index ? remove(change.name) : true;
    const std::string words = option(change.name) + (change.value->empty() ? "" : " " + *change.value);
    if (!index) {
      added_ += (added_.empty() ? "" : " ") + words;
      return true;
    }
    const auto& argument = arguments_.list[*index];
    if (argument.values.empty()) return change.value->empty();
    return argument.values.size() == 1 && replace(argument.values.front(), *change.value, depth);
  }

  /// The place of a word that can be exchanged as a whole.
  [[nodiscard]] static std::optional<Span> site(const Value& value, std::size_t depth) {
    if (value.size() != 1 || value.front().sites.empty()) return std::nullopt;
    const auto& sites = value.front().sites;
    return sites[std::min(depth, sites.size() - 1)];
  }

  bool replace(const Value& value, const std::string& text, std::size_t depth) {
    const auto span = site(value, depth);
    return span && add({*span, text});
  }

  bool add(Edit edit) {
    for (const auto& other : edits_) {
      if (other.span == edit.span) return other.text == edit.text;
      if (edit.span.begin < other.span.end && other.span.begin < edit.span.end) return false;
    }
    edits_.push_back(std::move(edit));
    return true;
  }

  /// Of the places of a value the one right behind its flag, quotes included.
  [[nodiscard]] std::optional<Span> behind(const Value& value, std::size_t flag_end) const {
    std::optional<Span> best;
    for (const auto& piece : value)
      for (const auto& span : piece.sites)
        if (span.begin >= flag_end && (!best || span.begin < best->begin || (span.begin == best->begin && span.end > best->end))) best = span;
    if (!best) return std::nullopt;
    for (std::size_t i = flag_end; i < best->begin; ++i)
      if (std::string_view(" \t\r\n\\\"'=").find(text_[i]) == std::string_view::npos) return std::nullopt;
    const char before = best->begin > 0 ? text_[best->begin - 1] : '\0';
    if ((before == '"' || before == '\'') && best->end < text_.size() && text_[best->end] == before && best->begin - 1 >= flag_end) --best->begin, ++best->end;
    return best;
  }

  /// Where an argument stands, flag and values.
  [[nodiscard]] std::optional<Span> extent(const Argument& argument) const {
    if (argument.flag.size() != 1 || argument.flag.front().sites.empty() || !argument.flag.front().literal) return std::nullopt;
    Span out = argument.flag.front().sites.front();
    if (argument.flag.front().text.find('=') != std::string::npos) return out;
    for (const auto& value : argument.values) {
      const auto next = behind(value, out.end);
      if (!next) return std::nullopt;
      out.end = next->end;
    }
    return out;
  }

  bool remove(const std::string& name) {
    for (const auto& argument : arguments_.list) {
      if (argument.name != name) continue;
      const auto span = extent(argument);
      if (!span || !add({whole_line(*span), ""})) return false;
    }
    return true;
  }

  /// The line with its end where nothing else stands on it and the lines around stay what they are.
  [[nodiscard]] Span whole_line(Span span) const {
    Span line = span;
    while (line.begin > 0 && is_blank(text_[line.begin - 1])) --line.begin;
    while (line.end < text_.size() && is_blank(text_[line.end])) ++line.end;
    const bool starts = line.begin == 0 || text_[line.begin - 1] == '\n';
    const bool continued = line.end + 1 < text_.size() && text_[line.end] == '\\' && text_[line.end + 1] == '\n';
    const bool plain = line.end < text_.size() && text_[line.end] == '\n' && !(line.begin > 1 && text_[line.begin - 2] == '\\');
    if (starts && continued) return {line.begin, line.end + 2};
    if (starts && plain) return {line.begin, line.end + 1};
    // Words beside others: with the blanks before them.
    return {starts || line.begin == 0 ? span.begin : line.begin, span.end};
  }

  /// New arguments stand behind one that is there.
  bool insert() {
    for (const char* const name : {"pipeline_model_parallel_size", "tensor_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
                                   "global_batch_size", "micro_batch_size", "num_layers", "hidden_size"}) {
      const auto index = arguments_.find(name);
      const auto span = index ? extent(arguments_.list[*index]) : std::nullopt;
      if (!span) continue;
      const bool removed = std::any_of(edits_.begin(), edits_.end(), [&span](const Edit& edit) { return edit.span.begin <= span->begin && edit.span.end >= span->end; });
      if (!removed) return add({{span->end, span->end}, " " + added_});
    }
    return false;
  }

  [[nodiscard]] std::string applied() const {
    std::vector<Edit> order = edits_;
    // An insertion stands behind a replacement that ends at its place.
    std::stable_sort(order.begin(), order.end(), [](const Edit& a, const Edit& b) {
      return a.span.begin != b.span.begin ? a.span.begin < b.span.begin : a.span.end < b.span.end;
    });
    std::string out;
    std::size_t at = 0;
    for (const auto& edit : order) {
      out += text_.substr(at, edit.span.begin - at) + edit.text;
      at = edit.span.end;
    }
    return out + text_.substr(at);
  }

  const std::string& text_;
  Arguments arguments_;
  std::vector<Edit> edits_;
  std::string added_;
};

/// The words of a launcher that must say something else for so many devices.
std::vector<std::pair<Value, std::string>> launcher_changes(const Arguments& arguments, std::int64_t devices) {
  const auto per_node = launcher_value(arguments, kPerNode);
  const auto nodes = launcher_value(arguments, kNodes);
  if (!per_node) return {};
  const auto each = core::parse_integer(shell::text_of(*per_node));
  if (!each || *each < 1) return {};
  if (!nodes) return {{*per_node, std::to_string(devices)}};
  if (devices % *each == 0) return {{*nodes, std::to_string(devices / *each)}};
  return {{*per_node, std::to_string(devices)}, {*nodes, "1"}};
}

}  // namespace

Result<std::string> edit_script(const std::string& text, const std::string& file, const std::vector<Change>& changes, std::optional<std::int64_t> devices) {
  const auto before = read_any(text, file);
  if (!before) return before.error();
  const auto trace = shell::follow(command_text(text), file);
  if (!trace) return trace.error();
  auto arguments = find_arguments(*trace, file);
  if (!arguments) return arguments.error();
  std::map<std::string, std::string> wanted = flat_values(before->root);
  for (const auto& change : changes) {
    if (change.name == "world_size" && !arguments->find("world_size")) continue;  // the launcher's words say it, below
    if (change.value) wanted[change.name] = change.value->empty() ? "true" : *change.value;
    else wanted.erase(change.name);
  }
  std::vector<Change> own = changes;
  std::vector<std::pair<Value, std::string>> launcher;
  const auto world = wanted.find("world_size");
  if (devices && world != wanted.end() && world->second != std::to_string(*devices)) {
    launcher = launcher_changes(*arguments, *devices);
    world->second = std::to_string(*devices);
  }
  if (!arguments->find("world_size")) std::erase_if(own, [](const Change& one) { return one.name == "world_size"; });
  if (own.empty() && launcher.empty()) return text;

  ScriptEditor editor(text, *arguments);
  for (std::size_t depth = 0; depth < kDeepestSite; ++depth) {
    const auto edited = editor.at_depth(own, launcher, depth);
    if (!edited) continue;
    const auto after = read_any(*edited, file);
    if (after && flat_values(after->root) == wanted) return *edited;
  }
  std::string names;
  for (const auto& change : own) names += (names.empty() ? "" : ", ") + option(change.name);
  return make_error(Errc::unsupported, {file, 0, 0, {}}, "the script computes what would have to change: " + names,
                    "the argument list beside it has the values");
}

std::string argument_list(const ConfigNode& arguments) {
  std::string out;
  const auto quoted = [](const std::string& word) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`*?[]{}()<>|&;#~!") == std::string::npos;
    if (plain) return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
  };
  for (const auto& [name, node] : arguments.members) {
    if (name == "world_size" || name == kOnNpu || node.is_null()) continue;
    out += option(name);
    if (node.is_sequence())
      for (const auto& item : node.items) out += " " + quoted(shell::shown(item.text));
    else if (node.text != "true" && node.text != "True") out += " " + quoted(shell::shown(node.text));
    out += "\n";
  }
  return out;
}

}  // namespace nd::formats::megatron
