// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <utility>

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

struct RankingCsv::Files {
  std::vector<core::AtomicFile> all;
};

RankingCsv::RankingCsv(Setup setup) : setup_(std::move(setup)) { block_.reserve(kBlock); }

RankingCsv::~RankingCsv() = default;

void RankingCsv::add(const ParallelConfig& config) {
  block_.push_back(config);
  if (block_.size() == kBlock) write_block();
}

void RankingCsv::write_block() {
  if (!files_) {
    files_ = std::make_unique<Files>();
    files_->all.reserve(setup_.paths.size());
    for (const auto& path : setup_.paths) files_->all.emplace_back(path).write(head());
  }
  std::string text;
  for (const auto& candidate : price_strategies(setup_.scenario, block_, setup_.jobs)) text += line(candidate, ++written_);
  for (auto& file : files_->all) file.write(text);
  block_.clear();
}

std::optional<Diagnostic> RankingCsv::commit() {
  write_block();
  for (auto& file : files_->all)
    if (auto problem = file.commit()) return problem;
  return {};
}

}  // namespace nd
