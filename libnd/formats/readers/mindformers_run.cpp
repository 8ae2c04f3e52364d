// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/mindformers_run.hpp"

#include <algorithm>
#include <array>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "formats/readers/values.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats::mindformers {

namespace {

/// A word of the format and what it means here.
template <class T>
struct Word {
  std::string_view name;
  T value;
};

struct ScheduleWord {
  Schedule schedule;
  bool exact;  ///< false: a variant that is priced as the named one
};
constexpr std::array<Word<ScheduleWord>, 6> kSchedules{{{"1f1b", {Schedule::one_f_one_b, true}},
                                                        {"gpipe", {Schedule::gpipe, true}},
                                                        {"seqpipe", {Schedule::seq_1f1b, true}},
                                                        {"seqvpp", {Schedule::one_f_one_b, false}},
                                                        {"seqsmartvpp", {Schedule::one_f_one_b, false}},
                                                        {"zero_bubble_v", {Schedule::zb_v, true}}}};
// colossalai_cp gathers keys and values, ulysses_cp exchanges heads for sequence (nd_formats, section 4.2).
constexpr std::array<Word<CpAlgorithm>, 3> kCpAlgorithms{
    {{"colossalai_cp", CpAlgorithm::all_gather}, {"ulysses_cp", CpAlgorithm::ulysses}, {"hybrid_cp", CpAlgorithm::all_gather}}};

template <class T, std::size_t N>
std::optional<T> find_word(Section& section, std::string_view key, const std::array<Word<T>, N>& words) {
  const auto text = section.map().string(key);
  if (!text) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& word : words) {
    if (core::canonical_name(*text) == word.name) return word.value;
    names.emplace_back(word.name);
  }
  section.map().error(key, Errc::out_of_range, "'" + *text + "' is not known", core::name_hint(*text, names));
  return std::nullopt;
}

class RunReader {
 public:
  RunReader(const RunSections& sections, bool has_experts, RunSpec& run, Findings& findings)
      : s_(sections), has_experts_(has_experts), run_(run), findings_(findings) {}

  void read() {
    run_.framework = "mindformers";
    memory();
    degrees();
    batch();
    experts();
    schedule();
    context_parallel();
    optimizer();
    sharding();
    precisions();
    cross_checks();
  }

 private:
  [[nodiscard]] std::int64_t dp() const { return run_.dp.value_or(1); }
  [[nodiscard]] std::int64_t ranks() const { return dp() * run_.tp.value_or(1) * run_.cp.value_or(1); }

  void memory() {
    MapReader& map = s_.context.map();
    map.require("max_device_memory", "the memory budget of a device");
    const auto text = map.string("max_device_memory");
    if (!text) return;
    const auto value = parse_memory(*text);
    if (!value)
      map.error("max_device_memory", Errc::out_of_range, "'" + *text + "' is no amount of memory", "write it like \"58GB\"; KB, MB and GB are powers of 1024");
    state(run_, "device_memory", &RunSpec::device_memory, value, s_.context.where("max_device_memory"));
  }

  void degree(const char* field, std::optional<std::int64_t> RunSpec::*member, Section& section, Names keys) {
    const auto key = section.key(keys);
    // Above any cluster, and for what makes lists of stages above any model: keeps products exact and lists short.
    const bool stages = member == &RunSpec::pp || member == &RunSpec::vpp;
    const std::int64_t most = stages ? 1 << 10 : 1 << 24;
    auto value = section.map().positive(key);
    if (value && *value > most) {
      section.map().error(key, Errc::out_of_range, "is too large: " + std::to_string(*value));
      value.reset();
    }
    if (!value && !section.map().has(key)) value = 1;  // the framework's own default
    state(run_, field, member, value, section.where(key));
  }

  void degrees() {
    Section& section = s_.degrees;
    degree("dp", &RunSpec::dp, section, {"data_parallel", "data_parallel_size"});
    degree("tp", &RunSpec::tp, section, {"model_parallel", "tensor_model_parallel_size"});
    degree("pp", &RunSpec::pp, section, {"pipeline_stage", "pipeline_model_parallel_size"});
    degree("cp", &RunSpec::cp, section, {"context_parallel", "context_parallel_size"});
    degree("ep", &RunSpec::ep, section, {"expert_parallel", "expert_model_parallel_size"});
    degree("vpp", &RunSpec::vpp, s_.model, {"pp_interleave_num", "virtual_pipeline_model_parallel_size"});
    const auto sequence = section.key({"use_seq_parallel", "sequence_parallel"});
    const bool stated = section.map().has(sequence);
    const auto flag = section.map().boolean(sequence);
    state(run_, "sequence_parallel", &RunSpec::sequence_parallel, stated ? flag : std::optional<bool>(false), section.where(sequence));
    const auto devices = core::multiply(ranks(), run_.pp.value_or(1));
    if (devices && *devices <= (std::int64_t{1} << 30)) {
      state(run_, "devices", &RunSpec::devices, devices, section.node().where);
    } else {
      section.map().error("data_parallel", Errc::out_of_range, "the degrees multiply to more devices than any cluster has");
    }
  }

