// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/file.hpp"
#include "nd/report.hpp"
#include "search/memory_parts.hpp"

namespace nd {

namespace {

constexpr std::size_t kBlock = 4096;  ///< candidates priced in detail at once: bounds the memory of a long ranking

std::string head() {
  std::string out = "rank";
  for (const auto& info : dimension_list()) out += "," + std::string(info.name);
  out += ",gbs,step_time_s,tokens_per_s_per_device,tflops_per_device,mfu,fits,memory_gib,allocated_gib,budget_gib,stage,bound_by";
  for (std::size_t i = 0; i < kTimePartCount; ++i) out += "," + std::string(to_text(static_cast<TimePart>(i))) + "_s";
  for (const auto& part : search::kMemoryParts) out += "," + std::string(part.name) + "_gib";
  return out + "\n";
}

/// Shortest text that reads back to the same number.
std::string number(double value) { return fmt::format("{}", value); }

std::string line(const PricedCandidate& candidate, std::size_t rank) {
  std::string out = std::to_string(rank);
  for (const auto& info : dimension_list()) out += "," + value_text(info.id, value_of(candidate.config, info.id));
  const auto& memory = candidate.memory;
  const auto& peak = memory.peak();
  out += "," + std::to_string(candidate.config.global_batch()) + "," + number(candidate.time.step.value) + "," +
         number(candidate.tokens_per_second) + "," + number(candidate.flops_per_second / 1e12) + "," +
         (candidate.mfu ? number(*candidate.mfu) : "") + "," + to_text(memory.fit) + "," + number(to_gib(peak.reserved)) + "," +
         number(to_gib(peak.allocated)) + "," + number(to_gib(memory.budget)) + "," + std::to_string(peak.stage) + "," +
         std::string(to_text(candidate.time.bound_by()));
  for (const auto part : candidate.time.exposed) out += "," + number(part.value);
  for (const auto& part : search::kMemoryParts) out += "," + number(to_gib(peak.*part.bytes));
  return out + "\n";
}

}  // namespace

std::optional<Diagnostic> write_ranking_csv(const SearchReport& report, const std::string& path) {
  core::AtomicFile file(path);
  file.write(head());
  const auto& ranking = report.result.ranking;
  std::vector<ParallelConfig> block;
  for (std::size_t begin = 0; begin < ranking.size(); begin += kBlock) {
    const std::size_t end = std::min(ranking.size(), begin + kBlock);
    block.clear();
    for (std::size_t i = begin; i < end; ++i) block.push_back(ranking[i].config);
    const auto priced = price_strategies(report.scenario, block, report.jobs);
    for (std::size_t i = 0; i < priced.size(); ++i) file.write(line(priced[i], begin + i + 1));
  }
  return file.commit();
}

}  // namespace nd
