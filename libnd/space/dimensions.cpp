// SPDX-License-Identifier: Apache-2.0
#include "space/dimensions.hpp"

#include <algorithm>
#include <limits>

#include "core/integer.hpp"

namespace nd::space {

namespace {

using Values = std::vector<std::int64_t>;

int narrow(std::int64_t value) {
  ND_CHECK(value >= 0 && value <= std::numeric_limits<int>::max());
  return static_cast<int>(value);
}

template <int ParallelConfig::*Member>
std::int64_t get_degree(const ParallelConfig& c) {
  return c.*Member;
}
template <int ParallelConfig::*Member>
void set_degree(ParallelConfig& c, std::int64_t value) {
  c.*Member = narrow(value);
}
template <class Enum, Enum ParallelConfig::*Member>
std::int64_t get_enum(const ParallelConfig& c) {
  return static_cast<std::int64_t>(c.*Member);
}
template <class Enum, Enum ParallelConfig::*Member>
void set_enum(ParallelConfig& c, std::int64_t value) {
  c.*Member = static_cast<Enum>(value);
}
std::int64_t get_sp(const ParallelConfig& c) { return c.sequence_parallel ? 1 : 0; }
void set_sp(ParallelConfig& c, std::int64_t value) { c.sequence_parallel = value != 0; }

template <std::optional<std::int64_t> RunSpec::*Member>
std::optional<std::int64_t> stated_degree(const RunSpec& run) {
  return run.*Member;
}
template <class Enum, std::optional<Enum> RunSpec::*Member>
std::optional<std::int64_t> stated_enum(const RunSpec& run) {
  const auto& value = run.*Member;
  if (!value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// Divisors in `list` of `number`.
void divisors_of(const Values& list, std::int64_t number, Values& out) {
  for (const auto value : list)
    if (number % value == 0) out.push_back(value);
}

void tp_domain(const SpaceContext& x, const ParallelConfig&, Values& out) { out = x.device_divisors; }
void pp_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) { divisors_of(x.device_divisors, x.devices / c.tp, out); }
void cp_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  divisors_of(x.device_divisors, x.devices / (std::int64_t{c.tp} * c.pp), out);
}
void dp_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  out.push_back(x.devices / (std::int64_t{c.tp} * c.pp * c.cp));
}
void ep_domain(const SpaceContext& x, const ParallelConfig&, Values& out) {
  if (!x.moe) return out.push_back(1);
  for (const auto value : x.expert_divisors) out.push_back(value);
}
void etp_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  // An expert split further than the attention beside it has no use: divisors of tp.
  if (!x.moe || !x.can.expert_tensor_parallel) return out.push_back(1);
  divisors_of(x.device_divisors, c.tp, out);
}
void sp_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  out.push_back(0);
  if (c.tp > 1 && x.can.sequence_parallel) out.push_back(1);
}
void mbs_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  divisors_of(x.batch_divisors, x.global_batch / c.dp, out);
}
void mb_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  out.push_back(x.global_batch / (std::int64_t{c.dp} * c.micro_batch_size));
}
void vpp_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  out.push_back(1);
  if (c.pp == 1) return;
  // Where the layers divide over the stages only chunks of equal size are tried. Where they cannot, of the chunk counts with the
  // same largest chunk the smallest: a finer cut that leaves the largest chunk as it is only adds transfers.
  const bool even = x.layers % c.pp == 0;
  const auto largest_chunk = [&x, &c](std::int64_t chunks) { return core::div_ceil(x.layers, c.pp * chunks); };
  // Schedules along a V have two chunks, interleaving any number.
  const std::int64_t most = x.offers(Schedule::interleaved) ? x.layers / c.pp
                            : x.offers(Schedule::zb_v) || x.offers(Schedule::dualpipe_v) ? std::min<std::int64_t>(2, x.layers / c.pp)
                                                                                         : 1;
  for (std::int64_t chunks = 2; chunks <= most; ++chunks) {
    const bool tried = even ? x.layers % (c.pp * chunks) == 0 : x.can.uneven_layers && largest_chunk(chunks) < largest_chunk(chunks - 1);
    if (tried) out.push_back(chunks);
  }
}
void schedule_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  // The two that every trainer with pipelines has, and the one that the run states; the others only when asked for.
  const auto usual = c.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
  out.push_back(static_cast<std::int64_t>(usual));
  ParallelConfig stated = c;
  stated.schedule = x.scenario.run.strategy.schedule;
  stated.micro_batch_group = 0;  // the schedule's own
  stated.seq_split = stated.schedule == Schedule::seq_1f1b ? x.scenario.run.strategy.seq_split : 1;
  if (c.pp > 1 && stated.schedule != usual && !check_schedule(x, stated)) out.push_back(static_cast<std::int64_t>(stated.schedule));
}
void zero_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  out.push_back(0);
  if (std::int64_t{c.dp} * c.cp == 1) return;
  for (std::int64_t level = 1; level <= x.can.max_zero; ++level) out.push_back(level);
}
void op_domain(const SpaceContext& x, const ParallelConfig& c, Values& out) {
  const std::int64_t ranks = std::int64_t{c.dp} * c.cp;
  if (c.zero == ZeroLevel::none || ranks == 1) return out.push_back(1);
  if (x.can.style != DataParallelStyle::mindspore) return out.push_back(ranks);
  for (const auto value : x.device_divisors)
    if (value > 1 && ranks % value == 0) out.push_back(value);
}
void recompute_domain(const SpaceContext& x, const ParallelConfig&, Values& out) {
  out.push_back(static_cast<std::int64_t>(Recompute::off));
  if (x.selective_recompute_differs) out.push_back(static_cast<std::int64_t>(Recompute::selective));
  out.push_back(static_cast<std::int64_t>(Recompute::full));
}

