// SPDX-License-Identifier: Apache-2.0
#include "request.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "values.hpp"

namespace run_nd {

namespace {

using Problems = std::vector<nd::Diagnostic>;

/// Tokens per step assumed when nobody states a batch: what large models are usually trained with (Llama 2: 4 Mi) [assumed].
constexpr std::int64_t kDefaultTokensPerStep = std::int64_t{1} << 22;
constexpr std::int64_t kDefaultSequence = 4096;
constexpr std::size_t kLargestLoadFile = std::size_t{1} << 20;  // bytes
constexpr std::string_view kDefaultDevice = "A2";

void append(Problems& to, const Problems& more) { to.insert(to.end(), more.begin(), more.end()); }

nd::SourceRef option_place(std::string_view option) { return {{}, 0, 0, std::string(option)}; }

/// Puts the place of an option in front of what a name look-up says.
Problems at_option(const nd::Error& error, std::string_view option) {
  Problems out = error.diagnostics;
  for (auto& problem : out)
    if (problem.where.file.empty()) problem.where.path = option;
  return out;
}

/// Builds one PreparedSearch step by step; each step may need the ones before it.
class Preparation {
 public:
  Preparation(const Options& options, const nd::DataStore& data) : options_(options), data_(data) {}

  nd::Result<PreparedSearch> run() {
    if (!read_input() || !find_parts()) return nd::Error(std::move(problems_));
    overlay();
    if (!resolve()) return nd::Error(std::move(problems_));
    choose_space();
    choose_options();
    check_strict();
    if (!problems_.empty()) return nd::Error(std::move(problems_));
    return std::move(out_);
  }

 private:
  /// -f names the format of the input or a framework profile; a name that is both is the format, unless the input is a bare model.
  bool read_input() {
    const std::string& input = options_.input.empty() && options_.search_config.empty() ? options_.model : options_.input;
    nd::RequestFiles files{.main = input,
                           .format = format_named(options_.framework),
                           .train = options_.train_yaml,
                           .accelerate = options_.accelerate_yaml,
                           .search = options_.search_config};
    const nd::ReadOptions read{.devices = asked_devices()};
    auto request = nd::read_request(files, data_, read);
    if (!request && files.main.empty() && !options_.model.empty()) {  // a search config without a model of its own
      auto with_model = files;
      with_model.main = options_.model;
      if (auto again = nd::read_request(with_model, data_, read)) request = std::move(again);
    }
    if (!request && !files.format.empty()) {
      files.format.clear();
      auto guessed = nd::read_request(files, data_, read);
      if (guessed && is_profile(options_.framework) && guessed->run.framework.empty()) request = std::move(guessed);
    }
    if (!request) {
      append(problems_, request.error().diagnostics);
    } else {
      request_ = std::move(*request);
      const auto& run = request_.run;
      out_.states_strategy = run.dp || run.tp || run.pp || run.cp || run.ep;
      out_.file = request_.file;
      out_.format = request_.format;
      out_.notes = request_.notes;
    }
    if (!options_.model.empty() && (!options_.input.empty() || !options_.search_config.empty())) {
      auto model = named_model();
      if (!model) append(problems_, at_option(model.error(), "-m"));
      else request_.model = std::move(*model);
    } else if (problems_.empty() && request_.model == nd::ModelSpec{}) {
      problems_.push_back(usage_error("-m", "the input states a run, but no model", "-m NAME, or -y config.json with the run as --train-yaml or --accelerate-yaml"));
    }
    return problems_.empty();
  }

  [[nodiscard]] std::optional<std::int64_t> asked_devices() const {
    return options_.devices ? std::optional(options_.devices->least) : std::nullopt;
  }

  /// -m takes a preset, or a config.json with its folder.
  nd::Result<nd::ModelSpec> named_model() const {
    if (options_.model.find('/') == std::string::npos && !options_.model.ends_with(".json")) return data_.model(options_.model);
    return nd::read_request(options_.model, "hf", data_).transform([](const nd::Request& request) { return request.model; });
  }

