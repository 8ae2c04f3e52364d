// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "core/integer.hpp"
#include "nd/search_space.hpp"
#include "space/dimensions.hpp"
#include "space/enumerate.hpp"

namespace nd {

namespace {

using space::SpaceContext;

bool has_strategy(const SpaceContext& context, const SearchSpace& space) {
  return space::enumerate(context, space, [](const ParallelConfig&) { return false; }).legal > 0;
}

SearchSpace only(Dimension dimension, std::int64_t value, bool pinned) {
  SearchSpace space;
  space.of(dimension).values = {value};
  space.of(dimension).pinned = pinned;
  return space;
}

/// Values of the dimension that some strategy has when everything else is free.
std::vector<std::int64_t> possible_values(const SpaceContext& context, Dimension dimension) {
  std::set<std::int64_t> tried, possible;
  const auto candidates = [&]() -> std::vector<std::int64_t> {
    const auto& row = space::row_of(dimension);
    if (row.words != nullptr) {
      std::vector<std::int64_t> all;
      for (std::size_t i = 0; i < row.words().size(); ++i) all.push_back(static_cast<std::int64_t>(i));
      return all;
    }
    if (dimension == Dimension::zero) return {0, 1, 2, 3};
    if (dimension == Dimension::ep) return context.expert_divisors;
    if (dimension == Dimension::micro_batch_size || dimension == Dimension::micro_batch_num) return context.batch_divisors;
    if (dimension == Dimension::vpp) {
      std::vector<std::int64_t> all;
      for (std::int64_t v = 1; v <= context.layers; ++v) all.push_back(v);
      return all;
    }
    return context.device_divisors;
  }();
  for (const auto value : candidates)
    if (has_strategy(context, only(dimension, value, false))) possible.insert(value);
  return {possible.begin(), possible.end()};
}

/// The nearest legal values on both sides, as text.
std::string nearest_values(const SpaceContext& context, Dimension dimension, std::int64_t wanted) {
  const auto possible = possible_values(context, dimension);
  if (possible.empty()) return {};
  if (space::row_of(dimension).words != nullptr) {
    std::string all;
    for (const auto value : possible) all += (all.empty() ? "" : ", ") + value_text(dimension, value);
    return "possible: " + all;
  }
  std::string out;
  const auto above = std::upper_bound(possible.begin(), possible.end(), wanted);
  if (above != possible.begin()) out += value_text(dimension, *(above - 1));
  if (above != possible.end()) out += (out.empty() ? "" : ", ") + value_text(dimension, *above);
  return "nearest possible: " + out;
}

/// Where the source or an option states a field of the run; the field's name where nobody did.
SourceRef place_of_field(const Scenario& scenario, const std::string& field) {
  const auto found = scenario.run.origins.find(field);
  SourceRef where = found == scenario.run.origins.end() ? SourceRef{} : found->second.where;
  if (where.path.empty()) where.path = field;
  return where;
}

SourceRef place_of(const Scenario& scenario, Dimension dimension, const DimensionChoice& choice) {
  const auto info = dimension_info(dimension);
  if (choice.pinned) return place_of_field(scenario, std::string(info.field));
  return SourceRef{{}, 0, 0, "--set " + std::string(info.name)};
}

/// What the value breaks most often, in words.
std::string main_reason(const SpaceContext& context, const SearchSpace& space, const space::SpaceCounts& counts) {
  const auto most = std::max_element(counts.rejected.begin(), counts.rejected.end());
  if (most == counts.rejected.end() || *most == 0) return "the conditions leave no value";
  const auto reason = static_cast<Rejection>(most - counts.rejected.begin());
  const auto& example = counts.example[static_cast<std::size_t>(reason)];
  if (example && (reason == Rejection::schedule_unsupported || reason == Rejection::micro_batches_below_stages)) {
    // Degrees may have been refused before a schedule was chosen: the wanted one decides what to say.
    ParallelConfig config = *example;
    const auto& wanted = space.of(Dimension::schedule).values;
    if (!wanted.empty()) config.schedule = static_cast<Schedule>(wanted.front());
    const std::string problem = nd::space::schedule_problem(context, config);
    if (!problem.empty()) return problem;
  }
  return std::string(describe(reason));
}

/// Why nothing with this one value is legal. The rejection of the value's own rule comes first: the others only say that the
/// remaining combinations fail as well.
std::string reason_of(const SpaceContext& context, const SearchSpace& single, Dimension dimension) {
  const auto& wanted = single.of(dimension).values;
  if (dimension == Dimension::schedule && !context.offers(static_cast<Schedule>(wanted.front()))) {
    ParallelConfig config;
    config.schedule = static_cast<Schedule>(wanted.front());
    return space::schedule_problem(context, config);
  }
  const auto counts = space::enumerate(context, single, [](const ParallelConfig&) { return true; });
  for (std::size_t i = 0; i < kRejectionCount; ++i)
    if (counts.example[i] && value_of(*counts.example[i], dimension) == wanted.front() &&
        space::row_of(dimension).check(context, *counts.example[i]))
      return std::string(describe(static_cast<Rejection>(i)));
  return main_reason(context, single, counts);
}

std::vector<Diagnostic> check_dimension(const SpaceContext& context, const SearchSpace& space, Dimension dimension) {
  const auto& choice = space.of(dimension);
  const auto info = dimension_info(dimension);
  const SourceRef where = place_of(context.scenario, dimension, choice);
  std::vector<Diagnostic> impossible;
  bool any = false;
  for (const auto value : choice.values) {
    if (!choice.admits(value)) continue;
    // A pinned value that the framework does not have would always give way: nobody would notice.
    const bool missing = dimension == Dimension::schedule && !context.offers(static_cast<Schedule>(value));
    const auto single = only(dimension, value, choice.pinned && !missing);
    if (has_strategy(context, single)) {
      any = true;
      continue;
    }
    impossible.push_back(make_diagnostic(
        Errc::conflict, where,
        std::string(info.name) + "=" + value_text(dimension, value) + " is impossible on " + std::to_string(context.devices) +
            " devices: " + reason_of(context, single, dimension),
        nearest_values(context, dimension, value)));
  }
  if (any)
    for (auto& diagnostic : impossible) diagnostic.severity = Severity::warning;
  return impossible;
}

/// Batches near the wanted one that some strategy of `space` can run.
std::string reachable_batches(const Scenario& scenario, SearchSpace space) {
  const auto& fixed_mb = space.of(Dimension::micro_batch_num).values;
  const std::vector<std::int64_t> micro_batches = fixed_mb;
  space.of(Dimension::micro_batch_num) = DimensionChoice{};
  // Dimensions that do not change the batch are held still; a batch that every degree divides lets all others through.
  for (const auto id : {Dimension::recompute, Dimension::zero, Dimension::sequence_parallel, Dimension::ep, Dimension::etp})
    space.of(id).pinned = false;
  space.of(Dimension::recompute).values = {0};
  Scenario free = scenario;
  const auto square = core::multiply(scenario.run.devices, scenario.run.devices);
  if (!square || *square > (std::int64_t{1} << 40)) return {};
  free.run.global_batch_size = *square;
  if (space.of(Dimension::micro_batch_size).values.empty()) space.of(Dimension::micro_batch_size).values = {1};
  std::set<std::int64_t> units;
  const SpaceContext context(free);
  space::enumerate(context, space, [&units](const ParallelConfig& c) {
    units.insert(std::int64_t{c.dp} * c.micro_batch_size);
    return true;
  });
  const std::int64_t wanted = scenario.run.global_batch_size;
  std::set<std::int64_t> reachable;
  for (const auto unit : units) {
    if (!micro_batches.empty()) {
      for (const auto number : micro_batches) reachable.insert(unit * number);
      continue;
    }
    if (wanted >= unit) reachable.insert(wanted / unit * unit);
    reachable.insert((wanted / unit + 1) * unit);
  }
  std::string out;
  const auto above = reachable.upper_bound(wanted);
  if (above != reachable.begin()) out = std::to_string(*std::prev(above));
  if (above != reachable.end()) out += (out.empty() ? "" : ", ") + std::to_string(*above);
  return out;
}

Diagnostic nothing_left(const SpaceContext& context, const SearchSpace& space) {
  const auto counts = space::enumerate(context, space, [](const ParallelConfig&) { return true; });
  const std::string wanted = to_text(space);
  const auto at = [](Rejection r) { return static_cast<std::size_t>(r); };
  const std::string scope = std::to_string(context.devices) + " devices" + (wanted.empty() ? "" : " with " + wanted);
  if (counts.rejected[at(Rejection::batch_mismatch)] > 0) {
    const std::string near = reachable_batches(context.scenario, space);
    // Where this very batch is among the reachable ones something else is in the way.
    if (!near.empty() && near.find(std::to_string(context.global_batch)) != 0)
      return make_diagnostic(Errc::empty_space, place_of_field(context.scenario, "global_batch_size"),
                             "a global batch of " + std::to_string(context.global_batch) + " cannot be reached on " + scope,
                             "nearest reachable: " + near);
  }
  // The conditions contradict each other, not one of them the rest: the first is the place, all are in the hint.
  SourceRef where{{}, 0, 0, "-d"};
  std::string asked;
  for (const auto& info : dimension_list()) {
    const auto& choice = space.of(info.id);
    if (choice.pinned || choice.values.empty()) continue;
    if (asked.empty()) where = place_of(context.scenario, info.id, choice);
    asked += (asked.empty() ? "widen or leave out one of: " : ", ") + std::string(info.name);
  }
  return make_diagnostic(Errc::empty_space, where, "no legal strategy on " + scope + ": " + main_reason(context, space, counts), asked);
}

}  // namespace

std::vector<Diagnostic> check_space(const Scenario& scenario, const SearchSpace& space) {
  const SpaceContext context(scenario);
  std::vector<Diagnostic> problems;
  for (const auto& row : space::dimension_table()) {
    const auto found = check_dimension(context, space, row.info.id);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  const bool failed = std::any_of(problems.begin(), problems.end(), [](const Diagnostic& d) { return d.severity == Severity::error; });
  if (!failed && !has_strategy(context, space)) problems.push_back(nothing_left(context, space));
  return problems;
}

}  // namespace nd
