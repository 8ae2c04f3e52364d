// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "formats/readers/hyper_v2_model.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"

namespace nd::formats {
namespace {

constexpr std::int64_t kOne = 1;

/// Writes one train.yaml; the two schemas differ in where things stand. Lives for one document.
class HyperWriter {
 public:
  HyperWriter(StrategyEditor& file, const ResolvedStrategy& strategy)
      : file_(file), s_(strategy), c_(strategy.config), auto_models_(hyper_v2::is_auto_models(file.editor().root())) {}

  void write() {
    degrees();
    if (auto_models_) shards();
    else legacy_shards();
    batch();
    pipeline();
    file_.put_recompute(auto_models_ ? "activation_checkpoint" : "train.gradient_checkpointing", {auto_models_ ? "mode" : "activation_checkpoint"},
                        c_.recompute, auto_models_ ? "off" : "none");
    if (s_.uniform || s_.planned) file_.editor().remove("activation_checkpoint.layers");
    if (s_.planned && !s_.uniform && auto_models_) layer_modes();
    // The trainer refuses this section; what it told run_nd is kept for the reader.
    if (auto_models_) file_.editor().comment_out("context", "read by run_nd only, the trainer refuses it:");
    else if (file_.stated("context", {"device_num"}) != nullptr) file_.put("context", {"device_num"}, s_.devices);
  }

 private:
  /// Layers in the order of the model; in every chunk those that recompute most come first.
  void layer_modes() {
    std::vector<Recompute> modes;
    for (std::size_t c = 0; c < s_.layers_per_chunk.size(); ++c)
      for (std::size_t s = 0; s < s_.layers_per_chunk[c].size(); ++s) {
        const auto add = [&modes](std::int64_t count, Recompute mode) { modes.insert(modes.end(), static_cast<std::size_t>(count), mode); };
        add(s_.full_recompute[c][s], Recompute::full);
        add(s_.selective_recompute[c][s], Recompute::selective);
        add(s_.layers_per_chunk[c][s] - s_.full_recompute[c][s] - s_.selective_recompute[c][s], Recompute::off);
      }
    for (std::size_t first = 0, end = 0; first < modes.size(); first = end) {
      while (end < modes.size() && modes[end] == modes[first]) ++end;
      if (modes[first] == c_.recompute) continue;
      const std::string range = std::to_string(first) + (end - first > 1 ? "-" + std::to_string(end - 1) : std::string());
      file_.editor().set("activation_checkpoint.layers." + range, std::string(to_text(modes[first])));
    }
  }

  [[nodiscard]] std::string_view accelerator() const { return auto_models_ ? "accelerator" : "train.accelerator"; }
  [[nodiscard]] std::string_view training() const { return auto_models_ ? "training" : "train"; }

  /// The current schema's own names first, the older ones where they stand already.
  void degree(std::string_view current, std::string_view older, int value) {
    if (auto_models_) file_.put(accelerator(), {current, older}, std::int64_t{value}, kOne);
    else file_.put(accelerator(), {older, current}, std::int64_t{value}, kOne);
  }

  void degrees() {
    degree("tp_size", "tp_degree", c_.tp);
    degree("pp_size", "pipeline_parallel_degree", c_.pp);
    degree("cp_size", "context_parallel_degree", c_.cp);
    degree("ep_size", "expert_parallel_degree", c_.ep);
    if (s_.has_experts) file_.put(accelerator(), {"expert_tensor_parallel_degree"}, std::int64_t{c_.etp}, kOne);
    if (c_.tp > 1) file_.put(accelerator(), {"sequence_parallel", "use_seq_parallel"}, c_.sequence_parallel, false);
  }

  void shards() {
    file_.put("fsdp_config", {"dp_shard_size"}, std::int64_t{c_.op}, kOne);
    if (c_.zero == ZeroLevel::parameters) {
      file_.put("fsdp_config", {"reshard_after_forward"}, true, true);
      file_.put("fsdp_config", {"reshard_after_backward"}, true, true);
    } else if (c_.zero == ZeroLevel::gradients && !keeps_gathered()) {
      file_.put("fsdp_config", {"reshard_after_forward"}, false);
    }
    // Copies of an expert that share one must divide what is left of its group.
    const ConfigNode* const experts = file_.stated("fsdp_config", {"edp_shard_size"});
    const std::int64_t group = std::int64_t{c_.dp} * c_.cp * c_.tp / c_.ep;
    if (const auto size = experts == nullptr ? std::nullopt : as_integer(*experts); size && *size > 0 && group % *size != 0)
      file_.put("fsdp_config", {"edp_shard_size"}, std::gcd(*size, group));
  }

