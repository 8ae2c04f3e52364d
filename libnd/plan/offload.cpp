// SPDX-License-Identifier: Apache-2.0
#include "plan/offload.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "plan/knapsack.hpp"

namespace nd::plan {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// A plan with copies replaces one without only when it is faster by more than the rounding of a sum.
constexpr double kGain = 1e-9;
/// Rounding of a sum of bytes, relative.
constexpr double kRounding = 1e-12;

/// Layers that are interchangeable: same kind, same micro-batches in flight.
struct Alike {
  std::vector<std::size_t> layers;  ///< in forward order
};

std::vector<Alike> alike_layers(const CopyStage& stage, std::size_t first) {
  std::vector<Alike> out;
  std::map<std::pair<int, double>, std::size_t> seen;
  for (std::size_t i = first; i < stage.layers.size(); ++i) {
    const auto [at, fresh] = seen.try_emplace({stage.layers[i].kind, stage.layers[i].in_flight}, out.size());
    if (fresh) out.emplace_back();
    out[at->second].layers.push_back(i);
  }
  return out;
}

/// Sums of a plan whose options, moved bytes and transit are set.
void add_up(const CopyStage& stage, CopyPlan& plan) {
  plan.bytes = plan.transit;
  plan.seconds = 0;
  for (std::size_t i = 0; i < stage.layers.size(); ++i) {
    const CopyLayer& layer = stage.layers[i];
    const CopyOption& option = layer.options[plan.option[i]];
    plan.bytes += option.bytes - layer.in_flight * plan.moved[i];
    plan.seconds += layer.forward + option.backward + 2 * stage.link.cost_per_byte * plan.moved[i];
  }
}

/// Gives `counts[option]` of the layers their option, the slowest to the earliest.
void assign_slowest_first(const CopyStage& stage, std::span<const std::size_t> layers, std::span<const std::int64_t> counts,
                          std::vector<std::size_t>& option) {
  const auto& options = stage.layers[layers.front()].options;
  std::vector<std::size_t> order(options.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&options](std::size_t a, std::size_t b) { return options[a].backward > options[b].backward; });
  std::size_t at = 0;
  for (const std::size_t o : order)
    for (std::int64_t n = counts[o]; n > 0; --n) option[layers[at++]] = o;
}

/// The fastest options of the layers from `first` on within `budget`; false when there are none.
bool choose_rest(const CopyStage& stage, std::size_t first, double budget, CopyPlan& plan) {
  const auto alike = alike_layers(stage, first);
  std::vector<LayerGroup> groups;
  for (const Alike& set : alike) {
    LayerGroup group{static_cast<std::int64_t>(set.layers.size()), {}};
    for (const CopyOption& option : stage.layers[set.layers.front()].options) group.options.push_back({{option.bytes, 0}, option.backward});
    groups.push_back(std::move(group));
  }
  const auto choice = choose_options(groups, {budget, 0});
  if (!choice) return false;
  for (std::size_t g = 0; g < alike.size(); ++g) assign_slowest_first(stage, alike[g].layers, choice->layers[g], plan.option);
  return true;
}

std::optional<CopyPlan> without_copies(const CopyStage& stage) {
  CopyPlan plan{.option = std::vector<std::size_t>(stage.layers.size(), 0), .moved = std::vector<double>(stage.layers.size(), 0)};
  if (!choose_rest(stage, 0, stage.budget, plan)) return std::nullopt;
  add_up(stage, plan);
  return plan;
}

std::vector<double> all_movable(const CopyStage& stage) {
  std::vector<double> out;
  for (const CopyLayer& layer : stage.layers) out.push_back(layer.movable);
  return out;
}

/// Copies cost something: what the stage has free goes back to the device, last layer first.
void give_back(const CopyStage& stage, CopyPlan& plan) {
  if (!(stage.link.cost_per_byte > 0)) return;
  double free = stage.budget - plan.bytes;
  for (std::size_t i = plan.moved.size(); i-- > 0 && free > 0;) {
    const double back = std::min(plan.moved[i], free / stage.layers[i].in_flight);
    plan.moved[i] -= back;
    free -= back * stage.layers[i].in_flight;
  }
  add_up(stage, plan);
}

