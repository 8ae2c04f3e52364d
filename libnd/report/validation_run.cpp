// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/text.hpp"
#include "formats/adapters.hpp"
#include "nd/schedule.hpp"
#include "report/validation_layers.hpp"
#include "report/validation_mapping.hpp"

namespace nd::report {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;  // ranks, sequences; beyond any cluster or batch

constexpr std::int64_t kLongSequence = 4096;  // tokens per rank, those that share them by tensor parallelism counted

/// What the row says about degrees, with 1 for what it leaves out.
struct Degrees {
  std::int64_t dp = 1, tp = 1, pp = 1, cp = 1, devices = 1;
};

std::string read_degrees(const MeasuredRow& row, Degrees& out) {
  if (!row.devices) return "device count not stated";
  if (!row.dp && !row.tp && !row.pp) return "parallel degrees not stated";
  out.devices = *row.devices;
  out.tp = row.tp.value_or(1);
  out.pp = row.pp.value_or(1);
  out.cp = row.cp.value_or(1);
  for (const std::int64_t degree : {out.devices, out.tp, out.pp, out.cp, row.dp.value_or(1)})
    if (degree < 1 || degree > kLargest) return "a parallel degree out of range";
  const std::int64_t inner = out.tp * out.pp * out.cp;
  out.dp = row.dp.value_or(out.devices % inner == 0 ? out.devices / inner : 0);
  if (out.dp * inner != out.devices)
    return "dp x tp x pp x cp = " + std::to_string(out.dp * inner) + " is not the " + std::to_string(out.devices) + " devices";
  return {};
}

struct Batch {
  std::int64_t mbs = 1, gbs = 1;
};

std::string read_batch(const MeasuredRow& row, const RowSettings& settings, const Degrees& degrees, MappedRow& out) {
  Batch batch;
  const auto stated = row.mbs ? row.mbs : setting_integer(settings, "mbs");
  if (!stated && degrees.pp > 1) return "micro-batch size not stated for a pipeline";
  // With few tokens a rank the step time hangs on the micro-batch size; one long sequence fills a device by itself.
  if (!stated && *out.run.seq_length / (degrees.cp * degrees.tp) < kLongSequence) return "micro-batch size not stated";
  if (!stated) out.assumptions.emplace_back("micro-batch size taken as 1");
  batch.mbs = stated.value_or(1);
  if (!row.gbs && degrees.pp > 1) return "global batch size not stated for a pipeline";
  if (!row.gbs) out.assumptions.emplace_back("global batch taken as one micro-batch per rank");
  if (batch.mbs < 1 || batch.mbs > kLargest) return "micro-batch size out of range";
  batch.gbs = row.gbs.value_or(batch.mbs * degrees.dp);
  if (batch.gbs < 1 || batch.gbs > kLargest) return "global batch size out of range";
  if (batch.gbs % (batch.mbs * degrees.dp) != 0)
    return "global batch " + std::to_string(batch.gbs) + " is no multiple of dp " + std::to_string(degrees.dp) + " x micro-batch " +
           std::to_string(batch.mbs);
  out.run.micro_batch_size = batch.mbs;
  out.run.global_batch_size = batch.gbs;
  return {};
}

std::string read_dtype(const std::string& text, RunSpec& run) {
  struct Entry {
    std::string_view name;
    Dtype compute, gemm;
  };
  // mxfp8 and nvfp4 are block-scaled recipes: the large products run in 8 / 4 bit, everything else stays 16-bit.
  constexpr std::array<Entry, 8> kTypes{{{"bf16", Dtype::bf16, Dtype::bf16},
                                         {"fp16", Dtype::fp16, Dtype::fp16},
                                         {"fp32", Dtype::fp32, Dtype::fp32},
                                         {"tf32", Dtype::tf32, Dtype::tf32},
                                         {"fp8", Dtype::bf16, Dtype::fp8},
                                         {"mxfp8", Dtype::bf16, Dtype::fp8},
                                         {"nvfp4", Dtype::bf16, Dtype::fp4},
                                         {"fp4", Dtype::bf16, Dtype::fp4}}};
  if (text.empty()) return {};
  const auto known = std::find_if(kTypes.begin(), kTypes.end(), [&](const Entry& entry) { return entry.name == text; });
  if (known == kTypes.end()) return "data type '" + text + "' not understood";
  run.compute_dtype = known->compute;
  run.gemm_dtype = known->gemm;
  return {};
}

void read_layout(const RowSettings& settings, StageGrid& grid, MappedRow& out) {
  if (const std::string text = setting_text(settings, "layer_list"); !text.empty()) {
    const auto list = parse_layer_list(text);
    const auto chunks = list ? chunks_from_list(*list, grid) : std::nullopt;
    if (chunks) out.run.layers_per_chunk = *chunks;
    else out.assumptions.push_back("layer list '" + text + "' does not fit the layers and stages, even split taken");
  }
  if (const std::string text = setting_text(settings, "pipeline_layout"); !text.empty()) {
    const auto layout = parse_custom_layout(text, grid);
    if (layout) {
      out.run.layers_per_chunk = layout->chunks;
      if (layout->mtp > 0) out.model.mtp_depth = layout->mtp;
    } else {
      out.assumptions.push_back("pipeline layout '" + text + "' does not fit the layers and stages, even split taken");
    }
  }
  if (const std::string text = setting_text(settings, "noop_layers"); !text.empty()) {
    const auto list = parse_layer_list(text);
    const auto layout = list ? layout_with_noops(*list, grid) : std::nullopt;
    if (layout) {
      out.run.layers_per_chunk = layout->chunks;
      out.model.num_hidden_layers = grid.layers = layout->layers;
    } else {
      out.assumptions.push_back("no-op layers '" + text + "' do not fit, ignored");
    }
  }
}

std::optional<Recompute> recompute_mode(const std::string& text) {
  if (text == "none" || text == "off") return Recompute::off;
  if (text == "selective") return Recompute::selective;
  if (text == "full" || text == "partial" || text == "block" || text == "uniform") return Recompute::full;
  return std::nullopt;
}

std::string read_recompute(const MeasuredRow& row, const RowSettings& settings, const StageGrid& grid, MappedRow& out) {
  const std::string set = setting_text(settings, "recompute");
  const std::string& stated = set.empty() ? row.recompute : set;
  auto mode = recompute_mode(stated);
  if (!mode && !stated.empty()) return "recompute '" + stated + "' not understood";
  if (!mode) {
    mode = Recompute::off;
    out.assumptions.emplace_back("recompute not stated, none assumed");
  }
  out.run.recompute = mode;
  const auto stages = static_cast<std::size_t>(grid.pp);
  if (const auto list = parse_layer_list(setting_text(settings, "recompute_list")); list && list->size() == stages)
    out.run.full_recompute_layers = *list;
  if (const auto list = parse_layer_list(setting_text(settings, "selective_list")); list && list->size() == stages)
    out.run.selective_recompute_layers = *list;
  if (*mode != Recompute::full) return {};
  std::optional<std::int64_t> per_stage = setting_integer(settings, "recompute_per_rank");
  if (const auto block = setting_integer(settings, "recompute_block"); block && !per_stage) per_stage = *block * grid.vpp;
  if (!per_stage || *per_stage < 0) return {};
  const std::vector<std::int64_t> layers = stage_layers(out.run.layers_per_chunk, grid);
  out.run.full_recompute_layers.clear();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::int64_t most = layers.empty() ? grid.layers / grid.pp : layers[stage];
    out.run.full_recompute_layers.push_back(std::min(*per_stage, most));
  }
  return {};
}

