// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nd::plan {

namespace {

constexpr std::size_t kOff = static_cast<std::size_t>(Recompute::off);
constexpr std::size_t kSelective = static_cast<std::size_t>(Recompute::selective);
constexpr std::size_t kFull = static_cast<std::size_t>(Recompute::full);
constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// The budget is summed in another order than the price: this is far above what rounding does, and a byte at most.
constexpr double kRounding = 1 - 1e-12;

double held(memory::StagePrice& price, Instant instant) { return price.held[static_cast<std::size_t>(instant)]; }

}  // namespace

const std::vector<perf::TimeModel::ModeSeconds>& Planner::seconds(const ParallelConfig& config) {
  // The same for every pipeline of one shape and sharding, but for schedules that join passes.
  ParallelConfig key = config;
  key.micro_batch_num = key.vpp = key.seq_split = 1;
  key.micro_batch_group = 0;
  if (seconds_at_ == key) return seconds_;
  time_.mode_seconds(config, seconds_);
  seconds_at_ = key;
  return seconds_;
}

const StrategyPlan& Planner::plan(const ParallelConfig& config) {
  if (at_ == config) return plan_;
  at_ = config;
  ParallelConfig off = config;
  off.recompute = Recompute::off;
  if (scenario_.run.layer_modes[kOff]) {
    const memory::PeakMemory peak = memory_.peak(off);
    if (peak.fit != Fit::no) {
      plan_ = {&memory_.stage_layout(off), peak, true};
      return plan_;
    }
  }
  seconds(off);
  const memory::MemoryModel::Parts parts = memory_.parts(off);
  planned_ = parts.layout;
  priced_.resize(planned_.stages.size());
  plan_ = {&planned_, {Bytes{}, Fit::yes}, false};
  // Most of a search's candidates fit in no way: that is found out first, at a fraction of the price.
  if (for_stages(off, parts, &Planner::plan_lightest)) for_stages(off, parts, &Planner::plan_fastest);
  for (const StageMemory& stage : priced_) {
    plan_.peak.reserved = std::max(plan_.peak.reserved, stage.reserved);
    plan_.peak.fit = std::max(plan_.peak.fit, memory::judge_fit(stage, memory_.budget(), scenario_.profile.memory.model_error));
  }
  return plan_;
}

bool Planner::for_stages(const ParallelConfig& config, const memory::MemoryModel::Parts& parts, void (Planner::*decide)(const Stage&)) {
  bool fit = true;
  const auto& stages = parts.layout.stages;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const auto alike = [&](std::size_t other) {
      return stages[other] == stages[s] && parts.fronts[other].covers(parts.fronts[s]) && parts.fronts[s].covers(parts.fronts[other]);
    };
    std::size_t twin = 0;
    while (twin < s && !alike(twin)) ++twin;
    if (twin < s) {
      planned_.stages[s] = planned_.stages[twin];
      priced_[s] = priced_[twin];
    } else {
      (this->*decide)({&parts, parts.stage(scenario_, config, stages[s], s), s});
    }
    fit = fit && priced_[s].reserved <= memory_.budget();
  }
  return fit;
}

void Planner::collect_units(const Stage& stage) {
  units_.clear();
  thresholds_.clear();
  const auto& kinds = stage.parts->shape.kinds;
  const auto add = [this](std::size_t chunk, std::size_t kind, std::int64_t layers, const memory::LedgerSummary& ledger) {
    if (layers <= 0) return;
    Unit unit{.chunk = chunk, .kind = kind, .layers = layers, .ledger = &ledger, .first = false, .working = {}};
    for (std::size_t mode = 0; mode < kLayerModes; ++mode) {
      unit.working[mode] = ledger.working_set + memory::recomputed_bytes(scenario_.profile.memory, ledger, static_cast<Recompute>(mode));
      if (scenario_.run.layer_modes[mode]) thresholds_.push_back(unit.working[mode]);
    }
    units_.push_back(unit);
  };
  const auto& chunks = stage.input.chunks;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const bool had = !units_.empty();
      add(c, k, chunks[c].layers_by_kind[k], kinds[k]);
      if (!had && c == 0 && !units_.empty()) units_.back().first = true;
    }
    add(c, kinds.size(), chunks[c].mtp_blocks, stage.parts->shape.mtp);
  }
  std::sort(thresholds_.begin(), thresholds_.end());
  thresholds_.erase(std::unique(thresholds_.begin(), thresholds_.end()), thresholds_.end());
}

