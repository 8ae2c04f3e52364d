// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout/schedules/row.hpp"
#include "layout/schedules/step_times.hpp"

// What each schedule file gives to its row of the table.
namespace nd::layout {

namespace gpipe {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch);
}  // namespace gpipe

namespace one_f_one_b {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch);
}  // namespace one_f_one_b

namespace interleaved {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch);
}  // namespace interleaved

namespace zb_h1 {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch);
}  // namespace zb_h1

namespace zb_v {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
}  // namespace zb_v

namespace dualpipe {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
}  // namespace dualpipe

namespace dualpipe_v {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
}  // namespace dualpipe_v

namespace seq_1f1b {
std::optional<std::string_view> why_invalid(const ScheduleShape& shape);
void passes(const ScheduleShape& shape, int stage, PassList& out);
HeldPeak held(const ScheduleShape& shape, int stage);
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times);
std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch& scratch);
}  // namespace seq_1f1b

}  // namespace nd::layout
