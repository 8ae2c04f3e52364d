// SPDX-License-Identifier: Apache-2.0
// The JSON of MindSpeed (multi-modal): a section of degrees and one section per module.
#include <algorithm>
#include <numeric>

#include "core/integer.hpp"
#include "formats/megatron/reader.hpp"
#include "formats/model_fields.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/ops.hpp"

namespace nd::formats {

namespace {

using Counts = std::vector<std::int64_t>;

constexpr std::int64_t kMostRanks = 1 << 20;
/// What the trainer's own tools plan with on every card [ancestor: cost_model_parser_mindspeed]; GB of 2^30 bytes.
constexpr const char* kDeviceMemory = "55GB";

/// Every nested mapping with a model_id, in the order of the file.
void find_modules(const ConfigNode& node, int depth, std::vector<const ConfigNode*>& out) {
  constexpr int kDeepest = 20;
  constexpr std::size_t kMost = 64;
  if (depth > kDeepest) return;
  for (const auto& [key, value] : node.members) {
    if (!value.is_mapping() || out.size() >= kMost) continue;
    const auto* const id = value.find("model_id");
    if (id != nullptr && id->is_scalar() && !id->text.empty()) out.push_back(&value);
    find_modules(value, depth + 1, out);
  }
}

/// One module: a model of its own.
struct Module {
  ModelSpec spec;
  FieldPlaces places;
  bool frozen = false;
};

class ModuleReader {
 public:
  ModuleReader(const ConfigNode& node, Findings& findings) : map_(node, findings.problems), findings_(findings) {}

  Module read() {
    Module out;
    out.spec.name = map_.string("model_id").value_or("");
    out.frozen = map_.boolean("freeze").value_or(false);
    auto& spec = out.spec;
    const auto count = [&](const char* key, const char* field, std::optional<std::int64_t> ModelSpec::*member) {
      auto value = map_.integer(key);
      if (value && *value < 0) map_.error(key, Errc::out_of_range, "must be at least 0, is " + std::to_string(*value)), value.reset();
      if (!value || *value == 0) return;  // 0 is how the file says "none"
      spec.*member = value;
      out.places[field] = map_.where(key);
    };
    for (const char* const key : {"num_layers", "hidden_size", "num_attention_heads"}) map_.require(key, "the shape of the module");
    count("num_layers", "num_hidden_layers", &ModelSpec::num_hidden_layers);
    count("hidden_size", "hidden_size", &ModelSpec::hidden_size);
    count("ffn_hidden_size", "intermediate_size", &ModelSpec::intermediate_size);
    count("vocab_size", "vocab_size", &ModelSpec::vocab_size);
    count("num_attention_heads", "num_attention_heads", &ModelSpec::num_attention_heads);
    count("num_query_groups", "num_key_value_heads", &ModelSpec::num_key_value_heads);
    count("kv_channels", "head_dim", &ModelSpec::head_dim);
    count("k_lora_rank", "kv_lora_rank", &ModelSpec::kv_lora_rank);
    count("kv_lora_rank", "kv_lora_rank", &ModelSpec::kv_lora_rank);
    count("q_lora_rank", "q_lora_rank", &ModelSpec::q_lora_rank);
    count("qk_rope_head_dim", "qk_rope_head_dim", &ModelSpec::qk_rope_head_dim);
    count("qk_nope_head_dim", "qk_nope_head_dim", &ModelSpec::qk_nope_head_dim);
    count("v_head_dim", "v_head_dim", &ModelSpec::v_head_dim);
    count("moe_intermediate_size", "moe_intermediate_size", &ModelSpec::moe_intermediate_size);
    count("n_shared_exp", "num_shared_experts", &ModelSpec::num_shared_experts);
    count("first_k_dense_replace", "first_k_dense_replace", &ModelSpec::first_k_dense_replace);
    count("mtp_num_layers", "mtp_depth", &ModelSpec::mtp_depth);
    if (map_.boolean("qk_layernorm").value_or(false)) spec.qk_norm = true;
    experts(spec);
    if (!spec.num_key_value_heads) spec.num_key_value_heads = spec.num_attention_heads;
    map_.ignore({"tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size", "sequence_parallel", "pipeline_num_layers",
                 "recompute_num_layers", "params_dtype", "attention_softmax_in_fp32", "moe_grouped_gemm"});
    note_rest();
    return out;
  }

