// SPDX-License-Identifier: Apache-2.0
#include "formats/write/config_editor.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/text_span.hpp"
#include "formats/write/value_text.hpp"

namespace nd::formats {

namespace {

/// Text that takes the place of a span.
struct Edit {
  Span span;
  std::string text;
};

/// Keys that do not exist yet, below one that does.
struct NewMember {
  std::string key;
  std::optional<WrittenValue> value;
  std::vector<NewMember> members;
};

void add_member(std::vector<NewMember>& members, std::string_view path, const WrittenValue& value) {
  const std::size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  auto found = std::find_if(members.begin(), members.end(), [&key](const NewMember& one) { return one.key == key; });
  if (found == members.end()) found = members.insert(members.end(), NewMember{key, std::nullopt, {}});
  if (dot == std::string_view::npos) {
    found->value = value;
  } else {
    add_member(found->members, path.substr(dot + 1), value);
  }
}

bool is_below(std::string_view path, std::string_view ancestor) {
  if (ancestor.empty() || path == ancestor) return true;
  return path.size() > ancestor.size() && path.starts_with(ancestor) && (path[ancestor.size()] == '.' || path[ancestor.size()] == '[');
}

/// The changes of one document, worked out against its tree.
class Changes {
 public:
  /// `values`: everything that will be set, by path.
  Changes(const std::string& text, const ConfigNode& root, Syntax syntax, const std::vector<std::pair<std::string, WrittenValue>>& values)
      : text_(text), root_(root), syntax_(syntax), spans_(text, syntax) {
    for (const auto& [path, value] : values)
      if (const ConfigNode* const node = find_path(root, path)) note_anchor(*node, value);
    if (!anchored_.empty()) collect_followers(root);
  }

  /// Paths whose value changes because they are aliases of one that does.
  [[nodiscard]] const std::set<std::string>& followers() const { return followers_; }

  void set(const std::string& path, const WrittenValue& value) {
    const ConfigNode* node = &root_;
    bool flow = spans_.is_flow(root_);
    std::string_view rest = path;
    std::string reached;
    while (!rest.empty()) {
      const std::size_t dot = rest.find('.');
      const ConfigNode* const next = node->find(rest.substr(0, dot));
      if (next == nullptr) break;
      reached += (reached.empty() ? "" : ".") + std::string(rest.substr(0, dot));
      rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
      if (spans_.is_alias(*next) && !rest.empty()) return refuse(path, "stands in a section that is shared by an anchor");
      flow = flow || (!next->is_scalar() && !next->is_null() && spans_.is_flow(*next) && !rest.empty());
      node = next;
    }
    if (rest.empty()) return replace(*node, value, flow);
    if (!node->is_mapping() && !node->is_null()) return refuse(path, "has no place in '" + reached + "', which is " + describe(*node));
    auto& group = groups_[reached];
    group.node = node;
    group.flow = flow;
    add_member(group.members, rest, value);
  }

  void remove(const std::string& path) {
    const std::size_t dot = path.rfind('.');
    const ConfigNode* const parent = dot == std::string::npos ? &root_ : find_path(root_, std::string_view(path).substr(0, dot));
    const ConfigNode* const node = parent == nullptr ? nullptr : parent->find(std::string_view(path).substr(dot == std::string::npos ? 0 : dot + 1));
    if (node == nullptr) return;
    if (spans_.is_flow(*parent)) return remove_from_flow(*parent, *node);
    const std::size_t key = spans_.key_of(*node);
    const std::size_t begin = spans_.line_begin(key);
    if (text_.find_first_not_of(" \t", begin) < key && syntax_ == Syntax::yaml) return refuse(path, "is the first key of a list entry");
    edits_.push_back({{begin, spans_.next_line(last_of(*node))}, {}});
  }

  void comment_out(const std::string& key, const std::string& why) {
    const ConfigNode* const node = root_.find(key);
    if (node == nullptr || spans_.is_flow(root_)) return;
    const std::size_t begin = spans_.line_begin(spans_.key_of(*node)), end = spans_.line_end(last_of(*node));
    std::string out = "# " + why;
    for (std::size_t line = begin; line <= end && line < text_.size(); line = spans_.next_line(line)) {
      out += std::string(spans_.newline()) + "# " + text_.substr(line, spans_.line_end(line) - line);
      if (spans_.next_line(line) >= text_.size()) break;
    }
    edits_.push_back({{begin, end}, out});
  }

