// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "memory/fit_test.hpp"
#include "nd/report.hpp"

namespace nd {

namespace {

/// Fields of a run that do not belong to the strategy, with their resolved values.
class Fields {
 public:
  explicit Fields(const RunSpec& stated) : stated_(stated) {}

  template <class T>
  void add(const std::string& name, T value, Origin::Kind unstated = Origin::Kind::fallback) {
    const auto found = stated_.origins.find(name);
    Origin origin{unstated, {}};
    if (found != stated_.origins.end()) origin = found->second;
    out_.push_back({name, std::move(value), origin});
  }
  [[nodiscard]] std::vector<RequestField> take() && { return std::move(out_); }

 private:
  const RunSpec& stated_;
  std::vector<RequestField> out_;
};

/// The list itself may have hundreds of entries; what decides is how far the busiest expert is from the mean.
std::string expert_load_text(const std::vector<double>& shares) {
  const double busiest = *std::max_element(shares.begin(), shares.end()) * static_cast<double>(shares.size());
  return fmt::format("{} experts, the busiest with {:.3g} times the mean", shares.size(), busiest);
}

}  // namespace

std::vector<RequestField> request_fields(const Scenario& scenario, const RunSpec& stated) {
  Fields fields(stated);
  const auto& run = scenario.run;
  fields.add("devices", run.devices);
  fields.add("device_type", scenario.cluster.device.name);
  fields.add("framework", scenario.profile.name);
  fields.add("framework_version", scenario.profile.version);
  fields.add("global_batch_size", run.global_batch_size);
  fields.add("seq_length", run.seq_length);
  fields.add("optimizer", std::string(to_text(run.optimizer)));
  fields.add("compute_dtype", std::string(to_text(run.compute_dtype)));
  fields.add("gemm_dtype", std::string(to_text(run.gemm_dtype)));
  fields.add("cp_algorithm", std::string(to_text(run.strategy.cp_algorithm)));
  fields.add("capacity_factor", run.capacity_factor);
  fields.add("expert_imbalance", run.expert_imbalance);
  if (!run.expert_load.empty()) fields.add("expert_load", expert_load_text(run.expert_load));
  fields.add("frozen_base", run.frozen_base);
  fields.add("device_memory", memory::memory_budget(scenario).value, Origin::Kind::device);
  return std::move(fields).take();
}

}  // namespace nd