  void batch() {
    const auto size_where = s_.runner.where("batch_size"), number_where = s_.degrees.where("micro_batch_num");
    const bool size_stated = s_.runner.map().has("batch_size"), number_stated = s_.degrees.map().has("micro_batch_num");
    auto size = s_.runner.map().positive("batch_size"), number = s_.degrees.map().positive("micro_batch_num");
    const auto rounds = s_.runner.map().positive("gradient_accumulation_steps");
    if (!size && !size_stated) {
      size = 1;
      findings_.warn(Errc::missing_field, size_where, "the micro-batch size is not stated; 1 is assumed");
    }
    if (!number && !number_stated) {
      number = 1;
      if (run_.pp.value_or(1) > 1) findings_.warn(Errc::missing_field, number_where, "the number of micro-batches is not stated; 1 is assumed");
    }
    if (rounds && *rounds > 1 && number) {
      number = core::multiply(*number, *rounds);
      findings_.warn(Errc::unsupported, s_.runner.where("gradient_accumulation_steps"),
                     "accumulation steps are priced as further micro-batches of one step");
    }
    if (!size || !number) return;
    state(run_, "micro_batch_size", &RunSpec::micro_batch_size, size, size_where);
    state(run_, "micro_batch_num", &RunSpec::micro_batch_num, number, number_where);
    const auto per_rank = core::multiply(*size, *number);
    const auto all = per_rank ? core::multiply(*per_rank, dp()) : std::nullopt;
    if (!all) return s_.degrees.map().error("micro_batch_num", Errc::out_of_range, "the batch is larger than any");
    state(run_, "global_batch_size", &RunSpec::global_batch_size, all, number_where);
  }

  void experts() {
    Section& section = s_.experts.has({"expert_model_parallel"}) ? s_.experts : s_.degrees;
    const auto key = section.key({"expert_model_parallel", "expert_tensor_parallel_size"});
    const auto etp = section.map().has(key) ? section.map().positive(key) : std::nullopt;
    (void)s_.experts.key({"expert_model_parallel"});
    state(run_, "etp", &RunSpec::etp, etp, section.where(key));
    if (etp && *etp != 1 && *etp != run_.tp.value_or(1))
      section.map().error(key, Errc::conflict, "must be 1 or the model parallel degree " + std::to_string(run_.tp.value_or(1)) + ", is " + std::to_string(*etp));
    const std::int64_t ep = run_.ep.value_or(1);
    const auto group = core::multiply(ep, etp.value_or(1));
    if (!group || *group > ranks())
      s_.degrees.map().error(s_.degrees.key({"expert_parallel", "expert_model_parallel_size"}), Errc::conflict,
                             "EP " + std::to_string(ep) + " over a stage of " + std::to_string(ranks()) + " ranks leaves no expert group",
                             "expert parallelism is taken out of data x model x context parallelism");
    if (ep > 1 && !has_experts_)
      findings_.warn(Errc::conflict, s_.degrees.where("expert_parallel"), "expert parallelism for a model without experts is priced as none");
    if (ep > 1 && !has_experts_) run_.ep = 1;

    Section& capacity = s_.experts.has({"capacity_factor"}) ? s_.experts : s_.model;
    const auto factor_key = capacity.key({"capacity_factor", "moe_expert_capacity_factor"});
    const auto factor = capacity.map().real(factor_key);
    if (!factor || !has_experts_) return;
    if (*factor > 1e4) return capacity.map().error(factor_key, Errc::out_of_range, "is too large: " + number_text(*factor));
    // A buffer below the mean load does not shrink what is computed for the experts that are full (values below 1 mean "no limit").
    state(run_, "capacity_factor", &RunSpec::capacity_factor, std::optional<double>(std::max(1.0, *factor)), capacity.where(factor_key));
  }

