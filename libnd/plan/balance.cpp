// SPDX-License-Identifier: Apache-2.0
#include "plan/balance.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "layout/replay.hpp"
#include "layout/schedules/table.hpp"

namespace nd::plan {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Sums of the same seconds in another order differ by less than this.
constexpr double kRounding = 1e-12;

/// Layers by place in the model: counts[0] are the first layers, wherever the schedule puts them.
using Counts = std::vector<std::int64_t>;

class Balancer {
 public:
  explicit Balancer(const BalanceTask& task) : task_(task), p_(task.shape.stages), v_(schedule_chunks(task.schedule, task.shape)) {
    if (why_invalid(task.schedule, task.shape)) return;
    place_.resize(static_cast<std::size_t>(p_) * static_cast<std::size_t>(v_), {-1, -1});
    for (int s = 0; s < p_; ++s)
      for (int c = 0; c < v_; ++c) {
        Place& place = place_[static_cast<std::size_t>(chunk_position(task.schedule, task.shape, s, c))];
        held_twice_ = held_twice_ || place.stage >= 0;
        place = {s, c};
      }
    times_.resize(place_.size());
  }

  std::optional<BalancedLayout> solve() {
    const auto places = static_cast<std::int64_t>(place_.size());
    if (places == 0 || held_twice_ || task_.layers < places * task_.least) return std::nullopt;
    try_layout(even());
    if (v_ == 1) {
      branch_and_bound();
    } else if (compositions(task_.layers - places * task_.least, places) <= static_cast<double>(task_.most_replays)) {
      Counts counts;
      enumerate(counts, task_.layers);
      complete_ = true;
    } else {
      improve();
    }
    if (best_.empty()) return std::nullopt;
    return result();
  }

 private:
  struct Place {
    int stage = 0, chunk = 0;
  };

  [[nodiscard]] Counts even() const {
    const auto places = static_cast<std::int64_t>(place_.size());
    Counts counts(place_.size(), task_.layers / places);
    // The ends hold the tables: what is left over goes to the middle.
    const std::int64_t left = task_.layers % places;
    for (std::int64_t i = 0; i < left; ++i) ++counts[static_cast<std::size_t>((places - left) / 2 + i)];
    return counts;
  }

  /// Ways to spread `layers` over `places`: (layers + places - 1)! / (layers! (places - 1)!).
  static double compositions(std::int64_t layers, std::int64_t places) {
    double ways = 1;
    for (std::int64_t i = 1; i < places; ++i) ways *= static_cast<double>(layers + i) / static_cast<double>(i);
    return ways;
  }

  [[nodiscard]] std::vector<std::vector<LayerRange>> ranges(const Counts& counts) const {
    std::vector<std::vector<LayerRange>> out(static_cast<std::size_t>(p_), std::vector<LayerRange>(static_cast<std::size_t>(v_)));
    std::int64_t first = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      out[static_cast<std::size_t>(place_[i].stage)][static_cast<std::size_t>(place_[i].chunk)] = {first, counts[i]};
      first += counts[i];
    }
    return out;
  }

  struct StagePrice {
    bool fits = false;
    std::vector<PassTimes> times;
    double seconds = 0;  ///< of one micro-batch
  };
  using StageKey = std::vector<std::int64_t>;

  const StagePrice& stage_price(int stage, std::span<const LayerRange> chunks) {
    StageKey key{stage};
    for (const LayerRange& range : chunks) key.insert(key.end(), {range.first, range.count});
    const auto [at, fresh] = prices_.try_emplace(std::move(key));
    StagePrice& price = at->second;
    if (!fresh) return price;
    price.times.resize(chunks.size());
    price.fits = task_.price(stage, chunks, price.times);
    for (const PassTimes& time : price.times)
      price.seconds += time.forward.value + time.recompute.value + time.backward_input.value + time.backward_weight.value;
    return price;
  }

