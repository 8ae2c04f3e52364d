// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "modes.hpp"
#include "nd/schedule.hpp"

namespace run_nd {

namespace {

void line(const std::string& name, const std::string& rest) { std::printf("%-24s %s\n", name.c_str(), rest.c_str()); }

Exit list_devices(const nd::DataStore& data) {
  const auto names = data.device_names();
  if (!names) return refuse(names.error().diagnostics);
  for (const auto& name : *names) {
    const auto device = data.device(name);
    if (!device) return refuse(device.error().diagnostics);
    std::string aliases;
    for (const auto& alias : device->aliases) aliases += (aliases.empty() ? "" : ", ") + alias;
    line(name, device->title + (aliases.empty() ? "" : " (" + aliases + ")"));
  }
  return Exit::done;
}

Exit list_names(const nd::Result<std::vector<std::string>>& names) {
  if (!names) return refuse(names.error().diagnostics);
  for (const auto& name : *names) std::printf("%s\n", name.c_str());
  return Exit::done;
}

Exit list_frameworks(const nd::DataStore& data) {
  const auto names = data.framework_names();
  if (!names) return refuse(names.error().diagnostics);
  for (const auto& name : *names) {
    const auto profile = data.framework(name, "", {});
    if (!profile) return refuse(profile.error().diagnostics);
    line(name, profile->version + "  " + profile->title);
  }
  return Exit::done;
}

Exit list_formats(const nd::DataStore&) {
  for (const auto& format : nd::format_list())
    line(std::string(format.id), std::string(format.title) + " (" + std::string(format.suffixes) + ")");
  return Exit::done;
}

Exit list_dimensions(const nd::DataStore&) {
  for (const auto& info : nd::dimension_list())
    line(std::string(info.acronym) + (info.alias.empty() ? "" : ", " + std::string(info.alias)),
         std::string(info.title) + ": " + std::string(info.rule));
  return Exit::done;
}

Exit list_schedules(const nd::DataStore&) {
  for (const auto schedule : nd::all_schedules()) {
    const auto info = nd::schedule_info(schedule);
    std::string rest = std::string(info.title) + "; needs " + (info.rule.empty() ? "nothing" : std::string(info.rule)) + "; backward " +
                       (info.splits_backward ? "split in two halves" : "whole");
    if (!info.aliases.empty()) rest += "; also: " + std::string(info.aliases);
    line(std::string(info.name), rest);
  }
  return Exit::done;
}

Exit list_models(const nd::DataStore& data) { return list_names(data.model_names()); }

struct Listing {
  const char* name;
  Exit (*run)(const nd::DataStore&);
};
constexpr Listing kListings[] = {{"devices", list_devices},     {"models", list_models},         {"frameworks", list_frameworks},
                                 {"formats", list_formats},     {"dimensions", list_dimensions}, {"schedules", list_schedules}};

}  // namespace

Exit run_list(const std::string& what, const nd::DataStore& data) {
  std::vector<std::string> known;
  for (const auto& listing : kListings) {
    if (what == listing.name) return listing.run(data);
    known.emplace_back(listing.name);
  }
  return refuse({usage_error("--list", "there is no list of '" + what + "'", nd::suggest_name(what, known))});
}

}  // namespace run_nd