Planner::Room Planner::room(const Stage& stage, std::span<const double> counts) {
  memory::prepare_stage(stage.input, price_);
  price_.activations = 0;
  for (std::size_t c = 0; c < counts.size(); ++c)
    if (stage.input.chunks[c].head) price_.logit_sets = std::max(1.0, counts[c]);
  memory::price_prepared_stage(stage.input, ReadingTime::steady, price_);
  // What the stage holds whatever its layers do: their working set, and the one layer the end of the backward has, come on top.
  const MemoryProfile& memory = scenario_.profile.memory;
  const double factor = stage.parts->reserve.factor;
  double kept_working = 0;
  for (const Unit& unit : units_) kept_working = std::max(kept_working, unit.working[kOff]);
  const double working = factor * memory.working_set_layers * kept_working;
  Room out;
  out.loss = held(price_, Instant::loss);
  out.backward = held(price_, Instant::backward) - working;
  out.fixed = std::max(held(price_, Instant::optimizer_step), held(price_, Instant::mask));
  if (!(held(price_, Instant::end_of_backward) > 0)) return out;
  out.end = held(price_, Instant::end_of_backward) - working;
  const bool sharded = std::ranges::any_of(stage.parts->rates.weight_ranks, [](double ranks) { return ranks > 1; });
  out.end_keeps = sharded && scenario_.run.frozen_base && memory.boundary_gradients_kept;
  out.end_piles = !out.end_keeps;
  if (out.end_piles)
    for (const Unit& unit : units_)
      if (unit.first) out.end -= factor * unit.ledger->saved[kOff];
  return out;
}

double Planner::table_bytes(const Stage& stage, std::span<const double> counts) const {
  double bytes = 0;
  const auto& shape = stage.parts->shape;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const layout::Chunk& chunk = stage.input.chunks[c];
    if (chunk.embedding) bytes += counts[c] * shape.embedding.saved[kOff];
    if (chunk.head)
      bytes += counts[c] * (1.0 + static_cast<double>(chunk.mtp_blocks)) *
               memory::head_summary(scenario_.model, shape, price_.content.has_embedding).saved[kOff];
  }
  return bytes;
}

std::optional<double> Planner::choose_one(const MomentBytes& budget) {
  // One unit: both moments hold a multiple of what a layer keeps, so of the modes in the order of their time each keeps less than
  // the one before, and for every number of layers in the last the fewest in the one in between are best.
  const LayerGroup& group = groups_.front();
  const auto& options = group.options;
  std::array<std::size_t, kLayerModes> order{};
  std::size_t modes = 0;
  for (std::size_t mode = 0; mode < kLayerModes; ++mode) {
    if (!allowed_.front()[mode]) continue;
    const auto beats = [&](std::size_t other) {
      const bool equal = !(options[other].seconds < options[mode].seconds) && !(options[other].bytes[0] < options[mode].bytes[0]);
      return other != mode && allowed_.front()[other] && options[other].seconds <= options[mode].seconds &&
             options[other].bytes[0] <= options[mode].bytes[0] && (!equal || other < mode);
    };
    if (beats(kOff) || beats(kSelective) || beats(kFull)) continue;
    std::size_t place = modes++;
    for (; place > 0 && options[mode].seconds < options[order[place - 1]].seconds; --place) order[place] = order[place - 1];
    order[place] = mode;
  }
  const LayerOption none;
  const auto option = [&](std::size_t n) -> const LayerOption& { return n < modes ? options[order[n]] : none; };
  const std::int64_t layers = group.layers;
  double best = kInfinity;
  std::array<std::int64_t, kLayerModes> counts{};
  const std::int64_t most_last = modes > 2 ? layers : 0;
  for (std::int64_t last = 0; last <= most_last; ++last) {
    const std::int64_t rest = layers - last;
    std::int64_t middle = 0;
    bool fits = true;
    for (std::size_t m = 0; m < kMoments; ++m) {
      const double over = static_cast<double>(last) * option(2).bytes[m] + static_cast<double>(rest) * option(0).bytes[m] - budget[m];
      if (over <= 0) continue;
      const double each = modes > 1 ? option(0).bytes[m] - option(1).bytes[m] : 0.0;
      const double needed = each > 0 ? std::ceil(over / each) : kInfinity;
      fits = fits && needed <= static_cast<double>(rest);
      if (fits) middle = std::max(middle, static_cast<std::int64_t>(needed));
    }
    if (!fits) continue;
    const double seconds = static_cast<double>(last) * option(2).seconds + static_cast<double>(middle) * option(1).seconds +
                           static_cast<double>(rest - middle) * option(0).seconds;
    if (!(seconds < best)) continue;
    best = seconds;
    counts = {};
    counts[order[0]] = rest - middle;
    if (modes > 1) counts[order[1]] += middle;
    if (modes > 2) counts[order[2]] += last;
  }
  if (!(best < kInfinity)) return std::nullopt;
  chosen_.assign(1, counts);
  now_.bytes = 0;
  for (std::size_t mode = 0; mode < kLayerModes; ++mode) now_.bytes += static_cast<double>(counts[mode]) * options[mode].bytes[0];
  return best;
}

