// SPDX-License-Identifier: Apache-2.0
#include "report/strategy_text.hpp"

#include <fmt/format.h>

#include <array>

#include "nd/search_space.hpp"

namespace nd::report {

namespace {

constexpr std::array kOrder{Dimension::dp,  Dimension::tp,  Dimension::pp,  Dimension::cp,
                            Dimension::ep,  Dimension::etp, Dimension::vpp, Dimension::sequence_parallel,
                            Dimension::zero, Dimension::optimizer_shard, Dimension::micro_batch_size, Dimension::micro_batch_num,
                            Dimension::schedule, Dimension::recompute};
static_assert(kOrder.size() == kDimensionCount);

}  // namespace

std::span<const Dimension> reading_order() { return kOrder; }

std::string short_strategy(const ParallelConfig& config) {
  std::string out;
  for (const auto id : reading_order()) {
    const auto info = dimension_info(id);
    const auto value = value_of(config, info.id);
    const bool always = info.id == Dimension::dp || info.id == Dimension::micro_batch_size || info.id == Dimension::micro_batch_num;
    if (always || value != value_of(ParallelConfig{}, info.id)) out += fmt::format("{}{}={}", out.empty() ? "" : " ", info.name, value_text(info.id, value));
  }
  return out;
}

std::string memory_cell(const MemoryBreakdown& memory) {
  const Bytes peak = memory.peak().reserved;
  return fmt::format("{:.1f} of {:.1f} GiB {:3.0f} %", to_gib(peak), to_gib(memory.budget), 100 * (peak / memory.budget));
}

std::string shortage(const MemoryBreakdown& memory, std::string_view largest_part, Bytes largest) {
  return fmt::format("lacks {:.1f} GiB, largest part {} {:.1f} GiB on stage {}", to_gib(memory.peak().reserved - memory.budget), largest_part,
                     to_gib(largest), memory.peak().stage);
}

std::string_view baseline_title(Baseline::Kind kind) { return kind == Baseline::Kind::stated ? "as the input states it" : "data parallel only"; }

std::string signed_percent(double relative) { return fmt::format("{:+.1f} %", 100 * relative); }

}  // namespace nd::report
