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

/// What stands in the way where nothing is legal, in words.
std::string obstacle_text(const SpaceContext& context, const SearchSpace& space, const space::SpaceCounts& counts) {
  if (!counts.furthest) return "the conditions leave no value";
  const auto& [depth, reason, config] = *counts.furthest;
  if (reason == Rejection::schedule_unsupported || reason == Rejection::micro_batches_below_stages) {
    ParallelConfig tried = config;
    // The combination may have ended before a schedule was chosen: then the wanted one decides what to say.
    const auto& wanted = space.of(Dimension::schedule).values;
    if (depth < static_cast<std::size_t>(Dimension::schedule)) {
      if (depth == static_cast<std::size_t>(Dimension::vpp)) return "several chunks per stage (vpp > 1) need several stages (pp > 1)";
      if (!wanted.empty()) tried.schedule = static_cast<Schedule>(wanted.front());
    }
    const std::string problem = nd::space::schedule_problem(context, tried);
    if (!problem.empty()) return problem;
  }
  return std::string(describe(reason));
}

/// Why nothing with this one value is legal.
std::string reason_of(const SpaceContext& context, const SearchSpace& single, Dimension dimension) {
  const auto& wanted = single.of(dimension).values;
  if (dimension == Dimension::schedule && !context.offers(static_cast<Schedule>(wanted.front()))) {
    ParallelConfig config;
    config.schedule = static_cast<Schedule>(wanted.front());
    return space::schedule_problem(context, config);
  }
  return obstacle_text(context, single, space::enumerate(context, single, [](const ParallelConfig&) { return true; }));
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

/// Whether some strategy of `space` has this global batch.
bool runs_batch(Scenario scenario, const SearchSpace& space, std::int64_t batch) {
  scenario.run.global_batch_size = batch;
  return has_strategy(SpaceContext(scenario), space);
}

/// Multiples of what dp * mbs (* mb, where fixed) can be when the batch is free.
std::set<std::int64_t> batch_units(const Scenario& scenario, SearchSpace space) {
  const std::vector<std::int64_t> micro_batches = space.of(Dimension::micro_batch_num).values;
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
  space::enumerate(context, space, [&](const ParallelConfig& c) {
    const std::int64_t unit = std::int64_t{c.dp} * c.micro_batch_size;
    if (micro_batches.empty()) units.insert(unit);
    for (const auto number : micro_batches) units.insert(unit * number);
    return true;
  });
  return units;
}

/// The nearest batches below and above the wanted one that some strategy of `space` runs; each has been tried.
std::vector<std::int64_t> reachable_batches(const Scenario& scenario, const SearchSpace& space) {
  constexpr int kTries = 16;
  const std::int64_t wanted = scenario.run.global_batch_size;
  const bool fixed = !space.of(Dimension::micro_batch_num).values.empty();
  std::set<std::int64_t> below, above;
  for (const auto unit : batch_units(scenario, space))
    for (std::int64_t k = 0; k < kTries; ++k) {
      const std::int64_t down = fixed ? unit : (wanted / unit - k) * unit, up = fixed ? unit : (wanted / unit + 1 + k) * unit;
      if (down > 0 && down < wanted) below.insert(down);
      if (up > wanted) above.insert(up);
    }
  std::vector<std::int64_t> out;
  const auto keep_first = [&](auto begin, auto end) {
    for (int tries = 0; begin != end && tries < kTries; ++begin, ++tries)
      if (runs_batch(scenario, space, *begin)) return out.push_back(*begin);
  };
  keep_first(below.rbegin(), below.rend());
  keep_first(above.begin(), above.end());
  return out;
}

Diagnostic nothing_left(const SpaceContext& context, const SearchSpace& space) {
  const auto counts = space::enumerate(context, space, [](const ParallelConfig&) { return true; });
  const std::string wanted = to_text(space);
  const std::string scope = std::to_string(context.devices) + " devices" + (wanted.empty() ? "" : " with " + wanted);
  if (counts.furthest && counts.furthest->reason == Rejection::batch_mismatch) {
    std::string near;
    for (const auto batch : reachable_batches(context.scenario, space)) near += (near.empty() ? "" : ", ") + std::to_string(batch);
    if (!near.empty())
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
  return make_diagnostic(Errc::empty_space, where, "no legal strategy on " + scope + ": " + obstacle_text(context, space, counts), asked);
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
