// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "nd/study.hpp"

namespace nd {

namespace {

constexpr double kSecondsPerDay = 86400, kSecondsPerHour = 3600;
/// Clusters looked at between the last that misses a deadline and the first that meets it.
constexpr std::int64_t kCloserLook = 15;

/// Why there was no search, in one line.
std::string first_problem(const Error& error) {
  for (const auto& one : error.diagnostics)
    if (one.severity == Severity::error) return one.message + (one.hint.empty() ? "" : " (" + one.hint + ")");
  return "cannot be searched";
}

/// Collects the rows of one study of sizes.
class Sizing {
 public:
  Sizing(Study study, const SizeCases& cases, std::optional<double> price) : study_(std::move(study)), cases_(cases), price_(price) {}

  Study run(const ClusterSizes& sizes) {
    study_.kind = Study::Kind::cluster_size;
    for (const std::int64_t devices : coarse(sizes))
      if (!over()) add(devices);
    if (sizes.step == 0 && asks()) look_closer(sizes.node_devices);
    std::sort(study_.rows.begin(), study_.rows.end(), [](const StudyRow& a, const StudyRow& b) { return a.devices < b.devices; });
    study_.answer = first_that_meets();
    return std::move(study_);
  }

 private:
  [[nodiscard]] bool asks() const { return study_.deadline_days && study_.tokens; }
  [[nodiscard]] bool meets(const StudyRow& row) const { return asks() && row.best && row.days(*study_.tokens) <= *study_.deadline_days; }

  static std::vector<std::int64_t> coarse(const ClusterSizes& sizes) {
    std::vector<std::int64_t> out;
    for (std::int64_t devices = sizes.least; devices <= sizes.most; devices = sizes.step > 0 ? devices + sizes.step : devices * 2)
      out.push_back(devices);
    if (out.back() != sizes.most) out.push_back(sizes.most);
    return out;
  }

  /// No more searches: what is not there is missing.
  bool over() {
    const bool now = cases_.over && cases_.over();
    if (now) study_.complete = false;
    return now;
  }

  StudyRow row_of(std::int64_t devices) {
    const auto one = cases_.at(devices);
    if (one) return run_case(*one, price_);
    StudyRow row;
    row.name = std::to_string(devices);
    row.devices = devices;
    row.problem = first_problem(one.error());
    return row;
  }

  void add(std::int64_t devices) { study_.rows.push_back(row_of(devices)); }

  [[nodiscard]] std::optional<std::size_t> first_that_meets() const {
    for (std::size_t i = 0; i < study_.rows.size(); ++i)
      if (meets(study_.rows[i])) return i;
    return std::nullopt;
  }

  /// Whole nodes between the answer and the size before it, from below, until one meets the deadline.
  void look_closer(std::int64_t node) {
    const auto found = first_that_meets();
    if (!found || *found == 0) return;
    const std::int64_t below = study_.rows[*found - 1].devices, above = study_.rows[*found].devices;
    const std::int64_t nodes = std::max<std::int64_t>(1, (above - below) / node);
    const std::int64_t step = node * std::max<std::int64_t>(1, (nodes + kCloserLook) / (kCloserLook + 1));
    for (std::int64_t devices = below / node * node + step; devices < above; devices += step) {
      if (devices <= below) continue;
      if (over()) return;
      add(devices);
      if (meets(study_.rows.back())) return;
    }
  }

  Study study_;
  const SizeCases& cases_;
  std::optional<double> price_;
};

}  // namespace

double StudyRow::tokens_per_second() const { return best ? best->tokens_per_second * static_cast<double>(devices) : 0.0; }

double StudyRow::days(double tokens) const { return tokens / tokens_per_second() / kSecondsPerDay; }

double StudyRow::device_hours(double tokens) const { return tokens / best->tokens_per_second / kSecondsPerHour; }

std::optional<double> StudyRow::cost(double tokens) const {
  if (!price_per_hour) return std::nullopt;
  return device_hours(tokens) * *price_per_hour;
}

StudyRow run_case(const StudyCase& one, std::optional<double> price_per_hour) {
  StudyRow row;
  row.name = one.name;
  row.device = one.scenario.cluster.device.name;
  row.framework = one.scenario.profile.name;
  row.devices = one.scenario.run.devices;
  row.global_batch = one.scenario.run.global_batch_size;
  row.seq_length = one.scenario.run.seq_length;
  row.price_per_hour = price_per_hour ? price_per_hour : one.scenario.cluster.device.price_per_hour;
  SearchOptions options = one.options;
  options.top = 1;
  options.near_misses = 1;
  options.keep_all = false;
  SearchResult result = search_strategies(one.scenario, one.space, options);
  row.band = result.band;
  row.end = result.end;
  row.legal = result.stats.legal;
  row.fitting = result.stats.fitting;
  if (!result.candidates.empty()) row.best = std::move(result.candidates.front());
  else if (!result.near_misses.empty()) row.nearest = std::move(result.near_misses.front());
  return row;
}

Study size_cluster(Study study, const ClusterSizes& sizes, const SizeCases& cases, std::optional<double> price_per_hour) {
  return Sizing(std::move(study), cases, price_per_hour).run(sizes);
}

}  // namespace nd