  [[nodiscard]] bool keeps_gathered() const {
    for (const std::string_view key : {"reshard_after_forward", "reshard_after_backward"})
      if (const ConfigNode* const node = file_.stated("fsdp_config", {key}); node != nullptr && as_boolean(*node) == false) return true;
    return false;
  }

  void legacy_shards() {
    const ConfigNode* const stated = file_.stated(accelerator(), {"dp_shard"});
    const std::int64_t shard = stated == nullptr ? 1 : as_integer(*stated).value_or(1);
    const bool kept = shard > 0 && c_.dp % shard == 0;
    if (!kept) file_.put(accelerator(), {"dp_shard"}, kOne);
    file_.put(accelerator(), {"dp_replicate"}, std::int64_t{c_.dp} / (kept ? shard : 1), kOne);
    const bool on = c_.zero != ZeroLevel::none;
    file_.put(accelerator(), {"enable_parallel_optimizer"}, on, true);
    if (!on) return;
    file_.put(accelerator(), {"gradient_accumulation_shard"}, c_.zero >= ZeroLevel::gradients, false);
    const ConfigNode* const size = file_.stated(accelerator(), {"optimizer_weight_shard_size"});
    if (c_.op == c_.dp * c_.cp && (size == nullptr || as_integer(*size).value_or(-1) < 1)) return;  // -1: all of them
    file_.put(accelerator(), {"optimizer_weight_shard_size"}, std::int64_t{c_.op});
  }

  void batch() {
    file_.put(training(), {"micro_batch_size"}, std::int64_t{c_.micro_batch_size}, kOne);
    if (auto_models_ ? file_.stated(training(), {"micro_batch_num"}) != nullptr : true)
      file_.put(training(), {"micro_batch_num"}, std::int64_t{c_.micro_batch_num});
    file_.put(training(), {"global_batch_size"}, s_.global_batch_size);
    for (const char* const path : {"dataset.data_transform.max_seq_len", "dataset.data_config.seq_length", "data.max_seq_len", "model.config_overrides.seq_length"})
      if (file_.editor().find(path) != nullptr) return file_.editor().set(path, s_.seq_length);
    file_.editor().set(auto_models_ ? "dataset.data_transform.max_seq_len" : "data.max_seq_len", s_.seq_length);
  }

  void pipeline() {
    file_.put(accelerator(), {"pp_interleave_num"}, std::int64_t{c_.vpp}, kOne);
    if (c_.pp > 1) {
      // Interleaving is 1f1b with pp_interleave_num above 1.
      const Schedule written = c_.schedule == Schedule::interleaved ? Schedule::one_f_one_b : c_.schedule;
      file_.put(accelerator(), {"pipeline_scheduler"}, std::string(to_text(written)), std::string("1f1b"));
    }
    const bool beside = file_.editor().find("model.offset") != nullptr || file_.editor().find("model.config_overrides") == nullptr;
    const bool inside = file_.editor().find("model.config_overrides.offset") != nullptr;
    file_.put_offset(inside || !beside ? "model.config_overrides.offset" : "model.offset", s_, offset_counts_mtp(inside) ? s_.mtp_depth : 0);
  }

  /// The format does not say whether an offset counts the MTP blocks; a stated one shows it by what it adds up to.
  [[nodiscard]] bool offset_counts_mtp(bool inside) const {
    const ConfigNode* const offset = inside ? file_.editor().find("model.config_overrides.offset") : nullptr;
    if (offset == nullptr || !offset->is_sequence() || s_.mtp_depth == 0) return false;
    const ConfigNode* const chunks = file_.stated(accelerator(), {"pp_interleave_num"});
    std::int64_t sum = 0, places = 0;
    for (const auto& item : offset->items) {
      for (const auto& inner : item.items) sum += as_integer(inner).value_or(0), ++places;
      if (!item.is_sequence()) sum += as_integer(item).value_or(0), places += chunks == nullptr ? 1 : as_integer(*chunks).value_or(1);
    }
    return places > 0 && s_.layers / places * places + sum != s_.layers;
  }

  StrategyEditor& file_;
  const ResolvedStrategy& s_;
  const ParallelConfig& c_;
  bool auto_models_;
};

}  // namespace

Result<std::vector<ResolvedFile>> write_hyper_v2(const Original& original, const ResolvedStrategy& strategy) {
  auto file = edit(original);
  if (!file) return file.error();
  HyperWriter(*file, strategy).write();
  return file->finish(original);
}

}  // namespace nd::formats