  std::string format_named(const std::string& name) const {
    for (const auto& format : nd::format_list()) {
      const std::string aliases = " " + std::string(format.aliases) + " ";
      if (format.id == name || (!name.empty() && aliases.find(" " + name + " ") != std::string::npos)) return std::string(format.id);
    }
    return {};
  }

  bool is_profile(const std::string& name) const {
    const auto names = data_.framework_names();
    return names && std::find(names->begin(), names->end(), name) != names->end();
  }

  bool find_parts() {
    auto& run = request_.run;
    std::string device = options_.device_type.empty() ? run.device_type : options_.device_type;
    if (device.empty()) {
      device = kDefaultDevice;
      defaulted_.push_back("device_type");
    }
    auto type = data_.device(device);
    if (!type) append(problems_, at_option(type.error(), options_.device_type.empty() ? "device_type" : "-A"));
    else device_ = changed_device(std::move(*type));
    if (type) find_framework();
    auto model = nd::resolve_model(request_.model, nd::SourceRef{request_.file, 0, 0, {}});
    if (!model) append(problems_, model.error().diagnostics);
    else out_.scenario.model = std::move(*model);
    return problems_.empty();
  }

  /// The device that a question supposes.
  nd::DeviceType changed_device(nd::DeviceType device) {
    const auto& supposed = options_.supposed;
    for (const auto& [name, factor] : supposed.links) {
      bool found = false;
      for (auto& level : device.levels) {
        if (!name.empty() && level.name != name) continue;
        found = true;
        level.bandwidth = level.bandwidth * factor;
        level.bus = level.bus * factor;
      }
      if (found) continue;
      std::vector<std::string> known;
      for (const auto& level : device.levels) known.push_back(level.name);
      problems_.push_back(usage_error("--what-if", device.name + " has no network level '" + name + "'", nd::suggest_name(name, known)));
    }
    if (supposed.memory) {
      device.memory.usable = *supposed.memory;
      device.memory.nominal = std::max(device.memory.nominal, *supposed.memory);
    }
    return device;
  }

  void find_framework() {
    auto& run = request_.run;
    std::string name = run.framework;
    const bool flag = !options_.framework.empty() && is_profile(options_.framework);
    if (flag && (name.empty() || format_named(options_.framework).empty())) {
      if (!name.empty() && name != options_.framework) {
        problems_.push_back(usage_error("-f", "the input is a file of " + name + ", not of " + options_.framework,
                                        "leave out -f, or give a bare model (config.json, preset) with -f " + options_.framework));
        return;
      }
      name = options_.framework;
      run.origins["framework"] = {nd::Origin::Kind::flag, option_place("-f")};
    } else if (!options_.framework.empty() && format_named(options_.framework).empty()) {
      std::vector<std::string> known;
      for (const auto& format : nd::format_list()) known.emplace_back(format.id);
      if (const auto profiles = data_.framework_names()) known.insert(known.end(), profiles->begin(), profiles->end());
      problems_.push_back(usage_error("-f", "unknown framework '" + options_.framework + "'", nd::suggest_name(options_.framework, known)));
      return;
    }
    if (name.empty()) {
      // The trainer that is most used on the vendor's devices.
      name = device_.vendor == "huawei" ? "mindspeed-llm" : "megatron-core";
      defaulted_.push_back("framework");
    }
    if (options_.swap_states && !swap_states(name)) return;
    auto profile = data_.framework(name, run.framework_version, run.features);
    if (!profile) append(problems_, at_option(profile.error(), flag ? "-f" : "framework"));
    else profile_ = std::move(*profile);
  }

  /// -swap_os is the feature that an input of such a trainer states.
  bool swap_states(const std::string& framework) {
    static const std::string kFeature = "swap_optimizer";
    auto& features = request_.run.features;
    if (std::find(features.begin(), features.end(), kFeature) != features.end()) return true;
    features.push_back(kFeature);
    if (data_.framework(framework, request_.run.framework_version, features)) return true;
    std::string able;
    if (const auto names = data_.framework_names())
      for (const auto& name : *names)
        if (data_.framework(name, "", {kFeature})) able += (able.empty() ? "" : ", ") + name;
    problems_.push_back(usage_error("-swap_os", framework + " does not keep optimizer states in host memory", "these do: " + able));
    return false;
  }

