// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/model_fields.hpp"
#include "formats/readers/hyper_v2_model.hpp"
#include "formats/readers/reader.hpp"
#include "formats/readers/search_checks.hpp"
#include "formats/readers/section.hpp"
#include "formats/readers/stage_lists.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/schedule.hpp"

namespace nd::formats {
namespace {

using IntegerMember = std::optional<std::int64_t> RunSpec::*;

constexpr std::int64_t kMostValue = 1 << 20;
constexpr std::int64_t kDefaultSequence = 4096;

/// A key of `parallelism`, the dimension it bounds and the field it states when it has one value.
struct DegreeKey {
  std::string_view key;
  Dimension dimension;
  IntegerMember member;
};
constexpr std::array<DegreeKey, 8> kDegrees{{{"dp", Dimension::dp, &RunSpec::dp},
                                             {"fsdp", Dimension::optimizer_shard, &RunSpec::optimizer_shard},
                                             {"tp", Dimension::tp, &RunSpec::tp},
                                             {"pp", Dimension::pp, &RunSpec::pp},
                                             {"cp", Dimension::cp, &RunSpec::cp},
                                             {"ep", Dimension::ep, &RunSpec::ep},
                                             {"etp", Dimension::etp, &RunSpec::etp},
                                             {"micro_batch_num", Dimension::micro_batch_num, &RunSpec::micro_batch_num}}};

/// Device names of the trainer's own map; others go to the device folder as they are.
std::string device_name(const std::string& stated) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames{{{"a2", "A2"},
                                                                                 {"ascend", "A2"},
                                                                                 {"ascend910", "A2"},
                                                                                 {"ascend910b", "A2"},
                                                                                 {"ascend910c", "A3"},
                                                                                 {"ascend910_93", "A3"}}};
  const std::string wanted = core::canonical_name(stated);
  for (const auto& [name, device] : kNames)
    if (name == wanted) return std::string(device);
  return stated;
}

/// Lays one search config over a run. Thread-compatible; lives for one document.
class SearchReader {
 public:
  SearchReader(const ConfigNode& root, Request base, const DataStore& data, const ReadOptions& options)
      : root_(root),
        out_(std::move(base)),
        data_(data),
        options_(options),
        top_(root, findings_),
        model_(root, "model", findings_),
        cluster_(root, "cluster", findings_),
        parallelism_(root, "parallelism", findings_),
        constraint_(root, "constraint", findings_),
        pp_config_(root, "pp_config", findings_) {}

  Result<Request> read() {
    has_base_ = out_.model != ModelSpec{} || out_.run != RunSpec{};
    out_.search_config = true;
    model();
    cluster();
    batch();
    degrees();
    recompute();
    pipeline();
    top_.map().ignore({"train_yaml", "model", "cluster", "parallelism", "constraint", "pp_config"});
    SearchChecks(out_, root_, findings_).run();
    for (Section* const section : {&top_, &model_, &cluster_, &parallelism_, &constraint_, &pp_config_}) section->finish();
    sort_by_place(findings_.problems);
    if (!findings_.problems.empty()) return Error(without_repeats(std::move(findings_.problems)));
    sort_by_place(findings_.notes);
    out_.notes.insert(out_.notes.end(), findings_.notes.begin(), findings_.notes.end());
    return std::move(out_);
  }

 private:
  void model() {
    if (!model_.stated() && !has_base_) {
      findings_.problems.push_back(make_diagnostic(Errc::missing_field, root_.where, "nothing says which model is trained",
                                                   "a section 'model', or train_yaml, or -y FILE"));
      return;
    }
    model_fields();
    model_run_keys();
    if (!has_base_) standalone();
    if (!out_.run.seq_length) {
      out_.run.seq_length = kDefaultSequence;
      findings_.warn(Errc::missing_field, model_.where("max_position_embeddings"), "no sequence length is stated; " + std::to_string(kDefaultSequence) + " is assumed");
    }
    if (model_.stated() || !has_base_) add_model_problems(out_.model, model_.node(), places_, findings_);
  }

