// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/plan.hpp"

#include <algorithm>
#include <array>

#include "formats/megatron/fields.hpp"
#include "formats/megatron/model.hpp"
#include "formats/megatron/run.hpp"
#include "formats/megatron/stages.hpp"

namespace nd::formats::megatron {

namespace {

using Counts = std::vector<std::int64_t>;

void apply(ConfigNode& arguments, const Change& change) {
  auto& members = arguments.members;
  const auto it = std::find_if(members.begin(), members.end(), [&change](const auto& member) { return member.first == change.name; });
  if (!change.value) {
    if (it != members.end()) members.erase(it);
    return;
  }
  ConfigNode node;
  node.kind = NodeKind::scalar;
  node.text = change.value->empty() ? "true" : *change.value;
  node.where = arguments.where;
  if (it != members.end()) it->second = std::move(node);
  else members.emplace_back(change.name, std::move(node));
}

class Planner {
 public:
  Planner(const ConfigNode& arguments, const ResolvedStrategy& strategy) : now_(arguments), s_(strategy), c_(strategy.config), mindspeed_(is_mindspeed(arguments)) {}

  std::vector<Change> plan() {
    degrees();
    experts();
    batch();
    sharding();
    schedule();
    if (!layers_match()) stages();
    if (!recompute_matches()) recompute();
    context_parallel();
    // What told the trainer may have gone with the old strategy: its default algorithm says the same.
    if (mindspeed_ && !is_mindspeed(now_)) set("context_parallel_algo", "megatron_cp_algo");
    return std::move(changes_);
  }

 private:
  [[nodiscard]] Fields fields() const { return Fields(now_); }
  [[nodiscard]] bool has(std::string_view name) const {
    const auto* const node = now_.find(name);
    return node != nullptr && !node->is_null();
  }

  void change(Change one) {
    apply(now_, one);
    const auto it = std::find_if(changes_.begin(), changes_.end(), [&one](const Change& other) { return other.name == one.name; });
    if (it != changes_.end()) *it = std::move(one);
    else changes_.push_back(std::move(one));
  }

  void drop(std::string_view name) {
    if (has(name)) change({std::string(name), std::nullopt});
  }

  void set(std::string_view name, std::string value) {
    const auto* const node = now_.find(name);
    if (node != nullptr && node->is_scalar() && node->text == value) return;
    change({std::string(name), std::move(value)});
  }

  /// A number; not added where it is what the trainer takes anyway.
  void number(std::string_view name, std::int64_t value, std::int64_t fallback) {
    Fields now = fields();
    const auto stated = now.integer({name});
    if (stated == value || (!has(name) && value == fallback)) return;
    set(name, std::to_string(value));
  }

  void turn(std::string_view name, bool on) {
    Fields now = fields();
    if (now.on({name}) == on) return;
    if (on) change({std::string(name), std::string()});
    else drop(name);
  }

  void degrees() {
    number("tensor_model_parallel_size", c_.tp, 1);
    number("pipeline_model_parallel_size", c_.pp, 1);
    number("context_parallel_size", c_.cp, 1);
    // Without tensor parallelism the switch has no effect: it may stay.
    if (c_.tp > 1) turn("sequence_parallel", c_.sequence_parallel);
    if (has("data_parallel_size")) number("data_parallel_size", c_.dp, 0);
    if (has("world_size")) number("world_size", s_.devices, 0);
  }

  void experts() {
    if (!s_.has_experts) return;
    Fields now = fields();
    if (now.on({"moe_tp_extend_ep"})) {
      if (c_.etp == 1 && c_.ep % c_.tp == 0 && c_.tp > 1) return number("expert_model_parallel_size", c_.ep / c_.tp, 1);
      drop("moe_tp_extend_ep");
    }
    number("expert_model_parallel_size", c_.ep, 1);
    number("expert_tensor_parallel_size", c_.etp, c_.tp);
  }

  void batch() {
    number("micro_batch_size", c_.micro_batch_size, 0);
    number("global_batch_size", s_.global_batch_size, std::int64_t{c_.dp} * c_.micro_batch_size);
    number(has("encoder_seq_length") && !has("seq_length") ? "encoder_seq_length" : "seq_length", s_.seq_length, 0);
  }

