// SPDX-License-Identifier: Apache-2.0
#include "harness/step_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/text.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::harness {

namespace {

constexpr std::size_t kLongestLine = 16384;    ///< characters; of a longer line the rest is dropped
constexpr std::size_t kLongestMatch = 2048;    ///< std::regex recurses once per character
constexpr std::size_t kMostSteps = 1'000'000;
constexpr std::size_t kMostSummary = 512;
constexpr std::size_t kMostOpen = 64;          ///< tracebacks that are printed at once
constexpr std::size_t kTracebackBytes = 4096;
constexpr std::string_view kTraceback = "Traceback (most recent call last)";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Digits all alike, except those of a name ("rank3"): two prefixes that differ in a time stamp are one, two ranks are not.
std::string shape(std::string_view text) {
  std::string out(text);
  bool of_name = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) of_name = false;
    else if (i == 0 || !is_digit(text[i - 1])) of_name = i >= 2 && is_letter(text[i - 1]) && is_letter(text[i - 2]);
    if (is_digit(text[i]) && !of_name) out[i] = '0';
  }
  return out;
}

/// "torch.cuda.OutOfMemoryError: text", "KeyboardInterrupt": what ends a traceback.
bool is_exception_line(std::string_view text) {
  const std::size_t end = std::min(text.find(':'), text.size());
  const auto name = text.substr(0, end);
  if (name.empty() || !is_letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
}

void keep_largest(std::optional<double>& to, double value) {
  if (std::isfinite(value)) to = std::max(to.value_or(value), value);
}

std::optional<double> find_field(const FieldRule& rule, std::string_view text) {
  std::optional<double> value;
  if (rule.pattern) {
    std::cmatch match;
    const auto part = text.substr(0, kLongestMatch);
    if (std::regex_search(part.data(), part.data() + part.size(), match, *rule.pattern) && match.size() > 1 && match[1].matched)
      value = leading_number(std::string_view(&*match[1].first, static_cast<std::size_t>(match[1].length())));
  } else {
    for (std::size_t at = text.find(rule.after); at != std::string_view::npos && !value; at = text.find(rule.after, at + 1)) {
      // "step:" is not the end of "per_step:".
      if (at > 0 && is_letter(rule.after.front()) && (is_letter(text[at - 1]) || is_digit(text[at - 1]))) continue;
      value = leading_number(text.substr(at + rule.after.size()));
    }
  }
  if (value) *value *= rule.factor;
  return value;
}

bool contains_all(std::string_view text, const std::vector<std::string>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) { return text.find(part) != std::string_view::npos; });
}

/// "79.15 GiB" at the start of the text.
std::optional<double> leading_amount(std::string_view text) {
  text = core::trim(text);
  std::size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
  std::size_t unit = end;
  while (unit < text.size() && text[unit] == ' ') ++unit;
  std::size_t stop = unit;
  while (stop < text.size() && is_letter(text[stop])) ++stop;
  if (end == 0) return std::nullopt;
  std::string name(text.substr(unit, stop - unit));
  if (name == "bytes") name = "B";
  const auto bytes = formats::parse_bytes(std::string(text.substr(0, end)) + " " + name);
  return bytes ? std::optional(bytes->value) : std::nullopt;
}

/// The same at its end.
std::optional<double> trailing_amount(std::string_view text) {
  text = core::trim(text);
  std::size_t at = text.size();
  while (at > 0 && is_letter(text[at - 1])) --at;
  while (at > 0 && text[at - 1] == ' ') --at;
  while (at > 0 && (is_digit(text[at - 1]) || text[at - 1] == '.')) --at;
  return leading_amount(text.substr(at));
}

}  // namespace

std::string without_colours(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
    }
  }
  return out;
}