  /// Sets a field of the run from an option.
  template <class T, class U>
  void flag(std::optional<T>& field, const std::optional<U>& value, std::string_view option, const std::string& name) {
    if (!value) return;
    field = static_cast<T>(*value);
    request_.run.origins[name] = {nd::Origin::Kind::flag, option_place(option)};
  }

  void overlay() {
    auto& run = request_.run;
    // What the input's own degrees multiply to, before other devices make them meaningless.
    if (!run.global_batch_size && !options_.global_batch && run.dp && run.micro_batch_num)
      run.global_batch_size = *run.dp * run.micro_batch_size.value_or(1) * *run.micro_batch_num;
    if (!run.devices && run.dp) run.devices = *run.dp * run.tp.value_or(1) * run.pp.value_or(1) * run.cp.value_or(1);
    const auto devices_before = run.devices;
    const auto batch_before = run.global_batch_size;
    flag(run.devices, asked_devices(), "-d", "devices");
    flag(run.global_batch_size, options_.global_batch, "-b", "global_batch_size");
    flag(run.seq_length, options_.seq_length, "--seq-length", "seq_length");
    flag(run.device_memory, options_.max_memory, "-M", "device_memory");
    set_expert_load();
    if (!options_.device_type.empty()) run.origins["device_type"] = {nd::Origin::Kind::flag, option_place("-A")};
    // dp and the number of micro-batches follow from the others: on other devices, or with another batch, the input's do not count.
    stated_ = run;
    if (run.devices != devices_before) stated_.dp = std::nullopt;
    if (run.devices != devices_before || run.global_batch_size != batch_before) stated_.micro_batch_num = std::nullopt;
  }

  /// A distribution in words or numbers, or a file of numbers.
  void set_expert_load() {
    if (options_.expert_load.empty()) return;
    std::string text = options_.expert_load;
    std::error_code code;
    if (std::filesystem::is_regular_file(text, code)) {
      std::ifstream file(text, std::ios::binary);
      std::string content(kLargestLoadFile + 1, '\0');
      file.read(content.data(), static_cast<std::streamsize>(content.size()));
      content.resize(static_cast<std::size_t>(file.gcount()));
      if (content.size() > kLargestLoadFile) {
        problems_.push_back(usage_error("--expert-load", text + " is larger than a list of experts", "one number per expert"));
        return;
      }
      text = std::move(content);
    }
    auto load = nd::parse_expert_load(text, option_place("--expert-load"));
    if (!load) append(problems_, load.error().diagnostics);
    else flag(request_.run.expert_load, std::optional<nd::ExpertLoad>(std::move(*load)), "--expert-load", "expert_load");
  }

  bool resolve() {
    auto& run = stated_;
    const auto& model = out_.scenario.model;
    if (!run.devices)
      problems_.push_back(usage_error("-d", "the input does not say how many devices there are", "-d N"));
    if (!problems_.empty()) return false;
    if (!run.seq_length) {
      run.seq_length = model.max_positions > 0 ? std::min(model.max_positions, kDefaultSequence) : kDefaultSequence;
      defaulted_.push_back("seq_length");
    }
    if (!run.global_batch_size && !run.micro_batch_num) {
      const std::int64_t wanted = std::max<std::int64_t>(1, kDefaultTokensPerStep / *run.seq_length);
      run.global_batch_size = (wanted + *run.devices - 1) / *run.devices * *run.devices;
      defaulted_.push_back("global_batch_size");
    }
    const auto peak = [this](nd::Dtype type) { return device_.peak[static_cast<std::size_t>(type)].value; };
    if (!run.compute_dtype && peak(nd::Dtype::bf16) <= 0 && peak(nd::Dtype::fp16) > 0) {
      run.compute_dtype = nd::Dtype::fp16;  // V100 and older
      defaulted_.push_back("compute_dtype = fp16");
    }
    out_.scenario.profile = nd::effective_profile(profile_, run);
    auto resolved = nd::resolve_run(run, model, out_.scenario.profile);
    out_.stated_is_legal = resolved.has_value();
    if (!resolved) {
      out_.stated_problem = resolved.error().diagnostics.front().message;
      out_.stated_problems = resolved.error().diagnostics;
    }
    if (!resolved) resolved = resolve_without_degrees(resolved.error());
    if (!resolved) {
      append(problems_, resolved.error().diagnostics);
      return false;
    }
    out_.scenario.run = std::move(*resolved);
    out_.scenario.cluster = {device_, out_.scenario.run.devices};
    if (out_.stated_is_legal) {
      const auto broken = nd::first_violation(out_.scenario, out_.scenario.run.strategy);
      out_.stated_is_legal = !broken;
      if (broken) out_.stated_problem = nd::describe(*broken);
    }
    return true;
  }

