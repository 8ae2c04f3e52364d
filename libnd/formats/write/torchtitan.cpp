// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"
#include "formats/readers/torchtitan_stages.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"

namespace nd::formats {
namespace {

constexpr std::int64_t kOne = 1;
constexpr std::string_view kParallel = "parallelism";

/// Writes one job TOML. Lives for one document.
class TitanWriter {
 public:
  TitanWriter(StrategyEditor& file, const ResolvedStrategy& strategy) : file_(file), s_(strategy), c_(strategy.config) {}

  void write() {
    put("tensor_parallel_degree", std::int64_t{c_.tp}, kOne);
    put("pipeline_parallel_degree", std::int64_t{c_.pp}, kOne);
    put("context_parallel_degree", std::int64_t{c_.cp}, kOne);
    if (s_.has_experts) {
      put("expert_parallel_degree", std::int64_t{c_.ep}, kOne);
      put("expert_tensor_parallel_degree", std::int64_t{c_.etp}, kOne);
    }
    sharding();
    batch();
    pipeline();
    recompute();
  }

 private:
  /// Where the key stands: [parallelism], or the sections it was in before.
  [[nodiscard]] std::string_view section_of(std::string_view key) const {
    for (const std::string_view section : {kParallel, std::string_view("training"), std::string_view("experimental")})
      if (file_.stated(section, {key}) != nullptr) return section;
    return kParallel;
  }
  void put(std::string_view key, WrittenValue value, const std::optional<WrittenValue>& assumed = std::nullopt) {
    file_.put(section_of(key), {key}, std::move(value), assumed);
  }
  [[nodiscard]] std::optional<std::int64_t> stated(std::string_view key) const {
    const ConfigNode* const node = file_.stated(section_of(key), {key});
    return node == nullptr ? std::nullopt : as_integer(*node);
  }

  void sharding() {
    const std::int64_t shard = std::max(1, c_.op / c_.cp), replicas = c_.dp / shard;
    put("data_parallel_replicate_degree", replicas, kOne);
    // -1 is all that the other degrees leave, which is this.
    if (stated("data_parallel_shard_degree").value_or(-1) != -1 || (replicas > 1 && shard == 1)) put("data_parallel_shard_degree", shard);
    if (c_.zero == ZeroLevel::none) return;
    const bool reshard = c_.zero == ZeroLevel::parameters, usual = c_.pp == 1;
    const ConfigNode* const node = file_.stated(section_of("fsdp_reshard_after_forward"), {"fsdp_reshard_after_forward"});
    const std::string word = node == nullptr ? "default" : core::canonical_name(node->text);
    const bool now = word == "default" ? usual : word == "always" || word == "true";
    if (now != reshard) put("fsdp_reshard_after_forward", std::string(reshard == usual ? "default" : reshard ? "always" : "never"));
  }

  void batch() {
    const std::int64_t size = c_.micro_batch_size, number = c_.micro_batch_num;
    const bool older = file_.stated("training", {"batch_size"}) != nullptr && file_.stated("training", {"local_batch_size"}) == nullptr;
    const std::string_view key = older ? "batch_size" : "local_batch_size";
    const ConfigNode* const node = file_.stated("training", {key});
    std::int64_t local = node == nullptr ? 8 : as_integer(*node).value_or(1);
    if (c_.pp == 1) {
      local = size;
    } else if (local <= 0 || local % size != 0 || size * number % local != 0) {
      local = size * number;  // one round of micro-batches
    }
    file_.put("training", {key}, local);
    if (c_.pp > 1) put("pipeline_parallel_microbatch_size", size, kOne);
    // -1 is one round per step.
    if (local * c_.dp != s_.global_batch_size || positive("training.global_batch_size")) file_.put("training", {"global_batch_size"}, s_.global_batch_size);
    file_.put("training", {"seq_len"}, s_.seq_length);
  }

  [[nodiscard]] bool positive(const char* path) const {
    const ConfigNode* const node = file_.editor().find(path);
    return node != nullptr && as_integer(*node).value_or(0) > 0;
  }

  void pipeline() {
    constexpr std::string_view kLayers = "pipeline_parallel_layers_per_stage", kNewer = "pipeline_parallel_module_fqns_per_model_part";
    const std::string_view kParts = file_.stated(section_of(kNewer), {kNewer}) != nullptr ? kNewer : std::string_view("module_fqns_per_model_part");
    if (c_.pp == 1) return;
    const ConfigNode* const node = file_.stated(section_of("pipeline_parallel_schedule"), {"pipeline_parallel_schedule"});
    const auto* const word = torchtitan::find_schedule_word(node == nullptr ? "1F1B" : node->text);
    if (word == nullptr || word->schedule != c_.schedule) put("pipeline_parallel_schedule", std::string(torchtitan::schedule_name(c_.schedule)));
    const auto wanted = torchtitan::in_model_order(s_.layers_per_chunk);
    if (file_.stated(section_of(kParts), {kParts}) == nullptr && by_rule(wanted)) return;
    // A split that no rule gives is spelt out, module by module.
    file_.editor().remove(std::string(section_of(kLayers)) + "." + std::string(kLayers));
    std::vector<std::vector<std::string>> parts;
    std::int64_t layer = 0;
    for (const std::int64_t count : wanted) {
      auto& part = parts.emplace_back();
      if (parts.size() == 1) part.emplace_back("tok_embeddings");
      for (std::int64_t i = 0; i < count; ++i) part.push_back("layers." + std::to_string(layer++));
    }
    parts.back().insert(parts.back().end(), {"norm", "output"});
    put(kParts, parts);
  }

  /// Whether the trainer's rule, with the number of layers per stage it needs, gives this split.
  bool by_rule(const std::vector<std::int64_t>& wanted) {
    constexpr std::string_view kLayers = "pipeline_parallel_layers_per_stage";
    torchtitan::StageRequest request;
    request.layers = s_.layers;
    request.pp = c_.pp;
    request.less_first = stated("pipeline_parallel_first_stage_less_layers").value_or(1);
    request.less_last = stated("pipeline_parallel_last_stage_less_layers").value_or(1);
    if (const auto* const word = torchtitan::find_schedule_word(torchtitan::schedule_name(c_.schedule))) request.schedule = *word;
    std::string why;
    request.layers_per_stage = stated(kLayers);
    if (torchtitan::split_stages(request, why) == wanted) return true;
    const auto stages = static_cast<std::int64_t>(wanted.size()), units = request.layers + request.less_first + request.less_last;
    request.layers_per_stage = (units + stages - 1) / stages;
    if (torchtitan::split_stages(request, why) != wanted) return false;
    put(kLayers, *request.layers_per_stage);
    return true;
  }

  void recompute() {
    constexpr std::string_view kSection = "activation_checkpoint";
    if (!s_.uniform) return;  // every n-th layer, as the file has it
    const std::string mode = c_.recompute == Recompute::off ? "none" : to_text(c_.recompute);
    file_.put(kSection, {"mode"}, mode, std::string("selective"));
    if (c_.recompute == Recompute::selective) file_.put(kSection, {"selective_ac_option"}, std::string("op"));
  }

  StrategyEditor& file_;
  const ResolvedStrategy& s_;
  const ParallelConfig& c_;
};

}  // namespace

Result<std::vector<ResolvedFile>> write_torchtitan(const Original& original, const ResolvedStrategy& strategy) {
  auto file = edit(original);
  if (!file) return file.error();
  TitanWriter(*file, strategy).write();
  return file->finish(original);
}

}  // namespace nd::formats
