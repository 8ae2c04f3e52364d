// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace nd::core {

namespace {
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
}  // namespace

std::string canonical_name(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '-' || c == ' ' ? '_' : lower(c);
  return out;
}

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> before(width), previous(width), row(width);
  for (std::size_t j = 0; j < width; ++j) previous[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < width; ++j) {
      const int replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[width - 1];
}

namespace {

/// Whether `part` is `whole` with letters left out: how people shorten names.
bool shortens(std::string_view part, std::string_view whole) {
  std::size_t at = 0;
  for (const char c : whole)
    if (at < part.size() && part[at] == c) ++at;
  return at == part.size();
}

/// Edits within which a name can be a slip for another: one in a short word, a quarter of a longer one but never more than four; a
/// third of the longer one where the other only leaves letters out and starts alike.
int tolerated_edits(std::string_view a, std::string_view b) {
  constexpr std::size_t kShortWord = 4, kMostSlips = 4;
  if (a.empty() || b.empty()) return 0;
  const std::size_t longest = std::max(a.size(), b.size());
  if (std::min(a.size(), b.size()) < kShortWord) return 1;
  if (a.front() == b.front() && (shortens(a, b) || shortens(b, a))) return static_cast<int>(std::max<std::size_t>(2, longest / 3));
  return static_cast<int>(std::clamp<std::size_t>(longest / 4, 1, kMostSlips));
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestCompared = 64;  // names are short; a pasted file is not a misspelt name
  if (name.size() > kLongestCompared) return std::nullopt;
  const std::string wanted = canonical_name(name);
  int best = static_cast<int>(kLongestCompared);
  std::optional<std::string> found;
  for (const auto& candidate : known) {
    if (candidate.size() > kLongestCompared) continue;
    const std::string known_name = canonical_name(candidate);
    const int distance = edit_distance(wanted, known_name);
    if (distance <= tolerated_edits(wanted, known_name) && distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string name_hint(std::string_view name, const std::vector<std::string>& known) {
  if (auto near = nearest_name(name, known)) return "did you mean '" + *near + "'?";
  constexpr std::size_t kShown = 12;
  std::string out = "known: ";
  for (std::size_t i = 0; i < known.size() && i < kShown; ++i) out += (i == 0 ? "" : ", ") + known[i];
  if (known.size() > kShown) out += ", ...";
  return out;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_real(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const auto at = text.find(separator);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) { return lower(a) == lower(b); }) != text.end();
}

}  // namespace nd::core