  /// On other devices or with another batch than the input's the stated degrees need not work; the search does not need them.
  nd::Result<nd::ResolvedRun> resolve_without_degrees(const nd::Error& first) {
    const bool changed = request_.search_config || options_.devices || options_.global_batch || options_.seq_length || !options_.model.empty();
    if (!changed) return first;
    nd::RunSpec free = stated_;
    for (auto* degree : {&free.dp, &free.tp, &free.pp, &free.cp, &free.ep, &free.etp, &free.vpp, &free.optimizer_shard, &free.micro_batch_size,
                         &free.micro_batch_num, &free.global_batch_size})
      *degree = std::nullopt;
    free.schedule = std::nullopt;
    free.layers_per_chunk.clear();
    free.full_recompute_layers.clear();
    free.selective_recompute_layers.clear();
    auto resolved = nd::resolve_run(free, out_.scenario.model, out_.scenario.profile);
    // dp = devices need not divide the batch; the search finds the dp that do.
    if (resolved && stated_.global_batch_size) resolved->global_batch_size = *stated_.global_batch_size;
    return resolved;
  }

  void choose_space() {
    std::vector<nd::Dimension> searched;
    if (options_.dimensions) {
      for (const auto& word : *options_.dimensions)
        for (const auto& name : split(word, ',')) {
          const auto dimension = nd::parse_dimension(name, option_place("-l"));
          if (!dimension) append(problems_, dimension.error().diagnostics);
          else searched.push_back(*dimension);
        }
    } else {
      for (const auto& info : nd::dimension_list())
        if (!request_.search_config || varies(info)) searched.push_back(info.id);
    }
    if (options_.manual_balance) keep_balance(searched);
    out_.searched = searched;
    out_.space = nd::pin_dimensions(stated_, out_.scenario.run.strategy, searched);
    lay_candidates(searched);
    refuse_double_settings();
    for (const auto& text : options_.settings) set(text, "--set");
    if (options_.auto_recompute) set_layer_modes();
    else if (!options_.recompute.empty()) set_recompute();
    if (!options_.schedules.empty()) set_schedules();
    if (!problems_.empty()) return;
    for (auto& problem : nd::check_space(out_.scenario, out_.space)) {
      place_in_search_config(problem);
      if (problem.severity == nd::Severity::error) problems_.push_back(std::move(problem));
      else out_.notes.push_back(std::move(problem));
    }
  }

  [[nodiscard]] const nd::DimensionCandidates* candidates_of(nd::Dimension dimension) const {
    for (const auto& one : request_.candidates)
      if (one.dimension == dimension) return &one;
    return nullptr;
  }

  /// Under a search config: what it lists or leaves free, and what nobody states.
  [[nodiscard]] bool varies(const nd::DimensionInfo& info) const {
    if (const auto* one = candidates_of(info.id)) return one->values.size() != 1;
    return !request_.run.origins.contains(std::string(info.field)) && !fixed_by_format(info.id);
  }

