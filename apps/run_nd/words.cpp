// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "nd/report.hpp"

namespace run_nd {

namespace {

std::string with_underscores(std::string_view text) {
  std::string out(text);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

const OptionRow* find_long(std::string_view bare) {
  for (const auto& row : option_table())
    if (with_underscores(row.name.substr(2)) == with_underscores(bare)) return &row;
  return nullptr;
}

const OptionRow* find_short(std::string_view word) {
  for (const auto& row : option_table())
    for (const auto& name : spaced(row.short_names))
      if (name == word) return &row;
  return nullptr;
}

bool is_number(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && (std::isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
}

/// Looks like an option, and is no value: "-3" is a (bad) number, "-" the standard output.
bool looks_like_option(std::string_view word) { return word.size() > 1 && word[0] == '-' && !is_number(word); }

/// Names that --list takes.
bool is_list(std::string_view word) {
  const auto* row = find_long("list");
  for (const auto& name : spaced(row->offers))
    if (name == word) return true;
  return false;
}

std::vector<std::string> known_names() {
  std::vector<std::string> out;
  for (const auto& row : option_table()) {
    if (row.hidden) continue;
    out.emplace_back(row.name);
    for (const auto& name : spaced(row.short_names)) out.push_back(name);
  }
  return out;
}

class Canonicaliser {
 public:
  explicit Canonicaliser(const std::vector<std::string>& words) : words_(words) {}

  CanonicalWords run() {
    while (at_ < words_.size()) one();
    return std::move(out_);
  }

 private:
  /// An option word taken apart.
  struct Parts {
    const OptionRow* row = nullptr;
    bool negated = false;
    std::optional<std::string> value;
  };

  static Parts take_apart(const std::string& word) {
    Parts parts;
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals != std::string::npos) parts.value = word.substr(equals + 1);
    if (name.starts_with("--")) {
      parts.row = find_long(std::string_view(name).substr(2));
      const bool no = parts.row == nullptr && with_underscores(name).starts_with("__no_");
      if (no) {
        parts.row = find_long(std::string_view(name).substr(5));
        parts.negated = true;
        if (parts.row != nullptr && parts.row->arity != Arity::flag) parts.row = nullptr;
      }
      return parts;
    }
    parts.row = find_short(name);
    if (parts.row != nullptr || word.size() < 3) return parts;
    // "-d64": a one-letter name with its value attached.
    parts.row = find_short(word.substr(0, 2));
    if (parts.row != nullptr && parts.row->arity == Arity::flag) parts.row = nullptr;
    // What is left must be a value that can follow: a misspelt "-dvices" is no "-d vices".
    if (parts.row != nullptr && std::isdigit(static_cast<unsigned char>(word[2])) == 0) parts.row = nullptr;
    if (parts.row != nullptr) parts.value = word.substr(2);
    return parts;
  }

  void one() {
    const std::string& word = words_[at_++];
    if (!looks_like_option(word)) {
      out_.problems.push_back(usage_error(word.empty() ? "''" : word, "is no option", "every value follows the option it belongs to"));
      return;
    }
    auto parts = take_apart(word);
    if (parts.row == nullptr) {
      out_.problems.push_back(usage_error(word.substr(0, word.find('=')), "unknown option", nd::suggest_name(word, known_names())));
      // Its value, if it has one, is no stray word.
      while (at_ < words_.size() && !looks_like_option(words_[at_])) ++at_;
      return;
    }
    take_values(word, *parts.row, parts.value);
    if (parts.row->arity == Arity::flag && !parts.value) {
      once(word, *parts.row);
      out_.words.push_back(std::string(parts.row->name) + (parts.negated ? "=false" : "=true"));
    }
  }

  void take_values(const std::string& word, const OptionRow& row, const std::optional<std::string>& attached) {
    const std::string name(row.name);
    if (row.arity == Arity::flag) {
      if (attached) out_.problems.push_back(usage_error(word, "takes no value"));
      return;
    }
    if (row.arity != Arity::repeated) once(word, row);
    std::vector<std::string> values;
    if (attached) {
      values.push_back(*attached);
    } else if (row.arity == Arity::list) {
      while (at_ < words_.size() && !looks_like_option(words_[at_])) values.push_back(words_[at_++]);
    } else if (at_ < words_.size() && !looks_like_option(words_[at_])) {
      values.push_back(words_[at_++]);
    }
    const bool nothing = std::all_of(values.begin(), values.end(), [](const std::string& value) { return value.empty(); });
    if (nothing && row.arity != Arity::list) {
      out_.problems.push_back(usage_error(word.substr(0, word.find('=')), "needs a value", std::string(row.value)));
      return;
    }
    // A list may be empty: the mark says that the option was there. CLI11 would take the next word for the value of "--name=".
    if (nothing) values.assign(1, std::string(kEmptyList));
    for (const auto& value : values)
      if (!value.empty()) out_.words.push_back(name + "=" + value);
  }

  void once(const std::string& word, const OptionRow& row) {
    if (!seen_.insert(row.name).second) out_.problems.push_back(usage_error(word, "is given twice"));
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  CanonicalWords out_;
  std::set<std::string_view> seen_;
};

}  // namespace

CanonicalWords canonical_words(const std::vector<std::string>& words) {
  // "run_nd merge A B" is "run_nd --merge A B", "run_nd devices" is "run_nd --list devices".
  if (words.empty() || (words.front() != "merge" && !is_list(words.front()))) return Canonicaliser(words).run();
  if (words.front() == "merge") {
    std::vector<std::string> merge = words;
    merge.front() = "--merge";
    return Canonicaliser(merge).run();
  }
  std::vector<std::string> longer{"--list"};
  longer.insert(longer.end(), words.begin(), words.end());
  return Canonicaliser(longer).run();
}

std::vector<std::string> spaced(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto at = text.find(' ');
    if (at != 0) out.emplace_back(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  }
  return out;
}

}  // namespace run_nd
