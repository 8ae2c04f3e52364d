// SPDX-License-Identifier: Apache-2.0
#include "formats/shell/syntax.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "formats/tree/text_check.hpp"

namespace nd::formats::shell {

namespace {

constexpr int kDeepest = 60;  // nested commands; real scripts have a handful

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_word(char c) { return is_space(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '<' || c == '>' || c == '(' || c == ')'; }

/// Thrown inside parse() only.
struct Stop {
  std::size_t at;
  std::string message;
  Errc code = Errc::syntax;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Commands script() {
    Commands out = list({});
    if (at_ < text_.size()) throw Stop{at_, "unexpected '" + std::string(1, text_[at_]) + "'"};
    return out;
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  [[nodiscard]] bool starts(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  /// Blanks, continued lines; not the end of a line.
  void blanks() {
    while (at_ < text_.size()) {
      if (is_space(peek())) ++at_;
      else if (peek() == '\\' && peek(1) == '\n') at_ += 2;
      else if (peek() == '\\' && peek(1) == '\r' && peek(2) == '\n') at_ += 3;
      else break;
    }
    if (peek() == '#')
      while (at_ < text_.size() && peek() != '\n') ++at_;
  }

  void newline() {
    ++at_;
    for (const auto& [word, tabs] : here_) skip_here(word, tabs);
    here_.clear();
  }

  void skip_here(const std::string& word, bool tabs) {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      while (tabs && !line.empty() && line.front() == '\t') line.remove_prefix(1);
      while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line == word) return;
    }
  }

  /// Blanks, comments, ends of lines and ';'.
  void separators() {
    for (;;) {
      blanks();
      if (peek() == '\n') newline();
      else if (peek() == ';' && peek(1) != ';') ++at_;
      else return;
    }
  }

  void lines() {
    for (blanks(); peek() == '\n'; blanks()) newline();
  }

  /// The plain word here, without consuming it.
  [[nodiscard]] std::string_view keyword() const {
    std::size_t end = at_;
    while (end < text_.size() && !ends_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  [[nodiscard]] bool at_one_of(const std::vector<std::string_view>& stops) const {
    if (at_ >= text_.size() || peek() == ')') return true;
    if (starts(";;")) return true;
    return std::find(stops.begin(), stops.end(), keyword()) != stops.end();
  }

  void expect(std::string_view word) {
    separators();
    if (keyword() != word) throw Stop{at_, "'" + std::string(word) + "' is missing"};
    at_ += word.size();
  }

  /// Commands up to one of the words.
  Commands list(const std::vector<std::string_view>& stops) {
    if (++depth_ > kDeepest) throw Stop{at_, "nested too deeply", Errc::out_of_range};
    Commands out;
    Link link = Link::always;
    for (separators(); !at_one_of(stops); separators()) {
      const std::size_t before = at_;
      Command next = command();
      next.link = link;
      next.where = {before, at_};
      out.push_back(std::move(next));
      link = link_after();
      if (at_ == before) throw Stop{at_, "unexpected '" + std::string(1, peek()) + "'"};
    }
    --depth_;
    return out;
  }

  Link link_after() {
    blanks();
    Link link = Link::always;
    if (starts("&&")) link = Link::if_true;
    else if (starts("||")) link = Link::if_false;
    else if (peek() == '|') link = Link::piped;
    else if (peek() == '&') ++at_;
    if (link == Link::always) return link;
    at_ += link == Link::piped && peek(1) != '&' ? std::size_t{1} : std::size_t{2};
    lines();
    return link;
  }

  Command command() {
    Command out;
    while (keyword() == "!") {
      out.negated = !out.negated;
      ++at_;
      blanks();
    }
    const auto word = keyword();
    if (word == "if") branch(out);
    else if (word == "case") choice(out);
    else if (word == "for" || word == "select") each(out);
    else if (word == "while" || word == "until") loop(out);
    else if (word == "[[") test(out);
    else if (word == "function") function(out, true);
    else if (word == "{") braces(out);
    else if (starts("((")) arithmetic(out);
    else if (peek() == '(') group(out);
    else if (is_function()) function(out, false);
    else return simple(std::move(out));
    redirections();
    return out;
  }

  void branch(Command& out) {
    out.kind = CommandKind::branch;
    at_ += 2;
    Commands condition = list({"then"});
    expect("then");
    for (;;) {
      Commands body = list({"elif", "else", "fi"});
      out.branches.emplace_back(std::move(condition), std::move(body));
      const auto word = keyword();
      if (word == "elif") {
        at_ += word.size();
        condition = list({"then"});
        expect("then");
      } else if (word == "else") {
        at_ += word.size();
        out.branches.emplace_back(Commands{}, list({"fi"}));
        break;
      } else {
        break;
      }
    }
    expect("fi");
  }

  void choice(Command& out) {
    out.kind = CommandKind::choice;
    at_ += 4;
    blanks();
    out.words.push_back(word());
    expect("in");
    for (separators(); at_ < text_.size() && keyword() != "esac"; separators()) {
      if (peek() == '(') ++at_;
      std::vector<Span> patterns;
      for (blanks(); at_ < text_.size() && peek() != ')'; blanks()) {
        const std::size_t before = at_;
        if (peek() == '|') ++at_;
        else patterns.push_back(word());
        if (at_ == before) throw Stop{at_, "no pattern of a case"};
      }
      if (at_ >= text_.size()) throw Stop{at_, "')' is missing"};
      ++at_;
      Commands body = list({"esac"});
      if (peek() == ')') throw Stop{at_, "unexpected ')'"};
      out.cases.emplace_back(std::move(patterns), std::move(body));
      if (starts(";;")) at_ += peek(2) == '&' ? std::size_t{3} : std::size_t{2};
    }
    expect("esac");
  }

  void each(Command& out) {
    out.kind = CommandKind::each;
    at_ += keyword().size();
    blanks();
    if (starts("((")) {  // counted loops: the body is read, not unrolled
      at_ = skip_parentheses(at_);
    } else {
      out.name = std::string(keyword());
      at_ += out.name.size();
      separators();
      if (keyword() == "in") {
        at_ += 2;
        for (blanks(); at_ < text_.size() && peek() != '\n' && peek() != ';'; blanks()) {
          const std::size_t before = at_;
          out.words.push_back(word());
          if (at_ == before) throw Stop{at_, "unexpected '" + std::string(1, peek()) + "'"};
        }
      }
    }
    body(out);
  }

  void loop(Command& out) {
    out.kind = CommandKind::loop;
    out.until = keyword() == "until";
    at_ += 5;
    Commands condition = list({"do"});
    expect("do");
    out.branches.emplace_back(std::move(condition), list({"done"}));
    expect("done");
  }

  void body(Command& out) {
    expect("do");
    out.branches.emplace_back(Commands{}, list({"done"}));
    expect("done");
  }

  void test(Command& out) {
    out.kind = CommandKind::test;
    at_ += 2;
    for (lines(); at_ < text_.size() && keyword() != "]]"; lines()) {
      // Inside the brackets < > & | ( ) are words.
      const std::size_t begin = at_;
      if (starts("&&") || starts("||")) at_ += 2;
      else if (ends_word(peek())) ++at_;
      else at_ = std::max(word_end(text_, at_), at_ + 1);
      out.words.push_back({begin, at_});
    }
    expect("]]");
  }

  void arithmetic(Command& out) {
    out.kind = CommandKind::arithmetic;
    const std::size_t begin = at_ + 2;
    at_ = skip_parentheses(at_);
    out.words.push_back({begin, std::max(begin, at_ >= 2 ? at_ - 2 : begin)});
  }

  /// Behind the parenthesis that closes the one at `from`.
  [[nodiscard]] std::size_t skip_parentheses(std::size_t from) const {
    int open = 0;
    for (std::size_t i = from; i < text_.size(); ++i) {
      if (text_[i] == '(') ++open;
      else if (text_[i] == ')' && --open == 0) return i + 1;
    }
    throw Stop{from, "'(' is not closed"};
  }

  void group(Command& out) {
    out.kind = CommandKind::group;
    ++at_;
    out.branches.emplace_back(Commands{}, list({}));
    if (peek() != ')') throw Stop{at_, "')' is missing"};
    ++at_;
  }

  void braces(Command& out) {
    out.kind = CommandKind::group;
    ++at_;
    out.branches.emplace_back(Commands{}, list({"}"}));
    expect("}");
  }

  [[nodiscard]] bool is_function() const {
    if (!is_name_start(peek())) return false;
    std::size_t i = at_;
    while (i < text_.size() && (is_name(text_[i]) || text_[i] == '-')) ++i;
    while (i < text_.size() && is_space(text_[i])) ++i;
    if (i >= text_.size() || text_[i] != '(') return false;
    for (++i; i < text_.size() && is_space(text_[i]);) ++i;
    return i < text_.size() && text_[i] == ')';
  }

  void function(Command& out, bool announced) {
    out.kind = CommandKind::function;
    if (announced) {
      at_ += 8;
      blanks();
    }
    out.name = std::string(keyword());
    at_ += out.name.size();
    blanks();
    if (peek() == '(') {
      ++at_;
      blanks();
      if (peek() != ')') throw Stop{at_, "')' is missing"};
      ++at_;
    }
    lines();
    if (peek() != '{' && peek() != '(') throw Stop{at_, "the body of the function is missing"};
    Command inner;
    if (peek() == '{') braces(inner);
    else group(inner);
    out.branches = std::move(inner.branches);
  }

  Span word() {
    const std::size_t begin = at_;
    at_ = word_end(text_, at_);
    return {begin, at_};
  }

  bool assignment(Command& out) {
    std::size_t i = at_;
    if (!is_name_start(peek())) return false;
    while (i < text_.size() && is_name(text_[i])) ++i;
    const std::size_t name_end = i;
    if (i < text_.size() && text_[i] == '[') {  // one element: the array is not followed further
      while (i < text_.size() && text_[i] != ']' && text_[i] != '\n') ++i;
      if (i < text_.size()) ++i;
    }
    const bool append = i < text_.size() && text_[i] == '+';
    if (append) ++i;
    if (i >= text_.size() || text_[i] != '=') return false;
    Assignment one;
    one.name = std::string(text_.substr(at_, name_end - at_));
    one.append = append;
    at_ = i + 1;
    if (peek() == '(') {
      one.array = true;
      ++at_;
      for (lines(); at_ < text_.size() && peek() != ')'; lines()) {
        const std::size_t before = at_;
        one.words.push_back(word());
        if (at_ == before) throw Stop{at_, "unexpected '" + std::string(1, peek()) + "' in an array"};
      }
      if (at_ >= text_.size()) throw Stop{before_end(), "the array " + one.name + " is not closed"};
      ++at_;
    } else {
      one.word = word();
    }
    out.assignments.push_back(std::move(one));
    return true;
  }

  [[nodiscard]] std::size_t before_end() const { return text_.empty() ? 0 : text_.size() - 1; }

  Command simple(Command out) {
    bool assigning = true;
    for (blanks(); at_ < text_.size(); blanks()) {
      const char c = peek();
      if (c == '\n' || c == ';' || c == '|' || c == ')' || (c == '&' && peek(1) != '>')) break;
      if (redirection()) continue;
      if (c == '(') throw Stop{at_, "unexpected '('"};
      if (assigning && assignment(out)) continue;
      const Span next = word();
      if (next.end == next.begin) throw Stop{at_, "unexpected '" + std::string(1, c) + "'"};
      const auto text = text_.substr(next.begin, next.end - next.begin);
      out.words.push_back(next);
      // Behind these words assignments are still assignments.
      constexpr std::array<std::string_view, 6> kDeclaring{"export", "local", "declare", "readonly", "typeset", "env"};
      assigning = assigning && (std::find(kDeclaring.begin(), kDeclaring.end(), text) != kDeclaring.end() ||
                                (out.words.size() > 1 && text.starts_with('-')));
    }
    return out;
  }

  void redirections() {
    for (blanks(); redirection(); blanks()) {
    }
  }

  /// "> file", "2>&1", "<<EOF", "<<< word": nothing to do with the arguments.
  bool redirection() {
    std::size_t i = at_;
    while (i < text_.size() && text_[i] >= '0' && text_[i] <= '9') ++i;
    if (i == at_ && peek() == '&' && peek(1) == '>') ++i;
    if (i >= text_.size() || (text_[i] != '<' && text_[i] != '>')) return false;
    if (text_[i] == '<' && i + 1 < text_.size() && text_[i + 1] == '<' && text_.substr(i, 3) != "<<<") return here_document(i + 2);
    while (i < text_.size() && (text_[i] == '<' || text_[i] == '>' || text_[i] == '&' || text_[i] == '|')) ++i;
    at_ = i;
    blanks();
    if (peek() == '(') at_ = skip_parentheses(at_);
    else (void)word();
    return true;
  }

  bool here_document(std::size_t i) {
    const bool tabs = i < text_.size() && text_[i] == '-';
    at_ = tabs ? i + 1 : i;
    blanks();
    const Span span = word();
    std::string name;
    for (const char c : text_.substr(span.begin, span.end - span.begin))
      if (c != '\'' && c != '"' && c != '\\') name += c;
    here_.emplace_back(std::move(name), tabs);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::pair<std::string, bool>> here_;
};

/// Skips quotes and brackets that may hold each other. What nests beyond any real script runs to the end of the text.
class Skipper {
 public:
  explicit Skipper(std::string_view text) : text_(text) {}

  std::size_t skip(std::size_t at) {
    constexpr int kDeepestQuote = 100;
    if (++depth_ > kDeepestQuote) return text_.size();
    const std::size_t end = construct(at);
    --depth_;
    return std::min(end, text_.size());
  }

 private:
  [[nodiscard]] char at_or_none(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  std::size_t construct(std::size_t at) {
    const char c = text_[at], next = at_or_none(at + 1);
    if (c == '\'') return single_quotes(at);
    if (c == '"' || c == '`') return double_quotes(at);
    if (c == '$' && next == '(') return brackets(at + 2, '(', ')');
    if (c == '$' && next == '{') return brackets(at + 2, '{', '}');
    if (c == '$' && next == '\'') return single_quotes(at + 1);
    return at + 1;
  }

  [[nodiscard]] std::size_t single_quotes(std::size_t at) const {
    const std::size_t end = text_.find('\'', at + 1);
    return end == std::string_view::npos ? text_.size() : end + 1;
  }

  std::size_t double_quotes(std::size_t at) {
    const char quote = text_[at++];
    while (at < text_.size()) {
      const char c = text_[at], next = at_or_none(at + 1);
      if (c == quote) return at + 1;
      if (c == '\\') at += 2;
      else if (quote == '"' && c == '$' && (next == '(' || next == '{')) at = skip(at);
      else ++at;
    }
    return text_.size();
  }

  std::size_t brackets(std::size_t at, char open, char close) {
    int depth = 1;
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '\\') {
        at += 2;
      } else if (c == '\'' || c == '"' || c == '`') {
        at = skip(at);
      } else {
        if (c == close && --depth == 0) return at + 1;
        if (c == open) ++depth;
        ++at;
      }
    }
    return text_.size();
  }

  std::string_view text_;
  int depth_ = 0;
};

}  // namespace

std::size_t skip_construct(std::string_view text, std::size_t at) { return Skipper(text).skip(at); }

std::size_t word_end(std::string_view text, std::size_t at) {
  while (at < text.size() && !ends_word(text[at])) {
    const char c = text[at];
    if (c == '\\') {
      const auto next = text.substr(at + 1, 2);
      if (next.starts_with('\n') || next == "\r\n") break;
      at += 2;
    } else if (c == '\'' || c == '"' || c == '`' || c == '$') {
      at = skip_construct(text, at);
    } else {
      ++at;
    }
  }
  return std::min(at, text.size());
}

Result<Commands> parse(std::string_view text, const std::string& file) {
  try {
    return Parser(text).script();
  } catch (const Stop& stop) {
    const Place place = PlaceCursor(text).at(stop.at);
    return make_error(stop.code, {file, place.line, place.column, {}}, "not a shell script that can be followed: " + stop.message);
  }
}

}  // namespace nd::formats::shell