 private:
  void experts(ModelSpec& spec) {
    const auto experts = map_.integer("num_moe_experts"), chosen = map_.integer("moe_router_topk");
    if (experts && *experts > 1) {
      spec.num_experts = experts;
      spec.num_experts_per_tok = std::max<std::int64_t>(1, chosen.value_or(1));
      if (!spec.moe_intermediate_size) spec.moe_intermediate_size = spec.intermediate_size;
      if (spec.num_shared_experts) spec.shared_expert_intermediate_size = spec.moe_intermediate_size;
      return;
    }
    for (auto* const field : {&spec.moe_intermediate_size, &spec.num_shared_experts, &spec.first_k_dense_replace}) field->reset();
  }

  void note_rest() {
    std::string rest;
    for (const auto& [key, value] : map_.node().members)
      if (map_.known().count(key) == 0 && !value.is_mapping()) rest += (rest.empty() ? "" : ", ") + key.substr(0, 60);
    constexpr std::size_t kLongest = 600;
    if (!rest.empty()) findings_.note(map_.node().where, "read by nobody, no part of the price: " + rest.substr(0, kLongest));
  }

  MapReader map_;
  Findings& findings_;
};

class MindSpeedReader {
 public:
  MindSpeedReader(const ConfigNode& root, const DataStore& data) : root_(root), data_(data) {}

  Result<Request> read() {
    std::vector<const ConfigNode*> nodes;
    find_modules(root_, 0, nodes);
    if (nodes.empty())
      findings_.problems.push_back(make_diagnostic(Errc::missing_field, root_.where, "no section with a model_id is there", "a module is a section with model_id, num_layers, ..."));
    std::vector<Module> modules;
    for (const auto* node : nodes) modules.push_back(ModuleReader(*node, findings_).read());
    Request out;
    if (!nodes.empty()) {
      const std::size_t main = main_module(nodes);
      MapReader module(*nodes[main], findings_.problems);
      degrees(module, out.run);
      stage_lists(module, modules[main].spec, out.run);
      widths(module, out.run);
      family(modules[main].spec);
      towers(modules, main);
      if (findings_.problems.empty())
        for (auto& problem : model_problems(modules[main].spec, *nodes[main], modules[main].places)) findings_.problems.push_back(std::move(problem));
      out.model = std::move(modules[main].spec);
    }
    if (!findings_.problems.empty()) return Error(std::move(findings_.problems));
    out.notes = std::move(findings_.notes);
    return out;
  }

 private:
  [[nodiscard]] std::size_t main_module(const std::vector<const ConfigNode*>& nodes) const {
    const std::string path = main_module_path(root_);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i]->where.path == path) return i;
    return 0;
  }

  void degree(MapReader& tmp, MapReader& module, const char* key, const char* other, const char* field, std::optional<std::int64_t> RunSpec::*member, RunSpec& run) {
    auto value = tmp.integer(key);
    if (value && (*value < 0 || *value > kMostRanks)) tmp.error(key, Errc::out_of_range, "must be from 1 to " + std::to_string(kMostRanks) + ", is " + std::to_string(*value)), value = 1;
    const auto own = *other == '\0' ? std::optional<std::int64_t>() : module.integer(other);
    if (own && *own > kMostRanks) module.error(other, Errc::out_of_range, "is too large: " + std::to_string(*own));
    // Stated twice, the larger counts; 0 is how the file says "not stated".
    const bool of_module = own && *own <= kMostRanks && *own > value.value_or(0);
    const std::int64_t degree = std::max<std::int64_t>(1, of_module ? *own : value.value_or(1));
    state(run, field, member, std::optional<std::int64_t>(degree), of_module ? module.where(other) : tmp.where(key));
  }

