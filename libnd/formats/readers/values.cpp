// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/values.hpp"

#include <array>

#include "core/text.hpp"

namespace nd::formats {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Free-text names of trainers and classes by the family they contain; the more specific first.
struct FamilyName {
  std::string_view part, model_type;
};
constexpr std::array<FamilyName, 17> kFamilyNames{{{"deepseek", "deepseek_v3"},
                                                   {"mixtral", "mixtral"},
                                                   {"qwen3_next", "qwen3_next"},
                                                   {"qwen3_5", "qwen3_5"},
                                                   {"qwen3", "qwen3"},
                                                   {"qwen2_moe", "qwen2_moe"},
                                                   {"qwen2", "qwen2"},
                                                   {"qwen", "qwen"},
                                                   {"llama", "llama"},
                                                   {"glm4_moe", "glm4_moe"},
                                                   {"glm", "chatglm"},
                                                   {"internlm2", "internlm2"},
                                                   {"baichuan", "baichuan"},
                                                   {"mistral", "mistral"},
                                                   {"gemma2", "gemma2"},
                                                   {"telechat", "telechat"},
                                                   {"gpt2", "gpt2"}}};

}  // namespace

std::string family_of_name(std::string_view name) {
  std::string plain = core::canonical_name(name);
  for (char& c : plain)
    if (c == '.') c = '_';
  for (const auto& row : kFamilyNames)
    if (plain.find(row.part) != std::string::npos) return std::string(row.model_type);
  return {};
}

std::optional<Bytes> parse_memory(std::string_view text) {
  text = core::trim(text);
  std::size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
  const auto amount = core::parse_real(text.substr(0, end));
  if (!amount || *amount <= 0) return std::nullopt;
  std::string unit = core::canonical_name(core::trim(text.substr(end)));
  if (unit.size() == 3 && unit[1] == 'i') unit.erase(1, 1);
  constexpr std::array<std::string_view, 5> kUnits{"b", "kb", "mb", "gb", "tb"};
  double factor = 1;
  for (const auto name : kUnits) {
    if (unit == name) return Bytes{*amount * factor};
    factor *= 1024;
  }
  return std::nullopt;
}

std::optional<double> dtype_bytes(std::string_view name) {
  const auto first = name.find_first_of("0123456789");
  if (first == std::string_view::npos) return std::nullopt;
  std::size_t last = first;
  while (last < name.size() && is_digit(name[last])) ++last;
  const auto bits = core::parse_integer(name.substr(first, last - first));
  if (!bits || (*bits != 4 && *bits != 8 && *bits != 16 && *bits != 32 && *bits != 64)) return std::nullopt;
  return static_cast<double>(*bits) / 8.0;
}

std::optional<Dtype> activation_dtype(std::string_view name) {
  const auto bytes = dtype_bytes(name);
  if (!bytes || *bytes < 2) return std::nullopt;
  if (*bytes > 2) return Dtype::fp32;
  return core::contains_ignoring_case(name, "bf") ? Dtype::bf16 : Dtype::fp16;
}

std::optional<OptimizerKind> optimizer_of_name(std::string_view name) {
  const std::string word = core::canonical_name(name);
  const auto has = [&word](std::string_view part) { return word.find(part) != std::string::npos; };
  if (has("muon")) return OptimizerKind::muon;
  if (has("sgd") || has("momentum")) return OptimizerKind::sgd;
  if (!has("adam") || has("anyprecision")) return std::nullopt;
  return has("8bit") ? OptimizerKind::adamw_8bit : OptimizerKind::adamw;
}

std::string unknown_optimizer(std::string_view name) {
  return "the optimizer '" + std::string(name.substr(0, 120)) + "' is not known: it is priced as AdamW, two states per parameter";
}

}  // namespace nd::formats