/// The first `n` layers move what the window takes, the others recompute what they must.
std::optional<CopyPlan> prefix_plan(const CopyStage& stage, std::size_t n, std::span<const double> window) {
  CopyPlan plan{.option = std::vector<std::size_t>(stage.layers.size(), 0), .moved = std::vector<double>(stage.layers.size(), 0)};
  std::copy_n(window.begin(), n, plan.moved.begin());
  double held = 0;
  for (std::size_t i = 0; i < n; ++i) held += stage.layers[i].options[0].bytes - stage.layers[i].in_flight * plan.moved[i];
  // First as if there were room for the copies to come back; where there is not, with that room held.
  for (const bool holds_room : {false, true}) {
    plan.transit = holds_room ? *std::max_element(plan.moved.begin(), plan.moved.end()) : 0;
    if (!choose_rest(stage, n, stage.budget - held - plan.transit, plan)) return std::nullopt;
    if (holds_room || !(transit_bytes(stage, plan.option, plan.moved) > 0)) break;
  }
  add_up(stage, plan);
  return plan;
}

std::optional<CopyPlan> best_prefix(const CopyStage& stage) {
  auto best = without_copies(stage);
  const auto window = copy_window(stage, all_movable(stage));
  for (std::size_t n = 1; n <= stage.movable_layers && window[n - 1] > 0; ++n) {
    const auto plan = prefix_plan(stage, n, window);
    if (plan && (!best || plan->seconds < best->seconds * (1 - kGain))) best = plan;
  }
  if (best) give_back(stage, *best);
  return best;
}

/// Every number of layers per option and kind; for each the fewest bytes that must move, moved by the earliest layers.
class AnyPlan {
 public:
  AnyPlan(const CopyStage& stage, std::optional<CopyPlan> start)
      : stage_(stage), alike_(alike_layers(stage, 0)), best_(std::move(start)), counts_(alike_.size()) {
    fastest_.assign(alike_.size() + 1, 0);
    for (std::size_t g = alike_.size(); g-- > 0;) {
      double fastest = kNever;
      for (const CopyOption& option : options(g)) fastest = std::min(fastest, option.backward);
      fastest_[g] = fastest_[g + 1] + fastest * static_cast<double>(alike_[g].layers.size());
      counts_[g].assign(options(g).size(), 0);
    }
    for (const CopyLayer& layer : stage.layers) forward_ += layer.forward;
  }

  std::optional<CopyPlan> solve() {
    spread({0, 0, alike_.empty() ? 0 : alike_[0].layers.size()}, 0);
    return best_;
  }

 private:
  [[nodiscard]] const std::vector<CopyOption>& options(std::size_t g) const { return stage_.layers[alike_[g].layers.front()].options; }
  struct Place {
    std::size_t group, option, left;
  };

  void spread(const Place& at, double backward) {
    if (at.group == alike_.size()) return consider();
    if (best_ && forward_ + backward + fastest_[at.group + 1] >= best_->seconds * (1 - kGain)) return;
    if (at.option == options(at.group).size()) {
      if (at.left > 0) return;
      const std::size_t next = at.group + 1;
      return spread({next, 0, next < alike_.size() ? alike_[next].layers.size() : 0}, backward);
    }
    for (std::size_t n = at.left + 1; n-- > 0;) {
      counts_[at.group][at.option] = static_cast<std::int64_t>(n);
      spread({at.group, at.option + 1, at.left - n}, backward + static_cast<double>(n) * options(at.group)[at.option].backward);
    }
    counts_[at.group][at.option] = 0;
  }

  void consider() {
    CopyPlan plan{.option = std::vector<std::size_t>(stage_.layers.size(), 0), .moved = std::vector<double>(stage_.layers.size(), 0)};
    std::vector<std::size_t> front(alike_.size(), 0);
    arrange(plan, front);
    const double need = plan.bytes - stage_.budget;
    if (!(need > 0)) return offer(plan);
    std::optional<CopyPlan> held;
    // Which of its layers of a kind come first decides what the window takes and what has been released when copies come back.
    do {
      arrange(plan, front);
      if (!move(plan, need)) continue;
      const double transit = transit_bytes(stage_, plan.option, plan.moved);
      if (!(transit > 0)) return offer(plan);
      if (!held) held = hold(plan, need);
    } while (next(front));
    if (held) offer(*held);
  }

  void offer(CopyPlan& plan) {
    add_up(stage_, plan);
    if (!best_ || plan.seconds < best_->seconds * (1 - kGain)) best_ = plan;
  }

