// SPDX-License-Identifier: Apache-2.0
#include "nd/ratios.hpp"

namespace nd {

namespace {

constexpr std::array<std::string_view, kRatioKeyCount> kKeyNames{"COMPUTE", "FORWARD", "DP_COMM", "DP_REDUCE", "MP_COMM",   "EP_COMM",
                                                                 "CP_COMM", "PP_COMM", "BUBBLE",  "OPTIMIZER", "OTHER", "MEMORY"};
constexpr std::array<std::string_view, kMeasuredColumnCount> kColumnNames{"comp",    "op_wait", "dp_wait", "mp_wait",
                                                                          "ep_wait", "cp_wait", "pp_wait", "idle"};

/// The key whose ratio a part is multiplied with; FORWARD and OPTIMIZER stand in for COMPUTE where a file has them.
RatioKey key_of(TimePart part, const CalibrationRatios& ratios) {
  switch (part) {
    case TimePart::fw_compute: return ratios.of(RatioKey::forward) ? RatioKey::forward : RatioKey::compute;
    case TimePart::bw_compute:
    case TimePart::recompute: return RatioKey::compute;
    case TimePart::tp_comm: return RatioKey::mp_comm;
    case TimePart::cp_comm: return RatioKey::cp_comm;
    case TimePart::ep_comm: return RatioKey::ep_comm;
    case TimePart::dp_comm: return RatioKey::dp_comm;
    case TimePart::dp_reduce: return RatioKey::dp_reduce;
    case TimePart::pp_comm: return RatioKey::pp_comm;
    case TimePart::bubble: return RatioKey::bubble;
    case TimePart::optimizer: return ratios.of(RatioKey::optimizer) ? RatioKey::optimizer : RatioKey::compute;
    case TimePart::other: return RatioKey::other;
  }
  return RatioKey::other;
}

}  // namespace

std::string_view to_text(RatioKey key) { return kKeyNames[static_cast<std::size_t>(key)]; }
std::string_view to_text(MeasuredColumn column) { return kColumnNames[static_cast<std::size_t>(column)]; }

const char* to_text(RatioLevel level) {
  constexpr std::array<const char*, 3> kText{"none", "common", "per_part"};
  return kText.at(static_cast<std::size_t>(level));
}

bool covers(MeasuredColumn column, TimePart part) {
  switch (part) {
    case TimePart::fw_compute:
    case TimePart::bw_compute:
    case TimePart::recompute:
    // The profilers' compute is everything the device computes, the optimizer's kernels included.
    case TimePart::optimizer: return column == MeasuredColumn::compute;
    case TimePart::tp_comm: return column == MeasuredColumn::mp_wait;
    case TimePart::cp_comm: return column == MeasuredColumn::cp_wait;
    case TimePart::ep_comm: return column == MeasuredColumn::ep_wait;
    case TimePart::dp_comm: return column == MeasuredColumn::op_wait;
    case TimePart::dp_reduce: return column == MeasuredColumn::dp_wait;
    case TimePart::pp_comm:
    case TimePart::bubble: return column == MeasuredColumn::pp_wait;
    case TimePart::other: return column == MeasuredColumn::idle;
  }
  return false;
}

double RatioSample::estimated_step() const {
  double sum = 0;
  for (const double part : estimated) sum += part;
  return sum;
}

PriceFactors CalibrationRatios::factors() const {
  PriceFactors out;
  for (std::size_t part = 0; part < kTimePartCount; ++part) out.time[part] = of(key_of(static_cast<TimePart>(part), *this)).value_or(1.0);
  out.memory = of(RatioKey::memory).value_or(1.0);
  out.settings = fitted_on.settings;
  return out;
}

void scale(TimeBreakdown& time, const PriceFactors& factors) {
  if (factors.identity()) return;
  time.step = {};
  for (std::size_t part = 0; part < kTimePartCount; ++part) {
    time.exposed[part] *= factors.time[part];
    time.hidden[part] *= factors.time[part];
    time.step += time.exposed[part];
  }
}

double corrected_step(const RatioSample& sample, const PriceFactors& factors) {
  double sum = 0;
  for (std::size_t part = 0; part < kTimePartCount; ++part) sum += sample.estimated[part] * factors.time[part];
  return sum;
}

}  // namespace nd
