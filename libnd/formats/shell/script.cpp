// SPDX-License-Identifier: Apache-2.0
#include "formats/shell/script.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/text.hpp"
#include "formats/shell/arithmetic.hpp"
#include "formats/shell/syntax.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats::shell {

namespace {

constexpr std::size_t kMostText = 16U << 20U;   // bytes produced by expansion; real scripts make a few thousand
constexpr std::size_t kMostPieces = 400'000;
constexpr int kMostCommands = 20'000, kMostRounds = 200, kDeepestCall = 8, kDeepestExpansion = 40;

/// Thrown when the script unfolds without end; caught by follow().
struct TooMuch {};

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }

using Truth = std::optional<bool>;

class Follower {
 public:
  Follower(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Trace run(const Commands& script) {
    run_all(script);
    return std::move(trace_);
  }

 private:
  // --- expansion -----------------------------------------------------------------------------------------------------

  void count(const Value& value) {
    for (const auto& piece : value) bytes_ += piece.text.size() + 1;
    pieces_ += value.size();
    if (bytes_ > kMostText || pieces_ > kMostPieces) throw TooMuch{};
  }

  [[nodiscard]] static Piece open(std::string name, Span where, bool quoted) {
    return {kUnset + std::move(name) + kUnset, false, quoted, {where}};
  }

  /// The value of a variable seen through a reference.
  void refer(Value& out, const Value& value, Span where, bool quoted) {
    if (value.empty() && quoted) out.push_back({"", false, true, {where}});
    for (Piece piece : value) {
      piece.quoted = quoted;
      constexpr std::size_t kMostSites = 12;
      if (piece.sites.size() < kMostSites) piece.sites.push_back(where);
      out.push_back(std::move(piece));
    }
    count(value);
  }

  void refer(Value& out, const Variable& variable, Span where, bool quoted) {
    for (std::size_t i = 0; i < variable.values.size(); ++i) {
      if (i > 0) out.push_back({" ", false, false, {}});
      refer(out, variable.values[i], where, quoted);
    }
  }

  /// Text [begin, end) as inside double quotes (`quoted`) or outside of any.
  Value expand(std::size_t begin, std::size_t end, bool quoted) {
    if (++expansion_depth_ > kDeepestExpansion) throw TooMuch{};
    Value out;
    std::size_t from = begin;  // of the literal stretch in hand
    const auto flush = [&](std::size_t to) {
      if (to > from) out.push_back({std::string(text_.substr(from, to - from)), true, quoted, {{from, to}}});
    };
    for (std::size_t i = begin; i < end;) {
      const char c = text_[i];
      std::size_t next = i + 1;
      if (c == '\\' && i + 1 < end) {
        flush(i);
        next = escape(out, i, end, quoted);
        from = next;
      } else if (c == '\'' && !quoted) {
        flush(i);
        next = std::min(skip_construct(text_, i), end);
        const std::size_t inner = next > i + 1 && text_[next - 1] == '\'' ? next - 1 : next;
        out.push_back({std::string(text_.substr(i + 1, inner - i - 1)), true, true, {{i + 1, inner}}});
        from = next;
      } else if (c == '"' && !quoted) {
        flush(i);
        next = std::min(skip_construct(text_, i), end);
        const std::size_t inner = next > i + 1 && text_[next - 1] == '"' ? next - 1 : next;
        const Value value = expand(i + 1, inner, true);
        // An empty string is a field; an empty array in quotes is none.
        const bool array = text_.substr(i + 1, inner - i - 1).find("[@]") != std::string_view::npos || text_.substr(i + 1, inner - i - 1) == "$@";
        if (value.empty() && !array) out.push_back({"", false, true, {{i, next}}});
        out.insert(out.end(), value.begin(), value.end());
        from = next;
      } else if (c == '`') {
        flush(i);
        next = std::min(skip_construct(text_, i), end);
        out.push_back(open(command_name({i, next}), {i, next}, quoted));
        from = next;
      } else if (c == '$' && i + 1 < end) {
        const std::size_t behind = dollar(out, i, end, quoted, flush);
        if (behind > i) from = next = behind;
      }
      i = next;
    }
    flush(std::min(end, text_.size()));
    --expansion_depth_;
    count(out);
    return out;
  }

  /// A backslash; what it leaves. Returns the position behind it.
  std::size_t escape(Value& out, std::size_t at, std::size_t end, bool quoted) const {
    const char c = text_[at + 1];
    if (c == '\n') return at + 2;
    if (c == '\r' && at + 2 < end && text_[at + 2] == '\n') return at + 3;
    const bool special = !quoted || c == '$' || c == '`' || c == '"' || c == '\\';
    out.push_back({std::string(special ? 1 : 2, special ? c : '\\'), false, true, {{at, at + 2}}});
    if (!special) out.back().text[1] = c;
    return at + 2;
  }

  [[nodiscard]] std::string command_name(Span where) const {
    constexpr std::size_t kShown = 40;
    std::string name = "(output of " + std::string(text_.substr(where.begin, std::min(kShown, where.end - where.begin))) + ")";
    std::replace(name.begin(), name.end(), '\n', ' ');
    return name;
  }

  /// "$..." at `at`; the position behind it, or `at` when it is only a dollar.
  template <class Flush>
  std::size_t dollar(Value& out, std::size_t at, std::size_t end, bool quoted, const Flush& flush) {
    const char c = text_[at + 1];
    if (c == '(' || c == '{' || c == '[') {
      const std::size_t behind = c == '[' ? std::min(text_.find(']', at), end - 1) + 1 : std::min(skip_construct(text_, at), end);
      flush(at);
      const Span where{at, behind};
      if (c == '{') braces(out, where, quoted);
      else if (c == '[') computed(out, {at + 2, behind - 1}, where, quoted);
      else if (behind - at >= 5 && text_.substr(at, 3) == "$((" && text_.substr(behind - 2, 2) == "))") computed(out, {at + 3, behind - 2}, where, quoted);
      else out.push_back(open(command_name(where), where, quoted));
      return behind;
    }
    if (c == '\'' && !quoted) return at;  // $'...': read like '...'
    std::size_t behind = at + 1;
    if (is_name_start(c)) {
      while (behind < end && is_name(text_[behind])) ++behind;
    } else if (is_digit(c) || c == '@' || c == '*' || c == '#' || c == '?' || c == '$' || c == '!' || c == '-') {
      ++behind;
    } else {
      return at;
    }
    flush(at);
    named(out, text_.substr(at + 1, behind - at - 1), {at, behind}, quoted);
    return behind;
  }

  void named(Value& out, std::string_view name, Span where, bool quoted) {
    if (name == "@" || name == "*") return refer(out, positional_, where, quoted);
    if (name == "#") return out.push_back({std::to_string(positional_.values.size()), false, quoted, {where}});
    if (const auto* const variable = find(name)) {
      if (!variable->values.empty()) refer(out, variable->values.front(), where, quoted);
      else if (quoted) out.push_back({"", false, true, {where}});
      return;
    }
    out.push_back(open(std::string(name), where, quoted));
  }

  [[nodiscard]] const Variable* find(std::string_view name) {
    if (name.size() == 1 && is_digit(name[0]) && name != "0") {
      const auto index = static_cast<std::size_t>(name[0] - '1');
      if (index >= positional_.values.size()) return nullptr;
      argument_.values = {positional_.values[index]};
      return &argument_;
    }
    const auto it = trace_.variables.find(name);
    return it == trace_.variables.end() ? nullptr : &it->second;
  }

  /// ${...}
  void braces(Value& out, Span where, bool quoted) {
    std::size_t at = where.begin + 2;
    const std::size_t end = where.end > at && text_[where.end - 1] == '}' ? where.end - 1 : where.end;
    const bool length = at < end && text_[at] == '#' && at + 1 < end;
    if (length) ++at;
    std::size_t behind = at;
    if (behind < end && is_name_start(text_[behind]))
      while (behind < end && is_name(text_[behind])) ++behind;
    else if (behind < end)
      ++behind;
    const auto name = text_.substr(at, behind - at);
    bool whole = false;
    if (text_.substr(behind, 3) == "[@]" || text_.substr(behind, 3) == "[*]") {
      whole = true;
      behind += 3;
    } else if (behind < end && text_[behind] == '[') {
      return element(out, name, where, behind, quoted);
    }
    if (length) return size_of(out, name, whole, where, quoted);
    if (behind >= end) {
      const auto* const variable = whole ? find(name) : nullptr;
      if (variable != nullptr) refer(out, *variable, where, quoted);
      else if (!whole) named(out, name, where, quoted);
      return;  // an array nobody filled is empty
    }
    with_default(out, name, where, {behind, end}, quoted);
  }

  void element(Value& out, std::string_view name, Span where, std::size_t bracket, bool quoted) {
    const std::size_t close = std::min(text_.find(']', bracket), where.end);
    const auto index = number_of(text_of(expand(bracket + 1, close, true)));
    const auto* const variable = find(name);
    if (variable == nullptr || !index || *index < 0 || static_cast<std::size_t>(*index) >= variable->values.size())
      return out.push_back(open(std::string(name), where, quoted));
    refer(out, variable->values[static_cast<std::size_t>(*index)], where, quoted);
  }

  void size_of(Value& out, std::string_view name, bool whole, Span where, bool quoted) {
    const auto* const variable = find(name);
    if (variable == nullptr && !whole) return out.push_back(open(std::string(name), where, quoted));
    std::size_t size = 0;
    if (variable != nullptr) size = whole ? variable->values.size() : variable->values.empty() ? 0 : text_of(variable->values.front()).size();
    out.push_back({std::to_string(size), false, quoted, {where}});
  }

  /// ${NAME:-word} and its relatives; other operators leave the value open.
  void with_default(Value& out, std::string_view name, Span where, Span rest, bool quoted) {
    const bool colon = text_[rest.begin] == ':';
    const std::size_t sign_at = rest.begin + (colon ? 1 : 0);
    const char sign = sign_at < rest.end ? text_[sign_at] : '\0';
    const auto* const variable = find(name);
    const std::string value = variable != nullptr && !variable->values.empty() ? text_of(variable->values.front()) : std::string();
    const bool set = variable != nullptr && !(colon && value.empty());
    const Span word{std::min(sign_at + 1, rest.end), rest.end};
    if (sign == '-' || sign == '=') {
      if (set) return named(out, name, where, quoted);
      if (variable == nullptr) trace_.defaults.emplace_back(name);
      const Value alternative = expand_word(word, quoted);
      if (sign == '=') trace_.variables[std::string(name)] = {false, {alternative}};
      return refer(out, alternative, where, quoted);
    }
    if (sign == '+') {
      if (set) refer(out, expand_word(word, quoted), where, quoted);
      return;
    }
    if (sign == '?') return named(out, name, where, quoted);
    if (variable != nullptr && !unset_names(value).empty()) return named(out, name, where, quoted);
    out.push_back(open(variable == nullptr ? std::string(name) : "(" + std::string(text_.substr(where.begin, where.end - where.begin)) + ")", where, quoted));
  }

  /// The word inside ${NAME:-word}: quotes in it are quotes even inside of quotes.
  Value expand_word(Span word, bool quoted) {
    const bool has_quotes = text_.substr(word.begin, word.end - word.begin).find_first_of("\"'") != std::string_view::npos;
    return expand(word.begin, word.end, quoted && !has_quotes);
  }

  void computed(Value& out, Span inner, Span where, bool quoted) {
    if (inner.end < inner.begin) inner.end = inner.begin;
    const std::string text = text_of(expand(inner.begin, inner.end, true));
    if (const auto names = unset_names(text); !names.empty()) return out.push_back(open(names, where, quoted));
    std::string missing;
    const auto value = evaluate(text, [&](std::string_view name) {
      const auto number = variable_number(name);
      if (!number) missing = name;
      return number;
    });
    if (value) out.push_back({std::to_string(*value), false, quoted, {where}});
    else out.push_back(open(missing.empty() ? "(" + std::string(text_.substr(where.begin, std::min<std::size_t>(60, where.end - where.begin))) + ")" : missing, where, quoted));
  }

  std::optional<std::int64_t> variable_number(std::string_view name) {
    const auto* const variable = find(name);
    if (variable == nullptr || variable->values.empty()) return std::nullopt;
    return number_of(text_of(variable->values.front()));
  }

  static std::optional<std::int64_t> number_of(const std::string& text) {
    return evaluate(text, [](std::string_view) { return std::optional<std::int64_t>(); });
  }

  std::vector<Value> fields(const std::vector<Span>& words) {
    std::vector<Value> out;
    for (const auto& word : words) {
      auto more = split(expand(word.begin, word.end, false));
      out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    return out;
  }

  // --- commands ------------------------------------------------------------------------------------------------------

  [[nodiscard]] SourceRef place(std::size_t at) const {
    const Place where = PlaceCursor(text_).at(at);
    return {file_, where.line, where.column, {}};
  }

  void note(Severity severity, std::size_t at, std::string message) {
    constexpr std::size_t kMostNotes = 50;
    if (trace_.notes.size() >= kMostNotes || quiet_ > 0) return;
    const SourceRef where = place(at);
    for (const auto& before : trace_.notes)
      if (before.where == where && before.message == message) return;
    trace_.notes.push_back({severity, Errc::unsupported, where, std::move(message), {}});
  }

  Truth run_all(const Commands& commands) {
    Truth last = true;
    for (const auto& command : commands) {
      if (command.link == Link::if_true && last == Truth(false)) continue;
      if (command.link == Link::if_false && last != Truth(false)) continue;
      last = run_one(command);
      if (command.negated && last) last = !*last;
    }
    return last;
  }

  Truth run_one(const Command& command) {
    if (++commands_ > kMostCommands) throw TooMuch{};
    switch (command.kind) {
      case CommandKind::simple: return simple(command);
      case CommandKind::test: return expression(fields_of_test(command.words));
      case CommandKind::arithmetic: return arithmetic(command.words.front());
      case CommandKind::branch: return branch(command);
      case CommandKind::choice: return choice(command);
      case CommandKind::loop: return loop(command);
      case CommandKind::each: return each(command);
      case CommandKind::function: functions_[command.name] = &command; return true;
      case CommandKind::group: return run_all(command.branches.front().second);
    }
    return std::nullopt;
  }

  void assign(const Assignment& one) {
    Variable& variable = trace_.variables[one.name];
    std::vector<Value> values;
    if (one.array) values = fields(one.words);
    else values.push_back(expand(one.word.begin, one.word.end, false));
    Variable& target = trace_.variables[one.name];
    (void)variable;
    if (one.array) {
      if (!one.append) target.values.clear();
      target.array = true;
      target.values.insert(target.values.end(), std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
    } else if (one.append && !target.values.empty()) {
      target.values.front().insert(target.values.front().end(), values.front().begin(), values.front().end());
    } else {
      target.array = false;
      target.values = std::move(values);
    }
  }

  Truth simple(const Command& command) {
    std::vector<Value> words = fields(command.words);
    for (const auto& one : command.assignments) assign(one);
    if (words.empty()) return command.words.empty() ? Truth(true) : std::nullopt;
    const std::string name = text_of(words.front());
    if (name == "[" || name == "test") return expression(test_words(words));
    if (name == "true" || name == ":") return true;
    if (name == "false") return false;
    if (name == "source" || name == ".") {
      note(Severity::note, command.where.begin, "sourced files are not read: " + (words.size() > 1 ? shown(text_of(words[1])) : std::string()));
      return std::nullopt;
    }
    if (name == "unset") {
      for (std::size_t i = 1; i < words.size(); ++i)
        if (const auto it = trace_.variables.find(text_of(words[i])); it != trace_.variables.end()) trace_.variables.erase(it);
      return true;
    }
    if (name == "export" || name == "local" || name == "declare" || name == "readonly" || name == "typeset") return true;
    if (const auto it = functions_.find(name); it != functions_.end()) return call(*it->second, std::move(words));
    record(std::move(words), command.where);
    return std::nullopt;
  }

  Truth call(const Command& function, std::vector<Value> words) {
    if (++call_depth_ > kDeepestCall) {
      --call_depth_;
      return std::nullopt;
    }
    words.erase(words.begin());
    std::swap(positional_.values, words);
    const Truth out = run_all(function.branches.front().second);
    std::swap(positional_.values, words);
    --call_depth_;
    return out;
  }

  /// Keeps commands that have options. "eval TEXT" and "bash -c TEXT" are what the text says.
  void record(std::vector<Value> words, Span where) {
    std::vector<Value> flat;
    const std::string name = text_of(words.front());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string text = text_of(words[i]);
      const bool script = name == "eval" || (i > 0 && text_of(words[i - 1]) == "-c") || text.find(".py ") != std::string::npos;
      if (!script) {
        flat.push_back(std::move(words[i]));
        continue;
      }
      for (auto& piece : words[i]) piece.quoted = false;
      for (auto& field : split(words[i])) flat.push_back(std::move(field));
    }
    const bool options = std::any_of(flat.begin(), flat.end(), [](const Value& word) { return text_of(word).starts_with("--"); });
    constexpr std::size_t kMostRecorded = 200;
    if (options && trace_.commands.size() < kMostRecorded) trace_.commands.push_back({std::move(flat), where});
  }

  Truth branch(const Command& command) {
    for (const auto& [condition, body] : command.branches) {
      if (condition.empty()) return run_all(body);
      const Truth truth = run_all(condition);
      if (!truth) {
        skip_undecided(body, command.where.begin);
        continue;
      }
      if (*truth) return run_all(body);
    }
    return true;
  }

  /// A test only a run can decide counts as false; said when it matters.
  void skip_undecided(const Commands& body, std::size_t at) {
    for (const auto& [name, variable] : trace_.variables)
      for (const auto& value : variable.values) count(value);  // what the copy costs
    const auto before = trace_;
    ++quiet_;
    run_all(body);
    --quiet_;
    const bool matters = trace_.commands.size() != before.commands.size() || changed(before.variables);
    trace_ = before;
    if (matters) note(Severity::warning, at, "a test that only a run can decide is taken as false");
  }

  [[nodiscard]] bool changed(const std::map<std::string, Variable, std::less<>>& before) const {
    if (before.size() != trace_.variables.size()) return true;
    return !std::equal(before.begin(), before.end(), trace_.variables.begin(), [](const auto& a, const auto& b) {
      return a.first == b.first && std::equal(a.second.values.begin(), a.second.values.end(), b.second.values.begin(), b.second.values.end(),
                                              [](const Value& x, const Value& y) { return text_of(x) == text_of(y); });
    });
  }

  Truth choice(const Command& command) {
    const std::string word = text_of(expand(command.words.front().begin, command.words.front().end, true));
    const std::string value = in_empty_environment(word);
    const bool open = undecidable(word);
    for (const auto& [patterns, body] : command.cases) {
      if (open) {
        skip_undecided(body, command.where.begin);
        continue;
      }
      for (const auto& pattern : patterns)
        if (matches(value, in_empty_environment(text_of(expand(pattern.begin, pattern.end, false))))) return run_all(body);
    }
    return true;
  }

  /// '*' and '?' of a pattern.
  static bool matches(std::string_view text, std::string_view pattern) {
    std::size_t t = 0, p = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
      if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') ++t, ++p;
      else if (p < pattern.size() && pattern[p] == '*') star = p++, mark = t;
      else if (star != std::string_view::npos) p = star + 1, t = ++mark;
      else return false;
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
  }

  Truth loop(const Command& command) {
    const auto& [condition, body] = command.branches.front();
    for (int round = 0; round < kMostRounds; ++round) {
      const Truth truth = run_all(condition);
      if (!truth) {
        skip_undecided(body, command.where.begin);
        return std::nullopt;
      }
      if (*truth == command.until) return true;
      const bool forever = condition.size() == 1 && condition.front().kind == CommandKind::simple && round > 0;
      if (forever && text_.substr(condition.front().where.begin, 4) == "true") return true;
      run_all(body);
    }
    return std::nullopt;
  }

  Truth each(const Command& command) {
    if (command.name.empty()) {
      skip_undecided(command.branches.front().second, command.where.begin);
      return std::nullopt;
    }
    int round = 0;
    for (auto& word : fields(command.words)) {
      if (++round > kMostRounds) break;
      trace_.variables[command.name] = {false, {std::move(word)}};
      run_all(command.branches.front().second);
    }
    return true;
  }

  Truth arithmetic(Span inner) {
    const std::string text(core::trim(text_of(expand(inner.begin, inner.end, true))));
    const auto lookup = [this](std::string_view name) { return variable_number(name); };
    const std::size_t equals = text.find('=');
    const std::string name(core::trim(std::string_view(text).substr(0, equals == std::string::npos ? 0 : equals)));
    const bool assigns = !name.empty() && is_name_start(name[0]) && std::all_of(name.begin(), name.end(), is_name) && text.substr(equals, 2) != "==";
    const auto value = evaluate(assigns ? std::string_view(text).substr(equals + 1) : std::string_view(text), lookup);
    if (assigns) trace_.variables[name] = {false, {{value ? Piece{std::to_string(*value), false, false, {inner}} : open(name, inner, false)}}};
    if (!value) return std::nullopt;
    return *value != 0;
  }

  // --- tests ---------------------------------------------------------------------------------------------------------

  /// What the environment and the caller give counts as absent in a test, as in ${NAME:-default}.
  static std::string in_empty_environment(const std::string& text) {
    std::string out;
    bool open = false;
    for (const char c : text) {
      if (c == kUnset) open = !open;
      else if (!open) out += c;
    }
    return out;
  }
  /// Depends on what a program prints.
  static bool undecidable(const std::string& text) { return unset_names(text).find('(') != std::string::npos; }

  std::vector<std::string> fields_of_test(const std::vector<Span>& words) {
    std::vector<std::string> out;
    for (const auto& word : words) out.push_back(text_of(expand(word.begin, word.end, false)));
    return out;
  }

  static std::vector<std::string> test_words(const std::vector<Value>& words) {
    std::vector<std::string> out;
    for (std::size_t i = 1; i < words.size(); ++i) out.push_back(text_of(words[i]));
    if (!out.empty() && out.back() == "]") out.pop_back();
    return out;
  }

  /// a || b, a && b, ! a over simple tests; without parentheses.
  Truth expression(const std::vector<std::string>& words) {
    std::vector<std::string> term;
    Truth all = true, any = false;
    const auto finish_term = [&] {
      all = both(all, single(term));
      term.clear();
    };
    for (const auto& word : words) {
      if (word == "||" || word == "-o") {
        finish_term();
        any = either(any, all);
        all = true;
      } else if (word == "&&" || word == "-a") {
        finish_term();
      } else if (word == "(" || word == ")") {
        return std::nullopt;
      } else {
        term.push_back(word);
      }
    }
    finish_term();
    return either(any, all);
  }

  static Truth both(Truth a, Truth b) {
    if (a == Truth(false) || b == Truth(false)) return false;
    return a && b ? Truth(true) : std::nullopt;
  }
  static Truth either(Truth a, Truth b) {
    if (a == Truth(true) || b == Truth(true)) return true;
    return a && b ? Truth(false) : std::nullopt;
  }

  Truth single(std::vector<std::string> words) {
    bool negated = false;
    while (!words.empty() && words.front() == "!") {
      negated = !negated;
      words.erase(words.begin());
    }
    const Truth out = plain(words);
    return out && negated ? Truth(!*out) : out;
  }

  Truth plain(const std::vector<std::string>& words) {
    if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return undecidable(word); })) return std::nullopt;
    std::vector<std::string> w;
    for (const auto& word : words) w.push_back(in_empty_environment(word));
    if (w.empty()) return false;
    if (w.size() == 1) return !w[0].empty();
    if (w.size() == 2) {
      if (w[0] == "-z") return w[1].empty();
      if (w[0] == "-n") return !w[1].empty();
      if (w[0] == "-v") return trace_.variables.count(w[1]) > 0;
      return std::nullopt;  // files
    }
    if (w.size() != 3) return std::nullopt;
    if (w[1] == "=" || w[1] == "==") return matches(w[0], w[2]);
    if (w[1] == "!=") return !matches(w[0], w[2]);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNumeric{
        {{"-eq", "=="}, {"-ne", "!="}, {"-lt", "<"}, {"-le", "<="}, {"-gt", ">"}, {"-ge", ">="}}};
    for (const auto& [name, sign] : kNumeric) {
      if (w[1] != name) continue;
      const auto a = number_of(w[0].empty() ? "0" : w[0]), b = number_of(w[2].empty() ? "0" : w[2]);
      if (!a || !b) return std::nullopt;
      return number_of(std::to_string(*a) + " " + std::string(sign) + " " + std::to_string(*b)) == 1;
    }
    return std::nullopt;
  }

  std::string_view text_;
  const std::string& file_;
  Trace trace_;
  Variable positional_{true, {}}, argument_;
  std::map<std::string, const Command*, std::less<>> functions_;
  std::size_t bytes_ = 0, pieces_ = 0;
  int commands_ = 0, call_depth_ = 0, expansion_depth_ = 0, quiet_ = 0;
};

}  // namespace

Result<Trace> follow(std::string_view text, const std::string& file) {
  const auto commands = parse(text, file);
  if (!commands) return commands.error();
  try {
    return Follower(text, file).run(*commands);
  } catch (const TooMuch&) {
    return make_error(Errc::out_of_range, {file, 0, 0, {}}, "the script unfolds to more text than any launch command has");
  }
}

}  // namespace nd::formats::shell
