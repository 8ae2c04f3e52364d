// SPDX-License-Identifier: Apache-2.0
#include "space/context.hpp"

#include <algorithm>
#include <numeric>

#include "core/integer.hpp"
#include "nd/search_space.hpp"

namespace nd::space {

namespace {

void add(std::vector<std::int64_t>& list, std::int64_t value) {
  if (value > 0 && std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

SpaceContext::SpaceContext(const Scenario& from)
    : scenario(from),
      can(from.profile.can),
      devices(from.run.devices),
      global_batch(from.run.global_batch_size),
      seq_length(from.run.seq_length),
      layers(from.model.layers()),
      moe(from.model.has_experts()) {
  ND_CHECK(devices > 0 && global_batch > 0 && seq_length > 0 && layers > 0);
  for (const auto& kind : from.model.kinds) {
    const auto& attention = kind.attention;
    if (attention.kind == AttentionKind::gated_delta) {
      add(heads, attention.linear_key_heads);
      add(heads, attention.linear_value_heads);
    } else if (attention.kind != AttentionKind::none) {
      add(heads, attention.heads);
      // MLA has one latent for all heads, which is replicated: no KV heads to divide.
      if (attention.kind == AttentionKind::softmax) add(kv_heads, attention.kv_heads);
    }
    if (kind.ffn.kind == FfnKind::dense) add(widths, kind.ffn.width);
    if (kind.ffn.kind == FfnKind::moe) {
      add(widths, kind.ffn.shared_experts * kind.ffn.shared_width);
      add(expert_widths, kind.ffn.expert_width);
      add(experts, kind.ffn.experts);
    }
  }
  schedules.assign(all_schedules().size(), false);
  for (const Schedule schedule : supported_schedules(can)) schedules.at(static_cast<std::size_t>(schedule)) = true;
  device_divisors = core::divisors(devices);
  batch_divisors = core::divisors(global_batch);
  std::int64_t common = 0;
  for (const auto count : experts) common = std::gcd(common, count);
  expert_divisors = common > 0 ? core::divisors(common) : std::vector<std::int64_t>{1};
  const auto& memory = from.profile.memory;
  selective_recompute_differs = memory.selective_drops_attention || memory.selective_drops_activation ||
                                memory.selective_drops_norm || memory.selective_drops_mla_up;
}

}  // namespace nd::space