  void model_fields() {
    MapReader& map = model_.map();
    ModelSpec stated;
    constexpr std::array<std::string_view, 14> kRunKeys{"local_batch_size", "compute_dtype",  "param_init_type",          "softmax_compute_type", "use_seq_parallel",
                                                        "offset",           "visual_seq_len", "optimizer_weight_shard_size", "recompute_slice_activation", "use_flash_attention",
                                                        "moe_enabled",      "multiple_of",    "ffn_dim_multiplier",       "seq_length"};
    for (const auto& [key, value] : model_.node().members) {
      if (value.is_null() || key == "name" || key == "model_type" || hyper_v2::is_run_override(key)) continue;
      if (std::find(kRunKeys.begin(), kRunKeys.end(), key) != kRunKeys.end()) continue;
      const auto field = hyper_v2::model_field_of(key);
      if (read_model_field(map, key, field, stated)) places_.insert_or_assign(std::string(field), value.where);
    }
    if (const auto name = map.string("name")) out_.model.name = *name;
    if (const auto type = map.string("model_type")) out_.model.model_type = *type;
    // One expert, or none, is a dense model.
    if (stated.num_experts && *stated.num_experts <= 1) stated.num_experts.reset();
    merge_model_fields(out_.model, stated, Precedence::replace);
    (void)map.boolean("moe_enabled");
  }

  void model_run_keys() {
    MapReader& map = model_.map();
    RunSpec& run = out_.run;
    const auto count = [&](const char* field, IntegerMember member, std::string_view key) {
      if (map.has(key)) state(run, field, member, map.positive(key), model_.where(key));
    };
    // Here the model's context limit is the training length.
    count("seq_length", &RunSpec::seq_length, map.has("max_position_embeddings") ? "max_position_embeddings" : "seq_length");
    map.ignore({"seq_length"});
    count("micro_batch_size", &RunSpec::micro_batch_size, "local_batch_size");
    count("optimizer_shard", &RunSpec::optimizer_shard, "optimizer_weight_shard_size");
    state(run, "sequence_parallel", &RunSpec::sequence_parallel, map.boolean("use_seq_parallel"), model_.where("use_seq_parallel"));
    state(run, "flash_attention", &RunSpec::flash_attention, map.boolean("use_flash_attention"), model_.where("use_flash_attention"));
    const auto width = [&](const char* field, std::optional<double> RunSpec::*member, std::string_view key) {
      const auto name = map.string(key);
      if (!name) return;
      const auto bytes = dtype_bytes(*name);
      if (!bytes) return map.error(key, Errc::out_of_range, "unknown data type '" + name->substr(0, kShown) + "'", "float32, bfloat16, float16");
      state(run, field, member, bytes, model_.where(key));
    };
    width("param_bytes", &RunSpec::param_bytes, "param_init_type");
    width("softmax_bytes", &RunSpec::softmax_bytes, "softmax_compute_type");
    if (const auto name = map.string("compute_dtype")) {
      const auto dtype = activation_dtype(*name);
      if (!dtype) map.error("compute_dtype", Errc::out_of_range, "unknown data type '" + name->substr(0, kShown) + "'", "bfloat16, float16, float32");
      state(run, "compute_dtype", &RunSpec::compute_dtype, dtype, model_.where("compute_dtype"));
    }
    const auto factor = map.real(model_.key({"capacity_factor", "cap_fact"}));
    if (factor) state(run, "capacity_factor", &RunSpec::capacity_factor, std::optional(std::max(1.0, *factor)), model_.where("capacity_factor"));
    map.ignore({"use_gmm", "gmm", "recompute_slice_activation", "visual_seq_len", "full_rec", "sel_rec", "offset", "multiple_of", "ffn_dim_multiplier"});
    for (const std::string_view key : {"full_rec", "sel_rec", "offset"})
      if (map.has(key)) findings_.note(model_.where(key), "is not used by a search: every candidate has its own layout");
  }

  /// Defaults of the format where no train.yaml says otherwise.
  void standalone() {
    RunSpec& run = out_.run;
    run.framework = "hyperparallel";
    run.origins["framework"] = {Origin::Kind::file, root_.where};
    if (!run.micro_batch_size) run.micro_batch_size = 1;
    if (!run.sequence_parallel) run.sequence_parallel = true;
    if (!run.param_bytes) run.param_bytes = 4.0;
    if (!run.compute_dtype) run.compute_dtype = Dtype::bf16;
    if (!run.flash_attention) run.flash_attention = true;
    run.cp_algorithm = CpAlgorithm::all_gather;
    if (out_.model.name.empty()) out_.model.name = "custom";
    if (out_.model.model_type.empty()) out_.model.model_type = family_of_name(out_.model.name);
    auto filled = data_.with_family_defaults(std::move(out_.model), findings_.notes);
    if (filled) {
      out_.model = *std::move(filled);
    } else {
      findings_.problems.insert(findings_.problems.end(), filled.error().diagnostics.begin(), filled.error().diagnostics.end());
    }
  }

