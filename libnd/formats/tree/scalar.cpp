// SPDX-License-Identifier: Apache-2.0
#include "formats/tree/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/text.hpp"
#include "formats/tree/number_spelling.hpp"

namespace nd::formats {

namespace {

// The words and number forms of YAML 1.1 as PyYAML's resolver knows them; docs/formats/README.md repeats them.
constexpr std::array<std::string_view, 4> kNull{"~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 9> kTrue{"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::array<std::string_view, 9> kFalse{"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_sign(char c) { return c == '+' || c == '-'; }

std::string_view unsigned_part(std::string_view text) { return !text.empty() && is_sign(text.front()) ? text.substr(1) : text; }

bool only(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

/// Base of an integer by YAML 1.1, 0 when it is none. "08" is none, "0" is decimal.
int integer_base(std::string_view text) {
  const std::string_view body = unsigned_part(text);
  if (body.empty()) return 0;
  if (body == "0") return 10;
  if (body.front() != '0') return is_digit(body.front()) && only(body, "0123456789_") ? 10 : 0;
  if (body.size() > 1 && body[1] == 'b') return only(body.substr(2), "01_") ? 2 : 0;
  if (body.size() > 1 && body[1] == 'x') return only(body.substr(2), "0123456789abcdefABCDEF_") ? 16 : 0;
  return only(body.substr(1), "01234567_") ? 8 : 0;
}

/// [eE][-+][0-9]+ or nothing.
bool is_exponent(std::string_view text) {
  if (text.empty()) return true;
  return text.size() > 2 && (text[0] == 'e' || text[0] == 'E') && is_sign(text[1]) && only(text.substr(2), "0123456789");
}

bool is_infinite_or_nan(std::string_view text) {
  constexpr std::array<std::string_view, 3> kInf{".inf", ".Inf", ".INF"};
  constexpr std::array<std::string_view, 3> kNan{".nan", ".NaN", ".NAN"};
  return is_one_of(unsigned_part(text), kInf) || is_one_of(text, kNan);
}

/// A real by YAML 1.1: a point is needed, the exponent needs its sign, a leading point takes no sign.
bool is_real(std::string_view text) {
  if (is_infinite_or_nan(text)) return true;
  constexpr std::string_view kDigits = "0123456789_";
  const std::string_view body = unsigned_part(text);
  const bool leading_point = !body.empty() && body.front() == '.';
  if (leading_point && body.size() != text.size()) return false;
  const auto point = body.find('.');
  if (point == std::string_view::npos) return false;
  const std::string_view whole = body.substr(0, point);
  if (!leading_point && !(is_digit(whole.front()) && only(whole, kDigits))) return false;
  std::string_view rest = body.substr(point + 1);
  if (leading_point && (rest.empty() || !is_digit(rest.front()))) return false;
  const auto end = std::min(rest.find_first_not_of(kDigits), rest.size());
  return is_exponent(rest.substr(end));
}

std::string without_underscores(std::string_view text) {
  std::string out(text);
  out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
  return out;
}

std::optional<std::int64_t> integer_value(std::string_view text, int base) {
  std::string digits = without_underscores(unsigned_part(text));
  if (base == 2 || base == 16) digits.erase(0, 2);
  if (text.front() == '-') digits.insert(digits.begin(), '-');
  std::int64_t value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value, base);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

/// An unquoted text that reads as a number although YAML 1.1 leaves it a string: 1e-5, 1e5, -.5. Not "08", which is neither octal nor decimal.
std::optional<double> number_in_string(const ConfigNode& node) {
  if (node.quoted || node.text.empty()) return std::nullopt;
  const std::string_view body = unsigned_part(node.text);
  if (body.empty() || !(is_digit(body.front()) || body.front() == '.') || body.find_first_of(".eE") == std::string_view::npos) return std::nullopt;
  return core::parse_real(node.text);
}

struct Unit {
  std::string_view name;
  double factor;
};

/// "12.5 GiB" -> 12.5 and "GiB".
struct Amount {
  double value;
  std::string_view unit;
};

std::optional<Amount> split_amount(std::string_view text) {
  text = core::trim(text);
  const auto end = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  // "5 EFLOP/s": the letter that starts a unit may look like an exponent.
  std::string_view number = text.substr(0, end);
  while (!number.empty() && !is_digit(number.back()) && number.back() != '.') number.remove_suffix(1);
  const auto value = core::parse_real(number);
  if (!value || *value < 0) return std::nullopt;
  return Amount{*value, core::trim(text.substr(number.size()))};
}

template <std::size_t N>
std::optional<double> amount_in(std::string_view text, const std::array<Unit, N>& units) {
  const auto amount = split_amount(text);
  if (!amount) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != amount->unit) continue;
    const double value = amount->value * unit.factor;
    return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
  }
  return std::nullopt;
}

constexpr double kKi = 1024.0;
constexpr std::array<Unit, 10> kByteUnits{{{"B", 1.0},
                                           {"kB", 1e3},
                                           {"KB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", kKi},
                                           {"MiB", kKi* kKi},
                                           {"GiB", kKi* kKi* kKi},
                                           {"TiB", kKi* kKi* kKi* kKi}}};
constexpr std::array<Unit, 5> kBitRateUnits{
    {{"bit/s", 0.125}, {"kbit/s", 0.125e3}, {"Mbit/s", 0.125e6}, {"Gbit/s", 0.125e9}, {"Tbit/s", 0.125e12}}};
constexpr std::array<Unit, 7> kFlopUnits{{{"FLOP/s", 1.0},
                                          {"kFLOP/s", 1e3},
                                          {"MFLOP/s", 1e6},
                                          {"GFLOP/s", 1e9},
                                          {"TFLOP/s", 1e12},
                                          {"PFLOP/s", 1e15},
                                          {"EFLOP/s", 1e18}}};
constexpr std::array<Unit, 6> kTimeUnits{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {"min", 60.0}, {"h", 3600.0}}};

}  // namespace

ScalarType scalar_type(const ConfigNode& node) {
  if (node.quoted) return ScalarType::string;
  if (node.text.empty() || is_one_of(node.text, kNull)) return ScalarType::null;
  if (is_one_of(node.text, kTrue) || is_one_of(node.text, kFalse)) return ScalarType::boolean;
  if (integer_base(node.text) != 0) return ScalarType::integer;
  return is_real(node.text) ? ScalarType::real : ScalarType::string;
}

std::optional<std::int64_t> as_integer(const ConfigNode& node) {
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  if (const int base = integer_base(node.text); base != 0) return integer_value(node.text, base);
  const auto real = as_real(node);
  constexpr double kExactLimit = 9007199254740992.0;  // 2^53: above it a real does not name one integer
  if (!real || std::floor(*real) != *real || std::abs(*real) > kExactLimit) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::optional<double> as_real(const ConfigNode& node) {
  if (!node.is_scalar() || node.quoted) return std::nullopt;
  if (const int base = integer_base(node.text); base != 0) {
    if (const auto value = integer_value(node.text, base)) return static_cast<double>(*value);
    return base == 10 ? core::parse_real(without_underscores(node.text)) : std::nullopt;
  }
  if (is_real(node.text)) return is_infinite_or_nan(node.text) ? std::nullopt : core::parse_real(without_underscores(node.text));
  return number_in_string(node);
}

std::optional<bool> as_boolean(const ConfigNode& node) {
  if (!node.is_scalar() || scalar_type(node) != ScalarType::boolean) return std::nullopt;
  return is_one_of(node.text, kTrue);
}

std::optional<std::string> as_string(const ConfigNode& node) {
  if (!node.is_scalar() || scalar_type(node) != ScalarType::string) return std::nullopt;
  return node.text;
}

std::string describe(const ConfigNode& node) {
  if (node.is_null()) return "nothing";
  if (node.is_sequence()) return "a list";
  if (node.is_mapping()) return "a mapping";
  constexpr std::size_t kShown = 40;
  constexpr std::array<const char*, 5> kType{"null", "a boolean", "an integer", "a real number", "a string"};
  const std::string text = node.text.size() > kShown ? node.text.substr(0, kShown) + "..." : node.text;
  return "'" + text + "' (" + kType.at(static_cast<std::size_t>(scalar_type(node))) + ")";
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto value = amount_in(text, kByteUnits);
  return value ? std::optional<Bytes>(Bytes{*value}) : std::nullopt;
}

std::optional<BytesPerSecond> parse_bandwidth(std::string_view text) {
  text = core::trim(text);
  if (const auto value = amount_in(text, kBitRateUnits)) return BytesPerSecond{*value};
  constexpr std::string_view kPerSecond = "/s";
  if (text.size() < kPerSecond.size() || text.substr(text.size() - kPerSecond.size()) != kPerSecond) return std::nullopt;
  text.remove_suffix(kPerSecond.size());
  if (text.empty() || text.back() == ' ') return std::nullopt;
  const auto value = amount_in(text, kByteUnits);
  return value ? std::optional<BytesPerSecond>(BytesPerSecond{*value}) : std::nullopt;
}

std::optional<FlopsPerSecond> parse_rate(std::string_view text) {
  const auto value = amount_in(text, kFlopUnits);
  return value ? std::optional<FlopsPerSecond>(FlopsPerSecond{*value}) : std::nullopt;
}

std::optional<Seconds> parse_seconds(std::string_view text) {
  const auto value = amount_in(text, kTimeUnits);
  return value ? std::optional<Seconds>(Seconds{*value}) : std::nullopt;
}

std::string number_text(double value) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  ND_CHECK(error == std::errc{});
  return {buffer.data(), end};
}

std::string typed_real(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  std::string text = number_text(value);
  if (text.find('.') != std::string::npos) return text;
  text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace nd::formats
