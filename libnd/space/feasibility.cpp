// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
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
  if (choice.pinned) {
    SourceRef where = place_of_field(scenario, std::string(info.field));
    // Nobody states it: it is a default because the search was told not to vary it.
    if (where.file.empty() && !where.path.starts_with('-')) where.path = "-l";
    return where;
  }
  return SourceRef{{}, 0, 0, "--set " + std::string(info.name)};
}

/// What stands in the way where nothing is legal, in words.
std::string obstacle_text(const SpaceContext& context, const SearchSpace& space, const space::SpaceCounts& counts) {
  if (!counts.furthest) return "the conditions leave no value";
  const auto& [depth, reason, config] = *counts.furthest;
  const auto at = static_cast<Dimension>(depth);
  if (!reason) {
    SearchSpace alone;
    alone.of(at) = space.of(at);
    return to_text(alone) + " leaves no value beside the other conditions";
  }
  if (*reason == Rejection::micro_batches_below_stages && at == Dimension::micro_batch_num)
    return context.scenario.profile.name + " needs at least as many micro-batches as stages (mb >= pp)";
  if (*reason == Rejection::schedule_unsupported && at == Dimension::vpp)
    return "several chunks per stage (vpp > 1) need several stages (pp > 1)";
  if (*reason == Rejection::schedule_unsupported || *reason == Rejection::micro_batches_below_stages) {
    const std::string problem = nd::space::schedule_problem(context, config);
    if (!problem.empty()) return problem;
  }
  return std::string(describe(*reason));
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

/// A stated schedule that a free search would leave out without a word: the framework does not have it, or nothing can run it here.
std::optional<Diagnostic> check_stated_schedule(const SpaceContext& context, const SearchSpace& space) {
  const Schedule stated = context.scenario.run.strategy.schedule;
  if (!space.of(Dimension::schedule).automatic() || !context.scenario.run.origins.contains("schedule")) return std::nullopt;
  if (stated == Schedule::one_f_one_b || stated == Schedule::interleaved) return std::nullopt;
  const auto single = only(Dimension::schedule, static_cast<std::int64_t>(stated), false);
  if (has_strategy(context, single)) return std::nullopt;
  auto out = make_diagnostic(Errc::conflict, place_of_field(context.scenario, "schedule"),
                             "the stated schedule " + std::string(schedule_info(stated).name) + " is not searched: " + reason_of(context, single, Dimension::schedule),
                             nearest_values(context, Dimension::schedule, static_cast<std::int64_t>(stated)));
  out.severity = Severity::warning;
  return out;
}

/// The smallest value that the bounds and exclusions admit; nullopt when they admit none.
std::optional<std::int64_t> first_admitted(Dimension dimension, const DimensionChoice& choice) {
  const auto& row = space::row_of(dimension);
  const std::int64_t words = row.words == nullptr ? 0 : static_cast<std::int64_t>(row.words().size());
  const std::int64_t lowest = words > 0 || dimension == Dimension::zero ? 0 : 1;
  const std::int64_t highest = words > 0 ? words - 1 : std::numeric_limits<std::int32_t>::max();
  for (std::int64_t value = std::max(lowest, choice.least); value <= std::min(highest, choice.most); ++value)
    if (choice.admits(value)) return value;
  return std::nullopt;
}

/// Bounds and exclusions of one dimension that leave nothing whatever the others do.
std::vector<Diagnostic> check_bounds(const SpaceContext& context, const SearchSpace& space, Dimension dimension) {
  SearchSpace single;
  single.of(dimension) = space.of(dimension);
  if (has_strategy(context, single)) return {};
  const SourceRef where = place_of(context.scenario, dimension, space.of(dimension));
  const std::string wanted = to_text(single), on = " on " + std::to_string(context.devices) + " devices";
  const auto value = first_admitted(dimension, space.of(dimension));
  if (!value || !space.of(dimension).values.empty())
    return {make_diagnostic(Errc::conflict, where, wanted + " leaves no value", "widen or leave out one of the conditions")};
  return {make_diagnostic(Errc::conflict, where, wanted + " is impossible" + on + ": " + reason_of(context, only(dimension, *value, false), dimension),
                          nearest_values(context, dimension, *value))};
}

std::vector<Diagnostic> check_dimension(const SpaceContext& context, const SearchSpace& space, Dimension dimension) {
  const auto& choice = space.of(dimension);
  const auto info = dimension_info(dimension);
  const SourceRef where = place_of(context.scenario, dimension, choice);
  if (choice.automatic()) return {};
  if (std::none_of(choice.values.begin(), choice.values.end(), [&choice](std::int64_t value) { return choice.admits(value); }))
    return check_bounds(context, space, dimension);
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

/// Dimensions with a condition whose loss alone makes something legal; all with a condition when none does, or when finding out
/// would take longer than a message may.
std::vector<Dimension> to_blame(const SpaceContext& context, const SearchSpace& space, const space::SpaceCounts& counts) {
  constexpr std::int64_t kMostTried = 100'000;
  std::vector<Dimension> conditioned, helpful;
  for (const auto& row : space::dimension_table())
    if (!space.of(row.info.id).automatic()) conditioned.push_back(row.info.id);
  if (counts.enumerated > kMostTried) return conditioned;
  for (const auto id : conditioned) {
    SearchSpace without = space;
    without.of(id) = {};
    if (has_strategy(context, without)) helpful.push_back(id);
  }
  return helpful.empty() ? conditioned : helpful;
}

/// The advice about conditions that contradict each other, and the place of the first.
struct Advice {
  SourceRef where{{}, 0, 0, "-d"};
  std::string text;
};
Advice advice_on(const SpaceContext& context, const SearchSpace& space, const space::SpaceCounts& counts) {
  Advice out;
  std::string asked, stated;
  int conditions = 0;
  const auto blamed = to_blame(context, space, counts);
  for (const auto id : blamed) {
    const auto& choice = space.of(id);
    if (choice.pinned) {
      stated += (stated.empty() ? "" : ", ") + std::string(dimension_info(id).acronym);
      continue;
    }
    if (conditions++ == 0) out.where = place_of(context.scenario, id, choice);
    asked += (asked.empty() ? "" : ", ") + std::string(dimension_info(id).name);
  }
  if (!asked.empty()) out.text = (conditions == 1 ? "widen or leave out " : "widen or leave out one of: ") + asked;
  // Values that nobody wants varied come second: only where no condition of the request is to blame.
  if (asked.empty() && !stated.empty()) {
    out.where = place_of(context.scenario, blamed.front(), space.of(blamed.front()));
    out.text = "it is not searched; -l with one of " + stated + " varies it";
  }
  return out;
}

Diagnostic nothing_left(const SpaceContext& context, const SearchSpace& space) {
  const auto counts = space::enumerate(context, space, [](const ParallelConfig&) { return true; });
  const std::string wanted = to_text(space);
  const std::string scope = std::to_string(context.devices) + " devices" + (wanted.empty() ? "" : " with " + wanted);
  const auto reason = counts.furthest ? counts.furthest->reason : std::nullopt;
  if (reason == Rejection::batch_mismatch || reason == Rejection::micro_batches_below_stages) {
    std::string near;
    for (const auto batch : reachable_batches(context.scenario, space)) near += (near.empty() ? "" : ", ") + std::to_string(batch);
    const std::string why = reason == Rejection::batch_mismatch ? std::string() : ": " + obstacle_text(context, space, counts);
    if (!near.empty())
      return make_diagnostic(Errc::empty_space, place_of_field(context.scenario, "global_batch_size"),
                             "a global batch of " + std::to_string(context.global_batch) + " cannot be reached on " + scope + why,
                             "nearest reachable: " + near);
  }
  const auto advice = advice_on(context, space, counts);
  return make_diagnostic(Errc::empty_space, advice.where, "no legal strategy on " + scope + ": " + obstacle_text(context, space, counts), advice.text);
}

}  // namespace

std::vector<Diagnostic> check_space(const Scenario& scenario, const SearchSpace& space) {
  const SpaceContext context(scenario);
  // What no condition can be blamed for: no strategy at all runs this batch on these devices.
  if (!has_strategy(context, {})) return {nothing_left(context, {})};
  std::vector<Diagnostic> problems;
  for (const auto& row : space::dimension_table()) {
    const auto found = check_dimension(context, space, row.info.id);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  if (auto warning = check_stated_schedule(context, space)) problems.push_back(std::move(*warning));
  const bool failed = std::any_of(problems.begin(), problems.end(), [](const Diagnostic& d) { return d.severity == Severity::error; });
  if (!failed && !has_strategy(context, space)) problems.push_back(nothing_left(context, space));
  return problems;
}

}  // namespace nd
