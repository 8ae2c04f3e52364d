// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/run.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/values.hpp"
#include "formats/megatron/document.hpp"
#include "formats/shell/value.hpp"

namespace nd::formats::megatron {

namespace {

/// Arguments that only MindSpeed-LLM (or MindSpeed) has.
constexpr std::array<std::string_view, 31> kMindSpeedOnly{
    kOnNpu,
    "noop_layers",          "num_layer_list",        "schedules_method",   "context_parallel_algo",   "use_fused_rmsnorm",
    "use_fused_swiglu",     "use_fused_rotary_pos_emb", "swap_attention",  "swap_optimizer",          "reuse_fp32_param",
    "recompute_activation_function", "recompute_norm", "use_ascend_mc2",   "use_ascend_coc",          "first_k_dense_replace",
    "n_shared_experts",     "mla_mm_split",          "mla_fa_without_pad", "moe_tp_extend_ep",        "moe_fb_overlap",
    "multi_head_latent_attention", "use_cp_send_recv_overlap", "ulysses_degree_in_cp", "adaptive_recompute_device_size", "gemm_gradient_accumulation_fusion",
    "no_shared_storage",    "enable_recompute_layers_per_pp_rank", "moe_zero_memory", "padded_base_length", "use_fused_moe_token_permute_and_unpermute"};

/// An argument that switches a feature of the framework profile on.
struct FeatureRow {
  std::string_view argument;
  std::string_view value;    ///< of the argument; empty: a switch that is on
  std::string_view megatron, mindspeed;  ///< feature in either profile; empty: no such thing there
};
constexpr std::array<FeatureRow, 24> kFeatures{{
    {"moe_token_dispatcher_type", "allgather", "dispatcher_all_gather", "dispatcher_all_gather"},
    {"moe_token_dispatcher_type", "alltoall", "dispatcher_all_to_all", "dispatcher_all_to_all"},
    {"moe_token_dispatcher_type", "alltoall_seq", "dispatcher_all_to_all", "dispatcher_all_to_all"},
    {"moe_token_dispatcher_type", "flex", "dispatcher_flex", ""},
    {"tp_comm_overlap", "", "tp_overlap", ""},
    {"use_ascend_mc2", "", "", "mc2"},
    {"use_ascend_coc", "", "", "coc"},
    {"reuse_fp32_param", "", "", "reuse_fp32_param"},
    {"swap_optimizer", "", "cpu_offload_optimizer", "swap_optimizer"},
    {"optimizer_cpu_offload", "", "cpu_offload_optimizer", "swap_optimizer"},
    {"grad_reduce_in_bf16", "", "grad_reduce_in_bf16", "grad_reduce_in_bf16"},
    {"main_grads_dtype", "bf16", "grad_reduce_in_bf16", "grad_reduce_in_bf16"},
    {"no_gradient_accumulation_fusion", "", "no_gradient_accumulation_fusion", ""},
    {"transformer_impl", "local", "local_implementation", ""},
    {"no_bias_swiglu_fusion", "", "unfused_swiglu", "unfused_swiglu"},
    {"external_cuda_graph", "", "cuda_graphs", ""},
    {"enable_cuda_graph", "", "cuda_graphs", ""},
    {"cuda_graph_impl", "local", "cuda_graphs", ""},
    {"cuda_graph_impl", "transformer_engine", "cuda_graphs", ""},
    {"defer_embedding_wgrad_compute", "", "deferred_embedding_wgrad", ""},
    {"recompute_activation_function", "", "recompute_activation", "recompute_activation_function"},
    {"recompute_norm", "", "recompute_norm", "recompute_norm"},
    {"overlap_p2p_communication", "", "overlap_p2p", "overlap_p2p"},
    {"deterministic_mode", "", "ci_deterministic", ""},
}};

/// What --recompute-modules names, as the profile's features; empty: what selective recompute does anyway, or no feature.
struct ModuleRow {
  std::string_view name, megatron, mindspeed;
  bool priced;
};
constexpr std::array<ModuleRow, 7> kModules{{{"core_attn", "", "", true},
                                             {"layernorm", "recompute_norm", "recompute_norm", true},
                                             {"mla_up_proj", "recompute_mla_up", "recompute_mla_up", true},
                                             {"moe_act", "recompute_activation", "recompute_activation_function", true},
                                             {"mlp", "", "", false},
                                             {"moe", "", "", false},
                                             {"shared_experts", "", "", false}}};

class RunReader {
 public:
  RunReader(Fields& fields, const Model& model, std::optional<std::int64_t> devices, RunSpec& run)
      : f_(fields), model_(model), devices_(devices), run_(run), mindspeed_(is_mindspeed(fields.root())) {}