  void cluster() {
    RunSpec& run = out_.run;
    MapReader& map = cluster_.map();
    const auto nodes = map.positive("num_nodes"), cards = map.positive("cards_per_node");
    if (const auto type = map.string("device_type")) {
      run.device_type = device_name(*type);
      run.origins["device_type"] = {Origin::Kind::file, cluster_.where("device_type")};
    }
    if (!cluster_.stated() && !run.devices && !options_.devices)
      findings_.problems.push_back(make_diagnostic(Errc::missing_field, cluster_.node().where, "the section 'cluster' is required: how many devices there are"));
    devices(nodes, cards);
    const auto ceiling = memory(cluster_, "device_memory_gb"), limit = memory(constraint_, "memory_limit_gb");
    if (ceiling && limit && *limit > *ceiling)
      findings_.warn(Errc::conflict, constraint_.where("memory_limit_gb"), "is above cluster.device_memory_gb, which is the limit");
    const bool by_limit = limit && (!ceiling || *limit <= *ceiling);
    const auto budget = by_limit ? limit : ceiling;
    if (budget)
      state(run, "device_memory", &RunSpec::device_memory, std::optional(Bytes{*budget * kGiB}),
            by_limit ? constraint_.where("memory_limit_gb") : cluster_.where("device_memory_gb"));
  }

  void devices(const std::optional<std::int64_t>& nodes, const std::optional<std::int64_t>& cards) {
    RunSpec& run = out_.run;
    const auto before = run.devices;
    if (options_.devices) {
      if (cards && *options_.devices % *cards != 0)
        cluster_.map().error("cards_per_node", Errc::conflict,
                             std::to_string(*options_.devices) + " devices (-d) are no whole number of nodes with " + std::to_string(*cards) + " cards");
      run.devices = options_.devices;
      run.origins["devices"] = {Origin::Kind::flag, {{}, 0, 0, "-d"}};
    } else if (cluster_.stated() && (nodes || cards || !run.devices)) {
      const auto all = core::multiply(nodes.value_or(1), cards.value_or(cards_of_device()));
      if (!all || *all > kMostValue * 1024) return cluster_.map().error("num_nodes", Errc::out_of_range, "more devices than any cluster has");
      state(run, "devices", &RunSpec::devices, all, cluster_.where("num_nodes"));
    }
    // On other devices the run's own data parallelism and micro-batches mean nothing.
    if (run.devices == before) return;
    run.dp.reset();
    if (run.global_batch_size) run.micro_batch_num.reset();
  }

  /// Devices of a node: the device file's, else 8.
  [[nodiscard]] std::int64_t cards_of_device() const {
    constexpr std::int64_t kUsual = 8;
    if (out_.run.device_type.empty()) return kUsual;
    const auto device = data_.device(out_.run.device_type);
    if (!device) return kUsual;  // reported where the device is looked up
    for (const auto& level : device->levels)
      if (level.name == "node" && level.devices > 0) return level.devices;
    return kUsual;
  }

  std::optional<double> memory(Section& section, std::string_view key) {
    const auto value = section.map().real(key);
    if (!value || *value == 0) return std::nullopt;  // 0: no limit
    if (*value < 0 || !std::isfinite(*value) || *value > kMostValue) {
      section.map().error(key, Errc::out_of_range, "must be a number of GiB, is " + number_text(*value));
      return std::nullopt;
    }
    return value;
  }

  void batch() {
    const auto stated = constraint_.map().integer("global_batch_size");
    if (!stated || *stated == 0) return;  // 0: the train.yaml's
    if (*stated < 0) return constraint_.map().error("global_batch_size", Errc::out_of_range, "must be at least 1, is " + std::to_string(*stated));
    if (out_.run.global_batch_size != stated) out_.run.micro_batch_num.reset();
    state(out_.run, "global_batch_size", &RunSpec::global_batch_size, stated, constraint_.where("global_batch_size"));
  }

  void degrees() {
    for (const auto& row : kDegrees) {
      const ConfigNode* const node = parallelism_.map().child(row.key);
      if (node == nullptr) continue;
      DimensionCandidates one{row.dimension, {}, node->where};
      if (is_auto(*node)) {
        out_.run.*row.member = std::nullopt;
      } else if (!values(*node, one.values)) {
        continue;
      }
      // "auto" leaves dp, fsdp and micro-batches to the other degrees; one value states the run besides.
      const std::string field(dimension_info(row.dimension).field);
      out_.run.origins.erase(field);
      out_.run.*row.member = std::nullopt;
      if (one.values.size() == 1) state(out_.run, field.c_str(), row.member, std::optional(one.values.front()), node->where);
      out_.candidates.push_back(one);
      if (row.dimension == Dimension::optimizer_shard) shards(one);
    }
  }

