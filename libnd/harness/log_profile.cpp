// SPDX-License-Identifier: Apache-2.0
#include "harness/log_profile.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/text.hpp"
#include "formats/figure.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::harness {

namespace {

using formats::ConfigNode;
using formats::MapReader;

const std::vector<std::string> kFieldNames{"step", "loss", "step_time", "tokens_per_s", "steps_per_s", "memory_allocated", "memory_reserved"};

double unit_factor(const std::string& unit, MapReader& map) {
  const std::string one = "1 " + unit;
  if (const auto seconds = formats::parse_seconds(one)) return seconds->value;
  if (const auto bytes = formats::parse_bytes(one)) return bytes->value;
  map.error("unit", Errc::out_of_range, "'" + unit + "' is no unit of time or memory", "s, ms, B, MB, MiB, GB, GiB, ...");
  return 1;
}

FieldRule read_field(const std::string& name, const ConfigNode& node, std::vector<Diagnostic>& problems) {
  MapReader map(node, problems);
  FieldRule out;
  out.name = name;
  if (std::find(kFieldNames.begin(), kFieldNames.end(), name) == kFieldNames.end())
    problems.push_back(make_diagnostic(Errc::unknown_key, node.key_where(), "'" + name + "' is no field", core::name_hint(name, kFieldNames)));
  out.after = map.string("after").value_or("");
  if (const auto pattern = map.string("pattern")) {
    try {
      out.pattern = std::regex(*pattern, std::regex::optimize);
      if (out.pattern->mark_count() < 1) map.error("pattern", Errc::missing_field, "has no group for the number", "([0-9.]+)");
    } catch (const std::regex_error& error) {
      map.error("pattern", Errc::syntax, std::string("is no regular expression: ") + error.what());
    }
  }
  if (out.after.empty() == !out.pattern) map.error("after", Errc::missing_field, "needs either 'after' or 'pattern'");
  if (const auto unit = map.string("unit")) out.factor = unit_factor(*unit, map);
  map.finish();
  return out;
}

std::vector<LineRule> read_lines(MapReader& profile, const char* key, std::vector<Diagnostic>& problems) {
  std::vector<LineRule> out;
  const auto* list = profile.child(key);
  if (list == nullptr) return out;
  for (const auto& item : list->items) {
    MapReader map(item, problems);
    LineRule rule;
    map.require("contains", "how such a line is recognised");
    rule.contains = map.strings("contains").value_or(Words{});
    rule.pairs = map.boolean("pairs").value_or(false);
    if (const auto* fields = map.child("fields"))
      for (const auto& [name, node] : fields->members) rule.fields.push_back(read_field(name, node, problems));
    map.finish();
    out.push_back(std::move(rule));
  }
  return out;
}

Result<LogProfile> parse_profile(const ConfigNode& root, const std::string& name) {
  std::vector<Diagnostic> problems;
  formats::check_schema(root, "nd/log_profile/1", problems);
  MapReader map(root, problems);
  map.ignore({"schema", "source"});
  LogProfile out;
  out.name = name;
  map.require("title", "what the profile reads");
  map.require("steps", "lines of a step");
  out.title = map.string("title").value_or("");
  out.every = map.string("every").value_or("");
  out.frameworks = map.strings("frameworks").value_or(Words{});
  out.steps = read_lines(map, "steps", problems);
  out.summary = read_lines(map, "summary", problems);
  map.finish();
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

}  // namespace

Result<LogProfile> read_log_profile(std::string_view name, const DataStore& data) {
  namespace fs = std::filesystem;
  const auto read = [](const fs::path& path) {
    return formats::read_document(path.string()).and_then([&](const ConfigNode& root) { return parse_profile(root, path.stem().string()); });
  };
  if (name.find('/') != std::string_view::npos || name.ends_with(".yaml")) return read(fs::path(name));
  Words known;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(fs::path(data.root()) / "log_profiles", failed))
    if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
  std::sort(known.begin(), known.end());
  const auto folder = fs::path(data.root()) / "log_profiles";
  if (std::find(known.begin(), known.end(), name) != known.end()) return read(folder / (std::string(name) + ".yaml"));
  for (const auto& one : known) {
    auto profile = read(folder / (one + ".yaml"));
    if (!profile) return profile;
    const auto& served = profile->frameworks;
    if (std::find(served.begin(), served.end(), name) != served.end()) return profile;
  }
  return make_error(Errc::out_of_range, {{}, 0, 0, "log_profile"}, "there is no log profile '" + std::string(name) + "'", core::name_hint(name, known));
}

Result<FailureTable> read_failures(const DataStore& data) {
  return formats::read_document(data.root() + "/bench/failures.yaml").and_then([](const ConfigNode& root) -> Result<FailureTable> {
    std::vector<Diagnostic> problems;
    formats::check_schema(root, "nd/failures/1", problems);
    MapReader map(root, problems);
    map.ignore({"schema", "source"});
    FailureTable out;
    map.require("patterns", "what failures say");
    if (const auto* list = map.child("patterns"))
      for (const auto& item : list->items) {
        MapReader entry(item, problems);
        entry.ignore({"source"});
        entry.require("status", "the outcome class");
        entry.require("contains", "the text");
        const auto name = entry.string("status").value_or("");
        const auto status = parse_status(name);
        if (!status) entry.error("status", Errc::out_of_range, "'" + name + "' is no outcome class");
        out.patterns.push_back({status.value_or(RunStatus::crash), entry.string("contains").value_or("")});
        entry.finish();
      }
    out.secondary = map.strings("secondary").value_or(Words{});
    if (const auto* list = map.child("amounts"))
      for (const auto& item : list->items) {
        MapReader entry(item, problems);
        out.amounts.push_back({entry.string("name").value_or(""), entry.string("after").value_or(""), entry.string("before").value_or("")});
        entry.finish();
      }
    map.finish();
    if (!problems.empty()) return Error(std::move(problems));
    return out;
  });
}

}  // namespace nd::harness