  /// Micro-batch size, chunks and sequence parallelism have no candidates in a search config: they are what it says, or its defaults.
  [[nodiscard]] static bool fixed_by_format(nd::Dimension dimension) {
    return dimension == nd::Dimension::micro_batch_size || dimension == nd::Dimension::vpp || dimension == nd::Dimension::sequence_parallel;
  }

  /// The values of the search config's lists, in place of what the framework would try.
  void lay_candidates(const std::vector<nd::Dimension>& searched) {
    for (const auto& one : request_.candidates) {
      if (one.values.empty()) continue;
      const bool left_out = options_.dimensions && std::find(searched.begin(), searched.end(), one.dimension) == searched.end();
      if (left_out && one.values.size() > 1)
        problems_.push_back(usage_error("-l", "leaves out " + std::string(nd::dimension_info(one.dimension).acronym) + ", which the search config varies",
                                        "name it, or give it one value in the search config"));
      auto& choice = out_.space.of(one.dimension);
      choice = {};
      choice.values = one.values;
    }
  }

  void set(const std::string& text, std::string_view option) {
    auto next = nd::with_setting(out_.space, all_schedules_asked(text) ? "schedule=" + offered_schedules() : text, option_place(option));
    if (!next) append(problems_, next.error().diagnostics);
    else out_.space = std::move(*next);
  }

  /// A condition that came from the search config is named by its place there.
  void place_in_search_config(nd::Diagnostic& problem) const {
    constexpr std::string_view kSetting = "--set ";
    if (!problem.where.path.starts_with(kSetting)) return;
    const std::string name = problem.where.path.substr(kSetting.size());
    for (const auto& text : options_.settings)
      if (text.starts_with(name)) return;
    const auto dimension = nd::parse_dimension(name, {});
    if (!dimension) return;
    if (const auto* one = candidates_of(*dimension)) problem.where = one->where;
  }

  /// A dimension has one statement on the command line: of two that differ one would have to be ignored.
  void refuse_double_settings() {
    std::map<nd::Dimension, std::string> values;
    for (const auto& text : options_.settings) {
      const auto sign = text.find_first_of("=<>!");
      const auto dimension = nd::parse_dimension(text.substr(0, sign), {});
      if (!dimension) continue;
      if (sign != std::string::npos && text[sign] == '=') {
        const auto [first, fresh] = values.try_emplace(*dimension, text);
        if (!fresh) problems_.push_back(usage_error("--set", text + ": the values of " + std::string(nd::dimension_info(*dimension).acronym) + " are given twice, before by " + first->second,
                                                    "one list, such as " + std::string(nd::dimension_info(*dimension).name) + "=A,B"));
      }
      if (*dimension == nd::Dimension::recompute && !options_.recompute.empty())
        problems_.push_back(usage_error("--recompute", "--set " + text + " says it as well", "give one of them"));
      if (*dimension == nd::Dimension::schedule && !options_.schedules.empty())
        problems_.push_back(usage_error("--schedule", "--set " + text + " says it as well", "give one of them"));
    }
  }

  /// -ar: one candidate per pipeline and sharding, each layer in one of the modes of --recompute.
  void set_layer_modes() {
    auto& allowed = out_.scenario.run.layer_modes;
    const bool automatic = std::find(options_.recompute.begin(), options_.recompute.end(), "auto") != options_.recompute.end();
    if (automatic && options_.recompute.size() > 1) problems_.push_back(usage_error("--recompute", "auto stands alone", "auto = off, selective, full"));
    if (!options_.recompute.empty() && !automatic) {
      allowed.fill(false);
      for (const auto& name : options_.recompute) {
        const auto mode = nd::parse_value(nd::Dimension::recompute, name, option_place("--recompute"));
        if (!mode) append(problems_, mode.error().diagnostics);
        else if (*mode >= static_cast<std::int64_t>(nd::kLayerModes))
          problems_.push_back(usage_error("--recompute", "'" + name + "' is no mode of one layer", "off, selective, full or auto"));
        else allowed[static_cast<std::size_t>(*mode)] = true;
      }
    }
    for (const auto& text : options_.settings)
      if (const auto dimension = nd::parse_dimension(text.substr(0, text.find_first_of("=<>!")), {}); dimension && *dimension == nd::Dimension::recompute)
        problems_.push_back(usage_error("-ar", "--set " + text + " says it as well", "--recompute names the modes that layers choose from"));
    set("recompute=" + std::string(nd::to_text(nd::Recompute::per_layer)), "-ar");
  }