  /// Prices and replays a layout, and keeps it when it is the fastest so far.
  void try_layout(const Counts& counts) {
    if (replays_ >= task_.most_replays) return;
    const auto stages = ranges(counts);
    for (int s = 0; s < p_; ++s) {
      const StagePrice& price = stage_price(s, stages[static_cast<std::size_t>(s)]);
      if (!price.fits) return;
      std::copy(price.times.begin(), price.times.end(), times_.begin() + static_cast<std::ptrdiff_t>(s) * v_);
    }
    ++replays_;
    const auto& replay = replay_.run(layout::schedule_row(task_.schedule), {.shape = task_.shape, .times = times_, .hop = task_.hop, .p2p_exposed = task_.p2p_exposed});
    if (!replay.ok() || !(replay.makespan.value < makespan_)) return;
    makespan_ = replay.makespan.value;
    best_ = counts;
  }

  // --- One chunk per stage ---------------------------------------------------------------------------------------------

  [[nodiscard]] double units() const { return task_.shape.micro_batches; }

  /// What the bounds ask of a stage, seconds of one micro-batch; infinite where the layers do not fit.
  struct StageSeconds {
    double all = kNever;      ///< forward and backward
    double forward = kNever;
    double passage = kNever;  ///< what runs on it before a later stage starts and, where the backward is one pass, after it ends
    double path = kNever;     ///< forward, and the backward that the stage before waits for
  };
  StageSeconds stage_seconds(int stage, std::int64_t first, std::int64_t count) {
    const LayerRange range{first, count};
    const StagePrice& price = stage_price(stage, {&range, 1});
    if (!price.fits) return {};
    const PassTimes& times = price.times[0];
    const double forward = times.forward.value;
    const double waited = times.recompute.value + times.backward_input.value + (split_ ? 0.0 : times.backward_weight.value);
    return {price.seconds, forward, split_ ? forward : forward + waited, forward + waited};
  }

  /// Seconds no layout is below in which these layers are on this stage, after a passage through the stages before of
  /// `before`: either the stage is busy from the moment the first forward reaches it until the last gradient leaves, or the
  /// first backward comes back from the last stage (through at least `behind`), with so many forwards done meanwhile.
  double stage_bound(int stage, const StageSeconds& seconds, double before, double behind) const {
    const double early = forwards_first_[static_cast<std::size_t>(stage)];
    const double busy = units() * seconds.all;
    return before + std::max(busy, behind + busy - (early - 1) * seconds.forward);
  }

  /// path_[stage][first]: shortest path through the stages from `stage` on, over all layouts.
  /// suffix_[stage][first]: smallest largest stage_bound among those stages, over all layouts, from the start of `stage`.
  void fill_suffix() {
    const auto width = static_cast<std::size_t>(task_.layers) + 1;
    path_.assign(static_cast<std::size_t>(p_) + 1, std::vector<double>(width, kNever));
    suffix_ = path_;
    path_.back()[width - 1] = suffix_.back()[width - 1] = 0;
    for (int s = p_ - 1; s >= 0; --s) {
      const auto stage = static_cast<std::size_t>(s);
      for (std::int64_t first = task_.least * s; first <= task_.layers - task_.least * (p_ - s); ++first) {
        double shortest = kNever, smallest = kNever;
        for (std::int64_t count = task_.least; first + count <= task_.layers; ++count) {
          const auto next = static_cast<std::size_t>(first + count);
          if (path_[stage + 1][next] == kNever) continue;
          const StageSeconds seconds = stage_seconds(s, first, count);
          if (seconds.all == kNever) break;  // and more layers do not fit either
          shortest = std::min(shortest, seconds.path + path_[stage + 1][next]);
          smallest = std::min(smallest, std::max(stage_bound(s, seconds, 0, path_[stage + 1][next]),
                                                 seconds.passage + suffix_[stage + 1][next]));
        }
        path_[stage][static_cast<std::size_t>(first)] = shortest;
        suffix_[stage][static_cast<std::size_t>(first)] = smallest;
      }
    }
  }

