// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "formats/tree/node.hpp"
#include "memory/fit_test.hpp"
#include "nd/ops.hpp"
#include "nd/report.hpp"
#include "nd/version.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "nd/partial/1";

/// The fields of a strategy in the order of the file.
constexpr std::array kDegrees{&ParallelConfig::dp, &ParallelConfig::tp, &ParallelConfig::pp,  &ParallelConfig::cp, &ParallelConfig::ep, &ParallelConfig::etp,
                              &ParallelConfig::vpp, &ParallelConfig::op, &ParallelConfig::micro_batch_size, &ParallelConfig::micro_batch_num, &ParallelConfig::seq_split,
                              &ParallelConfig::micro_batch_group};
constexpr std::size_t kConfigNumbers = kDegrees.size() + 5;

Json config_numbers(const ParallelConfig& config) {
  Json out = Json::array();
  for (const auto degree : kDegrees) out.push_back(config.*degree);
  out.push_back(config.sequence_parallel ? 1 : 0);
  out.push_back(static_cast<int>(config.zero));
  out.push_back(static_cast<int>(config.schedule));
  out.push_back(static_cast<int>(config.recompute));
  out.push_back(static_cast<int>(config.cp_algorithm));
  return out;
}

/// Throws Json::exception for what is no strategy.
ParallelConfig config_of(const Json& numbers) {
  if (numbers.size() != kConfigNumbers) throw Json::other_error::create(501, "a strategy has " + std::to_string(kConfigNumbers) + " numbers", &numbers);
  ParallelConfig out;
  std::size_t at = 0;
  for (const auto degree : kDegrees) out.*degree = numbers.at(at++).get<int>();
  out.sequence_parallel = numbers.at(at++).get<int>() != 0;
  const auto choice = [&](int most) {
    const int value = numbers.at(at++).get<int>();
    if (value < 0 || value > most) throw Json::other_error::create(501, "a choice is out of range", &numbers);
    return value;
  };
  out.zero = static_cast<ZeroLevel>(choice(static_cast<int>(ZeroLevel::parameters)));
  out.schedule = static_cast<Schedule>(choice(static_cast<int>(Schedule::seq_1f1b)));
  out.recompute = static_cast<Recompute>(choice(static_cast<int>(Recompute::per_layer)));
  out.cp_algorithm = static_cast<CpAlgorithm>(choice(static_cast<int>(CpAlgorithm::ulysses)));
  return out;
}

Json ranked_json(const std::vector<RankedCandidate>& ranking) {
  Json out = Json::array();
  for (const auto& one : ranking) out.push_back({config_numbers(one.config), one.step.value, one.peak.value, static_cast<int>(one.fit)});
  return out;
}

std::vector<RankedCandidate> ranked_of(const Json& list) {
  std::vector<RankedCandidate> out;
  for (const auto& one : list)
    out.push_back({config_of(one.at(0)), Seconds{one.at(1).get<double>()}, Bytes{one.at(2).get<double>()}, static_cast<Fit>(one.at(3).get<int>())});
  return out;
}

Json stats_json(const SearchPartial& part) {
  const auto& stats = part.stats;
  Json examples = Json::array();
  for (std::size_t i = 0; i < kRejectionCount; ++i)
    if (stats.example[i]) examples.push_back({i, config_numbers(*stats.example[i]), part.example_at[i]});
  return Json{{"enumerated", stats.enumerated}, {"legal", stats.legal},       {"priced", stats.priced}, {"pruned", stats.pruned},
              {"fitting", stats.fitting},       {"rejected", stats.rejected}, {"examples", std::move(examples)}};
}

void read_stats(const Json& from, SearchPartial& part) {
  auto& stats = part.stats;
  stats.enumerated = from.at("enumerated").get<std::int64_t>();
  stats.legal = from.at("legal").get<std::int64_t>();
  stats.priced = from.at("priced").get<std::int64_t>();
  stats.pruned = from.at("pruned").get<std::int64_t>();
  stats.fitting = from.at("fitting").get<std::int64_t>();
  for (std::size_t i = 0; i < kRejectionCount; ++i) stats.rejected[i] = from.at("rejected").at(i).get<std::int64_t>();
  for (const auto& one : from.at("examples")) {
    const auto reason = one.at(0).get<std::size_t>();
    stats.example.at(reason) = config_of(one.at(1));
    part.example_at.at(reason) = one.at(2).get<std::int64_t>();
  }
}