  Result<std::string> apply(const std::string& file) {
    // Where sections end together the inner one goes first.
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) insert(group->first, *group->second.node, group->second.flow, group->second.members);
    if (!problems_.empty()) {
      std::vector<Diagnostic> out;
      for (const auto& [path, why] : problems_)
        out.push_back(make_diagnostic(Errc::unsupported, {file, 0, 0, path}, "cannot be written: " + why));
      return Error(std::move(out));
    }
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.span.begin < b.span.begin; });
    std::string out;
    std::size_t at = 0;
    for (const auto& edit : edits_) {
      if (edit.span.begin < at)
        return make_error(Errc::unsupported, {file, 0, 0, {}}, "two changes meet at the same place of the file");
      out += text_.substr(at, edit.span.begin - at) + edit.text;
      at = edit.span.end;
    }
    return out + text_.substr(at);
  }

 private:
  struct Group {
    const ConfigNode* node = nullptr;
    bool flow = false;
    std::vector<NewMember> members;
  };

  void refuse(const std::string& path, const std::string& why) { problems_.emplace_back(path, why); }

  /// Last byte of a member's value or, without one, of its key.
  [[nodiscard]] std::size_t last_of(const ConfigNode& member) const { return std::max(spans_.value_of(member, false).end, spans_.key_of(member)); }

  void replace(const ConfigNode& node, const WrittenValue& value, bool flow) {
    const auto follows = spans_.is_alias(node) ? anchored_.find(alias_text(node)) : anchored_.end();
    if (follows != anchored_.end() ? follows->second == value : reads_as(node, value)) return;
    const Span span = spans_.value_of(node, flow);
    std::string text = value_text(value, syntax_, text_.substr(span.begin, span.end - span.begin));
    if (node.is_null() && span.begin == span.end) text.insert(0, " ");
    if ((node.is_sequence() || node.is_mapping()) && !spans_.is_flow(node) && syntax_ == Syntax::yaml) {
      // A block collection starts on the line below its key: the new value goes behind the colon.
      const std::size_t behind = spans_.behind_separator(spans_.key_of(node));
      edits_.push_back({{behind, span.end}, " " + text});
      return;
    }
    edits_.push_back({span, text});
  }

  /// Aliases follow the value they stand for, as their author meant; those that get a value of their own are set.
  void note_anchor(const ConfigNode& node, const WrittenValue& value) {
    if (const auto name = spans_.anchor_of(node); !name.empty() && !reads_as(node, value)) anchored_.insert_or_assign("*" + std::string(name), value);
  }

  void collect_followers(const ConfigNode& node) {
    if (spans_.is_alias(node)) {
      if (anchored_.count(alias_text(node)) != 0) followers_.insert(node.where.path);
      return;
    }
    for (const auto& item : node.items) collect_followers(item);
    for (const auto& [key, member] : node.members) collect_followers(member);
  }

  [[nodiscard]] std::string alias_text(const ConfigNode& node) const {
    const Span span = spans_.value_of(node, true);
    return text_.substr(span.begin, span.end - span.begin);
  }

  void remove_from_flow(const ConfigNode& parent, const ConfigNode& node) {
    const auto members = spans_.own_members(parent);
    const auto here = std::find(members.begin(), members.end(), &node);
    if (here == members.end()) return;
    std::size_t begin = spans_.key_of(node), end = spans_.value_of(node, true).end;
    if (here + 1 != members.end()) {
      end = spans_.key_of(**(here + 1));
    } else if (here != members.begin()) {
      begin = spans_.value_of(**(here - 1), true).end;
    }
    edits_.push_back({{begin, end}, {}});
  }

  void insert(const std::string& path, const ConfigNode& node, bool flow, const std::vector<NewMember>& members) {
    if (node.is_null()) return fill_null(node, flow, members);
    if (spans_.is_alias(node)) return refuse(path, "the section is shared by an anchor");
    if (spans_.is_flow(node)) return insert_into_flow(node, members);
    if (syntax_ == Syntax::toml) return insert_into_table(path, node, members);
    const auto own = spans_.own_members(node);
    const std::size_t first = own.empty() ? spans_.begin_of(node) : spans_.key_of(*own.front());
    std::size_t at = spans_.line_end(first);
    for (const ConfigNode* const member : own) at = std::max(at, spans_.line_end(last_of(*member)));
    const std::string indent(first - spans_.line_begin(first), ' ');
    edits_.push_back({{at, at}, block_lines(members, indent)});
  }

  /// A section whose key has no value yet.
  void fill_null(const ConfigNode& node, bool flow, const std::vector<NewMember>& members) {
    const Span span = spans_.null_of(node, flow);
    const std::size_t key = spans_.begin_of(node);
    if (flow || syntax_ != Syntax::yaml) {
      edits_.push_back({span, (span.begin == span.end ? " {" : "{") + flow_members(members) + "}"});
      return;
    }
    if (span.begin != span.end) edits_.push_back({span, {}});
    const std::size_t at = spans_.line_end(key);
    edits_.push_back({{at, at}, block_lines(members, std::string(key - spans_.line_begin(key) + 2, ' '))});
  }

  std::string block_lines(const std::vector<NewMember>& members, const std::string& indent) const {
    std::string out;
    for (const auto& member : members) {
      out += std::string(spans_.newline()) + indent + member.key + ":";
      out += member.value ? " " + value_text(*member.value, syntax_, {}) : block_lines(member.members, indent + "  ");
    }
    return out;
  }

  std::string flow_members(const std::vector<NewMember>& members) const {
    std::string out;
    for (const auto& member : members)
      out += (out.empty() ? "" : ", ") + key_text(member.key, syntax_) +
             (member.value ? value_text(*member.value, syntax_, {}) : "{" + flow_members(member.members) + "}");
    return out;
  }

  void insert_into_flow(const ConfigNode& node, const std::vector<NewMember>& members) {
    const auto own = spans_.own_members(node);
    const std::size_t begin = spans_.value_of(node, true).begin;
    if (own.empty()) {
      edits_.push_back({{begin + 1, begin + 1}, flow_members(members)});
      return;
    }
    const std::size_t key = spans_.key_of(*own.front()), at = spans_.value_of(*own.back(), true).end;
    const std::size_t line = spans_.line_begin(key);
    const bool lines = line > begin && text_.find_first_not_of(" \t", line) == key;
    const std::string between = lines ? std::string(spans_.newline()) + text_.substr(line, key - line) : " ";
    std::string out;
    for (const auto& member : members) out += "," + between + flow_members({member});
    edits_.push_back({{at, at}, out});
  }

  void insert_into_table(const std::string& path, const ConfigNode& table, const std::vector<NewMember>& members) {
    const auto own = spans_.own_members(table);
    std::string lines, tables;
    std::string prefix;
    std::size_t at = 0;
    if (!own.empty()) {
      const std::size_t key = spans_.key_of(*own.back()), line = spans_.line_begin(key);
      prefix = text_.substr(line, key - line);  // indentation, and the section in dotted keys
      at = spans_.line_end(spans_.value_of(*own.back(), false).end);
    } else if (!path.empty()) {
      at = spans_.line_end(spans_.begin_of(table));
    }
    for (const auto& member : members) {
      if (member.value) {
        lines += std::string(spans_.newline()) + prefix + key_text(member.key, syntax_) + value_text(*member.value, syntax_, {});
      } else {
        tables += table_text((path.empty() ? "" : path + ".") + member.key, member.members);
      }
    }
    if (!lines.empty()) {
      if (own.empty() && path.empty()) lines = lines.substr(spans_.newline().size()) + std::string(spans_.newline());
      edits_.push_back({{at, at}, lines});
    }
    if (tables.empty()) return;
    const bool ended = text_.empty() || text_.back() == '\n';
    edits_.push_back({{text_.size(), text_.size()}, (ended ? "" : std::string(spans_.newline())) + tables});
  }

  std::string table_text(const std::string& path, const std::vector<NewMember>& members) const {
    const std::string newline(spans_.newline());
    std::string out = newline + "[" + path + "]" + newline, inner;
    for (const auto& member : members) {
      if (member.value) out += key_text(member.key, syntax_) + value_text(*member.value, syntax_, {}) + newline;
      else inner += table_text(path + "." + member.key, member.members);
    }
    return out + inner;
  }

  const std::string& text_;
  const ConfigNode& root_;
  Syntax syntax_;
  TextSpans spans_;
  std::map<std::string, WrittenValue> anchored_;  ///< new values by the text of their aliases
  std::set<std::string> followers_;
  std::vector<Edit> edits_;
  std::map<std::string, Group> groups_;
  std::vector<std::pair<std::string, std::string>> problems_;
};