bool Planner::group_units(double working, const MomentBytes& budget, const Watched& watched) {
  const bool two = !watched.second.empty();
  const bool end_counts = !two && budget[1] < kInfinity;
  group_count_ = 0;
  group_of_.resize(units_.size());
  if (groups_.size() < units_.size()) groups_.resize(units_.size());
  allowed_.assign(units_.size(), {});
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const Unit& unit = units_[u];
    const auto alike = [&](std::size_t other) {
      const Unit& seen = units_[other];
      const auto same = [&](const std::vector<double>& counts) { return !(counts[seen.chunk] < counts[unit.chunk]) && !(counts[unit.chunk] < counts[seen.chunk]); };
      return seen.kind == unit.kind && same(watched.first) && (!two || same(watched.second)) && !(end_counts && (seen.first || unit.first));
    };
    std::size_t twin = 0;
    while (twin < u && !alike(twin)) ++twin;
    if (twin < u) {
      group_of_[u] = group_of_[twin];
      groups_[group_of_[u]].layers += unit.layers;
      continue;
    }
    const std::size_t g = group_of_[u] = group_count_++;
    groups_[g].layers = unit.layers;
    groups_[g].options.resize(kLayerModes);
    bool any = false;
    for (std::size_t mode = 0; mode < kLayerModes; ++mode) {
      allowed_[g][mode] = scenario_.run.layer_modes[mode] && unit.working[mode] <= working;
      any = any || allowed_[g][mode];
      const double saved = unit.ledger->saved[mode];
      const double other = two ? watched.second[unit.chunk] * saved : end_counts ? end_bytes(unit, mode) : 0.0;
      groups_[g].options[mode] = {.bytes = {watched.first[unit.chunk] * saved, other}, .seconds = seconds_[unit.kind][mode]};
    }
    if (!any) return false;
  }
  return true;
}

void Planner::spread_chosen() {
  now_.layers.assign(units_.size(), {});
  for (std::size_t u = 0; u < units_.size(); ++u) {
    std::int64_t left = units_[u].layers;
    for (std::size_t mode = kLayerModes; mode-- > 0;) {
      std::int64_t& pool = chosen_[group_of_[u]][mode];
      const std::int64_t taken = std::min(left, pool);
      now_.layers[u][mode] = taken;
      pool -= taken;
      left -= taken;
    }
  }
}

void Planner::choose(double working, const MomentBytes& budget, const Watched& watched) {
  if (!group_units(working, budget, watched)) return;
  if (group_count_ == 1) {
    const auto seconds = choose_one(budget);
    if (!seconds) return;
    now_.seconds = *seconds;
  } else {
    // Options that are not allowed are taken out; their place in the answer is put back below.
    for (std::size_t g = 0; g < group_count_; ++g) {
      auto& options = groups_[g].options;
      std::size_t kept = 0;
      for (std::size_t mode = 0; mode < kLayerModes; ++mode)
        if (allowed_[g][mode]) options[kept++] = options[mode];
      options.resize(kept);
    }
    const auto choice = choose_options({groups_.data(), group_count_}, budget);
    if (!choice) return;
    chosen_.assign(group_count_, {});
    for (std::size_t g = 0; g < group_count_; ++g) {
      std::size_t kept = 0;
      for (std::size_t mode = 0; mode < kLayerModes; ++mode)
        if (allowed_[g][mode]) chosen_[g][mode] = choice->layers[g][kept++];
    }
    now_.seconds = choice->seconds;
    now_.bytes = choice->bytes[0];
  }
  if (best_.found && (now_.seconds > best_.seconds || (!(now_.seconds < best_.seconds) && now_.bytes >= best_.bytes))) return;
  spread_chosen();
  std::swap(best_.layers, now_.layers);
  best_.seconds = now_.seconds;
  best_.bytes = now_.bytes;
  best_.found = true;
}

