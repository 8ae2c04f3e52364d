// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "harness/outcome.hpp"
#include "core/text.hpp"
#include "nd/calibration.hpp"

namespace nd::harness {

namespace {

StepStatistics statistics(const std::vector<double>& seconds, std::string reading) {
  StepStatistics out;
  out.n = std::ssize(seconds);
  out.reading = std::move(reading);
  if (seconds.empty()) return out;
  const auto n = static_cast<double>(seconds.size());
  out.mean_s = std::accumulate(seconds.begin(), seconds.end(), 0.0) / n;
  double squares = 0;
  for (const double value : seconds) squares += (value - out.mean_s) * (value - out.mean_s);
  out.sd_s = seconds.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  out.median_s = quantile(seconds, 0.5);
  out.p10_s = quantile(seconds, 0.1);
  out.p90_s = quantile(seconds, 0.9);
  return out;
}

/// Tokens of one step and device; nullopt when the run does not say.
std::optional<double> tokens_per_device(const PlannedRun& run) {
  const auto batch = fact_number(run, "gbs"), length = fact_number(run, "seq_length");
  if (!batch || !length || run.devices < 1) return std::nullopt;
  return *batch * *length / static_cast<double>(run.devices);
}

}  // namespace

std::optional<double> fact_number(const PlannedRun& run, std::string_view name) {
  for (const auto& [key, value] : run.facts)
    if (key == name) return core::parse_real(value);
  return std::nullopt;
}

StepStatistics step_statistics(const StepLog& log, const PlannedRun& run, const MeasureRule& rule, std::int64_t every) {
  const auto tokens = tokens_per_device(run);
  std::vector<double> stated, by_rate, by_clock;
  const StepRecord* before = nullptr;
  std::int64_t before_step = 0, first = log.steps().empty() ? 0 : log.steps().begin()->first;
  // Trainers count from 0 or 1, or from a checkpoint; lines that stand for several steps end with them.
  first -= every;
  for (const auto& [step, record] : log.steps()) {
    const bool warm = step - first > rule.warmup;
    if (warm && record.seconds) stated.push_back(*record.seconds);
    if (warm && tokens && record.tokens_per_s) by_rate.push_back(*tokens / *record.tokens_per_s);
    if (warm && before != nullptr && before_step - first >= rule.warmup && record.arrived_s > before->arrived_s)
      by_clock.push_back((record.arrived_s - before->arrived_s) / static_cast<double>(step - before_step));
    before = &record;
    before_step = step;
  }
  if (!stated.empty()) return statistics(stated, "step_time");
  if (!by_rate.empty()) return statistics(by_rate, "tokens_per_s");
  if (std::ssize(by_clock) >= rule.least) return statistics(by_clock, "clock");
  // The whole training call, warm-up included: the figure of tables that have no other.
  const auto rate = log.summary().find("train_steps_per_second");
  if (rate != log.summary().end() && rate->second > 0 && std::isfinite(rate->second)) {
    auto out = statistics({1 / rate->second}, "summary");
    const auto runtime = log.summary().find("train_runtime");
    if (runtime != log.summary().end() && std::isfinite(runtime->second)) out.n = static_cast<std::int64_t>(std::llround(std::clamp(runtime->second * rate->second, 0.0, 1e12)));
    return out;
  }
  return statistics(by_clock, "clock");
}

std::optional<TrainerMemory> trainer_memory(const std::map<std::string, double>& summary) {
  const auto value = [&](const char* name) {
    const auto found = summary.find(name);
    return found == summary.end() || !std::isfinite(found->second) ? 0.0 : found->second;
  };
  const bool any = std::any_of(summary.begin(), summary.end(), [](const auto& entry) { return entry.first.find("_mem_gpu") != std::string::npos; });
  if (!any) return std::nullopt;
  const double start = value("before_init_mem_gpu");
  const double ready = start + value("init_mem_gpu_alloc_delta");
  const double trained = ready + value("train_mem_gpu_alloc_delta");
  return TrainerMemory{std::max({start, ready, trained}), std::max({start, ready + value("init_mem_gpu_peaked_delta"), trained + value("train_mem_gpu_peaked_delta")})};
}

void describe_log(const StepLog& log, const PlannedRun& run, RunResult& result) {
  if (!log.steps().empty()) result.loss = log.steps().rbegin()->second.loss;
  if (const auto final_loss = log.summary().find("train_loss"); !result.loss && final_loss != log.summary().end()) result.loss = final_loss->second;
  result.summary = log.summary();
  result.out_of_memory = log.out_of_memory();
  result.allocated_bytes = log.allocated();
  result.reserved_bytes = log.reserved();
  if (const auto memory = trainer_memory(log.summary())) {
    result.summary["mem_torch_mem_alloc_in_bytes"] = memory->allocated;
    result.summary["mem_peak_torch_mem_alloc_in_bytes"] = memory->peak;
    result.allocated_bytes = std::max(result.allocated_bytes.value_or(memory->peak), memory->peak);
  }
  if (log.nan_loss()) result.flags.emplace_back("nan_loss");
  result.error = log.traceback();
  const auto tokens = tokens_per_device(run);
  if (tokens && result.steps.n > 0 && result.steps.median_s > 0) result.tokens_per_s_per_device = *tokens / result.steps.median_s;
}

}  // namespace nd::harness
