// SPDX-License-Identifier: Apache-2.0
#include "nd/balance_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nd/schedule.hpp"
#include "report/strategy_text.hpp"
#include "report/text_table.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMebi = 1024.0 * 1024.0;

std::string why_none(const ParallelConfig& config) {
  if (config.pp == 1) return "one stage holds all layers";
  if (config.recompute == Recompute::per_layer) return "every layer has a recompute mode of its own: lay a strategy with one mode out";
  // Two chunks of the schedule for one of the strategy.
  if (schedule_chunks(config.schedule, schedule_shape(config)) > config.vpp) return "the schedule holds every part of the model on two stages";
  return "no layout fits";
}

}  // namespace

BalanceReport balance_report(const Scenario& scenario, const PricedCandidate& candidate) {
  BalanceReport out{.rank = candidate.rank, .config = candidate.config, .balanced = balance_strategy(scenario, candidate.config), .problem = {}, .layers = {}};
  if (!out.balanced) out.problem = why_none(candidate.config);
  out.layers = describe_layers(scenario, candidate.config);
  return out;
}

std::string balance_text(const BalanceReport& report) {
  std::string out = fmt::format("layers per stage of rank {}, {}", report.rank, report::short_strategy(report.config));
  if (!report.balanced) return out + fmt::format(": no layout, {}\n", report.problem);
  const BalancedStrategy& balanced = *report.balanced;
  out += "\n";
  for (std::size_t c = 0; c < balanced.layers_per_chunk.size(); ++c)
    out += fmt::format("  {}{}\n", balanced.layers_per_chunk.size() > 1 ? fmt::format("chunk {}: ", c) : std::string(), fmt::join(balanced.layers_per_chunk[c], " "));
  out += fmt::format("  pipeline {}, {} {:+.1f} %", report::short_seconds(balanced.pipeline.value),
                     balanced.even_fits ? "against the even split" : "against the even split, which does not fit,",
                     100 * (balanced.pipeline.value / balanced.even_pipeline.value - 1));
  if (balanced.proven) out += "; no other layout that fits is shorter\n";
  else if (balanced.bound.value > 0) out += fmt::format("; no layout is below {} ({:.1f} % less)\n", report::short_seconds(balanced.bound.value), 100 * (1 - balanced.bound.value / balanced.pipeline.value));
  else out += "; the best of those tried\n";
  return out + fmt::format("  step with it {}\n", report::short_seconds(balanced.step.value));
}

std::string layer_description_json(const std::string& model, const std::vector<LayerDescription>& layers) {
  // Solvers want numbers around one: times count in forwards of the first layer kind.
  const auto body = std::find_if(layers.begin(), layers.end(), [](const LayerDescription& layer) { return layer.type == "BODY"; });
  const double unit = body == layers.end() || !(body->forward.value > 0) ? 1.0 : body->forward.value;
  Json list = Json::array();
  for (const LayerDescription& layer : layers) {
    const auto backward = [&](Recompute mode) { return layer.backward[static_cast<std::size_t>(mode)].value / unit; };
    const auto kept = [&](Recompute mode) { return layer.activations[static_cast<std::size_t>(mode)].value / kMebi; };
    Json one{{"model_name", model}, {"name", layer.name}, {"type", layer.type}, {"nb_layer", layer.layers},
             {"memory_parameter", layer.parameter_memory.value / kMebi}, {"forward_time", layer.forward.value / unit},
             {"backward_time", backward(Recompute::off)}, {"time", layer.forward.value / unit}};
    if (layer.type == "BODY") {
      one["memory_activation"] = kept(Recompute::off);
      one["memory_recompute"] = kept(Recompute::full);
      one["recompute_time"] = backward(Recompute::full);
      // A selective mode that keeps as much as none is no option.
      if (kept(Recompute::selective) < kept(Recompute::off)) {
        one["memory_select_rec"] = kept(Recompute::selective);
        one["select_rec_time"] = backward(Recompute::selective);
      }
    }
    list.push_back(std::move(one));
  }
  return Json{{"layers_description", std::move(list)}}.dump(2) + "\n";
}

}  // namespace nd