  void degrees(MapReader& module, RunSpec& run) {
    const auto* const section = root_.find("tmp");
    static const ConfigNode kNothing = [] {
      ConfigNode out;
      out.kind = NodeKind::mapping;
      return out;
    }();
    MapReader tmp(section != nullptr ? *section : kNothing, findings_.problems);
    run.framework = "mindspeed-llm";
    degree(tmp, module, "dp", "", "dp", &RunSpec::dp, run);
    degree(tmp, module, "tp", "tensor_model_parallel_size", "tp", &RunSpec::tp, run);
    degree(tmp, module, "pp", "pipeline_model_parallel_size", "pp", &RunSpec::pp, run);
    degree(tmp, module, "cp", "", "cp", &RunSpec::cp, run);
    degree(tmp, module, "ep", "expert_model_parallel_size", "ep", &RunSpec::ep, run);
    degree(tmp, module, "vpp", "", "vpp", &RunSpec::vpp, run);
    degree(tmp, module, "mbs", "", "micro_batch_size", &RunSpec::micro_batch_size, run);
    if (const auto etp = tmp.integer("etp"); etp && *etp > 0 && *etp <= kMostRanks) state(run, "etp", &RunSpec::etp, etp, tmp.where("etp"));
    tmp.require("seqlen", "tokens of a sequence");
    state(run, "seq_length", &RunSpec::seq_length, tmp.positive("seqlen"), tmp.where("seqlen"));
    tmp.finish();
    const auto product = [](std::initializer_list<std::int64_t> factors) {
      std::optional<std::int64_t> out = 1;
      for (const auto factor : factors) out = out ? core::multiply(*out, factor) : out;
      return out && *out <= (std::int64_t{1} << 30) ? out : std::nullopt;
    };
    const auto devices = product({*run.dp, *run.tp, *run.pp, *run.cp});
    const auto batch = product({*run.dp, *run.micro_batch_size, *run.pp});
    if (!devices || !batch) return tmp.error("dp", Errc::out_of_range, "the degrees multiply to more than any cluster has");
    const SourceRef where = tmp.node().where;
    state(run, "devices", &RunSpec::devices, devices, where);
    // The file has no batch: the trainer runs as many micro-batches as there are stages.
    run.micro_batch_num = *run.pp;
    state(run, "global_batch_size", &RunSpec::global_batch_size, batch, where);
    run.schedule = *run.vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
    if (const auto sequence = module.boolean("sequence_parallel")) state(run, "sequence_parallel", &RunSpec::sequence_parallel, std::optional<bool>(*sequence && *run.tp > 1), module.where("sequence_parallel"));
    else run.sequence_parallel = false;
    run.cp_algorithm = CpAlgorithm::all_gather;  // of other degrees too: the file has no word for another
    // What the trainer does whatever the file says.
    run.zero = ZeroLevel::optimizer;
    run.optimizer_shard = *run.dp;
    run.flash_attention = true;
    run.compute_dtype = Dtype::bf16;
    run.optimizer = OptimizerKind::adamw;
    run.device_memory = parse_memory(kDeviceMemory);
    for (const char* const field : {"zero", "optimizer_shard", "flash_attention", "compute_dtype", "optimizer", "device_memory", "micro_batch_num"})
      run.origins[field] = {Origin::Kind::profile, where};
  }

  /// pipeline_num_layers and recompute_num_layers: a count, one per stage, or [chunk][stage].
  void stage_lists(MapReader& module, const ModelSpec& spec, RunSpec& run) {
    const auto layers = counts(module, "pipeline_num_layers", run);
    if (!layers.empty()) {
      std::int64_t sum = 0;
      for (const auto& chunk : layers) sum = std::accumulate(chunk.begin(), chunk.end(), sum);
      if (spec.num_hidden_layers && sum != *spec.num_hidden_layers)
        module.error("pipeline_num_layers", Errc::conflict, "the stages hold " + std::to_string(sum) + " layers, the module has " + std::to_string(*spec.num_hidden_layers));
      run.layers_per_chunk = layers;
      run.origins["layers_per_chunk"] = {Origin::Kind::file, module.where("pipeline_num_layers")};
    }
    const auto full = counts(module, "recompute_num_layers", run);
    if (full.empty()) {
      run.recompute = Recompute::off;
      return;
    }
    Counts per_stage(static_cast<std::size_t>(*run.pp), 0);
    for (const auto& chunk : full)
      for (std::size_t stage = 0; stage < chunk.size(); ++stage) per_stage[stage] += chunk[stage];
    const bool any = std::any_of(per_stage.begin(), per_stage.end(), [](std::int64_t n) { return n > 0; });
    state(run, "recompute", &RunSpec::recompute, std::optional<Recompute>(any ? Recompute::full : Recompute::off), module.where("recompute_num_layers"));
    if (any) {
      run.full_recompute_layers = per_stage;
      run.origins["full_recompute_layers"] = {Origin::Kind::file, module.where("recompute_num_layers")};
    }
  }

  static bool count_list(const ConfigNode& node, Counts& out) {
    constexpr std::int64_t kMostLayers = 1 << 16;
    for (const auto& item : node.items) {
      const auto value = as_integer(item);
      if (!value || *value < 0 || *value > kMostLayers) return false;
      out.push_back(*value);
    }
    return true;
  }