  /// -mppb: what the input says about stages and recompute stays.
  void keep_balance(std::vector<nd::Dimension>& searched) {
    const auto kept = [](nd::Dimension dimension) {
      return dimension == nd::Dimension::pp || dimension == nd::Dimension::vpp || dimension == nd::Dimension::schedule || dimension == nd::Dimension::recompute;
    };
    if (!stated_.pp) problems_.push_back(usage_error("-mppb", "the input states no pipeline to keep", "leave out -mppb, or name an input with degrees"));
    if (options_.dimensions)
      for (const auto dimension : searched)
        if (kept(dimension))
          problems_.push_back(usage_error("-mppb", "keeps " + std::string(nd::dimension_info(dimension).acronym) + ", which -l varies", "take it off the -l list"));
    std::erase_if(searched, kept);
  }

  void set_recompute() {
    std::string list;
    for (const auto& mode : options_.recompute) list += (list.empty() ? "" : ",") + mode;
    const bool automatic = std::find(options_.recompute.begin(), options_.recompute.end(), "auto") != options_.recompute.end();
    if (automatic && options_.recompute.size() > 1) problems_.push_back(usage_error("--recompute", "auto stands alone", "auto = off, selective, full"));
    else set("recompute=" + list, "--recompute");
  }

  /// "sched=auto": automatic would be the usual two; who says so wants every one that the framework has.
  static bool all_schedules_asked(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || text.substr(equals + 1) != "auto") return false;
    const auto dimension = nd::parse_dimension(text.substr(0, equals), {});
    return dimension && *dimension == nd::Dimension::schedule;
  }

  [[nodiscard]] std::string offered_schedules() const {
    std::string list;
    for (const auto schedule : nd::supported_schedules(out_.scenario.profile.can)) list += (list.empty() ? "" : ",") + std::string(nd::to_text(schedule));
    return list;
  }

  void set_schedules() {
    std::string list;
    for (const auto& name : options_.schedules) list += (list.empty() ? "" : ",") + name;
    const bool automatic = list.find("auto") != std::string::npos;
    if (automatic && list != "auto") problems_.push_back(usage_error("--schedule", "auto stands alone", "auto = " + offered_schedules()));
    else set("schedule=" + list, "--schedule");
  }

  void choose_options() {
    out_.options.jobs = static_cast<int>(options_.jobs.value_or(0));
    out_.options.top = options_.top.value_or(out_.options.top);
    const bool additional = options_.exhaustive || options_.force_exhaustive || options_.fforce_exhaustive;
    out_.options.keep_all = options_.all || additional;
    out_.options.pareto = options_.pareto;
    out_.options.device_hour_price = options_.price;
    if (options_.time_limit) out_.options.time_limit = nd::Seconds{*options_.time_limit};
    choose_objective();
    choose_shard();
    out_.options.memory_limit = options_.max_memory;
    if (options_.memory_reserve) out_.options.memory_reserve = *options_.memory_reserve;
    check_memory();
    check_sequence();
    out_.stated = stated_;
    out_.candidates = request_.candidates;
    finish_defaulted();
  }

  /// Positions beyond the model's: priced as asked, but maybe not what was meant.
  void check_sequence() {
    const auto limit = out_.scenario.model.max_positions;
    const auto asked = out_.scenario.run.seq_length;
    if (limit <= 0 || asked <= limit) return;
    const auto origin = stated_.origins.find("seq_length");
    auto note = nd::make_diagnostic(nd::Errc::out_of_range, origin == stated_.origins.end() ? nd::SourceRef{} : origin->second.where,
                                    std::to_string(asked) + " tokens are more than the " + std::to_string(limit) + " positions of the model",
                                    "priced as asked; the model needs longer positional encodings");
    note.severity = nd::Severity::note;
    out_.notes.push_back(std::move(note));
  }

