// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/text.hpp"
#include "report/validation_mapping.hpp"
#include "report/validation_pattern.hpp"

namespace nd::report {

const std::vector<std::string>& known_settings() {
  static const std::vector<std::string> kNames{
      // run
      "etp", "vpp", "mbs", "sp", "zero", "op", "cp_algorithm", "schedule", "optimizer", "micro_batch_group", "layer_list", "noop_layers", "pipeline_layout",
      "recompute", "recompute_block", "recompute_per_rank", "recompute_list", "selective_list", "flash_attention", "frozen_base", "lora_rank",
      "lora_targets", "base_weight_bytes", "param_bytes", "expert_imbalance", "expert_keep_limit",
      "capacity_factor", "node_gbit",
      // model
      "hidden_dropout", "attention_dropout", "gated_ffn", "tied_embeddings", "learned_positions", "mtp_depth", "first_k_dense",
      "moe_layer_freq", "q_lora_rank", "kv_lora_rank", "sliding_window",
      // memory reading
      "counter", "stage", "time",
      // scoring: "memory_only" keeps the step time out of every total but the file's own, "no_time" and "no_memory" drop a figure
      "use", "seq_len",
      // tokens of the longest sequence of the run, where the column is a mean: what the peak follows
      "longest_seq_len"};
  return kNames;
}

RowSettings collect_settings(const MeasuredRow& row, const RuleBook& book) {
  RowSettings out;
  for (const SourceRule& rule : book.sources) {
    const auto captures = rule.match.captures(row);
    if (!captures) continue;
    if (!rule.framework.empty()) {
      out.framework = rule.framework;
      out.version.clear();
    }
    if (!rule.version.empty()) out.version = expand_captures(rule.version, *captures);
    for (const std::string& feature : rule.features)
      if (std::find(out.features.begin(), out.features.end(), feature) == out.features.end()) out.features.push_back(feature);
    for (const auto& [name, value] : rule.set) out.values[name] = expand_captures(value, *captures);
    if (!rule.skip.empty()) out.skip = rule.skip;
  }
  if (!row.framework.empty()) {
    out.framework = row.framework;
    out.version = row.framework_version;
  }
  return out;
}

std::string setting_text(const RowSettings& settings, const std::string& name) {
  const auto found = settings.values.find(name);
  return found == settings.values.end() ? std::string() : found->second;
}

std::optional<std::int64_t> setting_integer(const RowSettings& settings, const std::string& name) {
  return core::parse_integer(setting_text(settings, name));
}

std::optional<double> setting_real(const RowSettings& settings, const std::string& name) {
  return core::parse_real(setting_text(settings, name));
}

std::optional<bool> setting_flag(const RowSettings& settings, const std::string& name) {
  const std::string text = setting_text(settings, name);
  if (text == "1" || text == "true") return true;
  if (text == "0" || text == "false") return false;
  return std::nullopt;
}

}  // namespace nd::report
