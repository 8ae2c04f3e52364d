// SPDX-License-Identifier: Apache-2.0
#include "harness/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/text.hpp"
#include "formats/figure.hpp"
#include "formats/tree/map_reader.hpp"

namespace nd::harness {

namespace {

using formats::ConfigNode;
using formats::MapReader;

class LauncherReader {
 public:
  Result<Launcher> read(const ConfigNode& root, std::string name) {
    formats::check_schema(root, "nd/launcher/1", problems_);
    MapReader map(root, problems_);
    map.ignore({"schema", "source"});
    map.require("title", "what it starts with");
    map.require("command", "the command of a run");
    Launcher out;
    out.name = std::move(name);
    out.title = map.string("title").value_or("");
    out.command = map.strings("command").value_or(Words{});
    out.single = map.strings("single").value_or(Words{});
    out.environment = texts(map, "environment");
    out.options = texts(map, "options");
    out.logs = map.strings("logs").value_or(Words{});
    if (const auto* node = map.child("batch")) read_batch(*node, out);
    map.finish();
    if (!problems_.empty()) return Error(std::move(problems_));
    return out;
  }

 private:
  NamedTexts texts(MapReader& map, const char* key) {
    NamedTexts out;
    if (const auto* node = map.child(key))
      for (const auto& [name, value] : node->members) {
        if (!value.is_scalar()) problems_.push_back(make_diagnostic(Errc::wrong_type, value.where, "must be one value"));
        out.emplace_back(name, value.text);
      }
    return out;
  }
  void read_batch(const ConfigNode& node, Launcher& out) {
    MapReader map(node, problems_);
    for (const char* key : {"script", "submit", "poll", "cancel", "states"}) map.require(key, "a batch system");
    out.script = map.string("script").value_or("");
    out.submit = map.strings("submit").value_or(Words{});
    out.poll = map.strings("poll").value_or(Words{});
    out.cancel = map.strings("cancel").value_or(Words{});
    out.poll_s = map.real("poll_seconds").value_or(out.poll_s);
    if (const auto* states = map.child("states"))
      for (const auto& [name, list] : states->members) {
        const auto status = parse_status(name);
        if (!status) problems_.push_back(make_diagnostic(Errc::out_of_range, list.key_where(), "'" + name + "' is no outcome class"));
        for (const auto& item : list.items) out.states[item.text] = status.value_or(RunStatus::crash);
      }
    map.finish();
  }
  std::vector<Diagnostic> problems_;
};

void add_word(Words& to, std::string word, const std::string& pattern) {
  if (!word.empty() || placeholders_of(pattern).empty()) to.push_back(std::move(word));
}

}  // namespace

Result<Launcher> read_launcher(std::string_view name, const DataStore& data) {
  namespace fs = std::filesystem;
  const auto read = [](const fs::path& path) {
    return formats::read_document(path.string()).and_then([&](const ConfigNode& root) { return LauncherReader().read(root, path.stem().string()); });
  };
  if (name.find('/') != std::string_view::npos || name.ends_with(".yaml")) return read(fs::path(name));
  Words known;
  std::error_code failed;
  const auto folder = fs::path(data.root()) / "launchers";
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
  std::sort(known.begin(), known.end());
  if (std::find(known.begin(), known.end(), name) == known.end())
    return make_error(Errc::out_of_range, {{}, 0, 0, "launcher"}, "there is no launcher '" + std::string(name) + "'", core::name_hint(name, known));
  return read(folder / (std::string(name) + ".yaml"));
}

Result<Launch> make_launch(const Launcher& launcher, const Campaign& campaign, const PlannedRun& run, const LaunchPlace& place) {
  Launch out;
  auto& values = out.values;
  for (const auto& [name, value] : launcher.options) values[name] = value;
  std::vector<Diagnostic> problems;
  for (const auto& [name, value] : campaign.launcher_options) {
    if (values.count(name) == 0) {
      Words known;
      for (const auto& [option, fallback] : launcher.options) known.push_back(option);
      problems.push_back(make_diagnostic(Errc::unknown_key, {{}, 0, 0, "launcher " + launcher.name}, "has no option '" + name + "'", core::name_hint(name, known)));
    }
    values[name] = value;
  }
  values["devices"] = std::to_string(run.devices);
  // Launchers over several nodes say how many devices one has.
  const auto stated = values.find("devices_per_node");
  const std::int64_t per_node = stated == values.end() ? run.devices : std::min(run.devices, core::parse_integer(stated->second).value_or(0));
  if (per_node < 1 || run.devices % per_node != 0)
    problems.push_back(make_diagnostic(Errc::out_of_range, {{}, 0, 0, "devices_per_node"}, fmt::format("{} devices are not a whole number of nodes of {}", run.devices, per_node)));
  values["devices_per_node"] = std::to_string(per_node);
  values["nodes"] = std::to_string(per_node < 1 ? 0 : run.devices / per_node);
  values["python"] = campaign.python;
  values["run_dir"] = place.run_dir;
  values["port"] = std::to_string(place.port);
  values["id"] = run.id;
  values["name"] = run.name;
  values["device_list"] = fmt::format("{}", fmt::join(place.devices, ","));
  values["total_minutes"] = std::to_string(static_cast<std::int64_t>(std::ceil(campaign.limits.total_s > 0 ? campaign.limits.total_s / 60 : 0)));
  Values at_run = {{"run_dir", place.run_dir}, {"id", run.id}, {"port", values["port"]}, {"device_list", values["device_list"]}};
  Words program, arguments;
  for (const auto& word : campaign.program) {
    Values with_facts = at_run;
    for (const auto& [name, value] : run.facts) with_facts.emplace(name, value);
    program.push_back(fill_in(word, with_facts));
  }
  for (const auto& argument : run.arguments) {
    arguments.push_back("--" + argument.name);
    for (const auto& value : argument.values) arguments.push_back(fill_in(value, at_run));
  }
  std::set<std::string> unknown;
  for (const auto& word : run.devices == 1 && !launcher.single.empty() ? launcher.single : launcher.command) {
    if (word == "{program}") out.command.insert(out.command.end(), program.begin(), program.end());
    else if (word == "{arguments}") out.command.insert(out.command.end(), arguments.begin(), arguments.end());
    else add_word(out.command, fill_in(word, values, &unknown), word);
  }
  for (const auto& [name, value] : launcher.environment) out.environment.emplace_back(name, fill_in(value, values, &unknown));
  for (const auto& [name, value] : run.environment) out.environment.emplace_back(name, fill_in(value, at_run));
  if (launcher.batch()) {
    std::string quoted, exports;
    for (const auto& word : out.command) quoted += (quoted.empty() ? "" : " ") + shell_quoted(word);
    for (const auto& [name, value] : out.environment) exports += "export " + name + "=" + shell_quoted(value) + "\n";
    values["command"] = quoted;
    values["exports"] = exports;
    out.script = fill_in(launcher.script, values, &unknown);
  }
  for (const auto& name : unknown)
    problems.push_back(make_diagnostic(Errc::missing_field, {{}, 0, 0, "launcher " + launcher.name}, "has no value for {" + name + "}", "state it as a launcher option"));
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

}  // namespace nd::harness
