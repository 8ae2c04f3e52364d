// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "formats/tree/builder.hpp"
#include "formats/tree/node.hpp"
#include "formats/tree/number_spelling.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

/// Walks over the raw text in step with the events of the parser, which do not say where they are. The parser has checked
/// the syntax up to the event, so that skipping is enough.
class TokenCursor {
 public:
  explicit TokenCursor(std::string_view text) : text_(text), cursor_(text) {}

  /// The place of the next token, which is then behind the cursor.
  [[nodiscard]] Place next() {
    constexpr std::string_view kBetween = " \t\r\n,:";
    at_ = std::min(text_.find_first_not_of(kBetween, at_), text_.size());
    const Place place = cursor_.at(at_);
    skip_token();
    return place;
  }

 private:
  void skip_token() {
    if (at_ >= text_.size()) return;
    const char first = text_[at_];
    if (first == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
        if (text_[at_] == '\\') ++at_;
      ++at_;
    } else if (std::string_view("[]{}").find(first) != std::string_view::npos) {
      ++at_;
    } else {
      at_ = std::min(text_.find_first_of(" \t\r\n,:[]{}\"", at_), text_.size());
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  PlaceCursor cursor_;
};

std::string short_reason(std::string what) {
  // "[json.exception.parse_error.101] parse error at line 1, column 45: syntax error while ...": the place is said elsewhere.
  constexpr std::size_t kLongest = 200;
  const auto column = what.find("column ");
  const auto colon = what.find(": ", column == std::string::npos ? 0 : column);
  if (colon != std::string::npos) what.erase(0, colon + 2);
  if (what.size() > kLongest) what = what.substr(0, kLongest) + "...";
  return what;
}

class JsonHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonHandler(TreeBuilder& builder, std::string_view text) : builder_(builder), tokens_(text), text_(text) {}

  bool null() override {
    builder_.null(tokens_.next());
    return true;
  }
  bool boolean(bool value) override { return plain(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return plain(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return plain(std::to_string(value)); }
  bool number_float(number_float_t value, const string_t& raw) override {
    const bool digits_only = raw.find_first_not_of("-0123456789") == std::string::npos;
    return plain(digits_only ? raw : typed_real(value));
  }
  bool string(string_t& value) override {
    builder_.scalar(value, true, tokens_.next());
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return begin(NodeKind::mapping); }
  bool start_array(std::size_t) override { return begin(NodeKind::sequence); }
  bool key(string_t& value) override {
    builder_.key(value, tokens_.next());
    return true;
  }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const Place place = PlaceCursor(text_).at(position == 0 ? 0 : position - 1);
    builder_.refuse(Errc::syntax, place, "not a JSON document: " + short_reason(error.what()));
  }

 private:
  bool plain(std::string text) {
    builder_.scalar(std::move(text), false, tokens_.next());
    return true;
  }
  bool begin(NodeKind kind) {
    builder_.begin(kind, tokens_.next());
    return true;
  }
  bool end() {
    (void)tokens_.next();
    builder_.end();
    return true;
  }

  TreeBuilder& builder_;
  TokenCursor tokens_;
  std::string_view text_;
};

}  // namespace

Result<ConfigNode> parse_json(std::string_view text, const std::string& file, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes)
    return make_error(Errc::out_of_range, {file, 0, 0, {}}, "larger than " + std::to_string(limits.max_bytes) + " bytes");
  if (auto problem = text_problem(text, file)) return Error(*std::move(problem));
  text = without_bom(text);
  TreeBuilder builder(file, limits);
  JsonHandler handler(builder, text);
  try {
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &handler))
      return make_error(Errc::syntax, {file, 0, 0, {}}, "not a JSON document");
    return builder.finish();
  } catch (const Refused& refused) {
    return Error(refused.why);
  }
}

}  // namespace nd::formats
