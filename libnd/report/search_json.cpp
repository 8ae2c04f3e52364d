// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "nd/ops.hpp"
#include "nd/report.hpp"
#include "report/json_parts.hpp"

namespace nd {

namespace {

using report::candidate_json;
using report::config_json;
using report::Json;
using report::memory_json;

Json list_json(const std::vector<PricedCandidate>& candidates, double band) {
  Json out = Json::array();
  for (const auto& candidate : candidates) out.push_back(candidate_json(candidate, band));
  return out;
}

Json candidates_json(const SearchReport& report) {
  Json out = list_json(report.result.candidates, report.step_time_band);
  if (!report.all) return out;
  std::vector<ParallelConfig> rest;
  const auto& ranking = report.result.ranking;
  for (std::size_t i = report.result.candidates.size(); i < ranking.size(); ++i) rest.push_back(ranking[i].config);
  for (auto& candidate : price_strategies(report.scenario, rest, report.jobs)) {
    candidate.rank = static_cast<std::int64_t>(out.size()) + 1;
    out.push_back(candidate_json(candidate, report.step_time_band));
  }
  return out;
}

Json near_misses_json(const std::vector<NearMiss>& misses) {
  Json out = Json::array();
  for (const auto& miss : misses) {
    Json entry = config_json(miss.config);
    entry["memory_gib"] = memory_json(miss.memory);
    entry["lacks_gib"] = to_gib(miss.lacks);
    entry["largest_part"] = std::string(miss.largest_part);
    entry["largest_gib"] = to_gib(miss.largest);
    entry["change"] = miss.change.empty() ? Json(nullptr) : Json(miss.change);
    out.push_back(std::move(entry));
  }
  return out;
}

Json baselines_json(const SearchReport& report) {
  Json out = Json::array();
  for (const auto& baseline : report.baselines) {
    Json entry{{"kind", std::string(to_text(baseline.kind))}};
    entry["problem"] = baseline.problem.empty() ? Json(nullptr) : Json(baseline.problem);
    if (baseline.priced) entry["candidate"] = candidate_json(*baseline.priced, report.step_time_band);
    const bool compared = baseline.priced && !report.result.candidates.empty();
    entry["gap"] = compared ? Json(baseline.priced->time.step / report.result.candidates.front().time.step - 1) : Json(nullptr);
    entry["lacks_gib"] = to_gib(baseline.lacks);
    entry["largest_part"] = baseline.largest_part.empty() ? Json(nullptr) : Json(std::string(baseline.largest_part));
    entry["largest_gib"] = to_gib(baseline.largest);
    out.push_back(std::move(entry));
  }
  return out;
}

Json origin_json(const Origin& origin) {
  Json out{{"origin", to_text(origin.kind)}};
  const std::string where = to_text(origin.where);
  if (!where.empty()) out["where"] = where;
  return out;
}

Json choice_json(const DimensionInfo& info, const DimensionChoice& choice) {
  if (choice.automatic()) return "auto";
  Json out = Json::object();
  Json values = Json::array();
  for (const auto value : choice.values) values.push_back(value_text(info.id, value));
  if (!choice.values.empty()) out["values"] = std::move(values);
  const DimensionChoice any;
  if (choice.least != any.least) out["least"] = choice.least;
  if (choice.most != any.most) out["most"] = choice.most;
  if (!choice.excluded.empty()) out["excluded"] = choice.excluded;
  out["pinned"] = choice.pinned;
  return out;
}

Json request_json(const SearchReport& report) {
  Json fields = Json::object();
  for (const auto& field : report.request) {
    Json entry = Json::object();
    std::visit([&entry](const auto& value) { entry["value"] = value; }, field.value);
    entry.update(origin_json(field.origin));
    fields[field.name] = std::move(entry);
  }
  Json dimensions = Json::object();
  for (const auto& info : dimension_list()) dimensions[std::string(info.name)] = choice_json(info, report.space.of(info.id));
  return Json{{"file", report.file}, {"format", report.format}, {"fields", std::move(fields)}, {"dimensions", std::move(dimensions)}};
}

Json model_json(const Scenario& scenario) {
  const auto count = count_parameters(scenario.model);
  const auto& model = scenario.model;
  return Json{{"name", model.name},
              {"model_type", model.model_type},
              {"parameters", count.total},
              {"mtp_parameters", count.mtp},
              {"active_parameters", count.active},
              {"layers", model.layers()},
              {"hidden_size", model.hidden_size},
              {"vocab_size", model.vocab_size},
              {"flops_per_token", model_flops_per_token(model, scenario.run.seq_length, true).value}};
}

Json device_json(const Scenario& scenario) {
  const auto& device = scenario.cluster.device;
  Json peaks = Json::object();
  for (int i = 0; i < kDtypeCount; ++i) {
    const double peak = device.peak.at(static_cast<std::size_t>(i)).value;
    if (peak > 0) peaks[to_text(static_cast<Dtype>(i))] = peak / 1e12;
  }
  return Json{{"name", device.name},
              {"title", device.title},
              {"vendor", device.vendor},
              {"devices", scenario.cluster.devices},
              {"memory_gib", to_gib(device.memory.nominal)},
              {"peak_tflops", std::move(peaks)}};
}

Json counts_json(const SearchStats& stats) {
  Json rejected = Json::object();
  for (std::size_t i = 0; i < kRejectionCount; ++i)
    if (stats.rejected[i] > 0) rejected[std::string(to_text(static_cast<Rejection>(i)))] = stats.rejected[i];
  return Json{{"enumerated", stats.enumerated}, {"legal", stats.legal},   {"fitting", stats.fitting},
              {"priced", stats.priced},         {"pruned", stats.pruned}, {"rejected", std::move(rejected)}};
}

Json phases_json(const SearchReport& report) {
  const auto& phases = report.result.stats.phases;
  const auto seconds = [&report](Seconds value) { return report.timings ? Json(value.value) : Json(nullptr); };
  return Json{{"enumerate", seconds(phases.enumerate)},
              {"price", seconds(phases.price)},
              {"rank", seconds(phases.rank)},
              {"detail", seconds(phases.detail)}};
}

Json balance_json(const std::optional<BalanceReport>& report) {
  if (!report) return nullptr;
  if (!report->balanced) return Json{{"rank", report->rank}, {"problem", report->problem}};
  const BalancedStrategy& balanced = *report->balanced;
  return Json{{"rank", report->rank},
              {"layers_per_chunk", balanced.layers_per_chunk},
              {"step_time_s", balanced.step.value},
              {"pipeline_s", balanced.pipeline.value},
              {"even_pipeline_s", balanced.even_pipeline.value},
              {"even_fits", balanced.even_fits},
              {"bound_s", balanced.bound.value},
              {"proven", balanced.proven}};
}

}  // namespace

std::string search_json(const SearchReport& report) {
  Json notes = Json::array();
  for (const auto& note : report.notes) notes.push_back(to_text(note));
  Json fingerprint = Json::object();
  for (const auto& [name, digest] : report.fingerprint) fingerprint[name] = digest;
  const Json document{{"schema", "nd/search/1"},
                      {"fingerprint", std::move(fingerprint)},
                      {"request", request_json(report)},
                      {"model", model_json(report.scenario)},
                      {"device", device_json(report.scenario)},
                      {"framework", report.scenario.profile.name},
                      {"framework_version", report.scenario.profile.version},
                      {"counts", counts_json(report.result.stats)},
                      {"objective", std::string(to_text(report.objective))},
                      {"objective_per_step_second", report.objective_per_second ? Json(*report.objective_per_second) : Json(nullptr)},
                      {"end", std::string(to_text(report.result.end))},
                      {"exhaustive", report.result.exhaustive},
                      {"phases_s", phases_json(report)},
                      {"jobs", report.timings ? Json(report.result.stats.jobs) : Json(nullptr)},
                      {"defaulted", report.defaulted},
                      {"notes", std::move(notes)},
                      {"budget_gib", to_gib(report.result.budget)},
                      {"near_misses", near_misses_json(report.result.near_misses)},
                      {"baselines", baselines_json(report)},
                      {"candidates", candidates_json(report)},
                      {"balance", balance_json(report.balance)},
                      {"pareto", list_json(report.result.pareto, report.step_time_band)},
                      {"additional", list_json(report.additional, report.step_time_band)}};
  // Names come from files in UTF-8; anything else is replaced rather than thrown at.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace nd
