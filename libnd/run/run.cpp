// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "core/integer.hpp"
#include "nd/run_spec.hpp"
#include "run/expert_load.hpp"

namespace nd {

namespace {

using run::expert_shares;

constexpr std::int64_t kLargestCount = std::int64_t{1} << 30;  // ranks, sequences, tokens: far above any real run
constexpr std::int64_t kDefaultSequence = 4096;

/// One resolution; collects every problem before it gives up.
class Resolver {
 public:
  Resolver(const RunSpec& spec, const ResolvedModel& model, const FrameworkProfile& profile)
      : spec_(spec), model_(model), profile_(profile) {}

  Result<ResolvedRun> resolve() {
    run_.origins = spec_.origins;
    check_ranges();
    if (!problems_.empty()) return Error(std::move(problems_));
    degrees();
    experts();
    optimizer();
    batch();
    sequence();
    layers();
    recompute();
    numbers();
    if (!problems_.empty()) return Error(std::move(problems_));
    return std::move(run_);
  }

 private:
  [[nodiscard]] SourceRef where(const std::string& field) const {
    const auto found = spec_.origins.find(field);
    SourceRef place = found == spec_.origins.end() ? SourceRef{} : found->second.where;
    if (place.path.empty()) place.path = field;
    return place;
  }
  void problem(const std::string& field, Errc code, std::string message, std::string hint = {}) {
    problems_.push_back(make_diagnostic(code, where(field), std::move(message), std::move(hint)));
  }
  template <class T>
  T stated_or(const std::string& field, const std::optional<T>& stated, T fallback) {
    if (stated) return *stated;
    defaulted(field);
    return fallback;
  }
  void defaulted(const std::string& field) { run_.defaulted.push_back(field); }

  void check_ranges() {
    const std::array<std::pair<const char*, const std::optional<std::int64_t>*>, 13> counts{{
        {"devices", &spec_.devices}, {"dp", &spec_.dp}, {"tp", &spec_.tp}, {"pp", &spec_.pp}, {"cp", &spec_.cp}, {"ep", &spec_.ep},
        {"etp", &spec_.etp}, {"vpp", &spec_.vpp}, {"optimizer_shard", &spec_.optimizer_shard},
        {"micro_batch_size", &spec_.micro_batch_size}, {"micro_batch_num", &spec_.micro_batch_num},
        {"global_batch_size", &spec_.global_batch_size}, {"seq_length", &spec_.seq_length},
    }};
    for (const auto& [field, stated] : counts) {
      if (!*stated) continue;
      if (**stated < 1 || **stated > kLargestCount)
        problem(field, Errc::out_of_range, "must be from 1 to " + std::to_string(kLargestCount) + ", got " + std::to_string(**stated));
    }
  }