using Leaves = std::map<std::string, std::string>;

/// Every leaf of a tree by its path.
void collect(const ConfigNode& node, Leaves& out) {
  if (node.items.empty() && node.members.empty())
    out[node.where.path] = node.is_scalar() ? (node.quoted ? "\"" : "") + node.text : node.is_sequence() ? "[]" : "";
  for (const auto& item : node.items) collect(item, out);
  for (const auto& [key, member] : node.members) collect(member, out);
}

}  // namespace

Syntax syntax_of(std::string_view file) {
  const std::string suffix = core::canonical_name(std::filesystem::path(file).extension().string());
  return suffix == ".json" ? Syntax::json : suffix == ".toml" ? Syntax::toml : Syntax::yaml;
}

ConfigEditor::ConfigEditor(std::string text, std::string file, Syntax syntax, ConfigNode root)
    : text_(std::move(text)), file_(std::move(file)), syntax_(syntax), root_(std::move(root)) {}

namespace {

Result<ConfigNode> parse(std::string_view text, const std::string& file, Syntax syntax) {
  if (syntax == Syntax::json) return parse_json(text, file);
  return syntax == Syntax::toml ? parse_toml(text, file) : parse_yaml(text, file);
}

}  // namespace

Result<ConfigEditor> ConfigEditor::open(std::string text, const std::string& file, Syntax syntax) {
  auto root = parse(text, file, syntax);
  if (!root) return root.error();
  if (!root->is_mapping()) return make_error(Errc::wrong_type, root->where, "the top level must be a mapping, is " + describe(*root));
  return ConfigEditor(std::move(text), file, syntax, *std::move(root));
}