  void read() {
    f_.known({kOnNpu});
    run_.framework = mindspeed_ ? "mindspeed-llm" : "megatron-core";
    run_.origins["framework"] = {Origin::Kind::file, f_.root().where};
    degrees();
    world();
    experts();
    batch();
    context_parallel();
    precisions();
    optimizer();
    sharding();
    attention_kernel();
    features();
    recompute_modules();
    overlaps();
    cross_checks();
  }

 private:
  [[nodiscard]] std::int64_t of(const std::optional<std::int64_t>& value) const { return value.value_or(1); }
  [[nodiscard]] bool moe() const { return model_.spec.num_experts.has_value(); }

  void feature(std::string_view name) {
    if (name.empty()) return;
    if (std::find(run_.features.begin(), run_.features.end(), name) == run_.features.end()) run_.features.emplace_back(name);
  }

  void degree(const char* field, std::optional<std::int64_t> RunSpec::*member, Names names) {
    constexpr std::int64_t kMost = 1 << 20;
    auto value = f_.positive(names);
    if (value && *value > kMost) {
      f_.error(names, Errc::out_of_range, "is too large: " + std::to_string(*value));
      value.reset();
    }
    state(run_, field, member, std::optional<std::int64_t>(value.value_or(1)), f_.where(names));
  }

  void degrees() {
    degree("tp", &RunSpec::tp, {"tensor_model_parallel_size"});
    degree("cp", &RunSpec::cp, {"context_parallel_size"});
    degree("ep", &RunSpec::ep, {"expert_model_parallel_size"});
    const bool sequence = f_.on({"sequence_parallel"}) && of(run_.tp) > 1;
    state(run_, "sequence_parallel", &RunSpec::sequence_parallel, std::optional<bool>(sequence), f_.where({"sequence_parallel"}));
  }

  /// dp = world / (tp pp cp).
  void world() {
    const Names names{"world_size"};
    std::optional<std::int64_t> world = devices_;
    if (!world) {
      const ConfigNode* const node = f_.find(names);
      if (node != nullptr && node->is_scalar() && !shell::unset_names(node->text).empty()) {
        f_.warn(names, Errc::missing_field, "the number of devices depends on " + shell::unset_names(node->text), "-d N");
      } else {
        world = f_.positive(names);
      }
    }
    const auto data = f_.positive({"data_parallel_size"});  // in a dump
    const std::int64_t inner = of(run_.tp) * of(run_.pp) * of(run_.cp);
    if (!world && data) world = core::multiply(*data, inner);
    if (!world) return;
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    if (*world > kMost) return f_.error(names, Errc::out_of_range, "is too large: " + std::to_string(*world));
    if (!devices_) state(run_, "devices", &RunSpec::devices, world, f_.where(names));
    if (*world % inner != 0) {
      if (devices_) return;  // -d: the degrees of the file need not fit other devices
      return f_.error(names, Errc::conflict,
                      std::to_string(*world) + " devices are no multiple of TP " + std::to_string(of(run_.tp)) + " x PP " + std::to_string(of(run_.pp)) + " x CP " +
                          std::to_string(of(run_.cp)) + " = " + std::to_string(inner),
                      "nearest: " + std::to_string(std::max<std::int64_t>(1, *world / inner) * inner) + "; -d N for another number");
    }
    state(run_, "dp", &RunSpec::dp, std::optional<std::int64_t>(*world / inner), f_.where(names));
  }

