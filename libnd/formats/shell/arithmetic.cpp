// SPDX-License-Identifier: Apache-2.0
#include "formats/shell/arithmetic.hpp"

#include <array>
#include <charconv>

namespace nd::formats::shell {

namespace {

using Number = std::optional<std::int64_t>;

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum class Op { either, both, equal, unequal, at_most, at_least, left, right, less, more, plus, minus, times, over, rest, power };

/// A binary operator. Longer spellings stand before their beginnings; a higher level binds tighter.
struct Row {
  std::string_view text;
  Op op;
  int level;
};
constexpr std::array<Row, 16> kOperators{{{"||", Op::either, 1}, {"&&", Op::both, 2},     {"==", Op::equal, 3},  {"!=", Op::unequal, 3},
                                          {"<=", Op::at_most, 4}, {">=", Op::at_least, 4}, {"<<", Op::left, 5},   {">>", Op::right, 5},
                                          {"<", Op::less, 4},     {">", Op::more, 4},      {"+", Op::plus, 6},    {"-", Op::minus, 6},
                                          {"**", Op::power, 8},   {"*", Op::times, 7},     {"/", Op::over, 7},    {"%", Op::rest, 7}}};

Number power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > 62) return std::nullopt;
  std::int64_t out = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(out, base, &out)) return std::nullopt;
  return out;
}

Number shift(std::int64_t a, std::int64_t b, bool left) {
  if (a < 0 || b < 0 || b > 62) return std::nullopt;
  if (!left) return a >> b;
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, std::int64_t{1} << b, &out)) return std::nullopt;
  return out;
}

Number apply(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  const bool divides = b != 0 && b != -1;  // -1: the least number has no opposite
  switch (op) {
    case Op::either: return a != 0 || b != 0;
    case Op::both: return a != 0 && b != 0;
    case Op::equal: return a == b;
    case Op::unequal: return a != b;
    case Op::at_most: return a <= b;
    case Op::at_least: return a >= b;
    case Op::less: return a < b;
    case Op::more: return a > b;
    case Op::left: return shift(a, b, true);
    case Op::right: return shift(a, b, false);
    case Op::plus: return __builtin_add_overflow(a, b, &out) ? std::nullopt : Number(out);
    case Op::minus: return __builtin_sub_overflow(a, b, &out) ? std::nullopt : Number(out);
    case Op::times: return __builtin_mul_overflow(a, b, &out) ? std::nullopt : Number(out);
    case Op::over: return divides ? Number(a / b) : std::nullopt;
    case Op::rest: return divides ? Number(a % b) : std::nullopt;
    case Op::power: return power(a, b);
  }
  return std::nullopt;
}

class Evaluation {
 public:
  Evaluation(std::string_view text, const NameValue& value_of) : text_(text), value_of_(value_of) {}

  Number run() {
    Number out = choice();
    blanks();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Number choice() {
    constexpr int kDeepest = 100;
    if (++depth_ > kDeepest) return std::nullopt;
    Number out = binary(1);
    blanks();
    if (out && peek() == '?') {
      ++at_;
      const Number yes = choice();
      blanks();
      if (peek() != ':') return std::nullopt;
      ++at_;
      const Number no = choice();
      out = *out != 0 ? yes : no;
    }
    --depth_;
    return out;
  }

  const Row* next_operator(int level) {
    blanks();
    for (const auto& row : kOperators)
      if (text_.substr(at_, row.text.size()) == row.text) {
        // "*" also begins "**".
        if (row.op == Op::times && text_.substr(at_, 2) == "**") return nullptr;
        return row.level >= level ? &row : nullptr;
      }
    return nullptr;
  }

  Number binary(int level) {
    Number left = unary();
    while (left) {
      const Row* const row = next_operator(level);
      if (row == nullptr) break;
      at_ += row->text.size();
      const Number right = binary(row->level + (row->op == Op::power ? 0 : 1));
      if (!right) return std::nullopt;
      left = apply(row->op, *left, *right);
    }
    return left;
  }

  Number unary() {
    blanks();
    int sign = 1;
    bool negated = false, any_not = false;
    for (; peek() == '-' || peek() == '+' || (peek() == '!' && text_.substr(at_, 2) != "!="); blanks(), void()) {
      if (peek() == '-') sign = -sign;
      if (peek() == '!') negated = !negated, any_not = true;
      ++at_;
    }
    Number out = primary();
    if (!out) return std::nullopt;
    if (any_not) out = negated ? *out == 0 : *out != 0;
    return sign < 0 ? apply(Op::minus, 0, *out) : out;
  }

  Number primary() {
    blanks();
    if (peek() == '(') {
      ++at_;
      const Number out = choice();
      blanks();
      if (peek() != ')') return std::nullopt;
      ++at_;
      return out;
    }
    if (is_digit(peek())) return number();
    if (!is_name_start(peek())) return std::nullopt;
    const std::size_t begin = at_;
    while (is_name_start(peek()) || is_digit(peek())) ++at_;
    return value_of_(text_.substr(begin, at_ - begin));
  }

  Number number() {
    int base = 10;
    if (peek() == '0' && at_ + 1 < text_.size()) {
      const char next = text_[at_ + 1];
      if (next == 'x' || next == 'X') base = 16, at_ += 2;
      else if (is_digit(next)) base = 8;
    }
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out, base);
    if (error != std::errc{}) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return out;
  }

  std::string_view text_;
  const NameValue& value_of_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> evaluate(std::string_view text, const NameValue& value_of) { return Evaluation(text, value_of).run(); }

}  // namespace nd::formats::shell