  void degrees() {
    const std::int64_t tp = spec_.tp.value_or(1), pp = spec_.pp.value_or(1), cp = spec_.cp.value_or(1);
    const auto rest = core::multiply(tp, pp).value_or(kLargestCount + 1);
    const auto inner = core::multiply(rest, cp).value_or(kLargestCount + 1);
    if (inner > kLargestCount) {
      problem("devices", Errc::out_of_range, "tp x pp x cp is beyond any cluster");
      return;
    }
    std::int64_t devices = spec_.devices.value_or(inner * spec_.dp.value_or(1));
    if (!spec_.devices && !spec_.dp) defaulted("devices");
    if (devices % inner != 0) {
      problem("devices", Errc::conflict,
              std::to_string(devices) + " devices are no multiple of tp " + std::to_string(tp) + " x pp " + std::to_string(pp) + " x cp " +
                  std::to_string(cp) + " = " + std::to_string(inner),
              "nearest: " + (devices > inner ? std::to_string(devices / inner * inner) + " or " : "") + std::to_string((devices / inner + 1) * inner));
      return;
    }
    const std::int64_t dp = spec_.dp.value_or(devices / inner);
    if (dp * inner != devices) {
      problem(spec_.dp ? "dp" : "devices", Errc::conflict,
              "dp " + std::to_string(dp) + " x tp " + std::to_string(tp) + " x pp " + std::to_string(pp) + " x cp " + std::to_string(cp) + " = " +
                  std::to_string(dp * inner) + " is not the " + std::to_string(devices) + " devices",
              "dp would be " + std::to_string(devices / inner));
      return;
    }
    run_.devices = devices;
    auto& s = run_.strategy;
    s.dp = static_cast<int>(dp);
    s.tp = static_cast<int>(tp);
    s.pp = static_cast<int>(pp);
    s.cp = static_cast<int>(cp);
    s.vpp = static_cast<int>(spec_.vpp.value_or(1));
    if (s.pp > model_.layers())
      problem("pp", Errc::out_of_range, std::to_string(s.pp) + " stages for " + std::to_string(model_.layers()) + " layers");
    if (s.vpp > 1 && s.pp == 1) problem("vpp", Errc::conflict, "virtual stages need pp > 1");
    s.sequence_parallel = spec_.sequence_parallel.value_or(false) && tp > 1;
    if (!spec_.sequence_parallel && tp > 1) defaulted("sequence_parallel");
    s.cp_algorithm = spec_.cp_algorithm.value_or(CpAlgorithm::ring);
    s.schedule = spec_.schedule.value_or(s.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
    if (s.schedule == Schedule::interleaved && s.vpp == 1) s.schedule = Schedule::one_f_one_b;
    if (s.schedule == Schedule::one_f_one_b && s.vpp > 1) s.schedule = Schedule::interleaved;  // what 1F1B with chunks is called
    if (s.pp == 1) s.schedule = Schedule::one_f_one_b;  // nothing to schedule: micro-batch after micro-batch
    if (s.schedule == Schedule::seq_1f1b) s.seq_split = static_cast<int>(std::clamp<std::int64_t>(spec_.seq_split.value_or(1), 1, run_.seq_length));
  }

  void experts() {
    auto& s = run_.strategy;
    s.ep = static_cast<int>(spec_.ep.value_or(1));
    // Megatron's expert tensor parallel size follows tp unless it is stated (memory study, section 1.1).
    const bool follows_tp = profile_.can.style == DataParallelStyle::megatron && profile_.can.expert_tensor_parallel && model_.has_experts();
    s.etp = static_cast<int>(spec_.etp.value_or(follows_tp ? s.tp : 1));
    if (!model_.has_experts()) {
      if (s.ep > 1) problem("ep", Errc::conflict, "expert parallelism " + std::to_string(s.ep) + " for a model without experts");
      s.etp = 1;
      return;
    }
    for (const auto& kind : model_.kinds)
      if (kind.ffn.kind == FfnKind::moe && kind.ffn.experts % s.ep != 0)
        problem("ep", Errc::out_of_range, std::to_string(kind.ffn.experts) + " experts are no multiple of ep " + std::to_string(s.ep));
    const std::int64_t ranks = std::int64_t{s.dp} * s.tp * s.cp;
    if (!spec_.etp && ranks % (std::int64_t{s.ep} * s.etp) != 0) s.etp = 1;
    if (ranks % (std::int64_t{s.ep} * s.etp) != 0)
      problem("ep", Errc::conflict,
              "ep " + std::to_string(s.ep) + " x etp " + std::to_string(s.etp) + " does not divide the " + std::to_string(ranks) +
                  " ranks of a stage (dp x tp x cp)");
  }

  void optimizer() {
    auto& s = run_.strategy;
    run_.optimizer = spec_.optimizer.value_or(OptimizerKind::adamw);
    const int group = s.dp * s.cp;
    if (spec_.zero) {
      s.zero = *spec_.zero;
      s.op = static_cast<int>(spec_.optimizer_shard.value_or(s.zero == ZeroLevel::none ? 1 : group));
    } else if (spec_.optimizer_shard) {
      s.op = static_cast<int>(*spec_.optimizer_shard);
      s.zero = s.op > 1 ? ZeroLevel::optimizer : ZeroLevel::none;
    } else {
      const bool fsdp = profile_.can.style == DataParallelStyle::fsdp || profile_.can.style == DataParallelStyle::fsdp2;
      s.zero = fsdp ? ZeroLevel::parameters : ZeroLevel::optimizer;
      s.op = group;
      defaulted("optimizer_shard");
    }
    if (s.op > 1 && s.zero == ZeroLevel::none) s.zero = ZeroLevel::optimizer;
    if (group % s.op != 0)
      problem("optimizer_shard", Errc::out_of_range,
              "the optimizer shards over " + std::to_string(s.op) + " ranks, which does not divide dp x cp = " + std::to_string(group));
  }

  void batch() {
    auto& s = run_.strategy;
    const std::int64_t mbs = spec_.micro_batch_size.value_or(1);
    if (!spec_.micro_batch_size) defaulted("micro_batch_size");
    const std::int64_t per_round = std::int64_t{s.dp} * mbs;
    std::int64_t mb = 1;
    if (spec_.micro_batch_num) {
      mb = *spec_.micro_batch_num;
    } else if (spec_.global_batch_size) {
      if (*spec_.global_batch_size % per_round != 0) {
        const std::int64_t below = *spec_.global_batch_size / per_round * per_round;
        problem("global_batch_size", Errc::conflict,
                std::to_string(*spec_.global_batch_size) + " sequences are no multiple of dp " + std::to_string(s.dp) + " x micro-batch size " +
                    std::to_string(mbs),
                "nearest: " + (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + per_round));
        return;
      }
      mb = *spec_.global_batch_size / per_round;
    } else {
      defaulted("global_batch_size");
    }
    const auto batch = core::multiply(per_round, mb);
    if (!batch || *batch > kLargestCount) {
      problem("micro_batch_num", Errc::out_of_range, "dp x micro-batch size x micro-batches is beyond any batch");
      return;
    }
    if (spec_.global_batch_size && *batch != *spec_.global_batch_size)
      problem("global_batch_size", Errc::conflict,
              "dp " + std::to_string(s.dp) + " x micro-batch size " + std::to_string(mbs) + " x " + std::to_string(mb) + " micro-batches = " +
                  std::to_string(*batch) + " is not the global batch of " + std::to_string(*spec_.global_batch_size));
    run_.global_batch_size = *batch;
    s.micro_batch_size = static_cast<int>(mbs);
    s.micro_batch_num = static_cast<int>(mb);
    micro_batch_group();
  }

  void micro_batch_group() {
    auto& s = run_.strategy;
    if (s.schedule != Schedule::interleaved) return;
    if (!spec_.micro_batch_group || *spec_.micro_batch_group == s.pp) return;
    const std::int64_t group = *spec_.micro_batch_group;
    if (!profile_.can.micro_batch_group) {
      problem("micro_batch_group", Errc::conflict, profile_.title + " runs groups of pp = " + std::to_string(s.pp) + " micro-batches only");
    } else if (group < s.pp || group > s.micro_batch_num) {
      problem("micro_batch_group", Errc::out_of_range,
              "a group of " + std::to_string(group) + " micro-batches does not lie between pp = " + std::to_string(s.pp) + " and the " +
                  std::to_string(s.micro_batch_num) + " micro-batches of a step");
    } else {
      s.micro_batch_group = static_cast<int>(group);
    }
  }

  void sequence() {
    const std::int64_t longest = model_.max_positions > 0 ? model_.max_positions : kDefaultSequence;
    run_.seq_length = stated_or("seq_length", spec_.seq_length, std::min(longest, kDefaultSequence));
    const auto& s = run_.strategy;
    if (run_.seq_length % s.cp != 0)
      problem("cp", Errc::out_of_range, "the sequence of " + std::to_string(run_.seq_length) + " tokens is no multiple of cp " + std::to_string(s.cp));
  }

  void layers() {
    const auto& s = run_.strategy;
    run_.layer_split = profile_.can.layer_split;
    run_.layers_per_chunk = spec_.layers_per_chunk;
    if (run_.layers_per_chunk.empty()) return;
    if (static_cast<int>(run_.layers_per_chunk.size()) != s.vpp) {
      problem("layers_per_chunk", Errc::conflict,
              "the layout has " + std::to_string(run_.layers_per_chunk.size()) + " chunks a stage, vpp is " + std::to_string(s.vpp));
      return;
    }
    std::int64_t sum = 0;
    for (const auto& chunk : run_.layers_per_chunk) {
      if (static_cast<int>(chunk.size()) != s.pp) {
        problem("layers_per_chunk", Errc::conflict,
                "the layout has " + std::to_string(chunk.size()) + " entries for " + std::to_string(s.pp) + " stages");
        return;
      }
      for (const auto count : chunk) {
        if (count < 0 || count > model_.layers()) {
          problem("layers_per_chunk", Errc::out_of_range, "a stage with " + std::to_string(count) + " layers");
          return;
        }
        sum += count;
      }
    }
    if (sum != model_.layers())
      problem("layers_per_chunk", Errc::conflict,
              "the layout holds " + std::to_string(sum) + " layers, the model " + std::to_string(model_.layers()));
  }

  void recompute() {
    auto& s = run_.strategy;
    run_.full_recompute_layers = spec_.full_recompute_layers;
    run_.layer_modes = spec_.layer_modes;
    run_.selective_recompute_layers = spec_.selective_recompute_layers;
    for (const auto& [field, list] : {std::pair{"full_recompute_layers", &run_.full_recompute_layers},
                                      std::pair{"selective_recompute_layers", &run_.selective_recompute_layers}})
      if (!list->empty() && static_cast<int>(list->size()) != s.pp)
        problem(field, Errc::conflict, std::to_string(list->size()) + " entries for " + std::to_string(s.pp) + " stages");
    const bool listed = !run_.full_recompute_layers.empty() || !run_.selective_recompute_layers.empty();
    if (!spec_.recompute && !listed) defaulted("recompute");
    s.recompute = spec_.recompute.value_or(Recompute::off);
  }

  void numbers() {
    run_.compute_dtype = spec_.compute_dtype.value_or(Dtype::bf16);
    if (!spec_.compute_dtype) defaulted("compute_dtype");
    run_.gemm_dtype = spec_.gemm_dtype.value_or(run_.compute_dtype);
    run_.hidden_dropout = spec_.hidden_dropout_on.value_or(true) ? model_.hidden_dropout : 0.0;
    run_.attention_dropout = spec_.attention_dropout_on.value_or(true) ? model_.attention_dropout : 0.0;
    if (spec_.capacity_factor && !(*spec_.capacity_factor > 0 && *spec_.capacity_factor < 1e6))
      problem("capacity_factor", Errc::out_of_range, "must be positive");
    run_.capacity_factor = spec_.capacity_factor.value_or(1.0);
    run_.expert_imbalance = spec_.expert_imbalance.value_or(profile_.memory.expert_imbalance);
    expert_load();
    if (spec_.expert_keep_limit && !(*spec_.expert_keep_limit > 0 && *spec_.expert_keep_limit < 1e6))
      problem("expert_keep_limit", Errc::out_of_range, "must be positive");
    run_.expert_keep_limit = spec_.expert_keep_limit.value_or(0.0);
    run_.frozen_base = spec_.frozen_base.value_or(false);
    run_.trained_parameters = spec_.trained_parameters.value_or(0.0);
    run_.base_weight_bytes = spec_.base_weight_bytes.value_or(2.0);
    run_.device_memory = spec_.device_memory.value_or(Bytes{});
    if (spec_.device_memory && !(spec_.device_memory->value > 0)) problem("device_memory", Errc::out_of_range, "must be positive");
  }

  void expert_load() {
    if (!spec_.expert_load) return;
    if (!model_.has_experts()) {
      problem("expert_load", Errc::conflict, "a distribution over experts for a model without experts");
      return;
    }
    for (const auto& kind : model_.kinds) {
      if (kind.ffn.kind != FfnKind::moe) continue;
      auto shares = expert_shares(*spec_.expert_load, kind.ffn.experts);
      if (shares.empty()) {
        problem("expert_load", Errc::conflict,
                std::to_string(spec_.expert_load->shares.size()) + " shares for " + std::to_string(kind.ffn.experts) + " experts",
                "one number per expert of a layer");
        return;
      }
      run_.expert_load = std::move(shares);
    }
  }

  const RunSpec& spec_;
  const ResolvedModel& model_;
  const FrameworkProfile& profile_;
  ResolvedRun run_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

const char* to_text(OptimizerKind kind) {
  constexpr std::array<const char*, 5> kText{"adamw", "adamw_bf16_states", "adamw_8bit", "sgd", "muon"};
  return kText.at(static_cast<std::size_t>(kind));
}

const char* to_text(Origin::Kind kind) {
  constexpr std::array<const char*, 5> kText{"file", "flag", "profile", "device", "default"};
  return kText.at(static_cast<std::size_t>(kind));
}

FrameworkProfile effective_profile(FrameworkProfile profile, const RunSpec& spec) {
  auto& memory = profile.memory;
  if (spec.flash_attention) memory.flash_attention = *spec.flash_attention;
  if (spec.expert_imbalance) memory.expert_imbalance = *spec.expert_imbalance;
  if (spec.param_bytes) {
    memory.weight_bytes = *spec.param_bytes;
    if (*spec.param_bytes >= 4) memory.main_bytes = 0;  // the stored fp32 weights are the main copy
  }
  return profile;
}

Result<ResolvedRun> resolve_run(const RunSpec& spec, const ResolvedModel& model, const FrameworkProfile& profile) {
  return Resolver(spec, model, profile).resolve();
}

}  // namespace nd