std::optional<double> leading_number(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && std::string_view(" \t:='\"[(").find(text[at]) != std::string_view::npos) ++at;
  std::string digits;
  for (std::size_t i = at; i < text.size() && digits.size() < 64; ++i) {
    const char c = text[i];
    const bool exponent = (c == 'e' || c == 'E') && !digits.empty() && i + 1 < text.size() && (is_digit(text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+');
    const bool sign = (c == '-' || c == '+') && (digits.empty() || digits.back() == 'e' || digits.back() == 'E');
    const bool thousands = c == ',' && !digits.empty() && is_digit(digits.back()) && digits.find('.') == std::string::npos && i + 3 < text.size() && is_digit(text[i + 1]) &&
                           is_digit(text[i + 2]) && is_digit(text[i + 3]) && (i + 4 >= text.size() || !is_digit(text[i + 4]));
    if (thousands) continue;
    if (!is_digit(c) && c != '.' && !exponent && !sign) break;
    if (c != '+' || !digits.empty()) digits += c;
  }
  if (!digits.empty() && digits.back() == '.') digits.pop_back();
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec == std::errc() && read.ptr == digits.data() + digits.size()) return value;
  auto rest = text.substr(at);
  const bool negative = rest.starts_with("-");
  if (negative) rest.remove_prefix(1);
  const std::string word = core::canonical_name(rest.substr(0, 3));
  const bool ends = rest.size() == 3 || (rest.size() > 3 && !is_letter(rest[3])) || rest.starts_with("infinity") || rest.starts_with("Infinity");
  if (word == "nan" && ends) return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf" && ends) return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return std::nullopt;
}

void StepLog::feed(std::string_view bytes, double clock_s) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\n\r");
    const auto piece = bytes.substr(0, end);
    if (!overlong_) pending_ += piece.substr(0, kLongestLine - std::min(kLongestLine, pending_.size()));
    overlong_ = overlong_ || pending_.size() >= kLongestLine;
    if (end == std::string_view::npos) return;
    if (!pending_.empty()) line(without_colours(pending_), clock_s);
    pending_.clear();
    overlong_ = false;
    bytes.remove_prefix(end + 1);
  }
}

void StepLog::finish(double clock_s) {
  feed("\n", clock_s);
  for (const auto& capture : open_)
    if (first_text_.empty()) first_text_ = capture.text;
  open_.clear();
}

void StepLog::line(std::string_view text, double clock_s) {
  for (const auto& rule : profile_.summary)
    if (contains_all(text, rule.contains)) return read_summary(rule, text);
  for (const auto& rule : profile_.steps)
    if (contains_all(text, rule.contains)) return read_step(rule, text, clock_s);
  read_failure(text);
  read_traceback(text);
}

void StepLog::read_step(const LineRule& rule, std::string_view text, double clock_s) {
  StepRecord record;
  record.arrived_s = clock_s;
  std::optional<double> number;
  for (const auto& field : rule.fields) {
    const auto value = find_field(field, text);
    if (!value) continue;
    if (field.name == "step") number = value;
    else if (field.name == "loss") record.loss = value;
    else if (field.name == "step_time" && std::isfinite(*value) && *value > 0) record.seconds = value;
    else if (field.name == "tokens_per_s" && std::isfinite(*value) && *value > 0) record.tokens_per_s = value;
    else if (field.name == "steps_per_s" && std::isfinite(*value) && *value > 0) record.seconds = 1 / *value;
    else if (field.name == "memory_allocated") keep_largest(allocated_, *value);
    else if (field.name == "memory_reserved") keep_largest(reserved_, *value);
  }
  if (!number && !record.loss && !record.seconds) return;  // a memory reading beside the steps
  ++lines_;
  if (record.loss && !std::isfinite(*record.loss)) nan_loss_ = true;
  constexpr double kLargestStep = 1e15;
  const bool numbered = number && *number >= 0 && *number < kLargestStep;
  const std::int64_t step = numbered ? static_cast<std::int64_t>(*number) : lines_ * every_;
  if (steps_.size() >= kMostSteps && steps_.count(step) == 0) return;
  const auto [at, fresh] = steps_.emplace(step, record);
  if (fresh) return;
  // Another rank prints the same step: the slowest one ends it.
  if (record.seconds) keep_largest(at->second.seconds, *record.seconds);
  if (record.tokens_per_s) at->second.tokens_per_s = std::min(at->second.tokens_per_s.value_or(*record.tokens_per_s), *record.tokens_per_s);
}

