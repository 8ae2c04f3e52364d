// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nd/device.hpp"
#include "nd/framework_profile.hpp"
#include "nd/model_spec.hpp"
#include "nd/parallel_config.hpp"
#include "nd/result.hpp"

namespace nd {

enum class OptimizerKind : std::uint8_t { adamw, adamw_bf16_states, adamw_8bit, sgd, muon };

/// How many tokens each expert of a layer gets. Shares need not sum to 1; they are normalised.
struct ExpertLoad {
  enum class Kind : std::uint8_t { uniform, zipf, shares } kind = Kind::uniform;
  double exponent = 1;          ///< zipf: the expert of rank i gets 1 / i^exponent
  std::vector<double> shares;   ///< shares: one per expert, in the order of the experts
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

/// "uniform", "zipf:1.2", or numbers separated by commas, blanks or line ends (a measured list).
[[nodiscard]] Result<ExpertLoad> parse_expert_load(const std::string& text, const SourceRef& where);

/// Where a field of a run came from; for the report ("origin") and for error messages.
struct Origin {
  enum class Kind : std::uint8_t { file, flag, profile, device, fallback } kind = Kind::fallback;
  SourceRef where;
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// A run as its sources state it. Absent = nobody said so. Counts in ranks, sequences, tokens, layers.
struct RunSpec {
  std::optional<std::int64_t> devices, dp, tp, pp, cp, ep, etp, vpp;
  std::optional<std::int64_t> optimizer_shard;      ///< ranks the optimizer states are sharded over (op)
  std::optional<ZeroLevel> zero;
  std::optional<bool> sequence_parallel;
  std::optional<std::int64_t> micro_batch_size, micro_batch_num, global_batch_size, seq_length;
  std::optional<Recompute> recompute;
  std::optional<Schedule> schedule;
  std::optional<CpAlgorithm> cp_algorithm;
  /// Layers per stage and chunk, chunk-major: entry [chunk][stage]. MTP blocks are not counted.
  std::vector<std::vector<std::int64_t>> layers_per_chunk;
  /// Fully / selectively recomputed layers per stage; empty = as `recompute` says for every layer.
  std::vector<std::int64_t> full_recompute_layers, selective_recompute_layers;
  std::optional<double> capacity_factor;            ///< expert buffer size relative to the mean load
  std::optional<double> expert_imbalance;           ///< busiest rank / mean; what `expert_load` says goes first
  std::optional<ExpertLoad> expert_load;            ///< tokens by expert
  std::optional<double> expert_keep_limit;          ///< activations of routed tokens above this share of the mean load go to the host
  std::optional<OptimizerKind> optimizer;
  std::optional<Dtype> compute_dtype;               ///< of activations and matrix products
  std::optional<Dtype> gemm_dtype;                  ///< fp8 / fp4 recipes: of the large matrix products
  std::optional<double> param_bytes, softmax_bytes; ///< bytes per element as stored
  std::optional<bool> flash_attention;
  std::optional<bool> hidden_dropout_on, attention_dropout_on;
  std::optional<bool> frozen_base;                  ///< LoRA: base weights have no gradients or states
  std::optional<double> trained_parameters;         ///< elements with gradients when the base is frozen
  std::optional<double> base_weight_bytes;          ///< bytes per weight of a frozen, quantised base
  std::optional<Bytes> device_memory;               ///< budget for the whole model on a device
  std::string device_type;                          ///< name or alias; empty = not stated
  std::string framework, framework_version;
  std::vector<std::string> features;                ///< named feature sets of the framework profile that are switched on
  std::map<std::string, Origin> origins;            ///< by field name of this struct
  std::optional<std::int64_t> micro_batch_group;    ///< micro-batches per group of the interleaved schedule (Megatron: per virtual stage)
  std::optional<std::int64_t> seq_split;            ///< parts a sequence is cut into along the pipeline (schedule seq_1f1b)
  std::array<bool, kLayerModes> layer_modes{true, true, true};  ///< by Recompute: what a layer may do under Recompute::per_layer

  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

/// What is priced, no optionals. `strategy` is what the source states, with defaults for the rest.
struct ResolvedRun {
  ParallelConfig strategy;
  std::int64_t devices = 1, global_batch_size = 1, seq_length = 1;
  std::vector<std::vector<std::int64_t>> layers_per_chunk;  ///< empty = the framework's own split
  LayerSplit layer_split = LayerSplit::even;                ///< how the framework splits
  std::vector<std::int64_t> full_recompute_layers, selective_recompute_layers;
  std::array<bool, kLayerModes> layer_modes{true, true, true};  ///< by Recompute: what a layer may do under Recompute::per_layer
  double capacity_factor = 1.0;   ///< expert tokens computed / mean load, padding included
  double expert_imbalance = 1.0;  ///< busiest rank / mean, where no `expert_load` is known
  std::vector<double> expert_load;   ///< share of each expert, sum 1; empty = not stated
  double expert_keep_limit = 0;      ///< kept on the device at most, relative to the mean load; 0 = everything
  OptimizerKind optimizer = OptimizerKind::adamw;
  Dtype compute_dtype = Dtype::bf16;
  Dtype gemm_dtype = Dtype::bf16;
  double hidden_dropout = 0, attention_dropout = 0;
  bool frozen_base = false;
  double trained_parameters = 0, base_weight_bytes = 2;
  Bytes device_memory{};          ///< budget; 0 = the device's usual budget
  std::vector<std::string> defaulted;  ///< fields nobody stated that the price depends on
  std::map<std::string, Origin> origins;
  friend bool operator==(const ResolvedRun&, const ResolvedRun&) = default;
};

[[nodiscard]] const char* to_text(OptimizerKind kind);
[[nodiscard]] const char* to_text(Origin::Kind kind);

/// Tokens of the busiest rank over the mean when `experts` experts lie on `ep` ranks in order: from the stated distribution
/// where it is one of that many experts, else the stated or usual imbalance. 1 on one rank.
[[nodiscard]] double busiest_rank_load(const ResolvedRun& run, std::int64_t experts, int ep);

/// The profile with what the run itself states in place of the framework's habit: flash attention, stored weight width
/// (4 bytes: the weights are the main copy), expert imbalance.
[[nodiscard]] FrameworkProfile effective_profile(FrameworkProfile profile, const RunSpec& spec);

/// Fills in what is not stated and checks the rest against the model; every problem at once. The degrees of
/// `strategy` are the stated ones (1 when absent; dp = what is left of devices).
[[nodiscard]] Result<ResolvedRun> resolve_run(const RunSpec& spec, const ResolvedModel& model, const FrameworkProfile& profile);

}  // namespace nd
