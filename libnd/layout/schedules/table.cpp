// SPDX-License-Identifier: Apache-2.0
#include "layout/schedules/table.hpp"

#include <array>
#include <cstddef>

#include "layout/schedules/placement.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout {

namespace {

namespace at = placement;

constexpr std::array kTable{
    ScheduleRow{.id = Schedule::gpipe,
                .name = "gpipe",
                .title = "GPipe",
                .rule = "",
                .why_invalid = gpipe::why_invalid,
                .passes = gpipe::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::looped,
                .held = gpipe::held,
                .bubble = gpipe::bubble,
                .length = gpipe::length},
    ScheduleRow{.id = Schedule::one_f_one_b,
                .name = "1f1b",
                .title = "1F1B",
                .aliases = "one_f_one_b pipedream_flush",
                .rule = "vpp = 1",
                .why_invalid = one_f_one_b::why_invalid,
                .passes = one_f_one_b::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::looped,
                .held = one_f_one_b::held,
                .bubble = one_f_one_b::bubble,
                .length = one_f_one_b::length},
    ScheduleRow{.id = Schedule::interleaved,
                .name = "interleaved",
                .title = "Interleaved 1F1B",
                .aliases = "interleaved_1f1b vpp",
                .rule = "pp >= 2, vpp >= 2, mb >= pp",
                .why_invalid = interleaved::why_invalid,
                .passes = interleaved::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::looped,
                .takes_group = true,
                .held = interleaved::held,
                .bubble = interleaved::bubble,
                .length = interleaved::length},
    ScheduleRow{.id = Schedule::zb_h1,
                .name = "zb_h1",
                .title = "ZB-H1",
                .aliases = "zero_bubble_h1 zero_bubble",
                .rule = "vpp = 1",
                .why_invalid = zb_h1::why_invalid,
                .passes = zb_h1::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::looped,
                .splits_backward = true,
                .held = zb_h1::held,
                .bubble = zb_h1::bubble,
                .length = zb_h1::length},
    ScheduleRow{.id = Schedule::zb_v,
                .name = "zb_v",
                .title = "ZB-V",
                .aliases = "zero_bubble_v zbv_zero_bubble",
                .rule = "vpp = 2",
                .why_invalid = zb_v::why_invalid,
                .passes = zb_v::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::v_shape,
                .splits_backward = true,
                .held = zb_v::held,
                .bubble = zb_v::bubble},
    ScheduleRow{.id = Schedule::dualpipe,
                .name = "dualpipe",
                .title = "DualPipe",
                .rule = "pp even, vpp = 1, mb even, mb >= 2 pp",
                .why_invalid = dualpipe::why_invalid,
                .passes = dualpipe::passes,
                .local_chunks = at::chunks_both_ways,
                .positions = at::places_stages,
                .position = at::both_ways,
                .splits_backward = true,
                .joins_passes = true,
                .model_copies = 2,
                .held = dualpipe::held,
                .bubble = dualpipe::bubble},
    ScheduleRow{.id = Schedule::dualpipe_v,
                .name = "dualpipe_v",
                .title = "DualPipeV",
                .rule = "vpp = 2, mb >= 2 pp",
                .why_invalid = dualpipe_v::why_invalid,
                .passes = dualpipe_v::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::v_shape,
                .splits_backward = true,
                .joins_passes = true,
                .held = dualpipe_v::held,
                .bubble = dualpipe_v::bubble},
    ScheduleRow{.id = Schedule::seq_1f1b,
                .name = "seq_1f1b",
                .title = "Seq1F1B",
                .aliases = "seqpipe",
                .rule = "vpp = 1; sequences in parts",
                .why_invalid = seq_1f1b::why_invalid,
                .passes = seq_1f1b::passes,
                .local_chunks = at::chunks_as_stated,
                .positions = at::places_all_chunks,
                .position = at::looped,
                .takes_parts = true,
                .held = seq_1f1b::held,
                .bubble = seq_1f1b::bubble,
                .length = seq_1f1b::length},
};

constexpr bool in_order() {
  for (std::size_t n = 0; n < kTable.size(); ++n)
    if (static_cast<std::size_t>(kTable[n].id) != n) return false;
  return true;
}
static_assert(in_order(), "rows stand in the order of the enumeration");

}  // namespace

std::span<const ScheduleRow> schedule_table() { return kTable; }

const ScheduleRow& schedule_row(Schedule schedule) { return kTable.at(static_cast<std::size_t>(schedule)); }

std::optional<std::string_view> why_invalid(const ScheduleRow& row, const ScheduleShape& shape) {
  if (shape.stages < 1 || shape.chunks < 1 || shape.micro_batches < 1 || shape.parts < 1 || shape.group < 0)
    return "stages, chunks, micro-batches and parts must be at least 1";
  if (shape.parts > 1 && !row.takes_parts) return "this schedule does not split sequences into parts (seq_1f1b does)";
  if (shape.group != 0 && !row.takes_group) return "this schedule has no micro-batch group size (interleaved has)";
  return row.why_invalid(shape);
}

}  // namespace nd::layout