  /// Counts up to the number of layers that keep everything, kind by kind; false after the last.
  [[nodiscard]] bool next(std::vector<std::size_t>& front) const {
    for (std::size_t g = 0; g < front.size(); ++g) {
      if (++front[g] <= static_cast<std::size_t>(counts_[g][0])) return true;
      front[g] = 0;
    }
    return false;
  }

  /// The plan with room held for its copies on their way back, which makes more copies necessary.
  [[nodiscard]] std::optional<CopyPlan> hold(CopyPlan plan, double need) const {
    for (int round = 0; round < 3; ++round) {
      const double transit = transit_bytes(stage_, plan.option, plan.moved);
      if (transit <= plan.transit) return plan;
      need += transit - plan.transit;
      plan.transit = transit;
      if (!move(plan, need)) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Options by kind: of the layers that keep everything `front` of each kind come first, the others last.
  void arrange(CopyPlan& plan, std::span<const std::size_t> front) const {
    for (std::size_t g = 0; g < alike_.size(); ++g) {
      const std::span<const std::size_t> layers(alike_[g].layers);
      for (std::size_t i = 0; i < front[g]; ++i) plan.option[layers[i]] = 0;
      auto rest = counts_[g];
      rest[0] -= static_cast<std::int64_t>(front[g]);
      if (front[g] < layers.size()) assign_slowest_first(stage_, layers.subspan(front[g]), rest, plan.option);
    }
    std::fill(plan.moved.begin(), plan.moved.end(), 0.0);
    add_up(stage_, plan);
  }

  /// Moves `need` bytes of the device's, the earliest layers first; false when the window does not take them.
  [[nodiscard]] bool move(CopyPlan& plan, double need) const {
    std::vector<double> wanted(stage_.layers.size(), 0);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (plan.option[i] == 0) wanted[i] = stage_.layers[i].movable;
    plan.moved = copy_window(stage_, wanted);
    double left = need;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      plan.moved[i] = std::min(plan.moved[i], left / stage_.layers[i].in_flight);
      left = std::max(0.0, left - plan.moved[i] * stage_.layers[i].in_flight);
    }
    return left <= need * kRounding;
  }

  const CopyStage& stage_;
  std::vector<Alike> alike_;
  std::optional<CopyPlan> best_;
  std::vector<std::vector<std::int64_t>> counts_;
  std::vector<double> fastest_;
  double forward_ = 0;
};

}  // namespace

double CopyPlan::moved_bytes() const { return std::accumulate(moved.begin(), moved.end(), 0.0); }

std::vector<double> copy_window(const CopyStage& stage, std::span<const double> wanted) {
  std::vector<double> moved(stage.layers.size(), 0);
  double after = 0;
  for (const CopyLayer& layer : stage.layers) after += layer.forward;
  double room = kNever;
  for (std::size_t i = 0; i < stage.movable_layers; ++i) {
    after -= stage.layers[i].forward;
    room = std::min(room, stage.link.overlap * std::max(0.0, after));
    const double tau = stage.link.seconds_per_byte;
    moved[i] = tau > 0 ? std::min(wanted[i], room / tau) : wanted[i];
    room = std::max(0.0, room - moved[i] * tau);
  }
  return moved;
}

double transit_bytes(const CopyStage& stage, std::span<const std::size_t> option, std::span<const double> moved) {
  double largest = 0;
  bool roomy = true;
  double released = 0;  // by the layers from i + 2 on, one micro-batch
  for (std::size_t i = moved.size(); i-- > 0;) {
    if (i + 2 < moved.size()) {
      const CopyLayer& behind = stage.layers[i + 2];
      released += behind.options[option[i + 2]].bytes / behind.in_flight - moved[i + 2];
    }
    if (!(moved[i] > 0)) continue;
    largest = std::max(largest, moved[i]);
    const double next = i + 1 < moved.size() ? moved[i + 1] : 0.0;
    if (moved[i] + next > released) roomy = false;
  }
  return roomy ? 0.0 : largest;
}

std::optional<CopyPlan> plan_copies(const CopyStage& stage, CopyScope scope) {
  switch (scope) {
    case CopyScope::none:
      return without_copies(stage);
    case CopyScope::prefix:
      return best_prefix(stage);
    case CopyScope::any:
      return AnyPlan(stage, best_prefix(stage)).solve();
  }
  return std::nullopt;
}

}  // namespace nd::plan