  void experts() {
    const Names ep{"expert_model_parallel_size"}, etp{"expert_tensor_parallel_size"};
    state(run_, "etp", &RunSpec::etp, f_.positive(etp), f_.where(etp));
    if (f_.on({"moe_tp_extend_ep"}) && of(run_.tp) > 1) {
      // MindSpeed: the tensor parallel ranks hold whole experts as well.
      run_.ep = of(run_.ep) * of(run_.tp);
      run_.etp = 1;
      run_.origins["ep"] = run_.origins["etp"] = {Origin::Kind::file, f_.where({"moe_tp_extend_ep"})};
    }
    if (!moe() && of(run_.ep) > 1) {
      f_.warn(ep, Errc::conflict, "has no effect on a model without experts");
      run_.ep = 1;
    }
    if (!moe()) run_.etp.reset();
    const Names capacity{"moe_expert_capacity_factor", "moe_capacity_factor"};
    const auto factor = f_.real(capacity);
    if (!factor || !moe()) return;
    if (!(*factor > 0 && *factor < 1e4)) return f_.error(capacity, Errc::out_of_range, "must be positive");
    if (f_.on({"moe_pad_expert_input_to_capacity"}))
      state(run_, "capacity_factor", &RunSpec::capacity_factor, std::optional<double>(std::max(1.0, *factor)), f_.where(capacity));
  }

  void batch() {
    const Names mbs{"micro_batch_size"}, gbs{"global_batch_size"}, length{"seq_length", "encoder_seq_length"};
    if (!f_.has(mbs)) f_.error(mbs, Errc::missing_field, "is required");
    if (!f_.has(length)) f_.error(length, Errc::missing_field, "is required");
    const auto size = f_.positive(mbs);
    const auto whole = f_.positive(gbs);
    state(run_, "micro_batch_size", &RunSpec::micro_batch_size, size, f_.where(mbs));
    state(run_, "seq_length", &RunSpec::seq_length, f_.positive(length), f_.where(length));
    if (f_.has({"rampup_batch_size"})) f_.note({"rampup_batch_size"}, "the full batch is priced, not the smaller ones it begins with");
    if (whole) {
      state(run_, "global_batch_size", &RunSpec::global_batch_size, whole, f_.where(gbs));
      if (!size || !run_.dp) return;
      const auto round = core::multiply(*size, *run_.dp);
      if (!round) return f_.error(mbs, Errc::out_of_range, "is too large");
      if (*whole % *round == 0) {
        run_.micro_batch_num = *whole / *round;
      } else if (!devices_) {
        f_.error(gbs, Errc::conflict,
                 std::to_string(*whole) + " sequences are no multiple of micro-batch size " + std::to_string(*size) + " x DP " + std::to_string(*run_.dp),
                 "nearest: " + (*whole >= *round ? std::to_string(*whole / *round * *round) + " or " : std::string()) + std::to_string((*whole / *round + 1) * *round));
      }
    } else if (size && run_.dp && !f_.has(gbs)) {
      run_.global_batch_size = *size * *run_.dp;  // the trainer's own default
      run_.micro_batch_num = 1;
    }
  }

  void context_parallel() {
    const Names comm{"cp_comm_type"}, algorithm{"context_parallel_algo"};
    const auto types = f_.words(comm);
    const auto name = f_.word(algorithm);
    f_.known({"hierarchical_context_parallel_sizes", "ulysses_degree_in_cp", "cp_window_size", "use_cp_send_recv_overlap", "attention_mask_type", "cp_attention_mask_type"});
    const auto set = [&](CpAlgorithm value, Names names) {
      state(run_, "cp_algorithm", &RunSpec::cp_algorithm, std::optional<CpAlgorithm>(value), f_.where(names));
    };
    const bool used = of(run_.cp) > 1;
    if (mindspeed_ || name) {
      // Also without context parallelism: a search may try it, and then runs what the file names.
      const std::string word = name.value_or("megatron_cp_algo");
      set(word == "ulysses_cp_algo" ? CpAlgorithm::ulysses : word == "kvallgather_cp_algo" ? CpAlgorithm::all_gather : CpAlgorithm::ring, algorithm);
      if (word == "megatron_cp_algo") feature("ring_cp");
      if (!used) return;
      if (word == "hybrid_cp_algo") feature("hybrid_cp"), f_.warn(algorithm, Errc::unsupported, "the Ulysses part of hybrid context parallelism is priced as a ring");
      else if (word == "adaptive_cp_algo" || word == "hybrid_adaptive_cp_algo") f_.warn(algorithm, Errc::unsupported, "'" + word + "' is priced as a ring");
      else if (word != "megatron_cp_algo" && word != "ulysses_cp_algo" && word != "kvallgather_cp_algo")
        f_.error(algorithm, Errc::out_of_range, "'" + word + "' is no algorithm", "megatron_cp_algo, ulysses_cp_algo, hybrid_cp_algo or kvallgather_cp_algo");
      return;
    }
    if (!used) return;
    std::string word = types && !types->empty() ? types->front() : "p2p";
    if (types && std::any_of(types->begin(), types->end(), [&word](const std::string& one) { return one != word; }))
      f_.warn(comm, Errc::unsupported, "differs from layer to layer; '" + word + "' is priced for all");
    if (word == "p2p") set(CpAlgorithm::ring, comm);
    else if (word == "a2a") set(CpAlgorithm::ulysses, comm);
    else if (word == "allgather" || word == "all_gather") set(CpAlgorithm::all_gather, comm);
    else if (word == "a2a+p2p") set(CpAlgorithm::ring, comm), f_.warn(comm, Errc::unsupported, "the exchange inside the groups is priced as a ring");
    else f_.error(comm, Errc::out_of_range, "'" + word + "' is no way of communication", "p2p, a2a, allgather or a2a+p2p");
  }

