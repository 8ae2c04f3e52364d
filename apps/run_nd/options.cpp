// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <map>

#include "values.hpp"
#include "words.hpp"

namespace run_nd {

namespace {

/// Stores the words of one option; the problem when they are not what it takes.
class Store {
 public:
  Store(Options& options, const OptionRow& row, const std::vector<std::string>& values) : options_(options), row_(row), values_(values) {}

  std::optional<nd::Diagnostic> operator()(std::monostate) const { return problem("not available in this version", std::string(row_.help)); }
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
    const auto value = parse_integer(text);
    if (!value && !only_digits(text)) return problem("'" + text + "' is no whole number", "a number from " + range());
    if (!value || !in_range(*value)) return problem("must be from " + range() + ", got " + text);
    options_.*member = value;
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<double> Options::*member) const {
    const auto& text = values_.back();
    const auto value = parse_real(text);
    if (!value) return problem("'" + text + "' is no number", "a number above " + range());
    if (*value <= static_cast<double>(row_.least) || *value > static_cast<double>(row_.most)) return problem("must be above " + range() + ", got " + text);
    options_.*member = value;
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<Amount> Options::*member) const {
    const auto& text = values_.back();
    const auto value = parse_amount(text);
    if (!value) return problem("'" + text + "' is no amount", "a number above 0, also with a suffix: 300B, 15T");
    options_.*member = value;
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<DeviceCounts> Options::*member) const {
    const auto& text = values_.back();
    const auto value = parse_device_counts(text);
    if (!value && !only_digits(text)) return problem("'" + text + "' is no whole number", "a number from " + range());
    if (!value || !in_range(value->least) || !in_range(value->most)) return problem("must be from " + range() + ", got " + text);
    options_.*member = value;
    return std::nullopt;
  }
  std::optional<nd::Diagnostic> operator()(std::optional<nd::Bytes> Options::*member) const {
    const auto& text = values_.back();
    const auto value = parse_memory(text);
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
      if (!value.empty() && value != kEmptyList) out.push_back(value);
    return out;
  }
  [[nodiscard]] std::string range() const { return std::to_string(row_.least) + " to " + std::to_string(row_.most); }
  [[nodiscard]] bool in_range(std::int64_t value) const { return value >= row_.least && value <= row_.most; }
  [[nodiscard]] nd::Diagnostic problem(std::string message, std::string hint = {}) const {
    return usage_error(shown_name(row_), std::move(message), std::move(hint));
  }
  Options& options_;
  const OptionRow& row_;
  const std::vector<std::string>& values_;
};

using Given = std::map<std::string_view, std::vector<std::string>>;

std::string shown_names(std::string_view long_names) {
  std::string out;
  for (const auto& name : spaced(long_names))
    for (const auto& row : option_table())
      if (row.name == name) out += (out.empty() ? "" : " or ") + shown_name(row);
  return out;
}

void check_pairs(const Given& given, std::vector<nd::Diagnostic>& problems) {
  for (const auto& row : option_table()) {
    if (given.count(row.name) == 0) continue;
    for (const auto& other : spaced(row.excludes))
      if (given.count(other) != 0) problems.push_back(usage_error(shown_name(row), "cannot be combined with " + shown_names(other)));
    const auto needed = spaced(row.needs);
    bool met = needed.empty();
    for (const auto& other : needed) met = met || given.count(other) != 0;
    if (!met) problems.push_back(usage_error(shown_name(row), "needs " + shown_names(row.needs)));
  }
}

/// What makes a run something else than a plain search.
struct Selector {
  Mode mode;
  std::string_view words;
  bool (*given)(const Options&);
};
constexpr std::array kSelectors{
    Selector{kList, "--list", [](const Options& o) { return !o.list.empty(); }},
    Selector{kMerge, "merge", [](const Options& o) { return !o.parts.empty(); }},
    Selector{kSizes, "-d A..B", [](const Options& o) { return o.devices && !o.devices->single(); }},
    Selector{kWhatIf, "--what-if", [](const Options& o) { return !o.what_if.empty(); }},
    Selector{kCompare, "--real_csv", [](const Options& o) { return !o.real_csv.empty(); }},
    Selector{kVerify, "--verify", [](const Options& o) { return !o.verify.empty(); }},
    Selector{kVerify, "--census", [](const Options& o) { return !o.census.empty(); }},
    Selector{kExplain, "--explain file", [](const Options& o) { return o.explain == "file"; }},
};

/// The mode that the options ask for; contradictions between them.
Mode choose_mode(const Options& options, std::vector<nd::Diagnostic>& problems) {
  const Selector* chosen = nullptr;
  for (const auto& selector : kSelectors) {
    if (!selector.given(options)) continue;
    if (chosen != nullptr) problems.push_back(usage_error(chosen->words, "cannot be combined with " + std::string(selector.words)));
    else chosen = &selector;
  }
  return chosen == nullptr ? kSearch : chosen->mode;
}

std::string selectors_of(unsigned modes) {
  std::string out;
  for (const auto& selector : kSelectors)
    if ((modes & selector.mode) != 0) out += (out.empty() ? "" : " or ") + std::string(selector.words);
  return out;
}

/// Options that the mode would have to ignore.
void check_modes(const Given& given, Mode mode, std::vector<nd::Diagnostic>& problems) {
  for (const auto& row : option_table()) {
    if (given.count(row.name) == 0 || (row.modes & mode) != 0) continue;
    if (mode == kSearch) problems.push_back(usage_error(shown_name(row), "needs " + selectors_of(row.modes)));
    else problems.push_back(usage_error(selectors_of(mode), "cannot be combined with " + shown_name(row)));
  }
}

}  // namespace

std::string shown_name(const OptionRow& row) {
  const auto names = spaced(row.short_names);
  return names.empty() ? std::string(row.name) : names.front();
}

nd::Diagnostic usage_error(std::string_view option, std::string message, std::string hint) {
  return nd::make_diagnostic(nd::Errc::out_of_range, nd::SourceRef{{}, 0, 0, std::string(option)}, std::move(message), std::move(hint));
}

ParsedOptions parse_options(const std::vector<std::string>& words) {
  auto canonical = canonical_words(words);
  auto out = parse_canonical(std::move(canonical.words));
  out.problems.insert(out.problems.begin(), canonical.problems.begin(), canonical.problems.end());
  return out;
}

ParsedOptions parse_canonical(std::vector<std::string> words) {
  ParsedOptions out;
  out.words = std::move(words);

  CLI::App app;
  app.set_help_flag();
  std::map<std::string_view, std::vector<std::string>> values;
  for (const auto& row : option_table())
    app.add_option(std::string(row.name), values[row.name])->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  try {
    // CLI11 takes the words of a vector from the back.
    app.parse(std::vector<std::string>(out.words.rbegin(), out.words.rend()));
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
  if (out.options.help || out.options.version || !out.options.generate.empty()) {
    out.mode = kPages;
    return out;
  }
  out.mode = choose_mode(out.options, out.problems);
  check_modes(given, out.mode, out.problems);
  return out;
}

}  // namespace run_nd