  void branch_and_bound() {
    split_ = schedule_info(task_.schedule).splits_backward;
    for (int s = 0; s < p_; ++s) {
      const auto passes = stage_passes(task_.schedule, task_.shape, s);
      const auto backward = std::find_if(passes.begin(), passes.end(), [](const Pass& pass) { return pass.kind != PassKind::forward; });
      // Parts of a sequence are fractions of a micro-batch.
      forwards_first_.push_back(static_cast<double>(backward - passes.begin()) / task_.shape.parts);
    }
    fill_suffix();
    bound_ = suffix_[0][0];
    Counts counts;
    complete_ = true;
    branch(counts, {0, 0, 0});
  }
  struct Prefix {
    std::int64_t first;
    double passage, bound;
  };
  void branch(Counts& counts, const Prefix& prefix) {
    const int stage = static_cast<int>(counts.size());
    if (stage == p_) return try_layout(counts);
    struct Way {
      std::int64_t count;
      double bound, passage;
    };
    std::vector<Way> ways;
    const auto behind = static_cast<std::size_t>(stage) + 1;
    for (std::int64_t count = task_.least; prefix.first + count <= task_.layers; ++count) {
      const auto next = static_cast<std::size_t>(prefix.first + count);
      const StageSeconds seconds = stage_seconds(stage, prefix.first, count);
      if (seconds.all == kNever) break;
      if (path_[behind][next] == kNever) continue;
      const double passage = prefix.passage + seconds.passage;
      const double all = std::max({prefix.bound, stage_bound(stage, seconds, prefix.passage, path_[behind][next]), passage + suffix_[behind][next]});
      if (all < makespan_) ways.push_back({count, all, passage});
    }
    std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.bound < b.bound; });
    for (const Way& way : ways) {
      if (way.bound >= makespan_ * (1 - kRounding)) break;
      if (replays_ >= task_.most_replays) {
        complete_ = false;
        return;
      }
      counts.push_back(way.count);
      branch(counts, {prefix.first + way.count, way.passage, way.bound});
      counts.pop_back();
    }
  }

  // --- Several chunks per stage ----------------------------------------------------------------------------------------

  void enumerate(Counts& counts, std::int64_t left) {
    const auto behind = static_cast<std::int64_t>(place_.size() - counts.size());
    if (behind == 1) {
      counts.push_back(left);
      try_layout(counts);
      counts.pop_back();
      return;
    }
    for (std::int64_t count = task_.least; left - count >= task_.least * (behind - 1); ++count) {
      counts.push_back(count);
      enumerate(counts, left - count);
      counts.pop_back();
    }
  }

  /// Takes a layer from one chunk and gives it to another as long as that makes the step faster.
  void improve() {
    if (best_.empty()) return;
    for (bool better = true; better && replays_ < task_.most_replays;) {
      better = false;
      const double before = makespan_;
      const Counts from = best_;
      for (std::size_t giver = 0; giver < from.size(); ++giver) {
        if (from[giver] <= task_.least) continue;
        for (std::size_t taker = 0; taker < from.size(); ++taker) {
          if (taker == giver) continue;
          Counts next = from;
          --next[giver];
          ++next[taker];
          try_layout(next);
        }
      }
      better = makespan_ < before;
    }
  }

  // --- Answer ----------------------------------------------------------------------------------------------------------

  [[nodiscard]] BalancedLayout result() {
    BalancedLayout out;
    out.layers.assign(static_cast<std::size_t>(p_), std::vector<std::int64_t>(static_cast<std::size_t>(v_)));
    for (std::size_t i = 0; i < best_.size(); ++i)
      out.layers[static_cast<std::size_t>(place_[i].stage)][static_cast<std::size_t>(place_[i].chunk)] = best_[i];
    out.makespan = {makespan_};
    out.proven = complete_;
    out.bound = {complete_ ? makespan_ : bound_};
    out.replays = replays_;
    return out;
  }

  const BalanceTask& task_;
  int p_, v_;
  std::vector<Place> place_;  ///< by place in the model
  std::map<StageKey, StagePrice> prices_;
  std::vector<PassTimes> times_;
  layout::Replay replay_;
  std::vector<std::vector<double>> path_, suffix_;
  std::vector<double> forwards_first_;  ///< micro-batches of forward before a stage's first backward
  bool split_ = false;                  ///< the backward is two passes
  Counts best_;
  double makespan_ = kNever, bound_ = 0;
  bool complete_ = false, held_twice_ = false;
  std::int64_t replays_ = 0;
};

}  // namespace

std::optional<BalancedLayout> balance_layers(const BalanceTask& task) { return Balancer(task).solve(); }

}  // namespace nd::plan