std::string read_sharding(const MeasuredRow& row, const RowSettings& settings, const Degrees& degrees, MappedRow& out) {
  const std::string text = row.zero.empty() ? setting_text(settings, "zero") : row.zero;
  if (text.empty()) {
    out.assumptions.emplace_back("optimizer sharding not stated, the framework's default taken");
    return {};
  }
  const auto shard = parse_sharding(text);
  if (!shard) return "sharding '" + text + "' not understood";
  out.run.zero = shard->level;
  const std::int64_t group = degrees.dp * degrees.cp;
  std::int64_t ranks = shard->ranks > 0 ? std::min(shard->ranks, group) : 0;
  if (const auto instances = setting_integer(settings, "op"); instances && *instances > 0 && group % *instances == 0)
    ranks = group / *instances;
  if (shard->level != ZeroLevel::none && ranks > 0 && group % ranks == 0) out.run.optimizer_shard = ranks;
  return {};
}

void read_reading(const MeasuredRow& row, const RowSettings& settings, MemoryReading& reading) {
  // The extra column, when a table has it, says it in the same words: "allocated last_stage first_iteration".
  std::vector<std::string> words{setting_text(settings, "counter"), setting_text(settings, "stage"), setting_text(settings, "time")};
  for (const std::string& word : core::split(row.reading, ' ')) words.push_back(word);
  for (const std::string& word : words) {
    if (word == "allocated") reading.counter = MemoryCounter::allocated;
    if (word == "reserved") reading.counter = MemoryCounter::reserved;
    if (word == "device") reading.counter = MemoryCounter::device;
    if (word == "maximum") reading.stage = MemoryStage::maximum;
    if (word == "this_rank") reading.stage = MemoryStage::this_rank;
    if (word == "first_stage") reading.stage = MemoryStage::first_stage;
    if (word == "last_stage") reading.stage = MemoryStage::last_stage;
    if (word == "steady") reading.time = ReadingTime::steady;
    if (word == "first_iteration") reading.time = ReadingTime::first_iteration;
  }
}

