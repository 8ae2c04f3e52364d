// SPDX-License-Identifier: Apache-2.0
#include "report/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "report/html_parts.hpp"
#include "report/strategy_text.hpp"
#include "report/text_table.hpp"

namespace nd::report {

namespace {

constexpr double kWorthSaying = 0.01;  ///< share of a step below which a part is not mentioned
constexpr std::size_t kMostParts = 3;

bool is_compute(std::size_t part) {
  const auto which = static_cast<TimePart>(part);
  return which == TimePart::fw_compute || which == TimePart::bw_compute;
}

std::string percent(double share) { return fmt::format("{:.{}f} %", 100 * share, share < 0.1 ? 1 : 0); }

/// "88 % forward and backward compute, 10 % tensor-parallel comm."
std::string made_of(const TimeBreakdown& time) {
  std::array<std::size_t, kTimePartCount> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&time](std::size_t a, std::size_t b) { return time.exposed[a] > time.exposed[b]; });
  const Seconds compute = time.part(TimePart::fw_compute) + time.part(TimePart::bw_compute);
  std::string out = percent(compute / time.step) + " forward and backward compute";
  std::size_t said = 0;
  for (const std::size_t part : order) {
    const double share = time.exposed[part] / time.step;
    if (is_compute(part) || share < kWorthSaying || said++ >= kMostParts) continue;
    out += ", " + percent(share) + " " + std::string(part_title(static_cast<TimePart>(part)));
  }
  return out;
}

/// "recompute +12.1 s, pipeline bubble -0.30 s": the parts that make the difference.
std::string change_of_parts(const TimeBreakdown& other, const TimeBreakdown& best) {
  std::array<std::size_t, kTimePartCount> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto change = [&](std::size_t part) { return other.exposed[part].value - best.exposed[part].value; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return std::abs(change(a)) > std::abs(change(b)); });
  const double whole = std::abs(other.step.value - best.step.value);
  std::string out;
  for (std::size_t i = 0; i < kMostParts; ++i) {
    const double amount = change(order[i]);
    if (amount == 0 || std::abs(amount) < 0.1 * whole) continue;
    out += fmt::format("{}{} {}{}", out.empty() ? "" : ", ", part_title(static_cast<TimePart>(order[i])), amount > 0 ? "+" : "-", short_seconds(std::abs(amount)));
  }
  return out;
}

std::string compared(const PricedCandidate& other, const PricedCandidate& best) {
  const double gap = other.time.step / best.time.step - 1;
  constexpr double kAsFast = 5e-4;  // would be printed as 0.0 %
  std::string out = gap < kAsFast ? fmt::format("rank {} is as fast", other.rank) : fmt::format("rank {} is {} slower", other.rank, percent(gap));
  const std::string parts = change_of_parts(other.time, best.time);
  if (!parts.empty()) out += ": " + parts;
  return out + "; it has " + differences(other.config, best.config);
}

}  // namespace

std::string differences(const ParallelConfig& other, const ParallelConfig& best) {
  std::string out;
  for (const auto& info : dimension_list()) {
    const auto theirs = value_of(other, info.id), ours = value_of(best, info.id);
    // The number of micro-batches follows from dp and their size.
    if (theirs == ours || info.id == Dimension::micro_batch_num) continue;
    out += fmt::format("{}{}={} instead of {}", out.empty() ? "" : ", ", info.name, value_text(info.id, theirs), value_text(info.id, ours));
  }
  return out;
}

std::vector<std::string> why_first(const SearchReport& report) {
  const auto& candidates = report.result.candidates;
  if (candidates.empty()) return {};
  const auto& best = candidates.front();
  std::vector<std::string> out{"its step is " + made_of(best.time)};
  if (candidates.size() < 2) return out;
  out.push_back(compared(candidates[1], best));
  const auto clear = std::find_if(candidates.begin() + 1, candidates.end(), [&](const PricedCandidate& one) {
    return one.time.step / best.time.step - 1 > report.result.band;
  });
  if (clear == candidates.end()) {
    out.push_back(fmt::format("all {} shown are within {:.0f} % of it, the error of the time model: take the one that is easiest to run", candidates.size(),
                              100 * report.result.band));
    return out;
  }
  if (clear != candidates.begin() + 1) out.push_back("the first that is clearly slower, " + compared(*clear, best));
  return out;
}

}  // namespace nd::report