  void sharding() {
    const std::string_view fsdp = has("use_custom_fsdp") ? "use_custom_fsdp" : "use_megatron_fsdp";
    Fields now = fields();
    const bool uses_fsdp = now.on({"use_megatron_fsdp", "use_custom_fsdp"}), torch = now.on({"use_torch_fsdp2"});
    if (uses_fsdp || c_.zero > ZeroLevel::optimizer) {
      if (torch && c_.zero == ZeroLevel::parameters) return;
      drop("use_torch_fsdp2");
      turn(fsdp, true);
      constexpr std::array<std::string_view, 4> kStrategies{"no_shard", "optim", "optim_grads", "optim_grads_params"};
      set("data_parallel_sharding_strategy", std::string(kStrategies[static_cast<std::size_t>(c_.zero)]));
    } else {
      drop("use_torch_fsdp2");
      turn("use_distributed_optimizer", c_.zero != ZeroLevel::none);
    }
    const std::int64_t group = std::int64_t{c_.dp} * c_.cp, instances = c_.zero == ZeroLevel::none ? 1 : group / std::max(1, c_.op);
    number("num_distributed_optimizer_instances", instances, 1);
  }

  [[nodiscard]] std::int64_t most_layers() const {
    std::int64_t out = 0;
    for (const auto& chunk : s_.layers_per_chunk)
      for (const auto count : chunk) out = std::max(out, count);
    return out;
  }

  void schedule() {
    const bool v = c_.schedule == Schedule::dualpipe_v;
    if (v) set("schedules_method", "dualpipev");
    else drop("schedules_method");
    if (has("virtual_pipeline_model_parallel_size")) number("virtual_pipeline_model_parallel_size", c_.vpp, 0);
    if (v || c_.vpp == 1) {
      drop("num_layers_per_virtual_pipeline_stage");
      drop("num_virtual_stages_per_pipeline_rank");
      return;
    }
    if (has("num_layers_per_virtual_pipeline_stage")) {
      // As many layers as a chunk has places.
      Fields now = fields();
      const Model model = read_model(now);
      const std::int64_t places = std::max(model.slots, s_.layers);
      if (places % (std::int64_t{c_.pp} * c_.vpp) == 0) return number("num_layers_per_virtual_pipeline_stage", places / (std::int64_t{c_.pp} * c_.vpp), 0);
      drop("num_layers_per_virtual_pipeline_stage");
    }
    number("num_virtual_stages_per_pipeline_rank", c_.vpp, 1);
  }

  /// What the arguments say now.
  RunSpec read_now(bool& good) const {
    Fields now = fields();
    const Model model = read_model(now);
    RunSpec run;
    run.tp = c_.tp;
    read_stages(now, model, run);
    good = now.problems.empty() && model.spec.num_hidden_layers == s_.layers;
    return run;
  }

  [[nodiscard]] bool layers_match() const {
    bool good = false;
    const RunSpec run = read_now(good);
    if (!good || run.pp.value_or(1) != c_.pp || run.vpp.value_or(1) != c_.vpp) return false;
    return run.layers_per_chunk.empty() ? s_.even : run.layers_per_chunk == s_.layers_per_chunk;
  }

  [[nodiscard]] Counts per_stage(const std::vector<Counts>& chunks) const {
    Counts out(static_cast<std::size_t>(c_.pp), 0);
    for (const auto& chunk : chunks)
      for (std::size_t stage = 0; stage < out.size(); ++stage) out[stage] += chunk[stage];
    return out;
  }

  [[nodiscard]] bool recompute_matches() const {
    bool good = false;
    const RunSpec run = read_now(good);
    Fields now = fields();
    const bool extra = now.on({"recompute_activation_function"}) || now.on({"recompute_norm"});
    const Recompute mode = run.recompute == Recompute::off && extra ? Recompute::selective : run.recompute.value_or(Recompute::off);
    if (!good || mode != c_.recompute) return false;
    if (run.full_recompute_layers.empty()) return s_.uniform;
    return run.full_recompute_layers == per_stage(s_.full_recompute);
  }

  /// States the layers of the stages anew.
  void stages() {
    for (const auto* const name : {"num_layer_list", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers", "pipeline_model_parallel_layout",
                                   "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"})
      drop(name);
    if (s_.even) {
      drop("noop_layers");
      number("num_layers", s_.layers, 0);
      if (has("num_layers_per_virtual_pipeline_stage")) number("num_layers_per_virtual_pipeline_stage", s_.layers_per_chunk.front().front(), 0);
      return;
    }
    if (mindspeed_ && c_.vpp == 1 && c_.pp > 1) {
      drop("noop_layers");
      number("num_layers", s_.layers, 0);
      return set("num_layer_list", joined(s_.layers_per_chunk.front()));
    }
    if (mindspeed_) return empty_places();
    drop("num_layers_per_virtual_pipeline_stage");
    drop("num_virtual_stages_per_pipeline_rank");
    set("pipeline_model_parallel_layout", layout());
  }