SearchEnd end_of(const std::string& text) {
  for (const auto end : {SearchEnd::time_limit, SearchEnd::stopped})
    if (text == to_text(end)) return end;
  return SearchEnd::complete;
}

PartialFile part_of(const Json& document) {
  PartialFile out;
  out.command = document.at("command").get<std::vector<std::string>>();
  out.inputs = document.at("inputs").get<std::string>();
  auto& part = out.partial;
  part.shard = {document.at("shard").at("index").get<std::int64_t>(), document.at("shard").at("count").get<std::int64_t>()};
  part.end = end_of(document.at("end").get<std::string>());
  part.exhaustive = document.at("exhaustive").get<bool>();
  read_stats(document.at("counts"), part);
  part.ranking = ranked_of(document.at("ranking"));
  part.front = ranked_of(document.at("front"));
  for (const auto& one : document.at("misses")) part.misses.push_back({config_of(one.at(0)), Bytes{one.at(1).get<double>()}});
  return out;
}

}  // namespace

std::string request_fingerprint(const Scenario& scenario, const SearchSpace& space) {
  const auto count = count_parameters(scenario.model);
  const auto& run = scenario.run;
  const auto& device = scenario.cluster.device;
  std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}|", kVersion, scenario.model.name, count.total, count.active, scenario.model.layers(),
                                 model_flops_per_token(scenario.model, run.seq_length, true).value, device.name, run.devices, run.global_batch_size, run.seq_length,
                                 scenario.profile.name, scenario.profile.version, memory::memory_budget(scenario).value, to_text(space));
  for (const bool allowed : run.layer_modes) text += allowed ? '1' : '0';
  // Constants of device and framework show in what a strategy of one device costs.
  Scenario one = scenario;
  one.run.devices = one.cluster.devices = one.run.global_batch_size = 1;
  const ParallelConfig single;
  if (!first_violation(one, single)) text += fmt::format("{} {}", estimate_time(one, single).step.value, estimate_memory(one, single).peak().reserved.value);
  for (const auto& level : device.levels) text += fmt::format(" {} {} {}", level.bus.value, level.efficiency, level.latency.value);
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a, 64 bits
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

std::string partial_json(const PartialFile& part) {
  Json misses = Json::array();
  for (const auto& miss : part.partial.misses) misses.push_back({config_numbers(miss.config), miss.peak.value});
  const Json document{{"schema", std::string(kSchema)},
                      {"version", kVersion},
                      {"command", part.command},
                      {"inputs", part.inputs},
                      {"shard", {{"index", part.partial.shard.index}, {"count", part.partial.shard.count}}},
                      {"end", std::string(to_text(part.partial.end))},
                      {"exhaustive", part.partial.exhaustive},
                      {"counts", stats_json(part.partial)},
                      {"ranking", ranked_json(part.partial.ranking)},
                      {"front", ranked_json(part.partial.front)},
                      {"misses", std::move(misses)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<PartialFile> read_partial(const std::string& path) {
  formats::ParseLimits limits;
  limits.max_bytes = std::size_t{4} << 30U;  // a part with its whole ranking
  const auto text = formats::read_text_file(path, limits);
  if (!text) return text.error();
  const auto wrong = [&path](const std::string& what, std::string hint) { return make_error(Errc::syntax, {path, 0, 0, {}}, what, std::move(hint)); };
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object() || document.value("schema", "") != kSchema) return wrong("is no partial result of a search", "a file that run_nd --shard wrote");
  if (document.value("version", "") != kVersion)
    return wrong("was written by another version of nd (" + document.value("version", "") + ", this is " + kVersion + ")", "run the part again");
  try {
    return part_of(document);
  } catch (const std::exception& error) {  // nlohmann and .at() of arrays
    return wrong(std::string("is damaged: ") + error.what(), "run the part again");
  }
}

}  // namespace nd