  /// What the shards hold is the run's habit: all of weights, gradients and states unless it keeps the weights gathered.
  void shards(const DimensionCandidates& ranks) {
    const bool kept = out_.run.zero == ZeroLevel::gradients || out_.run.zero == ZeroLevel::optimizer;
    const ZeroLevel sharded = kept ? *out_.run.zero : ZeroLevel::parameters;
    out_.run.zero.reset();
    out_.run.origins.erase("zero");
    DimensionCandidates levels{Dimension::zero, {static_cast<std::int64_t>(ZeroLevel::none), static_cast<std::int64_t>(sharded)}, ranks.where};
    if (ranks.values.size() == 1) {
      levels.values = {static_cast<std::int64_t>(ranks.values.front() == 1 ? ZeroLevel::none : sharded)};
      state(out_.run, "zero", &RunSpec::zero, std::optional(static_cast<ZeroLevel>(levels.values.front())), ranks.where);
    }
    if (out_.run.framework == "hyperparallel" || !has_base_) out_.candidates.push_back(std::move(levels));
  }

  static bool is_auto(const ConfigNode& node) { return node.is_scalar() && core::canonical_name(node.text) == "auto"; }

  bool values(const ConfigNode& node, std::vector<std::int64_t>& out) {
    const auto problem = [this](const ConfigNode& where, const std::string& message) {
      findings_.problems.push_back(make_diagnostic(Errc::wrong_type, where.where, message, "a degree, a list of degrees, or auto"));
      return false;
    };
    if (node.is_sequence() && node.items.empty()) return problem(node, "an empty list leaves nothing to search");
    const auto add = [&](const ConfigNode& item) {
      const auto value = as_boolean(item) ? std::nullopt : as_integer(item);
      if (!value) return problem(item, "must be a degree, is " + describe(item));
      if (*value < 1 || *value > kMostValue) return problem(item, "must be from 1 to " + std::to_string(kMostValue) + ", is " + std::to_string(*value));
      if (std::find(out.begin(), out.end(), *value) == out.end()) out.push_back(*value);
      return true;
    };
    if (!node.is_sequence()) return add(node);
    bool good = true;
    for (const auto& item : node.items) good = add(item) && good;
    return good;
  }

  static std::optional<Recompute> mode_of(const ConfigNode& node) {
    const std::string text = node.is_scalar() ? core::canonical_name(node.text) : std::string();
    if (as_boolean(node) == false || text == "off" || text == "none") return Recompute::off;
    if (text == "selective") return Recompute::selective;
    if (text == "full") return Recompute::full;
    return std::nullopt;
  }

  /// parallelism.recompute names the modes; the root's recompute names one, or lets the search choose.
  void recompute() {
    DimensionCandidates modes{Dimension::recompute, {}, root_.where};
    const ConfigNode* const listed = parallelism_.map().child("recompute");
    bool good = true;
    const auto refuse = [&](const ConfigNode& node, const std::string& known) {
      findings_.problems.push_back(make_diagnostic(Errc::out_of_range, node.where, "'" + node.text.substr(0, kShown) + "' is no recompute mode", known));
      good = false;
    };
    if (listed != nullptr && !is_auto(*listed)) {
      modes.where = listed->where;
      if (listed->is_sequence() && listed->items.empty()) refuse(*listed, "off, selective, full or auto");
      const std::vector<ConfigNode> alone{*listed};
      for (const ConfigNode& item : listed->is_sequence() ? listed->items : alone) {
        const auto mode = mode_of(item);
        if (!mode) refuse(item, is_auto(item) ? "auto stands alone" : "off, selective, full or auto");
        else if (const auto value = static_cast<std::int64_t>(*mode); std::find(modes.values.begin(), modes.values.end(), value) == modes.values.end())
          modes.values.push_back(value);
      }
    }
    const ConfigNode* const how = top_.map().child("recompute");
    if (how != nullptr) modes.where = listed != nullptr ? modes.where : how->where;
    const std::string word = how == nullptr || !how->is_scalar() ? std::string() : core::canonical_name(how->text);
    const bool chosen = word == "auto" || word == "per_layer";
    const auto one = how == nullptr ? std::nullopt : mode_of(*how);
    if (how != nullptr && !chosen && !one) refuse(*how, "off, selective, full, auto or per_layer");
    if (!good || (how == nullptr && listed == nullptr)) return;
    if (word == "per_layer") return every_layer_its_own(std::move(modes), *how);
    // Off and full are what a choice is made of, where no modes are named.
    if (chosen && listed == nullptr) modes.values = {static_cast<std::int64_t>(Recompute::off), static_cast<std::int64_t>(Recompute::full)};
    if (one && listed == nullptr) modes.values = {static_cast<std::int64_t>(*one)};
    out_.run.full_recompute_layers.clear();
    out_.run.selective_recompute_layers.clear();
    out_.run.recompute.reset();
    if (modes.values.size() == 1) state(out_.run, "recompute", &RunSpec::recompute, std::optional(static_cast<Recompute>(modes.values.front())), modes.where);
    out_.candidates.push_back(std::move(modes));
  }

