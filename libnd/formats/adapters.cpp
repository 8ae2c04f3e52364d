// SPDX-License-Identifier: Apache-2.0
#include "formats/adapters.hpp"

#include "core/text.hpp"

namespace nd {

double adapter_elements(const ModelSpec& model, std::int64_t rank, const std::string& targets) {
  const double h = static_cast<double>(model.hidden_size.value_or(0));
  const double a = static_cast<double>(model.num_attention_heads.value_or(1));
  const double g = static_cast<double>(model.num_key_value_heads.value_or(model.num_attention_heads.value_or(1)));
  const double d = model.head_dim ? static_cast<double>(*model.head_dim) : h / a;
  const double f = static_cast<double>(model.intermediate_size.value_or(0));
  double per_rank = 0;
  for (const std::string& target : core::split(targets, ' ')) {
    if (target == "q") per_rank += h + a * d;
    if (target == "k" || target == "v") per_rank += h + g * d;
    if (target == "qkv") per_rank += h + (a + 2 * g) * d;
    if (target == "o") per_rank += a * d + h;
    if (target == "gate" || target == "up") per_rank += h + f;
    if (target == "fc1") per_rank += h + (model.gated_ffn.value_or(true) ? 2 : 1) * f;
    if (target == "fc2") per_rank += f + h;
  }
  return per_rank * static_cast<double>(rank) * static_cast<double>(model.num_hidden_layers.value_or(0));
}

}  // namespace nd
