// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <vector>

#include "search/near_misses.hpp"
#include "search/pricer.hpp"
#include "space/enumerate.hpp"

namespace nd::search {

namespace {

/// One change: the strategy afterwards, and on how many devices.
struct Change {
  ParallelConfig config;
  std::int64_t devices = 0;
};

/// op follows the data-parallel group wherever something is sharded.
void reshard(ParallelConfig& config) {
  if (config.zero != ZeroLevel::none) config.op = config.dp * config.cp;
}

void add_switches(const ParallelConfig& from, std::int64_t devices, std::vector<Change>& out) {
  for (const auto mode : {Recompute::selective, Recompute::full}) {
    if (mode <= from.recompute) continue;
    out.push_back({from, devices});
    out.back().config.recompute = mode;
  }
  if (!from.sequence_parallel) {
    out.push_back({from, devices});
    out.back().config.sequence_parallel = true;
  }
  for (const auto level : {ZeroLevel::optimizer, ZeroLevel::gradients, ZeroLevel::parameters}) {
    if (level <= from.zero) continue;
    out.push_back({from, devices});
    out.back().config.zero = level;
    reshard(out.back().config);
  }
  for (int size = from.micro_batch_size / 2; size >= 1; size /= 2) {
    if (from.micro_batch_size % size != 0) continue;
    out.push_back({from, devices});
    out.back().config.micro_batch_num *= from.micro_batch_size / size;
    out.back().config.micro_batch_size = size;
  }
}

/// The degree times `factor`; taken from dp on the same devices, or added to them.
void add_degree(const ParallelConfig& from, int ParallelConfig::*degree, int factor, std::int64_t devices, std::vector<Change>& out) {
  if (from.*degree > std::numeric_limits<int>::max() / factor) return;
  const bool same_devices = devices == from.devices();
  if (same_devices && from.dp % factor != 0) return;
  Change change{from, devices};
  change.config.*degree *= factor;
  if (same_devices) {
    change.config.dp /= factor;
    change.config.micro_batch_num *= factor;
  }
  reshard(change.config);
  out.push_back(change);
}

void add_degrees(const ParallelConfig& from, std::vector<Change>& out) {
  const std::int64_t devices = from.devices();
  for (const int factor : {2, 4, 8}) {
    add_degree(from, &ParallelConfig::tp, factor, devices, out);
    add_degree(from, &ParallelConfig::pp, factor, devices, out);
    add_degree(from, &ParallelConfig::cp, factor, devices, out);
    out.push_back({from, devices});
    out.back().config.ep *= factor;
  }
}

void add_devices(const ParallelConfig& from, std::vector<Change>& out) {
  for (const int factor : {2, 4, 8, 16, 32, 64}) {
    const std::int64_t devices = from.devices() * factor;
    // More replicas only help where states are sharded over them.
    if (from.zero != ZeroLevel::none && from.micro_batch_num % factor == 0) {
      out.push_back({from, devices});
      out.back().config.dp *= factor;
      out.back().config.micro_batch_num /= factor;
      reshard(out.back().config);
    }
    add_degree(from, &ParallelConfig::pp, factor, devices, out);
    add_degree(from, &ParallelConfig::tp, factor, devices, out);
    add_degree(from, &ParallelConfig::cp, factor, devices, out);
  }
}

/// The first of `changes` that fits.
std::optional<Change> first_fit(const Scenario& scenario, Pricer& pricer, const std::vector<Change>& changes) {
  const space::SpaceContext context(scenario);
  for (const auto& change : changes)
    if (!space::violation(context, change.config) && pricer.peak(change.config).fit != Fit::no) return change;
  return std::nullopt;
}

std::string words(const ParallelConfig& from, const Change& change) {
  std::string out;
  for (const auto& info : dimension_list()) {
    const auto value = value_of(change.config, info.id);
    if (value == value_of(from, info.id) || info.id == Dimension::micro_batch_num) continue;
    out += (out.empty() ? "" : " ") + std::string(info.name) + "=" + value_text(info.id, value);
  }
  if (change.devices != from.devices()) out = std::to_string(change.devices) + " devices with " + out;
  return out;
}

}  // namespace

std::string cheapest_change(const Scenario& scenario, Pricer& pricer, const ParallelConfig& config) {
  const std::int64_t devices = config.devices();
  std::vector<Change> switches, degrees;
  add_switches(config, devices, switches);
  add_degrees(config, degrees);
  for (const auto* changes : {&switches, &degrees})
    if (const auto found = first_fit(scenario, pricer, *changes)) return words(config, *found);
  // No single one does: two at once, the second on top of a switch.
  for (const auto& first : switches) {
    std::vector<Change> pairs;
    add_switches(first.config, devices, pairs);
    add_degrees(first.config, pairs);
    if (const auto found = first_fit(scenario, pricer, pairs)) return words(config, *found);
  }
  std::vector<Change> larger;
  add_devices(config, larger);
  std::stable_sort(larger.begin(), larger.end(), [](const Change& a, const Change& b) { return a.devices < b.devices; });
  for (std::size_t begin = 0; begin < larger.size();) {
    const auto end = std::find_if(larger.begin() + static_cast<std::ptrdiff_t>(begin), larger.end(),
                                  [&](const Change& other) { return other.devices != larger[begin].devices; });
    const std::vector<Change> same(larger.begin() + static_cast<std::ptrdiff_t>(begin), end);
    begin = static_cast<std::size_t>(end - larger.begin());
    Scenario changed = scenario;
    changed.run.devices = same.front().devices;
    changed.cluster.devices = same.front().devices;
    Pricer larger_pricer(changed);
    if (const auto found = first_fit(changed, larger_pricer, same)) return words(config, *found);
  }
  return {};
}

}  // namespace nd::search
