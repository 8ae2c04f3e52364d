// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "nd/report.hpp"
#include "report/json_parts.hpp"

namespace nd {

namespace {

using report::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json nearest_json(const NearMiss& miss) {
  Json out = report::config_json(miss.config);
  out["lacks_gib"] = to_gib(miss.lacks);
  out["largest_part"] = std::string(miss.largest_part);
  out["largest_gib"] = to_gib(miss.largest);
  out["change"] = miss.change.empty() ? Json(nullptr) : Json(miss.change);
  return out;
}

/// What fits on a line of a table; run_nd of the single request has the rest.
Json best_json(const PricedCandidate& best, double band) {
  Json out = report::config_json(best.config);
  out["step_time_s"] = best.time.step.value;
  out["step_time_band"] = band;
  out["tokens_per_s_per_device"] = best.tokens_per_second;
  out["tflops_per_device"] = best.flops_per_second / 1e12;
  out["mfu"] = or_null(best.mfu);
  out["fits"] = to_text(best.memory.fit);
  out["memory_gib"] = to_gib(best.memory.peak().reserved);
  out["budget_gib"] = to_gib(best.memory.budget);
  out["time_parts_s"] = report::time_json(best.time.exposed);
  out["bound_by"] = std::string(to_text(best.time.bound_by()));
  return out;
}

Json row_json(const StudyRow& row, const Study& study) {
  Json out{{"name", row.name},
           {"problem", row.problem.empty() ? Json(nullptr) : Json(row.problem)},
           {"device", row.device},
           {"framework", row.framework},
           {"devices", row.devices},
           {"global_batch_size", row.global_batch},
           {"seq_length", row.seq_length},
           {"legal", row.legal},
           {"fitting", row.fitting},
           {"end", std::string(to_text(row.end))}};
  if (row.best) out["best"] = best_json(*row.best, row.band);
  if (row.nearest) out["nearest"] = nearest_json(*row.nearest);
  const bool timed = row.best.has_value() && study.tokens.has_value();
  out["tokens_per_s"] = row.best ? Json(row.tokens_per_second()) : Json(nullptr);
  out["days"] = timed ? Json(row.days(*study.tokens)) : Json(nullptr);
  out["device_hours"] = timed ? Json(row.device_hours(*study.tokens)) : Json(nullptr);
  out["price_per_hour"] = or_null(row.price_per_hour);
  out["cost"] = timed ? or_null(row.cost(*study.tokens)) : Json(nullptr);
  return out;
}

}  // namespace

std::string study_json(const StudyReport& report) {
  const Study& study = report.study;
  Json rows = Json::array();
  for (const auto& row : study.rows) rows.push_back(row_json(row, study));
  Json notes = Json::array();
  for (const auto& note : report.notes) notes.push_back(to_text(note));
  const Json document{{"schema", "nd/study/1"},
                      {"kind", study.kind == Study::Kind::what_if ? "what_if" : "cluster_size"},
                      {"file", report.file},
                      {"format", report.format},
                      {"model", report.model},
                      {"framework", report.framework},
                      {"tokens", or_null(study.tokens)},
                      {"deadline_days", or_null(study.deadline_days)},
                      {"complete", study.complete},
                      {"answer", study.answer ? Json(study.rows[*study.answer].devices) : Json(nullptr)},
                      {"defaulted", report.defaulted},
                      {"notes", std::move(notes)},
                      {"rows", std::move(rows)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace nd