  void precisions() {
    const bool bf16 = f_.on({"bf16"}), fp16 = f_.on({"fp16"});
    if (bf16 && fp16) f_.error({"fp16"}, Errc::conflict, "stands beside --bf16");
    const SourceRef where = bf16 ? f_.where({"bf16"}) : f_.where({"fp16"});
    state(run_, "compute_dtype", &RunSpec::compute_dtype, std::optional<Dtype>(bf16 ? Dtype::bf16 : fp16 ? Dtype::fp16 : Dtype::fp32), where);
    state(run_, "param_bytes", &RunSpec::param_bytes, std::optional<double>(bf16 || fp16 ? 2.0 : 4.0), where);
    if (const auto fp32 = f_.flag({"attention_softmax_in_fp32"})) state(run_, "softmax_bytes", &RunSpec::softmax_bytes, std::optional<double>(*fp32 ? 4.0 : 2.0), f_.where({"attention_softmax_in_fp32"}));
    const Names fp8{"fp8_format", "fp8"}, fp4{"fp4_format", "fp4"};
    f_.known({"fp8_hybrid", "fp8_e4m3", "fp8_recipe", "fp8_margin", "fp8_interval", "fp8_amax_history_len", "fp8_amax_compute_algo", "no_fp8_wgrad", "fp8_wgrad", "fp4_recipe"});
    const auto eight = f_.word(fp8), four = f_.word(fp4);
    const auto stated = [](const std::optional<std::string>& word) { return word && !word->empty() && core::canonical_name(*word) != "false" && core::canonical_name(*word) != "none"; };
    if (stated(eight) || f_.on({"fp8_hybrid"}) || f_.on({"fp8_e4m3"})) state(run_, "gemm_dtype", &RunSpec::gemm_dtype, std::optional<Dtype>(Dtype::fp8), f_.where(fp8));
    if (stated(four)) state(run_, "gemm_dtype", &RunSpec::gemm_dtype, std::optional<Dtype>(Dtype::fp4), f_.where(fp4));
    if (f_.on({"fp8_param_gather"})) f_.warn({"fp8_param_gather"}, Errc::unsupported, "weights kept in 8 bit are priced as 16-bit ones");
  }

