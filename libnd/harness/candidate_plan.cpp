// SPDX-License-Identifier: Apache-2.0
// Candidates of a ranking, written into a base configuration: docs/bench.md#ranking.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "formats/csv.hpp"
#include "harness/plan_builder.hpp"
#include "nd/campaign.hpp"
#include "nd/formats.hpp"
#include "nd/resolved.hpp"
#include "nd/search.hpp"
#include "space/dimensions.hpp"

namespace nd {

namespace {

constexpr std::int64_t kMostCandidates = 10'000;

struct Candidate {
  ParallelConfig config;
  std::int64_t rank = 0;
  std::optional<double> step_s, memory_gib;
};

class CandidatePlanner : harness::PlanBuilder {
 public:
  CandidatePlanner(const CandidateRequest& request, const DataStore& data) : request_(request), data_(data) {}

  Result<Campaign> plan() {
    if (request_.top < 1 || request_.top > kMostCandidates)
      problem(Errc::out_of_range, {{}, 0, 0, "--top"}, fmt::format("must be from 1 to {}, is {}", kMostCandidates, request_.top));
    read_base();
    read_ranking();
    return finished([this] {
      choose();
      for (const auto& candidate : candidates_) write(candidate);
    });
  }

 private:
  void read_base() {
    auto request = take(read_request(request_.base, request_.format, data_));
    if (!request) return;
    const RequestFiles files{.main = request->file};
    if (resolved_suffixes(request->format, files).empty())
      return problem(Errc::unsupported, {request->file, 0, 0, {}}, "states a model only: there is no strategy to write a candidate into", "give the trainer's configuration");
    if (auto original = take(read_original(request->format, files))) original_ = std::move(*original);
    run_ = request->run;
    if (auto model = take(resolve_model(request->model, {request->file, 0, 0, {}}))) scenario_.model = std::move(*model);
    const std::string device = request_.device.empty() ? run_.device_type : request_.device;
    if (device.empty()) return problem(Errc::missing_field, {request->file, 0, 0, {}}, "does not say which device", "-A NAME");
    auto type = take(data_.device(device));
    auto profile = take(data_.framework(run_.framework, run_.framework_version, run_.features));
    if (!type || !profile || !problems_.empty()) return;
    scenario_.cluster.device = std::move(*type);
    scenario_.profile = effective_profile(std::move(*profile), run_);
    out_.name = "ranking";
    out_.log_profile = run_.framework;
  }

  void read_ranking() {
    const auto table = take(formats::read_csv(request_.ranking));
    if (!table) return;
    for (const auto& info : dimension_list())
      if (!table->column(info.name)) problem(Errc::missing_field, {table->file, 1, 0, std::string(info.name)}, "is no column of the table", "a file of run_nd --ranking_csv");
    if (!problems_.empty()) return;
    for (const auto& row : table->rows) {
      formats::CsvRecord record(*table, row, problems_);
      Candidate candidate;
      for (const auto& info : dimension_list()) {
        const auto text = record.text(info.name);
        if (!text) problem(Errc::missing_field, record.where(info.name), "is empty");
        else if (const auto value = take(parse_value(info.id, *text, record.where(info.name)))) space::row_of(info.id).set(candidate.config, *value);
      }
      candidate.rank = record.integer("rank").value_or(static_cast<std::int64_t>(candidates_.size()) + 1);
      candidate.step_s = record.real("step_time_s");
      candidate.memory_gib = record.real("memory_gib");
      candidates_.push_back(std::move(candidate));
      if (!problems_.empty() || (!request_.diverse && std::ssize(candidates_) >= request_.top)) break;
    }
    if (table->rows.empty()) problem(Errc::empty_space, {table->file, 1, 0, {}}, "has no candidates");
  }

  /// Strategies of other degrees first when diversity is asked for; the order of the ranking otherwise.
  void choose() {
    const auto top = static_cast<std::size_t>(request_.top);
    if (request_.diverse) {
      std::set<std::tuple<int, int, int, int, int>> seen;
      std::stable_partition(candidates_.begin(), candidates_.end(), [&](const Candidate& one) {
        const auto& c = one.config;
        return seen.emplace(c.dp, c.tp, c.pp, c.cp, c.ep).second;
      });
    }
    if (candidates_.size() > top) candidates_.resize(top);
  }

  void write(const Candidate& candidate) {
    auto config = candidate.config;
    PlannedRun run;
    run.devices = config.devices();
    run.name = fmt::format("rank{}-{}", candidate.rank, file_name(to_text(config)));
    for (const auto& info : dimension_list()) run.facts.emplace_back(info.name, value_text(info.id, value_of(config, info.id)));
    run.facts.emplace_back("gbs", std::to_string(config.global_batch()));
    run.predicted_step_s = candidate.step_s;
    run.predicted_memory_gib = candidate.memory_gib;
    RunSpec stated = run_;
    stated.devices = config.devices();
    auto scenario = scenario_;
    scenario.cluster.devices = config.devices();
    auto resolved = resolve_with(stated, config);
    if (resolved) {
      // What a ranking does not list is the same for all of its candidates: the configuration's.
      const auto& base = resolved->strategy;
      config.cp_algorithm = base.cp_algorithm;
      config.micro_batch_group = base.micro_batch_group;
      config.seq_split = base.seq_split;
      scenario.run = std::move(*resolved);
      run.facts.emplace_back("seq_length", std::to_string(scenario.run.seq_length));
      scenario = search_scenario(scenario, fixed_space(config), {});
    }
    auto files = resolved ? write_resolved(original_, scenario, config, data_) : Result<std::vector<ResolvedFile>>(resolved.error());
    if (!files) {
      run.skip = "cannot be written: " + files.error().diagnostics.front().message;
    } else {
      for (const auto& file : *files) run.files.push_back({"config" + file.suffix, file.text});
      run.facts.emplace_back("config", run.files.front().name);
    }
    out_.runs.push_back(std::move(run));
  }

  /// The base may state a strategy that contradicts the candidate's: what belongs to the strategy is left open.
  Result<ResolvedRun> resolve_with(RunSpec stated, const ParallelConfig& config) {
    for (auto* degree : {&stated.dp, &stated.tp, &stated.pp, &stated.cp, &stated.ep, &stated.etp, &stated.vpp, &stated.optimizer_shard,
                         &stated.micro_batch_size, &stated.micro_batch_num, &stated.global_batch_size})
      *degree = std::nullopt;
    stated.schedule = std::nullopt;
    stated.layers_per_chunk.clear();
    stated.full_recompute_layers.clear();
    stated.selective_recompute_layers.clear();
    auto resolved = resolve_run(stated, scenario_.model, scenario_.profile);
    if (resolved) resolved->global_batch_size = config.global_batch();
    return resolved;
  }

  static std::string file_name(std::string text) {
    std::replace(text.begin(), text.end(), ' ', '-');
    return text;
  }

  const CandidateRequest& request_;
  const DataStore& data_;
  Original original_;
  RunSpec run_;
  Scenario scenario_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Result<Campaign> plan_candidates(const CandidateRequest& request, const DataStore& data) { return CandidatePlanner(request, data).plan(); }

}  // namespace nd
