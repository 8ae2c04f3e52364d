// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "nd/search_space.hpp"
#include "space/enumerate.hpp"

namespace nd {

namespace {

struct RejectionText {
  Rejection id;
  std::string_view name, sentence;
};

constexpr std::array<RejectionText, kRejectionCount> kTexts{{
    {Rejection::unsupported_by_framework, "unsupported_by_framework", "the framework does not offer it"},
    {Rejection::devices_mismatch, "devices_mismatch", "dp * tp * pp * cp is not the number of devices"},
    {Rejection::heads_not_divisible, "heads_not_divisible", "the attention heads do not divide by tp"},
    {Rejection::kv_heads_not_divisible, "kv_heads_not_divisible", "the KV heads neither divide by tp nor replicate over it"},
    {Rejection::width_not_divisible, "width_not_divisible", "a feed-forward width does not divide"},
    {Rejection::layers_not_divisible, "layers_not_divisible", "the layers do not divide over pp * vpp"},
    {Rejection::too_many_stages, "too_many_stages", "fewer layers than pp * vpp"},
    {Rejection::sequence_not_divisible, "sequence_not_divisible", "the sequence does not divide over cp (and tp)"},
    {Rejection::experts_not_divisible, "experts_not_divisible", "the experts do not divide by ep"},
    {Rejection::expert_group_not_divisible, "expert_group_not_divisible", "ep * etp does not divide dp * cp * tp"},
    {Rejection::no_experts, "no_experts", "the model has no experts"},
    {Rejection::batch_mismatch, "batch_mismatch", "dp * mbs * mb is not the global batch"},
    {Rejection::micro_batches_below_stages, "micro_batches_below_stages", "too few micro-batches for the schedule"},
    {Rejection::schedule_unsupported, "schedule_unsupported", "the framework does not offer the schedule, or it does not go with pp and vpp"},
    {Rejection::sequence_parallel_conflict, "sequence_parallel_conflict",
     "sequence parallelism without tp, or off where the framework needs it"},
    {Rejection::sharding_conflict, "sharding_conflict", "op does not go with dp * cp or the ZeRO level"},
    {Rejection::out_of_memory, "out_of_memory", "does not fit in memory"},
    {Rejection::equivalent, "equivalent", "costs exactly what a simpler strategy costs"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTexts.size(); ++i)
    if (kTexts[i].id != static_cast<Rejection>(i)) return false;
  return true;
}
static_assert(in_order(), "texts follow nd::Rejection");

}  // namespace

std::string_view to_text(Rejection rejection) { return kTexts.at(static_cast<std::size_t>(rejection)).name; }
std::string_view describe(Rejection rejection) { return kTexts.at(static_cast<std::size_t>(rejection)).sentence; }

std::optional<Rejection> first_violation(const Scenario& scenario, const ParallelConfig& config) {
  return space::violation(space::SpaceContext(scenario), config);
}

}  // namespace nd