// The working set of the backward is that of the layer and mode that need most of it: for every such threshold, the modes below it
// share what it leaves. docs/cost_model_plan.md#per-layer
void Planner::solve(const Stage& stage, const Watched& watched) {
  best_.found = false;
  if (units_.empty()) return;
  const memory::ReserveRule& reserve = stage.parts->reserve;
  const Room left = room(stage, watched.first);
  const Room other = watched.second.empty() ? left : room(stage, watched.second);
  const double limit = (memory_.budget().value - reserve.constant) * kRounding;
  if (std::max(left.fixed, other.fixed) > limit) return;
  for (const double threshold : thresholds_) {
    const double working = reserve.factor * scenario_.profile.memory.working_set_layers * threshold;
    const auto activations = [&](const Room& from, std::span<const double> counts) {
      double taken = std::max(from.loss, from.backward + working);
      if (from.end_keeps) taken = std::max(taken, from.end + working);
      return (limit - taken) / reserve.factor - table_bytes(stage, counts);
    };
    MomentBytes budget{activations(left, watched.first), kInfinity};
    const double end = left.end_piles ? (limit - left.end - working) / reserve.factor : kInfinity;
    if (!watched.second.empty()) budget[1] = activations(other, watched.second);
    else budget[1] = end;
    if (budget[0] < 0 || budget[1] < 0 || end < 0) continue;
    choose(threshold, budget, watched);
  }
}

void Planner::solve_lightest(const Stage& stage, std::span<const double> counts) {
  const memory::ReserveRule& reserve = stage.parts->reserve;
  const Room left = room(stage, counts);
  double least = kInfinity;
  best_.found = false;
  best_.layers.assign(units_.size(), {});
  for (const double threshold : thresholds_) {
    double kept = table_bytes(stage, counts), first = 0;
    bool possible = true;
    now_.layers.assign(units_.size(), {});
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const Unit& unit = units_[u];
      std::size_t lightest = kLayerModes;
      for (std::size_t mode = 0; mode < kLayerModes; ++mode) {
        if (!scenario_.run.layer_modes[mode] || unit.working[mode] > threshold) continue;
        if (lightest == kLayerModes || unit.ledger->saved[mode] < unit.ledger->saved[lightest]) lightest = mode;
      }
      possible = possible && lightest < kLayerModes;
      if (!possible) break;
      now_.layers[u][lightest] = unit.layers;
      kept += counts[unit.chunk] * static_cast<double>(unit.layers) * unit.ledger->saved[lightest];
      if (unit.first) first = unit.ledger->saved[lightest];
    }
    if (!possible) continue;
    const double working = reserve.factor * scenario_.profile.memory.working_set_layers * threshold;
    double most = std::max(left.loss, left.backward + working) + reserve.factor * kept;
    if (left.end_keeps) most = std::max(most, left.end + working + reserve.factor * kept);
    if (left.end_piles) most = std::max(most, left.end + working + reserve.factor * first);
    if (!(most < least)) continue;
    least = most;
    std::swap(best_.layers, now_.layers);
    best_.found = true;
  }
}

bool Planner::accept(const Stage& stage) {
  auto& chunks = planned_.stages[stage.index];
  const std::size_t kinds = stage.parts->shape.kinds.size();
  for (layout::Chunk& chunk : chunks) {
    chunk.modes.assign(kinds + 1, {});
    chunk.full_recompute = chunk.selective_recompute = 0;
  }
  for (std::size_t u = 0; u < units_.size(); ++u) {
    layout::Chunk& chunk = chunks[units_[u].chunk];
    const auto& counts = best_.layers[u];
    chunk.modes[units_[u].kind] = {counts[kSelective], counts[kFull]};
    if (units_[u].kind == kinds) continue;
    chunk.selective_recompute += counts[kSelective];
    chunk.full_recompute += counts[kFull];
  }
  memory::StageInput input = stage.input;
  input.chunks = chunks;
  memory::price_stage(input, ReadingTime::steady, price_);
  priced_[stage.index] = price_.memory;
  return price_.memory.reserved <= memory_.budget();
}

void Planner::plan_lightest(const Stage& stage) {
  collect_units(stage);
  memory::prepare_stage(stage.input, price_);
  const std::vector<double> counts = price_.counts;
  solve_lightest(stage, counts);
  accept(stage);
}

void Planner::plan_fastest(const Stage& stage) {
  collect_units(stage);
  memory::prepare_stage(stage.input, price_);
  Watched watched{.first = price_.counts, .second = {}};
  solve(stage, watched);
  if (best_.found && accept(stage)) return;
  const memory::KeptFront& front = stage.input.front;
  if (best_.found && front.moments() > 1) {
    // Another moment of the schedule is the heaviest once layers are recomputed.
    watched.second = price_.counts;
    solve(stage, watched);
    if (best_.found && accept(stage)) return;
    Watched envelope{.first = watched.first, .second = {}};
    for (std::size_t n = 0; n < front.moments(); ++n)
      for (std::size_t c = 0; c < envelope.first.size(); ++c) envelope.first[c] = std::max(envelope.first[c], front.moment(n)[c]);
    solve(stage, envelope);
    if (best_.found && accept(stage)) return;
  }
  plan_lightest(stage);
}

}  // namespace nd::plan