  std::vector<Counts> counts(MapReader& module, const char* key, const RunSpec& run) {
    const ConfigNode* const node = module.child(key);
    if (node == nullptr) return {};
    const auto stages = static_cast<std::size_t>(*run.pp), chunks = static_cast<std::size_t>(*run.vpp);
    constexpr std::size_t kMostChunks = 1 << 12;
    if (stages * chunks > kMostChunks) {
      module.error(key, Errc::out_of_range, "for more stages than any pipeline has");
      return {};
    }
    std::vector<Counts> out;
    const auto refuse = [&](const std::string& message) {
      module.error(key, Errc::conflict, message, "a count, a list with one per stage, or one such list per chunk");
      return std::vector<Counts>{};
    };
    if (const auto same = as_integer(*node)) {
      if (*same < 0 || *same > (1 << 16)) return refuse("must be a count of layers, is " + describe(*node));
      out.assign(chunks, Counts(stages, *same));
      return out;
    }
    if (!node->is_sequence() || node->items.empty()) return refuse("must be a count or a list, is " + describe(*node));
    const bool nested = node->items.front().is_sequence();
    if (nested) {
      for (const auto& list : node->items) {
        out.emplace_back();
        if (!list.is_sequence() || !count_list(list, out.back())) return refuse("has an entry that is no count of layers");
      }
    } else {
      Counts flat;
      if (!count_list(*node, flat)) return refuse("has an entry that is no count of layers");
      if (flat.size() == stages && chunks > 1) {
        // A list for the stages of a pipeline of chunks: even over the chunks, the rest on the first.
        out.assign(chunks, Counts(stages, 0));
        for (std::size_t stage = 0; stage < stages; ++stage)
          for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const auto n = static_cast<std::int64_t>(chunks), v = static_cast<std::int64_t>(chunk);
            out[chunk][stage] = flat[stage] / n + (v < flat[stage] % n ? 1 : 0);
          }
      } else {
        out.push_back(std::move(flat));
      }
    }
    if (out.size() != chunks) return refuse("has " + std::to_string(out.size()) + " lists for " + std::to_string(chunks) + " chunks a stage");
    for (const auto& chunk : out)
      if (chunk.size() != stages) return refuse("has " + std::to_string(chunk.size()) + " entries for " + std::to_string(stages) + " stages");
    return out;
  }

  void widths(MapReader& module, RunSpec& run) {
    module.require("params_dtype", "the width of the weights");
    if (const auto name = module.string("params_dtype")) {
      const auto bytes = dtype_bytes(*name);
      if (!bytes) module.error("params_dtype", Errc::out_of_range, "'" + *name + "' is no dtype", "bf16, fp16, fp32");
      state(run, "param_bytes", &RunSpec::param_bytes, bytes, module.where("params_dtype"));
    }
    const bool fp32 = module.boolean("attention_softmax_in_fp32").value_or(false);
    state(run, "softmax_bytes", &RunSpec::softmax_bytes, std::optional<double>(fp32 ? 4.0 : 2.0), module.where("attention_softmax_in_fp32"));
    const bool moe = module.integer("num_moe_experts").value_or(0) > 1;
    if (!moe) run.etp.reset();
    if (!moe && run.ep.value_or(1) > 1) {
      findings_.warn(Errc::conflict, module.where("expert_model_parallel_size"), "expert parallelism for a model without experts is priced as none");
      run.ep = 1;
    }
  }

  /// What the file leaves out (biases, norms, gate) is the family's.
  void family(ModelSpec& spec) {
    spec.model_type = spec.kv_lora_rank ? "deepseek_v3" : "llama";
    const auto filled = data_.with_family_defaults(spec, findings_.notes);
    if (filled) spec = *filled;
    else findings_.problems.insert(findings_.problems.end(), filled.error().diagnostics.begin(), filled.error().diagnostics.end());
  }

  void towers(std::vector<Module>& modules, std::size_t main) {
    if (modules.size() < 2) return;
    std::int64_t parameters = 0;
    std::string names;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      if (i == main) continue;
      ModelSpec spec = modules[i].spec;
      names += (names.empty() ? "" : ", ") + spec.name;
      if (!spec.vocab_size) spec.vocab_size = 1;  // a tower has no table
      family(spec);
      if (const auto model = resolve_model(spec)) parameters += count_parameters(*model).total;
    }
    modules[main].spec.vision_parameters = parameters;
    findings_.warn(Errc::unsupported, root_.where, "priced is the module with the vocabulary; of the others only the parameters count: " + names.substr(0, 200));
  }

  const ConfigNode& root_;
  const DataStore& data_;
  Findings findings_;
};

}  // namespace

std::string main_module_path(const ConfigNode& root) {
  std::vector<const ConfigNode*> nodes;
  find_modules(root, 0, nodes);
  // The module with a vocabulary; of several the last, which is what the others feed.
  for (std::size_t i = nodes.size(); i > 0; --i) {
    const auto* const vocabulary = nodes[i - 1]->find("vocab_size");
    if (vocabulary != nullptr && as_integer(*vocabulary).value_or(0) > 0) return nodes[i - 1]->where.path;
  }
  return nodes.empty() ? std::string() : nodes.back()->where.path;
}

Result<Request> read_mindspeed(const ConfigNode& root, const std::string&, const DataStore& data, const ReadOptions&) { return MindSpeedReader(root, data).read(); }

}  // namespace nd::formats