using Words = std::vector<std::string_view>;
constexpr Words (*kNumbers)() = nullptr;
Words switch_words() { return {"off", "on"}; }
Words recompute_words() {
  return {to_text(Recompute::off), to_text(Recompute::selective), to_text(Recompute::full), to_text(Recompute::per_layer)};
}
Words schedule_words() {
  Words out;
  for (const Schedule schedule : all_schedules()) out.push_back(schedule_info(schedule).name);
  return out;
}

constexpr std::array<DimensionRow, kDimensionCount> kTable{{
    {{Dimension::tp, "TP", "MP", "tp", "tp", "tensor parallel",
      "divides devices, attention heads, KV heads (or replicates them) and feed-forward widths"},
     get_degree<&ParallelConfig::tp>, set_degree<&ParallelConfig::tp>, stated_degree<&RunSpec::tp>, tp_domain, check_tp, false, kNumbers},
    {{Dimension::pp, "PP", "", "pp", "pp", "pipeline parallel", "divides devices; layers split over the stages"},
     get_degree<&ParallelConfig::pp>, set_degree<&ParallelConfig::pp>, stated_degree<&RunSpec::pp>, pp_domain, check_pp, false, kNumbers},
    {{Dimension::cp, "CP", "", "cp", "cp", "context parallel", "2 cp divides the sequence (Ulysses: tp * cp divides the heads)"},
     get_degree<&ParallelConfig::cp>, set_degree<&ParallelConfig::cp>, stated_degree<&RunSpec::cp>, cp_domain, check_cp, false, kNumbers},
    {{Dimension::dp, "DP", "", "dp", "dp", "data parallel", "devices / (tp * pp * cp); divides the global batch"},
     get_degree<&ParallelConfig::dp>, set_degree<&ParallelConfig::dp>, stated_degree<&RunSpec::dp>, dp_domain, check_dp, true, kNumbers},
    {{Dimension::ep, "EP", "", "ep", "ep", "expert parallel", "divides the experts and dp * cp * tp"},
     get_degree<&ParallelConfig::ep>, set_degree<&ParallelConfig::ep>, stated_degree<&RunSpec::ep>, ep_domain, check_ep, false, kNumbers},
    {{Dimension::etp, "ETP", "", "etp", "etp", "tensor parallel inside an expert", "ep * etp divides dp * cp * tp; divides the expert width"},
     get_degree<&ParallelConfig::etp>, set_degree<&ParallelConfig::etp>, stated_degree<&RunSpec::etp>, etp_domain, check_etp, true, kNumbers},
    {{Dimension::sequence_parallel, "SP", "", "sp", "sequence_parallel", "sequence parallel", "on or off; needs tp > 1 and tp * cp to divide the sequence"},
     get_sp, set_sp, stated_enum<bool, &RunSpec::sequence_parallel>, sp_domain, check_sequence_parallel, false, switch_words},
    {{Dimension::micro_batch_size, "MBS", "", "mbs", "micro_batch_size", "micro-batch size", "dp * mbs * mb = global batch"},
     get_degree<&ParallelConfig::micro_batch_size>, set_degree<&ParallelConfig::micro_batch_size>,
     stated_degree<&RunSpec::micro_batch_size>, mbs_domain, check_micro_batch_size, false, kNumbers},
    {{Dimension::micro_batch_num, "MB", "", "mb", "micro_batch_num", "micro-batches per step", "global batch / (dp * mbs)"},
     get_degree<&ParallelConfig::micro_batch_num>, set_degree<&ParallelConfig::micro_batch_num>,
     stated_degree<&RunSpec::micro_batch_num>, mb_domain, check_micro_batch_num, true, kNumbers},
    {{Dimension::vpp, "VPP", "", "vpp", "vpp", "chunks per stage", "layers split over pp * vpp, evenly where they divide over pp; above 1 needs pp > 1 and a schedule with chunks"},
     get_degree<&ParallelConfig::vpp>, set_degree<&ParallelConfig::vpp>, stated_degree<&RunSpec::vpp>, vpp_domain, check_vpp, false, kNumbers},
    {{Dimension::schedule, "SCHED", "SCHEDULE", "schedule", "schedule", "pipeline schedule", "1f1b, or interleaved when vpp > 1, and what the input states; others that the framework offers when asked for"},
     get_enum<Schedule, &ParallelConfig::schedule>, set_enum<Schedule, &ParallelConfig::schedule>,
     stated_enum<Schedule, &RunSpec::schedule>, schedule_domain, check_schedule, true, schedule_words},
    {{Dimension::zero, "ZERO", "", "zero", "zero", "ZeRO level", "0 .. what the framework offers"},
     get_enum<ZeroLevel, &ParallelConfig::zero>, set_enum<ZeroLevel, &ParallelConfig::zero>,
     stated_enum<ZeroLevel, &RunSpec::zero>, zero_domain, check_zero, false, kNumbers},
    {{Dimension::optimizer_shard, "OP", "", "op", "optimizer_shard", "ranks the optimizer is sharded over", "1, or dp * cp (MindSpore: any divisor of it)"},
     get_degree<&ParallelConfig::op>, set_degree<&ParallelConfig::op>, stated_degree<&RunSpec::optimizer_shard>, op_domain,
     check_optimizer_shard, true, kNumbers},
    {{Dimension::recompute, "RECOMPUTE", "REC", "recompute", "recompute", "activation recompute", "off, selective or full; per_layer: each layer its own (-ar)"},
     get_enum<Recompute, &ParallelConfig::recompute>, set_enum<Recompute, &ParallelConfig::recompute>,
     stated_enum<Recompute, &RunSpec::recompute>, recompute_domain, check_recompute, false, recompute_words},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (kTable[i].info.id != static_cast<Dimension>(i)) return false;
  return true;
}
static_assert(in_order(), "rows follow nd::Dimension");

}  // namespace

const std::array<DimensionRow, kDimensionCount>& dimension_table() { return kTable; }

}  // namespace nd::space
