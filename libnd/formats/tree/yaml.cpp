// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <array>
#include <map>
#include <new>
#include <sstream>

#include "formats/tree/builder.hpp"
#include "formats/tree/node.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

// yaml-cpp tokenises a whole flow collection before its first event, so a run of brackets is counted here, in one pass.
// Quoted text and comments are not told apart: what is refused is thousands of opening brackets with nothing between
// them that closes, which no text has either.
std::optional<std::size_t> bracket_run(std::string_view text, const ParseLimits& limits) {
  const std::size_t allowed = 16 * static_cast<std::size_t>(limits.max_depth);
  std::size_t run = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '[' || c == '{') {
      if (++run > allowed) return at;
    } else if (c == ']' || c == '}') {
      run = run == 0 ? 0 : run - 1;
    } else if (c == '\n' && run < allowed / 2 && at + 1 < text.size() && text[at + 1] != ' ' && text[at + 1] != '\t') {
      run = 0;  // a line that starts in the first column: brackets of quoted text do not add up over a file
    }
  }
  return std::nullopt;
}

/// Whether the quoted scalar whose node starts at `at` (with its anchor or tag) has a closing quote.
bool is_closed(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    at = std::min(text.find_first_of(" \t\n", at), text.size());
    at = std::min(text.find_first_not_of(" \t\n", at), text.size());
  }
  if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) return true;
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 >= text.size() || text[at + 1] != quote) return true;
      ++at;  // '' inside single quotes
    }
  }
  return false;
}

/// Line ends as YAML reads them: CRLF and CR count as LF. Lines and columns stay what they were.
std::string with_plain_line_ends(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\r') {
      out += text[at];
    } else if (at + 1 >= text.size() || text[at + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

class TreeHandler final : public YAML::EventHandler {
 public:
  TreeHandler(TreeBuilder& builder, std::string_view text) : builder_(builder), cursor_(text) {}

  [[nodiscard]] Place place(const YAML::Mark& mark) { return cursor_.at(mark.pos < 0 ? 0 : static_cast<std::size_t>(mark.pos)); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      builder_.refuse(Errc::syntax, place(mark), "more text after the end of the document", "one file holds one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_.wants_key()) builder_.refuse(Errc::syntax, place(mark), "an empty key");
    builder_.null(place(mark));
    keep(anchor, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Place here = place(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) builder_.refuse(Errc::syntax, here, "an alias inside the value it stands for");
    if (!builder_.wants_key()) return builder_.copy_of(found->second, here);
    if (!found->second.is_scalar()) builder_.refuse(Errc::syntax, here, "a key must be one word or number");
    builder_.key(found->second.text, here, true);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    const Place here = place(mark);
    const bool quoted = is_string(tag, here);
    last_scalar_ = mark;
    if (builder_.wants_key()) {
      builder_.key(value, here, quoted);
      if (anchor != YAML::NullAnchor) anchors_[anchor] = key_node(value, quoted, here);
      return;
    }
    builder_.scalar(value, quoted, here);
    keep(anchor, mark);
  }

  /// yaml-cpp takes the end of the text for the closing quote when a line end stands before it.
  void check_last_scalar(std::string_view text) {
    if (last_scalar_.pos >= 0 && !is_closed(text, static_cast<std::size_t>(last_scalar_.pos)))
      builder_.refuse(Errc::syntax, place(last_scalar_), "not a YAML document: the quoted text is not closed");
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(NodeKind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(NodeKind::mapping, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YAML::anchor_t anchor;
    YAML::Mark mark;
  };

  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    const Place here = place(mark);
    if (builder_.wants_key()) builder_.refuse(Errc::syntax, here, "a key must be one word or number");
    if (!tag.empty() && tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:map" && tag != "tag:yaml.org,2002:seq") refuse_tag(tag, here);
    builder_.begin(kind, here);
    open_.push_back({anchor, mark});
  }

  void close() {
    builder_.end();
    const Open ended = open_.back();
    open_.pop_back();
    keep(ended.anchor, ended.mark);
  }

  void keep(YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = builder_.counted_copy(builder_.last(), place(mark));
  }

  static ConfigNode key_node(const std::string& text, bool quoted, Place here) {
    ConfigNode node;
    node.kind = NodeKind::scalar;
    node.text = text;
    node.quoted = quoted;
    node.where.line = here.line;
    node.where.column = here.column;
    return node;
  }

  [[nodiscard]] bool is_string(const std::string& tag, Place here) const {
    if (tag.empty() || tag == "?") return false;
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return true;
    constexpr std::array<std::string_view, 4> kPlain{"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool",
                                                     "tag:yaml.org,2002:null"};
    for (const auto plain : kPlain)
      if (tag == plain) return false;
    refuse_tag(tag, here);
  }

  [[noreturn]] void refuse_tag(const std::string& tag, Place here) const {
    builder_.refuse(Errc::unsupported, here, "the tag '" + tag.substr(0, 60) + "' is not read", "remove the tag");
  }

  TreeBuilder& builder_;
  PlaceCursor cursor_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  std::vector<Open> open_;
  YAML::Mark last_scalar_ = YAML::Mark::null_mark();
  int documents_ = 0;
};

Result<ConfigNode> parse_checked(const std::string& text, const std::string& file, const ParseLimits& limits) {
  TreeBuilder builder(file, limits);
  TreeHandler handler(builder, text);
  try {
    if (const auto at = bracket_run(text, limits))
      builder.refuse(Errc::out_of_range, PlaceCursor(text).at(*at), "nested deeper than " + std::to_string(limits.max_depth) + " levels");
    std::istringstream in(text);
    YAML::Parser parser(in);
    // A second call finds a second document, which the handler refuses.
    if (parser.HandleNextDocument(handler)) (void)parser.HandleNextDocument(handler);
    handler.check_last_scalar(text);
    return builder.finish();
  } catch (const Refused& refused) {
    return Error(refused.why);
  } catch (const YAML::Exception& error) {
    const Place place = error.mark.is_null() ? Place{} : PlaceCursor(text).at(static_cast<std::size_t>(error.mark.pos));
    return make_error(Errc::syntax, {file, place.line, place.column, {}}, "not a YAML document: " + error.msg);
  }
}

}  // namespace

Result<ConfigNode> parse_yaml(std::string_view text, const std::string& file, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    return make_error(Errc::out_of_range, {file, 0, 0, {}}, "larger than " + std::to_string(limits.max_bytes) + " bytes");
  if (auto problem = text_problem(text, file)) return Error(*std::move(problem));
  return parse_checked(with_plain_line_ends(without_bom(text)), file, limits);
}

}  // namespace nd::formats