  void schedule() {
    const auto interleave = s_.pipeline.map().boolean("pipeline_interleave");
    const auto word = find_word(s_.pipeline, "pipeline_scheduler", kSchedules);
    const auto where = s_.pipeline.where("pipeline_scheduler");
    const bool chunks = run_.vpp.value_or(1) > 1;
    if (word && !word->exact) findings_.warn(Errc::unsupported, where, "this schedule is priced as 1f1b");
    if (chunks && interleave && !*interleave)
      findings_.warn(Errc::conflict, s_.pipeline.where("pipeline_interleave"), "pp_interleave_num above 1 without pipeline_interleave is priced as interleaved");
    Schedule stated = word ? word->schedule : Schedule::one_f_one_b;
    // The V has two chunks per stage; without a pipeline there is nothing to schedule.
    if (stated == Schedule::zb_v && run_.pp.value_or(1) == 1) stated = Schedule::one_f_one_b;
    if (stated == Schedule::zb_v && !chunks) {
      run_.vpp = 2;
      findings_.warn(Errc::missing_field, where, "zero_bubble_v runs two chunks per stage; pp_interleave_num 2 is assumed");
    }
    if (stated == Schedule::seq_1f1b) run_.seq_split = std::max<std::int64_t>(1, s_.degrees.map().positive("seq_split_num").value_or(1));
    const Schedule schedule = chunks && stated == Schedule::one_f_one_b ? Schedule::interleaved : stated;
    if (word || chunks) state(run_, "schedule", &RunSpec::schedule, std::optional<Schedule>(schedule), where);
  }

  void context_parallel() {
    Section& section = s_.degrees;
    const std::int64_t cp = run_.cp.value_or(1);
    const auto algorithm = find_word(section, "context_parallel_algo", kCpAlgorithms);
    const auto ulysses = section.map().positive("ulysses_degree_in_cp");
    const auto where = section.where("context_parallel_algo");
    state(run_, "cp_algorithm", &RunSpec::cp_algorithm, algorithm, where);
    if (!section.map().has("context_parallel_algo")) run_.cp_algorithm = CpAlgorithm::all_gather;  // the framework's own default
    if (cp > 1 && !section.map().has("context_parallel_algo")) {
      findings_.warn(Errc::missing_field, where, "the context parallel algorithm is not stated; colossalai_cp is assumed");
    }
    const ConfigNode* const word = section.map().child("context_parallel_algo");
    if (cp <= 1 || word == nullptr || core::canonical_name(word->text) != "hybrid_cp") return;
    if (ulysses.value_or(1) == cp) {
      run_.cp_algorithm = CpAlgorithm::ulysses;
    } else if (ulysses.value_or(1) != 1) {
      findings_.warn(Errc::unsupported, where, "hybrid_cp is priced as colossalai_cp over the whole context parallel group");
    }
  }

  void optimizer() {
    const auto type = s_.optimizer.map().string("type");
    const auto where = s_.optimizer.where("type");
    if (!type) {
      if (!s_.optimizer.map().has("type")) findings_.warn(Errc::missing_field, where, "no optimizer is stated; AdamW is assumed");
      return;
    }
    const auto known = optimizer_of_name(*type);
    if (!known) findings_.warn(Errc::unsupported, where, unknown_optimizer(*type));
    run_.optimizer = known.value_or(OptimizerKind::adamw);
    run_.origins["optimizer"] = {known ? Origin::Kind::file : Origin::Kind::fallback, where};
  }

  void sharding() {
    const auto on = s_.parallel.map().boolean("enable_parallel_optimizer");
    const bool gradients = s_.sharding.map().boolean("gradient_accumulation_shard").value_or(false);
    const auto size = s_.sharding.map().integer("optimizer_weight_shard_size");
    if (!on && s_.parallel.map().has("enable_parallel_optimizer")) return;  // reported
    const auto where = s_.parallel.where("enable_parallel_optimizer");
    const ZeroLevel zero = !on.value_or(false) ? ZeroLevel::none : gradients ? ZeroLevel::gradients : ZeroLevel::optimizer;
    state(run_, "zero", &RunSpec::zero, std::optional<ZeroLevel>(zero), where);
    if (zero == ZeroLevel::none) return state(run_, "optimizer_shard", &RunSpec::optimizer_shard, std::optional<std::int64_t>(1), where);
    // -1 is MindSpore's "all"; a size that does not divide the data-parallel ranks falls back to all of them as well.
    const auto size_where = s_.sharding.where("optimizer_weight_shard_size");
    const std::int64_t all = dp();
    // Ranks that hold the same weights: the data-parallel ones, and those of context parallelism when the size asks for them.
    const auto copies = core::multiply(all, run_.cp.value_or(1)).value_or(all);
    const bool usable = size && *size >= 1 && copies % *size == 0;
    if (size && *size >= 1 && !usable)
      findings_.warn(Errc::conflict, size_where,
                     std::to_string(*size) + " does not divide the " + std::to_string(all) + " data-parallel ranks; all of them are assumed");
    state(run_, "optimizer_shard", &RunSpec::optimizer_shard, std::optional<std::int64_t>(usable ? *size : all), usable ? size_where : where);
  }

