// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "core/text.hpp"
#include "nd/search.hpp"

namespace nd {

namespace {

constexpr std::array<std::string_view, 4> kObjectives{"time", "memory", "cost", "energy"};
constexpr std::array<std::string_view, 3> kEnds{"complete", "time_limit", "stopped"};
constexpr double kSecondsPerHour = 3600;

Diagnostic problem(std::string_view option, std::string message, std::string hint) {
  return make_diagnostic(Errc::missing_field, SourceRef{{}, 0, 0, std::string(option)}, std::move(message), std::move(hint));
}

}  // namespace

std::string_view to_text(Objective objective) { return kObjectives.at(static_cast<std::size_t>(objective)); }
std::string_view to_text(SearchEnd end) { return kEnds.at(static_cast<std::size_t>(end)); }

Result<Objective> parse_objective(std::string_view text, const SourceRef& where) {
  const std::string wanted = core::canonical_name(text);
  for (std::size_t i = 0; i < kObjectives.size(); ++i)
    if (wanted == kObjectives[i]) return static_cast<Objective>(i);
  return make_error(Errc::out_of_range, where, "'" + std::string(text) + "' is no objective",
                    core::name_hint(text, std::vector<std::string>(kObjectives.begin(), kObjectives.end())));
}

std::optional<double> objective_per_second(const Scenario& scenario, const SearchOptions& options) {
  const DeviceType& device = scenario.cluster.device;
  const auto devices = static_cast<double>(scenario.run.devices);
  switch (options.objective) {
    case Objective::time:
      return 1.0;
    case Objective::memory:
      return std::nullopt;
    case Objective::cost: {
      const auto price = options.device_hour_price ? options.device_hour_price : device.price_per_hour;
      if (!price) return std::nullopt;
      return *price * devices / kSecondsPerHour;
    }
    case Objective::energy:
      if (!device.power_watts) return std::nullopt;
      return *device.power_watts * devices;
  }
  return std::nullopt;
}

std::vector<Diagnostic> check_search_options(const Scenario& scenario, const SearchOptions& options) {
  std::vector<Diagnostic> out;
  const std::string& device = scenario.cluster.device.name;
  const bool known = objective_per_second(scenario, options).has_value();
  if (options.objective == Objective::cost && !known)
    out.push_back(problem("objective", "cost needs a price, and the file of " + device + " states none", "state a price per device and hour"));
  if (options.objective == Objective::energy && !known)
    out.push_back(problem("objective", "energy needs the power of a device, and the file of " + device + " states none",
                          "add power_watts to the device file, or rank by time"));
  if (options.device_hour_price && !(*options.device_hour_price > 0))
    out.push_back(problem("price", "the price of a device-hour must be above 0", {}));
  if (options.time_limit && !(options.time_limit->value > 0))
    out.push_back(problem("time_limit", "the time limit must be above 0 seconds", {}));
  const auto& shard = options.shard;
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    out.push_back(problem("shard", "part " + std::to_string(shard.index + 1) + " of " + std::to_string(shard.count) + " does not exist",
                          "parts are numbered from 1 to their count"));
  return out;
}

}  // namespace nd