void StepLog::read_summary(const LineRule& rule, std::string_view text) {
  for (const auto& field : rule.fields)
    if (const auto value = find_field(field, text)) {
      summary_[field.name] = *value;
      if (field.name == "memory_allocated") keep_largest(allocated_, *value);
      if (field.name == "memory_reserved") keep_largest(reserved_, *value);
    }
  if (!rule.pairs) return;
  for (std::size_t at = text.find('\''); at != std::string_view::npos; at = text.find('\'', at + 1)) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    const auto name = text.substr(at + 1, end - at - 1);
    auto rest = text.substr(end + 1);
    at = end;
    if (!rest.starts_with(":")) continue;
    const auto value = leading_number(rest);
    if (!value || name.empty() || summary_.size() >= kMostSummary) continue;
    if (name == "train_loss" && !std::isfinite(*value)) nan_loss_ = true;
    summary_[std::string(name)] = *value;
  }
}

void StepLog::read_failure(std::string_view text) {
  for (const auto& pattern : failures_.patterns) {
    if (text.find(pattern.contains) == std::string_view::npos) continue;
    const bool fresh = found_.emplace(pattern.status, std::string(text.substr(0, kTracebackBytes))).second;
    if (pattern.status != RunStatus::oom_device || !fresh) continue;
    for (const auto& rule : failures_.amounts) {
      std::optional<double> amount;
      if (!rule.after.empty()) {
        const auto at = text.find(rule.after);
        if (at != std::string_view::npos) amount = leading_amount(text.substr(at + rule.after.size()));
      } else if (const auto at = text.find(rule.before); at != std::string_view::npos) {
        amount = trailing_amount(text.substr(0, at));
      }
      if (amount) amounts_.emplace(rule.name, *amount);
    }
  }
}

void StepLog::read_traceback(std::string_view text) {
  if (const auto at = text.find(kTraceback); at != std::string_view::npos) {
    const std::string prefix = shape(text.substr(0, at));
    open_.erase(std::remove_if(open_.begin(), open_.end(), [&](const Capture& one) { return one.prefix == prefix; }), open_.end());
    if (open_.size() < kMostOpen) open_.push_back({prefix, std::string(text.substr(at)) + "\n"});
    return;
  }
  // The longest prefix that fits: a rank's own before the empty one.
  Capture* capture = nullptr;
  for (auto& one : open_)
    if (text.size() >= one.prefix.size() && shape(text.substr(0, one.prefix.size())) == one.prefix && (capture == nullptr || one.prefix.size() > capture->prefix.size()))
      capture = &one;
  if (capture == nullptr) return;
  const auto body = text.substr(capture->prefix.size());
  if (capture->text.size() + body.size() > kTracebackBytes) {
    if (!is_exception_line(body)) return;
    capture->text += "...\n";
  }
  capture->text += std::string(body.substr(0, kTracebackBytes)) + "\n";
  if (!is_exception_line(body)) return;
  const std::string cause(body.substr(0, kTracebackBytes));
  if (first_cause_.empty()) {
    first_cause_ = cause;
    first_text_ = capture->text;
  }
  if (primary_cause_.empty() && !secondary(cause)) {
    primary_cause_ = cause;
    primary_text_ = capture->text;
  }
  const std::string prefix = capture->prefix;
  open_.erase(std::remove_if(open_.begin(), open_.end(), [&](const Capture& one) { return one.prefix == prefix; }), open_.end());
}

bool StepLog::secondary(std::string_view text) const {
  return std::any_of(failures_.secondary.begin(), failures_.secondary.end(), [&](const std::string& one) { return text.find(one) != std::string_view::npos; });
}

std::string StepLog::cause() const { return primary_cause_.empty() ? first_cause_ : primary_cause_; }
std::string StepLog::traceback() const { return primary_text_.empty() ? first_text_ : primary_text_; }

}  // namespace nd::harness