void read_features_of_run(const RowSettings& settings, MappedRow& out) {
  RunSpec& run = out.run;
  run.etp = setting_integer(settings, "etp");
  run.flash_attention = setting_flag(settings, "flash_attention");
  run.expert_imbalance = setting_real(settings, "expert_imbalance");
  run.expert_keep_limit = setting_real(settings, "expert_keep_limit");
  run.capacity_factor = setting_real(settings, "capacity_factor");
  run.param_bytes = setting_real(settings, "param_bytes");
  out.node_gbit = setting_real(settings, "node_gbit");
  const std::string cp = setting_text(settings, "cp_algorithm");
  if (cp == "ring") run.cp_algorithm = CpAlgorithm::ring;
  if (cp == "all_gather") run.cp_algorithm = CpAlgorithm::all_gather;
  if (cp == "ulysses") run.cp_algorithm = CpAlgorithm::ulysses;
  const std::string optimizer = setting_text(settings, "optimizer");
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adamw_bf16_states, OptimizerKind::adamw_8bit, OptimizerKind::sgd,
                                   OptimizerKind::muon})
    if (optimizer == to_text(kind)) run.optimizer = kind;
  run.micro_batch_group = setting_integer(settings, "micro_batch_group");
  run.schedule = find_schedule(setting_text(settings, "schedule"));
  if (!setting_flag(settings, "frozen_base").value_or(false)) return;
  run.frozen_base = true;
  run.base_weight_bytes = setting_real(settings, "base_weight_bytes");
  std::string targets = setting_text(settings, "lora_targets");
  if (targets.empty()) targets = "qkv o fc1 fc2";  // every linear layer, the default of NeMo and MindSpeed recipes
  run.trained_parameters = adapter_elements(out.model, setting_integer(settings, "lora_rank").value_or(16), targets);
}

}  // namespace

