// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <type_traits>

#include "words.hpp"

namespace run_nd {

namespace {

/// "-d", or the long name where there is no short one.
std::string shown_name(const OptionRow& row) {
  const auto names = spaced(row.short_names);
  return names.empty() ? std::string(row.name) : names.front();
}

std::optional<std::int64_t> integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool only_digits(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A number and a unit; units are powers of 1024, as the predecessor of this program reads them.
std::optional<nd::Bytes> memory(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array<Unit, 7> kUnits{{{"b", 1}, {"kb", 1024}, {"mb", nd::kMiB}, {"gb", nd::kGiB}, {"kib", 1024}, {"mib", nd::kMiB}, {"gib", nd::kGiB}}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' '));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& known : kUnits)
    if (unit == known.name) return nd::Bytes{value * known.bytes};
  return std::nullopt;
}

/// Stores the words of one option; the problem when they are not what it takes.
class Store {
 public:
  Store(Options& options, const OptionRow& row, const std::vector<std::string>& values) : options_(options), row_(row), values_(values) {}

  std::optional<nd::Diagnostic> operator()(std::monostate) const { return problem("not available in this version"); }
  std::optional<nd::Diagnostic> operator()(bool Options::*member) const {
    options_.*member = values_.back() == "true";
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::string Options::*member) const {
    if (values_.back().empty()) return problem("needs a value", std::string(row_.value));
    options_.*member = values_.back();
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<std::int64_t> Options::*member) const {
    const auto& text = values_.back();
    const auto value = integer(text);
    const std::string range = std::to_string(row_.least) + " to " + std::to_string(row_.most);
    if (!value && !only_digits(text)) return problem("'" + text + "' is no whole number", "a number from " + range);
    if (!value || *value < row_.least || *value > row_.most) return problem("must be from " + range + ", got " + text);
    options_.*member = value;
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<nd::Bytes> Options::*member) const {
    const auto& text = values_.back();
    const auto value = memory(text);
    if (!value) return problem("'" + text + "' is no amount of memory", "a number and a unit: 58GB, 61440MB");
    options_.*member = value;
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::vector<std::string> Options::*member) const {
    options_.*member = not_empty();
    if ((options_.*member).empty()) return problem("needs a value", std::string(row_.value));
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<std::vector<std::string>> Options::*member) const {
    options_.*member = not_empty();
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::vector<std::string> not_empty() const {
    std::vector<std::string> out;
    for (const auto& value : values_)
      if (!value.empty()) out.push_back(value);
    return out;
  }
  [[nodiscard]] nd::Diagnostic problem(std::string message, std::string hint = {}) const {
    return usage_error(shown_name(row_), std::move(message), std::move(hint));
  }
  Options& options_;
  const OptionRow& row_;
  const std::vector<std::string>& values_;
};

using Given = std::map<std::string_view, std::vector<std::string>>;

void check_pairs(const Given& given, std::vector<nd::Diagnostic>& problems) {
  for (const auto& row : option_table()) {
    if (given.count(row.name) == 0) continue;
    for (const auto& other : spaced(row.excludes))
      if (given.count(other) != 0) problems.push_back(usage_error(shown_name(row), "cannot be combined with " + other));
    const auto needed = spaced(row.needs);
    bool met = needed.empty();
    for (const auto& other : needed) met = met || given.count(other) != 0;
    if (!met) problems.push_back(usage_error(shown_name(row), "needs " + std::string(row.needs)));
  }
}

}  // namespace

nd::Diagnostic usage_error(std::string_view option, std::string message, std::string hint) {
  return nd::make_diagnostic(nd::Errc::out_of_range, nd::SourceRef{{}, 0, 0, std::string(option)}, std::move(message), std::move(hint));
}

ParsedOptions parse_options(const std::vector<std::string>& words) {
  ParsedOptions out;
  auto canonical = canonical_words(words);
  out.problems = std::move(canonical.problems);

  CLI::App app;
  app.set_help_flag();
  std::map<std::string_view, std::vector<std::string>> values;
  for (const auto& row : option_table())
    app.add_option(std::string(row.name), values[row.name])->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  try {
    // CLI11 takes the words of a vector from the back.
    app.parse(std::vector<std::string>(canonical.words.rbegin(), canonical.words.rend()));
  } catch (const CLI::ParseError& error) {
    out.problems.push_back(usage_error("command line", error.what()));
    return out;
  }
  Given given;
  for (const auto& row : option_table()) {
    const auto& list = values[row.name];
    if (app.get_option(std::string(row.name))->count() == 0) continue;
    given[row.name] = list;
    const std::vector<std::string> stored = list.empty() ? std::vector<std::string>{""} : list;
    if (auto problem = std::visit(Store(out.options, row, stored), row.target)) out.problems.push_back(std::move(*problem));
  }
  check_pairs(given, out.problems);
  return out;
}

}  // namespace run_nd
