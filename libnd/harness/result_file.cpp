// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/bench.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;
using formats::ConfigNode;
using formats::MapReader;

/// JSON has no nan and inf: they are texts, and read back as the numbers they are.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
std::optional<double> number(const ConfigNode& node) {
  if (node.text == "nan") return std::nan("");
  if (node.text == "inf") return HUGE_VAL;
  if (node.text == "-inf") return -HUGE_VAL;
  return formats::as_real(node);
}

Json numbers(const std::map<std::string, double>& values) {
  auto out = Json::object();
  for (const auto& [name, value] : values) out[name] = number(value);
  return out;
}

void put(Json& to, const char* key, const std::optional<double>& value) {
  if (value) to[key] = number(*value);
}

class ResultReader {
 public:
  Result<RunResult> read(const ConfigNode& root) {
    MapReader map(root, problems_);
    if (map.string("schema").value_or("") != "nd/run_result/1") map.error("schema", Errc::unsupported, "is not 'nd/run_result/1'");
    RunResult out;
    out.id = map.string("id").value_or("");
    out.name = map.string("name").value_or("");
    const auto status = parse_status(map.string("status").value_or(""));
    if (!status) map.error("status", Errc::out_of_range, "is no outcome class");
    out.status = status.value_or(RunStatus::crash);
    out.reason = map.string("reason").value_or("");
    out.flags = map.strings("flags").value_or(Words{});
    out.attempts = map.integer("attempts").value_or(0);
    if (const auto code = map.integer("exit_code")) out.exit_code = static_cast<int>(*code);
    if (const auto signal = map.integer("signal")) out.signal = static_cast<int>(*signal);
    out.host = map.string("host").value_or("");
    out.started = map.string("started").value_or("");
    out.seconds = map.real("seconds").value_or(0);
    if (const auto* node = map.child("steps")) {
      MapReader steps(*node, problems_);
      out.steps.n = steps.integer("n").value_or(0);
      out.steps.median_s = steps.real("median_s").value_or(0);
      out.steps.mean_s = steps.real("mean_s").value_or(0);
      out.steps.sd_s = steps.real("sd_s").value_or(0);
      out.steps.p10_s = steps.real("p10_s").value_or(0);
      out.steps.p90_s = steps.real("p90_s").value_or(0);
      out.steps.reading = steps.string("reading").value_or("");
      steps.finish();
    }
    out.loss = optional(map, "loss");
    out.tokens_per_s_per_device = optional(map, "tokens_per_s_per_device");
    out.allocated_bytes = optional(map, "allocated_bytes");
    out.reserved_bytes = optional(map, "reserved_bytes");
    out.summary = table(map, "summary");
    out.out_of_memory = table(map, "out_of_memory");
    out.error = map.string("error").value_or("");
    out.command = map.strings("command").value_or(Words{});
    map.finish();
    if (!problems_.empty()) return Error(std::move(problems_));
    return out;
  }

 private:
  static std::optional<double> optional(MapReader& map, const char* key) {
    const auto* node = map.child(key);
    return node == nullptr ? std::nullopt : number(*node);
  }
  std::map<std::string, double> table(MapReader& map, const char* key) {
    std::map<std::string, double> out;
    if (const auto* node = map.child(key))
      for (const auto& [name, value] : node->members) {
        if (const auto real = number(value)) out[name] = *real;
        else problems_.push_back(make_diagnostic(Errc::wrong_type, value.where, "is no number"));
      }
    return out;
  }
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::string result_json(const RunResult& result) {
  Json out{{"schema", "nd/run_result/1"}, {"id", result.id}, {"name", result.name}, {"status", to_text(result.status)}};
  if (!result.reason.empty()) out["reason"] = result.reason;
  out["flags"] = result.flags;
  out["attempts"] = result.attempts;
  if (result.exit_code) out["exit_code"] = *result.exit_code;
  if (result.signal) out["signal"] = *result.signal;
  out["host"] = result.host;
  out["started"] = result.started;
  out["seconds"] = result.seconds;
  if (result.steps.n > 0)
    out["steps"] = {{"n", result.steps.n},         {"median_s", result.steps.median_s}, {"mean_s", result.steps.mean_s},  {"sd_s", result.steps.sd_s},
                    {"p10_s", result.steps.p10_s}, {"p90_s", result.steps.p90_s},       {"reading", result.steps.reading}};
  put(out, "loss", result.loss);
  put(out, "tokens_per_s_per_device", result.tokens_per_s_per_device);
  put(out, "allocated_bytes", result.allocated_bytes);
  put(out, "reserved_bytes", result.reserved_bytes);
  out["summary"] = numbers(result.summary);
  out["out_of_memory"] = numbers(result.out_of_memory);
  if (!result.error.empty()) out["error"] = result.error;
  out["command"] = result.command;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunResult> parse_result(std::string_view text, const std::string& file) {
  return formats::parse_json(text, file).and_then([](const ConfigNode& root) { return ResultReader().read(root); });
}

}  // namespace nd