  void optimizer() {
    const Names names{"optimizer", "optimizer_selection"};
    const auto word = f_.word(names);
    const auto known = optimizer_of_name(word.value_or("adam"));
    if (!known) f_.warn(names, Errc::unsupported, unknown_optimizer(*word));
    OptimizerKind kind = known.value_or(OptimizerKind::adamw);
    const auto bits = [this](Names moment) -> int {
      const auto type = f_.word(moment);
      if (!type) return 32;
      if (core::contains_ignoring_case(*type, "8")) return 8;
      return core::contains_ignoring_case(*type, "16") ? 16 : 32;
    };
    const int first = bits({"exp_avg_dtype"}), second = bits({"exp_avg_sq_dtype"});
    f_.known({"use_precision_aware_optimizer"});
    if (kind == OptimizerKind::adamw && f_.on({"use_precision_aware_optimizer"}) && first < 32 && second < 32) {
      kind = first == 8 && second == 8 ? OptimizerKind::adamw_8bit : OptimizerKind::adamw_bf16_states;
    } else if (first != second) {
      f_.warn({"exp_avg_dtype"}, Errc::unsupported, "moments of different width are priced as 32-bit ones");
    }
    if (const auto main = f_.word({"main_params_dtype"}); main && core::contains_ignoring_case(*main, "16"))
      f_.warn({"main_params_dtype"}, Errc::unsupported, "16-bit main weights are priced as 32-bit ones");
    // AdamW is the trainer's own default, so nothing is assumed when it is not named.
    state(run_, "optimizer", &RunSpec::optimizer, std::optional<OptimizerKind>(kind), f_.where(names));
    if (!known) run_.origins["optimizer"].kind = Origin::Kind::fallback;
    const Names fraction{"optimizer_offload_fraction"};
    if (const auto part = f_.real(fraction); part && *part < 1 && f_.on({"optimizer_cpu_offload"}))
      f_.warn(fraction, Errc::unsupported, "part of the states in host memory is priced as all of them");
  }

  void sharding() {
    const Names distributed{"use_distributed_optimizer"}, fsdp{"use_megatron_fsdp", "use_custom_fsdp"}, torch{"use_torch_fsdp2"};
    const auto strategy = f_.word({"data_parallel_sharding_strategy"});
    const auto instances = f_.positive({"num_distributed_optimizer_instances"});
    ZeroLevel level = f_.on(distributed) ? ZeroLevel::optimizer : ZeroLevel::none;
    Names names = distributed;
    if (f_.on(fsdp)) {
      names = fsdp;
      const std::string word = strategy.value_or("no_shard");
      if (word == "no_shard") level = ZeroLevel::none;
      else if (word == "optim") level = ZeroLevel::optimizer;
      else if (word == "optim_grads") level = ZeroLevel::gradients;
      else if (word == "optim_grads_params") level = ZeroLevel::parameters;
      else f_.error({"data_parallel_sharding_strategy"}, Errc::out_of_range, "'" + word + "' is no strategy", "no_shard, optim, optim_grads or optim_grads_params");
      if (!strategy) f_.warn({"data_parallel_sharding_strategy"}, Errc::missing_field, "is not stated; no_shard, the default of 2025, is assumed");
      if (level != ZeroLevel::none) feature("megatron_fsdp");
    } else if (f_.on(torch)) {
      names = torch;
      level = ZeroLevel::parameters;
      feature("megatron_fsdp");
    }
    state(run_, "zero", &RunSpec::zero, std::optional<ZeroLevel>(level), f_.where(names));
    if (level == ZeroLevel::none) return state(run_, "optimizer_shard", &RunSpec::optimizer_shard, std::optional<std::int64_t>(1), f_.where(names));
    if (!run_.dp) return;
    const auto group = *run_.dp * of(run_.cp);
    if (instances && group % *instances != 0)
      return f_.error({"num_distributed_optimizer_instances"}, Errc::conflict, std::to_string(*instances) + " do not divide DP x CP = " + std::to_string(group));
    if (!devices_) state(run_, "optimizer_shard", &RunSpec::optimizer_shard, std::optional<std::int64_t>(group / instances.value_or(1)), f_.where(names));
  }

  void attention_kernel() {
    const Names flash{"use_flash_attn"}, backend{"attention_backend"};
    const auto stated = f_.flag(flash);
    if (const auto word = f_.word(backend)) {
      const std::string name = core::canonical_name(word->substr(word->rfind('.') == std::string::npos ? 0 : word->rfind('.') + 1));
      if (name == "unfused" || name == "local") return state(run_, "flash_attention", &RunSpec::flash_attention, std::optional<bool>(false), f_.where(backend));
      if (name == "flash" || name == "fused") return state(run_, "flash_attention", &RunSpec::flash_attention, std::optional<bool>(true), f_.where(backend));
    }
    if (stated.value_or(false)) return state(run_, "flash_attention", &RunSpec::flash_attention, std::optional<bool>(true), f_.where(flash));
    // Without the switch MindSpeed and layers of Megatron's own compute the full square; Transformer Engine chooses a fused kernel.
    const auto layers = f_.word({"transformer_impl"});
    if (mindspeed_ || f_.on({"use_legacy_models"}) || (layers && *layers == "local"))
      state(run_, "flash_attention", &RunSpec::flash_attention, std::optional<bool>(false), f_.where(flash));
  }