  std::optional<double> width(std::string_view key) {
    const auto name = s_.model.map().string(key);
    if (!name) return std::nullopt;
    const auto bytes = dtype_bytes(*name);
    if (!bytes) s_.model.map().error(key, Errc::out_of_range, "'" + *name + "' is no dtype", "float32, bfloat16, float16, float8_e4m3, ...");
    return bytes;
  }

  void precisions() {
    MapReader& map = s_.model.map();
    const auto parameters = s_.model.key({"param_init_type", "params_dtype"});
    if (s_.model.stated() && !map.has(parameters))
      map.error(parameters, Errc::missing_field, "no byte width for the parameters (param_init_type or params_dtype)");
    state(run_, "param_bytes", &RunSpec::param_bytes, width(parameters), s_.model.where(parameters));

    if (s_.model.stated()) map.require("compute_dtype", "the width of activations");
    if (const auto bytes = width("compute_dtype")) compute_dtype(*bytes);

    const auto softmax = s_.model.key({"softmax_compute_type", "softmax_compute_dtype"});
    if (map.has(softmax)) {
      state(run_, "softmax_bytes", &RunSpec::softmax_bytes, width(softmax), s_.model.where(softmax));
    } else if (const auto fp32 = map.boolean("attention_softmax_in_fp32")) {
      state(run_, "softmax_bytes", &RunSpec::softmax_bytes, std::optional<double>(*fp32 ? 4.0 : 2.0), s_.model.where("attention_softmax_in_fp32"));
    } else if (s_.model.stated()) {
      findings_.warn(Errc::missing_field, s_.model.where(softmax), "the softmax width is not stated; the framework profile's is assumed");
    }
    const auto flash = map.boolean("use_flash_attention");
    state(run_, "flash_attention", &RunSpec::flash_attention, flash, s_.model.where("use_flash_attention"));
    state(run_, "seq_length", &RunSpec::seq_length, map.positive("seq_length"), s_.model.where("seq_length"));
    if (s_.model.stated()) map.require("seq_length", "tokens of a sequence");
  }

  void compute_dtype(double bytes) {
    const std::string name = s_.model.map().string("compute_dtype").value_or("");
    const bool brain = core::contains_ignoring_case(name, "bf");
    const auto where = s_.model.where("compute_dtype");
    const Dtype dtype = bytes >= 4 ? Dtype::fp32 : bytes >= 2 && !brain ? Dtype::fp16 : Dtype::bf16;
    state(run_, "compute_dtype", &RunSpec::compute_dtype, std::optional<Dtype>(dtype), where);
    if (bytes < 2) state(run_, "gemm_dtype", &RunSpec::gemm_dtype, std::optional<Dtype>(Dtype::fp8), where);
  }

  void cross_checks() {
    if (run_.sequence_parallel.value_or(false) && run_.cp.value_or(1) > 1)
      findings_.warn(Errc::conflict, s_.degrees.where("use_seq_parallel"), "sequence parallelism together with context parallelism");
    if (run_.micro_batch_num && *run_.micro_batch_num < run_.pp.value_or(1))
      findings_.warn(Errc::conflict, s_.degrees.where("micro_batch_num"),
                     std::to_string(*run_.micro_batch_num) + " micro-batches for " + std::to_string(run_.pp.value_or(1)) + " stages: the pipeline never fills");
  }

  RunSections s_;
  bool has_experts_;
  RunSpec& run_;
  Findings& findings_;
};

}  // namespace

void read_run(const RunSections& sections, bool has_experts, RunSpec& run, Findings& findings) {
  RunReader(sections, has_experts, run, findings).read();
}

}  // namespace nd::formats::mindformers
