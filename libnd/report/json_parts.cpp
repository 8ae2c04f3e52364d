// SPDX-License-Identifier: Apache-2.0
#include "report/json_parts.hpp"

#include <nlohmann/json.hpp>

#include "search/memory_parts.hpp"

namespace nd::report {

namespace {

Json parts_json(const StageMemory& stage) {
  Json out = Json::object();
  for (const auto& part : search::kMemoryParts) out[std::string(part.name)] = to_gib(stage.*part.bytes);
  return out;
}

Json plan_json(const LayerPlan& plan) {
  Json layers = Json::array(), stages = Json::array();
  for (const PlannedLayers& range : plan.layers)
    layers.push_back({{"stage", range.stage},
                      {"chunk", range.chunk},
                      {"kind", range.kind < 0 ? Json("mtp") : Json(range.kind)},
                      {"count", range.count},
                      {"recompute", to_text(range.mode)}});
  for (const StageMoments& stage : plan.stages)
    stages.push_back({{"warm_up", to_gib(stage.warm_up)}, {"end_of_backward", stage.end_of_backward.value > 0 ? Json(to_gib(stage.end_of_backward)) : Json(nullptr)}});
  return Json{{"layers", std::move(layers)}, {"stages_gib", std::move(stages)}, {"saved_s", plan.saved.value}};
}

}  // namespace

Json config_json(const ParallelConfig& config) {
  return Json{{"dp", config.dp},
              {"tp", config.tp},
              {"pp", config.pp},
              {"cp", config.cp},
              {"ep", config.ep},
              {"etp", config.etp},
              {"sp", config.sequence_parallel},
              {"op", config.op},
              {"zero", static_cast<int>(config.zero)},
              {"vpp", config.vpp},
              {"mbs", config.micro_batch_size},
              {"mb", config.micro_batch_num},
              {"gbs", config.global_batch()},
              {"schedule", to_text(config.schedule)},
              {"micro_batch_group", config.schedule == Schedule::interleaved ? config.group_size() : 0},
              {"seq_split", config.seq_split},
              {"recompute", to_text(config.recompute)},
              {"cp_algorithm", to_text(config.cp_algorithm)}};
}

Json memory_json(const MemoryBreakdown& memory) {
  const auto& peak = memory.peak();
  Json stages = Json::array();
  for (const auto& stage : memory.stages)
    stages.push_back({{"stage", stage.stage},
                      {"instant", to_text(stage.instant)},
                      {"peak", to_gib(stage.reserved)},
                      {"allocated", to_gib(stage.allocated)},
                      {"in_flight", stage.in_flight},
                      {"parts", parts_json(stage)}});
  return Json{{"peak", to_gib(peak.reserved)},      {"allocated", to_gib(peak.allocated)}, {"budget", to_gib(memory.budget)},
              {"stage", peak.stage},                {"instant", to_text(peak.instant)},    {"parts", parts_json(peak)},
              {"stages", std::move(stages)}};
}

Json time_json(const std::array<Seconds, kTimePartCount>& parts) {
  Json out = Json::object();
  for (std::size_t i = 0; i < kTimePartCount; ++i) out[std::string(to_text(static_cast<TimePart>(i)))] = parts[i].value;
  return out;
}

Json candidate_json(const PricedCandidate& candidate, double band) {
  Json out{{"rank", candidate.rank}};
  out.update(config_json(candidate.config));
  out["offload"] = false;
  out["layout"] = candidate.layers;
  out["step_time_s"] = candidate.time.step.value;
  out["step_time_band"] = band;
  out["tokens_per_s_per_device"] = candidate.tokens_per_second;
  out["tflops_per_device"] = candidate.flops_per_second / 1e12;
  out["mfu"] = candidate.mfu ? Json(*candidate.mfu) : Json(nullptr);
  out["fits"] = to_text(candidate.memory.fit);
  out["memory_gib"] = memory_json(candidate.memory);
  out["time_parts_s"] = time_json(candidate.time.exposed);
  out["hidden_s"] = time_json(candidate.time.hidden);
  out["bound_by"] = std::string(to_text(candidate.time.bound_by()));
  if (candidate.plan) out["plan"] = plan_json(*candidate.plan);
  return out;
}

}  // namespace nd::report