  static std::string joined(const Counts& list) {
    std::string out;
    for (const auto count : list) out += (out.empty() ? "" : ",") + std::to_string(count);
    return out;
  }

  /// Counts by place in the model.
  [[nodiscard]] Counts in_order() const {
    Counts out;
    for (const auto& row : s_.layers_per_chunk) out.insert(out.end(), row.begin(), row.end());
    return out;
  }

  /// MindSpeed: every chunk has as many places as the largest; no-op layers fill the others.
  void empty_places() {
    const std::int64_t places = most_layers();
    Counts empty;
    std::int64_t begin = 0;
    for (const auto count : in_order()) {
      for (std::int64_t i = count; i < places; ++i) empty.push_back(begin + i);
      begin += places;
    }
    set("num_layers", std::to_string(begin));
    set("noop_layers", joined(empty));
    if (has("num_layers_per_virtual_pipeline_stage")) number("num_layers_per_virtual_pipeline_stage", places, 0);
  }

  /// Megatron: "Ettt|tttt|ttL".
  [[nodiscard]] std::string layout() const {
    std::string out;
    const Counts counts = in_order();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (i > 0) out += '|';
      if (i == 0) out += 'E';
      if (counts[i] > 0) out += counts[i] == 1 ? "t" : "t*" + std::to_string(counts[i]);
      if (i + 1 < counts.size()) continue;
      out += std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, std::min<std::int64_t>(s_.mtp_depth, 64))), 'm');
      out += 'L';
    }
    return out;
  }

  void recompute() {
    for (const auto* const name : {"recompute_activations", "checkpoint_activations", "activations_checkpoint_method", "activations_checkpoint_num_layers"}) drop(name);
    if (c_.recompute != Recompute::selective) {
      drop("recompute_modules");
      drop("recompute_activation_function");
      drop("recompute_norm");
    }
    if (c_.recompute != Recompute::full) {
      drop("recompute_method");
      drop("recompute_num_layers");
    }
    drop("enable_recompute_layers_per_pp_rank");
    if (c_.recompute == Recompute::off) return drop("recompute_granularity");
    if (c_.recompute == Recompute::selective) return set("recompute_granularity", "selective");
    set("recompute_granularity", "full");
    set("recompute_method", s_.uniform ? "uniform" : "block");
    std::int64_t most = 1;
    for (const auto& chunk : s_.full_recompute)
      for (const auto count : chunk) most = std::max(most, count);
    set("recompute_num_layers", std::to_string(s_.uniform ? 1 : most));
  }

  void context_parallel() {
    if (c_.cp <= 1) return;
    Fields now = fields();
    const auto types = now.words({"cp_comm_type"});
    const std::string comm = types && !types->empty() ? types->front() : "p2p";
    const std::string algorithm = now.word({"context_parallel_algo"}).value_or("megatron_cp_algo");
    if (mindspeed_) {
      const CpAlgorithm is = algorithm == "ulysses_cp_algo" ? CpAlgorithm::ulysses : algorithm == "kvallgather_cp_algo" ? CpAlgorithm::all_gather : CpAlgorithm::ring;
      if (is != c_.cp_algorithm)
        set("context_parallel_algo", c_.cp_algorithm == CpAlgorithm::ulysses ? "ulysses_cp_algo" : c_.cp_algorithm == CpAlgorithm::all_gather ? "kvallgather_cp_algo" : "megatron_cp_algo");
      return;
    }
    const CpAlgorithm is = comm == "a2a" ? CpAlgorithm::ulysses : comm.starts_with("all") ? CpAlgorithm::all_gather : CpAlgorithm::ring;
    if (is != c_.cp_algorithm)
      set("cp_comm_type", c_.cp_algorithm == CpAlgorithm::ulysses ? "a2a" : c_.cp_algorithm == CpAlgorithm::all_gather ? "allgather" : "p2p");
  }

  ConfigNode now_;
  const ResolvedStrategy& s_;
  const ParallelConfig& c_;
  bool mindspeed_;
  std::vector<Change> changes_;
};

}  // namespace

std::vector<Change> plan_changes(const ConfigNode& arguments, const ResolvedStrategy& strategy) { return Planner(arguments, strategy).plan(); }

ConfigNode with_changes(ConfigNode arguments, const std::vector<Change>& changes) {
  for (const auto& change : changes) apply(arguments, change);
  return arguments;
}

}  // namespace nd::formats::megatron
