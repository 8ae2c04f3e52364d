// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/campaign.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;
using formats::ConfigNode;
using formats::MapReader;

Json pairs_json(const NamedTexts& pairs) {
  auto out = Json::array();
  for (const auto& [name, value] : pairs) out.push_back(Json::array({name, value}));
  return out;
}

Json run_json(const PlannedRun& run) {
  Json out{{"id", run.id}, {"name", run.name}, {"devices", run.devices}};
  auto arguments = Json::array();
  for (const auto& argument : run.arguments) arguments.push_back({{"name", argument.name}, {"values", argument.values}});
  out["arguments"] = std::move(arguments);
  out["environment"] = pairs_json(run.environment);
  out["facts"] = pairs_json(run.facts);
  auto files = Json::array();
  for (const auto& file : run.files) files.push_back({{"name", file.name}, {"text", file.text}});
  out["files"] = std::move(files);
  if (run.predicted_step_s) out["predicted_step_s"] = *run.predicted_step_s;
  if (run.predicted_memory_gib) out["predicted_memory_gib"] = *run.predicted_memory_gib;
  if (!run.skip.empty()) out["skip"] = run.skip;
  return out;
}

/// Reads our own document; whatever is not as plan_json() writes it is reported with its place.
class PlanReader {
 public:
  Result<Campaign> read(const ConfigNode& root) {
    MapReader map(root, problems_);
    if (map.string("schema").value_or("") != "nd/plan/1") map.error("schema", Errc::unsupported, "is not 'nd/plan/1'");
    Campaign out;
    out.name = map.string("name").value_or("");
    out.python = map.string("python").value_or("");
    out.program = map.strings("program").value_or(Words{});
    out.launcher = map.string("launcher").value_or("");
    out.log_profile = map.string("log_profile").value_or("");
    if (const auto* node = map.child("launcher_options")) out.launcher_options = pairs(*node);
    if (const auto* node = map.child("measure")) {
      MapReader rule(*node, problems_);
      out.measure = {rule.integer("warmup").value_or(0), rule.integer("least").value_or(0), rule.integer("enough").value_or(0)};
      rule.finish();
    }
    if (const auto* node = map.child("limits")) {
      MapReader limits(*node, problems_);
      out.limits = {limits.real("total_s").value_or(0), limits.real("start_s").value_or(0),   limits.real("stall_s").value_or(0),
                    limits.real("grace_s").value_or(0), limits.integer("retries").value_or(0), limits.integer("log_bytes").value_or(0)};
      limits.finish();
    }
    if (const auto* runs = map.child("runs"))
      for (const auto& node : runs->items) out.runs.push_back(run(node));
    map.finish();
    if (!problems_.empty()) return Error(std::move(problems_));
    return out;
  }

 private:
  NamedTexts pairs(const ConfigNode& node) {
    NamedTexts out;
    for (const auto& item : node.items) {
      if (item.items.size() == 2 && item.items[0].is_scalar() && item.items[1].is_scalar()) out.emplace_back(item.items[0].text, item.items[1].text);
      else problems_.push_back(make_diagnostic(Errc::wrong_type, item.where, "is no pair of texts"));
    }
    return out;
  }

  PlannedRun run(const ConfigNode& node) {
    MapReader map(node, problems_);
    PlannedRun out;
    out.id = map.string("id").value_or("");
    out.name = map.string("name").value_or("");
    out.devices = map.positive("devices").value_or(1);
    if (const auto* arguments = map.child("arguments"))
      for (const auto& item : arguments->items) {
        MapReader argument(item, problems_);
        out.arguments.push_back({argument.string("name").value_or(""), argument.strings("values").value_or(Words{})});
        argument.finish();
      }
    if (const auto* environment = map.child("environment")) out.environment = pairs(*environment);
    if (const auto* facts = map.child("facts")) out.facts = pairs(*facts);
    if (const auto* files = map.child("files"))
      for (const auto& item : files->items) {
        MapReader file(item, problems_);
        out.files.push_back({file.string("name").value_or(""), file.string("text").value_or("")});
        file.finish();
      }
    out.predicted_step_s = map.real("predicted_step_s");
    out.predicted_memory_gib = map.real("predicted_memory_gib");
    out.skip = map.string("skip").value_or("");
    map.finish();
    return out;
  }

  std::vector<Diagnostic> problems_;
};

}  // namespace

std::string plan_json(const Campaign& campaign) {
  Json out{{"schema", "nd/plan/1"},         {"name", campaign.name},         {"python", campaign.python},
           {"program", campaign.program},   {"launcher", campaign.launcher}, {"launcher_options", pairs_json(campaign.launcher_options)},
           {"log_profile", campaign.log_profile}};
  out["measure"] = {{"warmup", campaign.measure.warmup}, {"least", campaign.measure.least}, {"enough", campaign.measure.enough}};
  const auto& limits = campaign.limits;
  out["limits"] = {{"total_s", limits.total_s}, {"start_s", limits.start_s}, {"stall_s", limits.stall_s},
                   {"grace_s", limits.grace_s}, {"retries", limits.retries}, {"log_bytes", limits.log_bytes}};
  auto runs = Json::array();
  for (const auto& run : campaign.runs) runs.push_back(run_json(run));
  out["runs"] = std::move(runs);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Campaign> parse_plan(std::string_view text, const std::string& file) {
  return formats::parse_json(text, file).and_then([](const ConfigNode& root) { return PlanReader().read(root); });
}

std::string plan_text(const Campaign& campaign) {
  const auto skipped = std::count_if(campaign.runs.begin(), campaign.runs.end(), [](const PlannedRun& run) { return !run.skip.empty(); });
  std::string out = fmt::format("{} runs to do, {} skipped; launcher {}, log profile {}\n", campaign.runs.size() - static_cast<std::size_t>(skipped), skipped,
                                campaign.launcher, campaign.log_profile);
  for (const auto& run : campaign.runs) {
    out += fmt::format("  {}  {:>4} devices  {}", run.id, run.devices, run.name);
    if (run.predicted_step_s) out += fmt::format("  predicted {:.4g} s", *run.predicted_step_s);
    if (run.predicted_memory_gib) out += fmt::format(", {:.1f} GiB", *run.predicted_memory_gib);
    if (!run.skip.empty()) out += "  skipped: " + run.skip;
    out += "\n";
  }
  return out;
}

}  // namespace nd