  void choose_objective() {
    if (options_.objective.empty()) return;
    const auto objective = nd::parse_objective(options_.objective, option_place("--objective"));
    if (!objective) append(problems_, objective.error().diagnostics);
    else out_.options.objective = *objective;
  }

  /// "2/8": the second of eight.
  void choose_shard() {
    if (options_.shard.empty()) return;
    const auto slash = options_.shard.find('/');
    const auto index = parse_integer(std::string_view(options_.shard).substr(0, slash));
    const auto count = slash == std::string::npos ? std::nullopt : parse_integer(std::string_view(options_.shard).substr(slash + 1));
    constexpr std::int64_t kMostShards = 1'000'000;
    if (!index || !count || *count < 1 || *count > kMostShards || *index < 1 || *index > *count) {
      problems_.push_back(usage_error("--shard", "'" + options_.shard + "' is no part of a search", "I/N with I from 1 to N: 2/8"));
      return;
    }
    out_.options.shard = {*index - 1, *count};
  }

  /// A limit above what the device has changes nothing, a reserve as large as the budget leaves nothing: both are said.
  void check_memory() {
    const auto gib = [](nd::Bytes amount) {
      const auto tenths = static_cast<std::int64_t>(nd::to_gib(amount) * 10.0 + 0.5);
      return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
    };
    const nd::Bytes usable = device_.memory.usable;
    const auto wanted = stated_.device_memory;
    if (wanted && *wanted > usable) {
      auto note = nd::make_diagnostic(nd::Errc::out_of_range, stated_.origins["device_memory"].where,
                                      "more than the " + gib(usable) + " a run can use on " + device_.name + ", which is the budget");
      note.severity = nd::Severity::note;
      out_.notes.push_back(std::move(note));
    }
    if (!options_.memory_reserve || !problems_.empty()) return;
    if (nd::search_scenario(out_.scenario, out_.space, out_.options).run.device_memory.value <= 1.0)
      problems_.push_back(usage_error("-mem", gib(*options_.memory_reserve) + " is all of the memory budget", "less than " + gib(usable)));
  }

  /// Fields nobody stated, without those that the search varies anyway.
  void finish_defaulted() {
    auto& names = defaulted_;
    // Whether these were stated is known here already, the command line included.
    const std::vector<std::string> known{"devices", "global_batch_size", "seq_length"};
    const auto has = [](const std::vector<std::string>& list, const std::string& name) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    for (const auto& name : out_.scenario.run.defaulted)
      if (!has(known, name) && !has(names, name)) names.push_back(name);
    for (const auto& info : nd::dimension_list())
      if (!out_.space.of(info.id).pinned) std::erase(names, std::string(info.field));
    out_.defaulted = names;
    for (const auto& name : names) out_.stated.origins.erase(name);
  }

  void check_strict() {
    if (!options_.strict) return;
    for (const auto& name : out_.defaulted)
      problems_.push_back(nd::make_diagnostic(nd::Errc::missing_field, {out_.file, 0, 0, name}, "nobody states it, and the price depends on it",
                                              "state it, or leave out --strict"));
    for (auto problem : out_.notes) {
      if (problem.severity != nd::Severity::warning) continue;
      problem.severity = nd::Severity::error;
      problems_.push_back(std::move(problem));
    }
  }

  const Options& options_;
  const nd::DataStore& data_;
  PreparedSearch out_;
  nd::Request request_;
  nd::RunSpec stated_;
  nd::DeviceType device_;
  nd::FrameworkProfile profile_;
  std::vector<std::string> defaulted_;
  Problems problems_;
};

}  // namespace

nd::Result<PreparedSearch> prepare_search(const Options& options, const nd::DataStore& data) { return Preparation(options, data).run(); }

}  // namespace run_nd