  void features() {
    if (model_.padded_vocabulary) feature("vocabulary_as_stated");
    for (const auto& row : kFeatures) {
      if (row.value.empty() ? !f_.on({row.argument}) : f_.word({row.argument}).value_or("") != row.value) continue;
      const auto name = mindspeed_ ? row.mindspeed : row.megatron;
      if (name.empty()) f_.warn({row.argument}, Errc::unsupported, "is not priced for this trainer");
      feature(name);
    }
    if (moe() && !f_.on({"moe_grouped_gemm"}) && !mindspeed_) feature("sequential_experts");
    if (f_.on({"cross_entropy_loss_fusion"}) && !mindspeed_)
      feature(f_.word({"cross_entropy_fusion_impl"}).value_or("native") == "te" ? "te_cross_entropy" : "cross_entropy_fusion");
    f_.known({"cross_entropy_fusion_impl"});
    const Names dispatcher{"moe_token_dispatcher_type"};
    if (const auto word = f_.word(dispatcher); word && word->compare(0, 8, "alltoall") != 0 && *word != "allgather" && *word != "flex")
      f_.error(dispatcher, Errc::out_of_range, "'" + *word + "' is no dispatcher", "allgather, alltoall, alltoall_seq or flex");
    if (mindspeed_ && model_.spec.gated_ffn.value_or(false) && !f_.on({"use_fused_swiglu"})) feature("unfused_swiglu");
    f_.known({"use_fused_swiglu"});
    // These two work without --recompute-granularity as well.
    if ((f_.on({"recompute_activation_function"}) || f_.on({"recompute_norm"})) && run_.recompute == Recompute::off) run_.recompute = Recompute::selective;
  }

  void recompute_modules() {
    const Names names{"recompute_modules"};
    const auto modules = f_.words(names);
    if (!modules || run_.recompute != Recompute::selective) return;
    for (const auto& module : *modules) {
      const auto row = std::find_if(kModules.begin(), kModules.end(), [&module](const ModuleRow& one) { return one.name == module; });
      if (row == kModules.end()) {
        f_.error(names, Errc::out_of_range, "'" + module.substr(0, 60) + "' is no module", "core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts");
        continue;
      }
      if (!row->priced) f_.warn(names, Errc::unsupported, "recompute of '" + module + "' is not priced: less memory and more time than shown");
      feature(mindspeed_ ? row->mindspeed : row->megatron);
    }
  }

  void overlaps() {
    const auto reduce = f_.flag({"overlap_grad_reduce", "overlap_grad_reduction"});
    const bool gather = f_.on({"overlap_param_gather", "overlap_param_gather_with_optimizer_step"});
    if (!reduce.value_or(false)) return feature("no_overlap_grad_reduce");
    feature("overlap_grad_reduce");
    if (!gather && !mindspeed_) feature("no_overlap_param_gather");
  }

  void cross_checks() {
    if (run_.micro_batch_num && *run_.micro_batch_num < of(run_.pp))
      f_.warn({"global_batch_size"}, Errc::conflict,
              std::to_string(*run_.micro_batch_num) + " micro-batches for " + std::to_string(of(run_.pp)) + " stages: the pipeline never fills");
    if (moe() && of(run_.tp) > 1 && !run_.sequence_parallel.value_or(false))
      f_.warn({"sequence_parallel"}, Errc::conflict, "experts with tensor parallelism need sequence parallelism");
  }

  Fields& f_;
  const Model& model_;
  std::optional<std::int64_t> devices_;
  RunSpec& run_;
  bool mindspeed_;
};

}  // namespace

bool is_mindspeed(const ConfigNode& root) {
  return std::any_of(kMindSpeedOnly.begin(), kMindSpeedOnly.end(), [&root](std::string_view name) {
    const auto* const node = root.find(name);
    return node != nullptr && !node->is_null() && node->text != "false" && node->text != "False";
  });
}

void read_run(Fields& fields, const Model& model, std::optional<std::int64_t> devices, RunSpec& run) { RunReader(fields, model, devices, run).read(); }

}  // namespace nd::formats::megatron
