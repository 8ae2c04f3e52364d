// SPDX-License-Identifier: Apache-2.0
#include "formats/tree/text_check.hpp"

#include "core/text.hpp"

namespace nd::formats {

namespace {

constexpr std::string_view kBom = "\xEF\xBB\xBF";

unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

bool is_continuation(std::string_view text, std::size_t at) { return at < text.size() && (byte_at(text, at) & 0xC0U) == 0x80U; }

/// Bytes of the well-formed character at `at` (Unicode 15, table 3-7), 0 when it is none.
std::size_t character_length(std::string_view text, std::size_t at) {
  const unsigned lead = byte_at(text, at);
  if (lead < 0x80U) return 1;
  const std::size_t length = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  if (lead < 0xC2U || lead > 0xF4U) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (!is_continuation(text, at + i)) return 0;
  const unsigned second = byte_at(text, at + 1);
  const bool overlong = (lead == 0xE0U && second < 0xA0U) || (lead == 0xF0U && second < 0x90U);
  const bool surrogate = lead == 0xEDU && second > 0x9FU;
  const bool beyond = lead == 0xF4U && second > 0x8FU;
  return overlong || surrogate || beyond ? 0 : length;
}

Diagnostic problem_at(std::string_view text, std::size_t offset, const std::string& file, std::string message, std::string hint) {
  const Place place = PlaceCursor(text).at(offset);
  return make_diagnostic(Errc::syntax, {file, place.line, place.column, {}}, std::move(message), std::move(hint));
}

bool is_control(unsigned byte) { return (byte < 0x20U && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7FU; }

}  // namespace

Place PlaceCursor::at(std::size_t offset) {
  if (offset > text_.size()) offset = text_.size();
  if (offset < offset_) {
    offset_ = 0;
    place_ = {1, 1};
  }
  for (; offset_ < offset; ++offset_) {
    if (text_[offset_] == '\n') {
      ++place_.line;
      place_.column = 1;
    } else if (!is_continuation(text_, offset_)) {
      ++place_.column;
    }
  }
  // The walk counted the lead byte of the character before `offset`; one that starts in the middle belongs to that character.
  return is_continuation(text_, offset) && place_.column > 1 ? Place{place_.line, place_.column - 1} : place_;
}

std::string_view without_bom(std::string_view text) {
  if (text.substr(0, kBom.size()) == kBom) text.remove_prefix(kBom.size());
  return text;
}

std::optional<Diagnostic> text_problem(std::string_view text, const std::string& file) {
  if (text.substr(0, 2) == "\xFF\xFE" || text.substr(0, 2) == "\xFE\xFF")
    return make_diagnostic(Errc::syntax, {file, 1, 1, {}}, "the file is UTF-16, not UTF-8", "save it as UTF-8");
  text = without_bom(text);
  for (std::size_t at = 0; at < text.size();) {
    const unsigned byte = byte_at(text, at);
    if (byte == 0) return problem_at(text, at, file, "binary data: a NUL byte", "a text file is needed");
    if (is_control(byte)) return problem_at(text, at, file, "a control character (byte " + std::to_string(byte) + ")", "remove it");
    const std::size_t length = character_length(text, at);
    if (length == 0) return problem_at(text, at, file, "not valid UTF-8 (byte " + std::to_string(byte) + ")", "save the file as UTF-8");
    at += length;
  }
  if (core::trim(text).empty()) return make_diagnostic(Errc::syntax, {file, 1, 1, {}}, "the file is empty");
  return std::nullopt;
}

}  // namespace nd::formats