  /// The listed modes are what a layer chooses from; without a list every mode.
  void every_layer_its_own(DimensionCandidates modes, const ConfigNode& how) {
    if (!modes.values.empty()) {
      out_.run.layer_modes.fill(false);
      for (const auto mode : modes.values) out_.run.layer_modes[static_cast<std::size_t>(mode)] = true;
    }
    out_.run.full_recompute_layers.clear();
    out_.run.selective_recompute_layers.clear();
    state(out_.run, "recompute", &RunSpec::recompute, std::optional(Recompute::per_layer), how.where);
    modes.values.assign(1, static_cast<std::int64_t>(Recompute::per_layer));
    modes.where = how.where;
    out_.candidates.push_back(std::move(modes));
  }

  void pipeline() {
    MapReader& map = pp_config_.map();
    const auto chunks = map.positive("pp_interleave_num");
    if (chunks) state(out_.run, "vpp", &RunSpec::vpp, chunks, pp_config_.where("pp_interleave_num"));
    if (!out_.run.vpp) out_.run.vpp = 1;  // the format has no dimension for it
    if (const auto name = map.string("pipeline_schedule")) {
      const auto schedule = find_schedule(*name);
      std::vector<std::string> known;
      for (const Schedule one : all_schedules()) known.emplace_back(to_text(one));
      if (!schedule) map.error("pipeline_schedule", Errc::out_of_range, "unknown schedule '" + name->substr(0, kShown) + "'", core::name_hint(*name, known));
      const bool interleaved = schedule == Schedule::one_f_one_b && *out_.run.vpp > 1;
      state(out_.run, "schedule", &RunSpec::schedule, interleaved ? std::optional(Schedule::interleaved) : schedule, pp_config_.where("pipeline_schedule"));
    }
    if (const auto number = map.positive("micro_batch_num"); number.value_or(1) > 1)
      findings_.note(pp_config_.where("micro_batch_num"), "is not used by a search; parallelism.micro_batch_num is");
    map.ignore({"pp_degree", "stage_partition_mode", "stage_partition", "layer_offset_range", "layer_recompute_layers"});
  }

  static constexpr std::size_t kShown = 60;
  const ConfigNode& root_;
  Request out_;
  const DataStore& data_;
  const ReadOptions& options_;
  Findings findings_;
  Section top_, model_, cluster_, parallelism_, constraint_, pp_config_;
  FieldPlaces places_;
  bool has_base_ = false;
};

/// The train.yaml a config names: relative to the config's folder, else to the working directory.
std::string train_file(const std::string& stated, const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path beside = fs::path(path).parent_path() / stated;
  return fs::exists(beside, failure) || !fs::exists(stated, failure) ? beside.lexically_normal().string() : stated;
}

}  // namespace

Result<Request> read_search_config_over(Request base, const ConfigNode& root, const DataStore& data, const ReadOptions& options) {
  return SearchReader(root, std::move(base), data, options).read();
}

Result<Request> read_search_config(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options) {
  const ConfigNode* const train = root.find("train_yaml");
  if (train == nullptr || train->is_null()) return read_search_config_over({}, root, data, options);
  const auto stated = as_string(*train);
  if (!stated) return make_error(Errc::wrong_type, train->where, "must be the path of a train.yaml, is " + describe(*train));
  const std::string file = train_file(*stated, path);
  std::error_code failure;
  if (!std::filesystem::exists(file, failure))
    return make_error(Errc::io, train->where, "the train_yaml '" + stated->substr(0, 200) + "' is not there", "looked for " + file);
  auto base = read_request(file, "", data, options);
  if (!base) return base;
  return read_search_config_over(*std::move(base), root, data, options);
}

}  // namespace nd::formats
