// SPDX-License-Identifier: Apache-2.0
#include "report/validation_pattern.hpp"

#include <cctype>
#include <cstddef>

#include "core/text.hpp"

namespace nd::report {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Characters of the number at the front of `text`: digits, with single dots between digits.
std::size_t number_length(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (is_digit(text[n]) || (text[n] == '.' && n > 0 && n + 1 < text.size() && is_digit(text[n + 1])))) ++n;
  return n;
}

/// Backtracking over the wildcards; patterns are short and come from our own data files.
bool match_rest(std::string_view pattern, std::string_view text, std::vector<std::string>& captures) {
  while (!pattern.empty()) {
    const bool literal = pattern.front() == '\\' && pattern.size() > 1;
    if (literal) pattern.remove_prefix(1);
    const char head = pattern.front();
    if (!literal && (head == '*' || head == '@')) {
      const std::string_view rest = pattern.substr(1);
      if (rest.empty()) {
        if (head == '@') captures.emplace_back(text);
        return true;
      }
      // Only places where the next literal stands are worth a try.
      const bool literal_next = std::string_view("*@#\\").find(rest.front()) == std::string_view::npos;
      const char next = lower(rest.front());
      for (std::size_t used = 0; used <= text.size(); ++used) {
        if (literal_next && (used == text.size() || lower(text[used]) != next)) continue;
        const std::size_t depth = captures.size();
        if (head == '@') captures.emplace_back(text.substr(0, used));
        if (match_rest(rest, text.substr(used), captures)) return true;
        captures.resize(depth);
      }
      return false;
    }
    if (!literal && head == '#') {
      const std::size_t used = number_length(text);
      if (used == 0) return false;
      captures.emplace_back(text.substr(0, used));
      text.remove_prefix(used);
    } else {
      if (text.empty() || lower(text.front()) != lower(head)) return false;
      text.remove_prefix(1);
    }
    pattern.remove_prefix(1);
  }
  return text.empty();
}

}  // namespace

std::optional<std::vector<std::string>> match_pattern(std::string_view pattern, std::string_view text) {
  std::vector<std::string> captures;
  if (!match_rest(pattern, text, captures)) return std::nullopt;
  return captures;
}

std::string expand_captures(std::string_view text, const std::vector<std::string>& captures) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] >= '1' && text[i + 1] <= '9') {
      const auto index = static_cast<std::size_t>(text[i + 1] - '1');
      if (index < captures.size()) out += captures[index];
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> note_phrases(std::string_view notes) {
  std::vector<std::string> out;
  for (const std::string& part : core::split(notes, ';')) {
    const std::string_view phrase = core::trim(part);
    if (!phrase.empty()) out.emplace_back(phrase);
  }
  return out;
}

}  // namespace nd::report