const ConfigNode* ConfigEditor::find(std::string_view path) const { return find_path(root_, path); }

void ConfigEditor::set(std::string_view path, WrittenValue value) {
  std::erase_if(sets_, [path](const auto& one) { return one.first == path; });
  sets_.emplace_back(std::string(path), std::move(value));
}

void ConfigEditor::remove(std::string_view path) { removals_.emplace_back(path); }

void ConfigEditor::comment_out(std::string_view key, std::string_view why) { comments_.emplace_back(std::string(key), std::string(why)); }

Result<std::string> ConfigEditor::finish() {
  std::erase_if(sets_, [this](const auto& one) {
    return std::any_of(comments_.begin(), comments_.end(), [&one](const auto& comment) { return is_below(one.first, comment.first); });
  });
  Changes changes(text_, root_, syntax_, sets_);
  for (const auto& [path, value] : sets_) changes.set(path, value);
  for (const auto& path : removals_) changes.remove(path);
  for (const auto& [key, why] : comments_) changes.comment_out(key, why);
  auto text = changes.apply(file_);
  if (!text) return text;

  // What was asked for, and nothing else, must differ.
  const auto read = parse(*text, file_, syntax_);
  if (!read) return make_error(Errc::unsupported, {file_, 0, 0, {}}, "the file is written in a way that cannot be edited: " + read.error().diagnostics.front().message);
  std::vector<Diagnostic> problems;
  const auto problem = [&](const std::string& path) {
    problems.push_back(make_diagnostic(Errc::unsupported, {file_, 0, 0, path}, "cannot be changed alone", "is it shared by an anchor?"));
  };
  for (const auto& [path, value] : sets_) {
    const ConfigNode* const node = find_path(*read, path);
    if (node == nullptr || !reads_as(*node, value)) problem(path);
  }
  const auto touched = [&, this](const std::string& path) {
    const auto below = [&path](const std::string& ancestor) { return is_below(path, ancestor); };
    const auto above = [&path](const std::string& descendant) { return is_below(descendant, path); };
    return std::any_of(sets_.begin(), sets_.end(), [&](const auto& one) { return below(one.first) || above(one.first); }) ||
           std::any_of(removals_.begin(), removals_.end(), [&](const auto& one) { return below(one) || above(one); }) ||
           std::any_of(comments_.begin(), comments_.end(), [&](const auto& one) { return below(one.first); }) || changes.followers().count(path) != 0;
  };
  Leaves before, after;
  collect(root_, before);
  collect(*read, after);
  for (const auto& [path, leaf] : before)
    if (const auto found = after.find(path); !touched(path) && (found == after.end() || found->second != leaf)) problem(path);
  for (const auto& [path, leaf] : after)
    if (!touched(path) && before.find(path) == before.end()) problem(path);
  if (!problems.empty()) return Error(std::move(problems));
  return text;
}

}  // namespace nd::formats