std::optional<ShardSpec> parse_sharding(const std::string& text) {
  const auto slash = text.find('/');
  const std::string name = core::canonical_name(text.substr(0, slash));
  ShardSpec out;
  if (name == "none" || name == "zero0") out.level = ZeroLevel::none;
  else if (name == "zero1") out.level = ZeroLevel::optimizer;
  else if (name == "zero2") out.level = ZeroLevel::gradients;
  else if (name == "zero3" || name == "fsdp" || name == "fsdp2") out.level = ZeroLevel::parameters;
  else return std::nullopt;
  if (slash == std::string::npos) return out;
  const auto ranks = core::parse_integer(text.substr(slash + 1));
  if (!ranks || *ranks < 1) return std::nullopt;
  out.ranks = *ranks;
  return out;
}

std::string map_run(const MeasuredRow& row, const RowSettings& settings, MappedRow& out) {
  Degrees degrees;
  if (std::string reason = read_degrees(row, degrees); !reason.empty()) return reason;
  const auto longest = setting_real(settings, "longest_seq_len");
  const auto length = longest ? longest : row.seq_len ? row.seq_len : setting_real(settings, "seq_len");
  if (!length || *length < 1 || *length > static_cast<double>(kLargest)) return "sequence length not stated";
  RunSpec& run = out.run;
  run.seq_length = std::llround(*length);
  // A sequence that cp does not divide is padded by every trainer.
  if (*run.seq_length % degrees.cp != 0) run.seq_length = (*run.seq_length / degrees.cp + 1) * degrees.cp;
  if (std::string reason = read_batch(row, settings, degrees, out); !reason.empty()) return reason;
  if (std::string reason = read_sharding(row, settings, degrees, out); !reason.empty()) return reason;
  run.devices = degrees.devices;
  run.dp = degrees.dp;
  run.tp = degrees.tp;
  run.pp = degrees.pp;
  run.cp = degrees.cp;
  const auto vpp = setting_integer(settings, "vpp");
  run.vpp = degrees.pp > 1 ? (vpp ? *vpp : row.vpp.value_or(1)) : 1;
  run.ep = out.model.num_experts ? row.ep.value_or(1) : 1;
  run.sequence_parallel = row.sp ? row.sp : setting_flag(settings, "sp");
  if (std::string reason = read_dtype(row.dtype, run); !reason.empty()) return reason;
  // A layout string says how many chunks there are, whatever the vpp column holds.
  if (const auto parts = layout_parts(setting_text(settings, "pipeline_layout")); parts && *parts % degrees.pp == 0)
    run.vpp = *parts / degrees.pp;
  StageGrid grid{*out.model.num_hidden_layers, degrees.pp, *run.vpp};
  read_layout(settings, grid, out);
  if (std::string reason = read_recompute(row, settings, grid, out); !reason.empty()) return reason;
  read_features_of_run(settings, out);
  read_reading(row, settings, out.reading);
  return {};
}

MappedRow map_row(const MeasuredRow& row, const RuleBook& book) {
  MappedRow out;
  const RowSettings settings = collect_settings(row, book);
  out.device = row.device;
  out.framework = settings.framework.empty() ? "generic" : settings.framework;
  out.version = settings.version;
  out.features = settings.features;
  const std::string use = setting_text(settings, "use");
  out.memory_only = use == "memory_only";
  out.no_time = use == "no_time";
  out.no_memory = use == "no_memory";
  out.skip = settings.skip;
  if (settings.framework.empty()) out.assumptions.emplace_back("framework unknown, generic profile taken");
  if (out.skip.empty() && row.device.empty()) out.skip = "device not stated";
  if (out.skip.empty()) out.skip = map_model(row, book, settings, out);
  if (out.skip.empty()) out.skip = map_run(row, settings, out);
  out.run.device_type = row.device;
  out.run.framework = out.framework;
  out.run.framework_version = out.version;
  out.run.features = out.features;
  return out;
}

}  // namespace nd::report
