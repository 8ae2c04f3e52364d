// SPDX-License-Identifier: Apache-2.0
// Scenario files of scripts/benchmarks in foundation-model-stack/fms-acceleration, read as their authors meant them: docs/bench.md#fms.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/text.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"
#include "harness/plan_builder.hpp"
#include "nd/campaign.hpp"

namespace nd {

namespace {

using formats::ConfigNode;
using formats::MapReader;

constexpr std::string_view kModel = "model_name_or_path", kGpus = "num_gpus", kBatch = "effective_batch_size", kPacking = "packing",
                           kSequence = "max_seq_len", kMicroBatch = "per_device_train_batch_size", kAccumulation = "gradient_accumulation_steps";
constexpr std::int64_t kLargestCount = std::int64_t{1} << 24;

/// One value as the trainer's command line takes it; Python spells its booleans with a capital.
std::string word_of(const ConfigNode& node) {
  if (const auto truth = formats::as_boolean(node)) return *truth ? "True" : "False";
  if (const auto whole = formats::scalar_type(node) == formats::ScalarType::integer ? formats::as_integer(node) : std::nullopt)
    return std::to_string(*whole);
  return node.text;
}

/// A setting with where it was stated. No value: stated as null, which hides what lies below.
struct Setting {
  std::optional<Words> values;
  SourceRef where;
};
using Settings = std::map<std::string, Setting, std::less<>>;

/// What one scenario is.
struct Scenario {
  std::string name;
  std::vector<std::string> models;
  std::vector<std::string> frameworks;  ///< short names; empty text = without acceleration
  bool states_frameworks = false;
  Settings settings;  ///< of the scenario alone
  SourceRef where;
  std::vector<Diagnostic> problems;  ///< that matter when the scenario is chosen
};

/// One column of the product.
struct Axis {
  std::string name;
  Words values;
};

class FmsPlanner : harness::PlanBuilder {
 public:
  explicit FmsPlanner(const FmsRequest& request) : request_(request) {}

  Result<Campaign> plan() {
    out_.name = "fms";
    out_.program = {"-m", "tuning.sft_trainer"};
    out_.launcher = "accelerate";
    out_.log_profile = "hf_trainer";
    read_frameworks();
    read_defaults();
    read_scenarios();
    check_matrices();
    return finished([this] {
      for (const auto& scenario : scenarios_) expand(scenario);
    });
  }

 private:
  void note(SourceRef where, std::string message) {
    auto out = make_diagnostic(Errc::conflict, std::move(where), std::move(message));
    out.severity = Severity::note;
    out_.notes.push_back(std::move(out));
  }

  void read_frameworks() {
    for (const auto& [name, path] : request_.framework_configs) frameworks_[name] = path;
    if (request_.contents.empty()) return;
    const auto root = take(formats::read_document(request_.contents));
    if (!root) return;
    MapReader map(*root, problems_);
    map.require("framework_configs", "the list of sample configurations");
    const auto* list = map.child("framework_configs");
    map.finish();
    if (list == nullptr) return;
    if (!list->is_sequence()) return problem(Errc::wrong_type, list->where, "must be a list, is " + formats::describe(*list));
    const auto folder = std::filesystem::path(request_.contents).parent_path();
    for (const auto& item : list->items) {
      MapReader entry(item, problems_);
      entry.require("shortname", "the name that scenarios use");
      entry.require("filename", "the configuration");
      const auto name = entry.string("shortname"), file = entry.string("filename");
      entry.ignore({"plugins"});
      entry.finish();
      // What the command line says about a name stands above the list.
      if (name && file) frameworks_.emplace(*name, (folder / *file).lexically_normal().string());
    }
  }

  Settings settings_of(const ConfigNode& node) {
    Settings out;
    if (!node.is_mapping()) {
      problem(Errc::wrong_type, node.where, "must be a mapping, is " + formats::describe(node));
      return out;
    }
    for (const auto& [name, value] : node.members) {
      Setting setting{{}, value.where};
      if (value.is_scalar()) {
        setting.values = Words{word_of(value)};
      } else if (value.is_sequence()) {
        setting.values = Words{};
        for (const auto& item : value.items) {
          if (item.is_scalar()) setting.values->push_back(word_of(item));
          else problem(Errc::wrong_type, item.where, "must be one value, is " + formats::describe(item));
        }
      } else if (value.is_mapping()) {
        problem(Errc::wrong_type, value.where, "must be a value or a list of values, is a mapping");
      }
      out[name] = std::move(setting);
    }
    return out;
  }

  void read_defaults() {
    if (request_.defaults.empty()) return;
    if (const auto root = take(formats::read_document(request_.defaults)); root && !root->is_null()) defaults_ = settings_of(*root);
  }

  void read_scenarios() {
    const auto root = take(formats::read_document(request_.scenarios));
    if (!root) return;
    MapReader map(*root, problems_);
    map.require("scenarios", "what is run");
    const auto* list = map.child("scenarios");
    if (const auto* data = map.child("data_processing"))
      note(data->where, "data_processing is not done here: prepare the data and name the file (--training-data)");
    map.finish();
    if (list == nullptr) return;
    if (!list->is_sequence()) return problem(Errc::wrong_type, list->where, "must be a list, is " + formats::describe(*list));
    Words known;
    for (const auto& item : list->items)
      if (auto scenario = read_scenario(item)) {
        known.push_back(scenario->first.name);
        choose(std::move(scenario->first), scenario->second);
      }
    for (const auto& name : request_.only)
      if (std::find(known.begin(), known.end(), name) == known.end())
        problem(Errc::out_of_range, {{}, 0, 0, "--run_only_scenarios"}, "there is no scenario '" + name + "'", core::name_hint(name, known));
  }

  void choose(Scenario scenario, bool slow) {
    const auto& only = request_.only;
    const bool named = std::find(only.begin(), only.end(), scenario.name) != only.end();
    if (!only.empty() && !named) return;
    if (slow && !named) return note(scenario.where, "scenario " + scenario.name + " is slow and runs only when it is named");
    problems_.insert(problems_.end(), scenario.problems.begin(), scenario.problems.end());
    scenarios_.push_back(std::move(scenario));
  }

  std::optional<std::pair<Scenario, bool>> read_scenario(const ConfigNode& node) {
    MapReader map(node, problems_);
    Scenario out;
    out.where = node.where;
    map.require("name", "the scenario's name");
    map.require("arguments", "what the training program is called with");
    out.name = map.string("name").value_or("");
    const bool slow = map.boolean("slow").value_or(false);
    if (const auto* list = map.child("framework_config")) read_framework_list(*list, out);
    if (const auto* arguments = map.child("arguments")) {
      out.settings = settings_of(*arguments);
      if (const auto model = out.settings.find(kModel); model != out.settings.end() && model->second.values) out.models = *model->second.values;
      out.settings.erase(std::string(kModel));
    }
    map.finish();
    if (out.name.empty()) return std::nullopt;
    if (out.models.empty()) {
      problem(Errc::missing_field, node.where, "scenario " + out.name + " names no model", "arguments: model_name_or_path");
      return std::nullopt;
    }
    return std::pair{std::move(out), slow};
  }

  void read_framework_list(const ConfigNode& list, Scenario& out) {
    out.states_frameworks = true;
    const auto one = [&](const ConfigNode& item) {
      if (item.is_null()) out.frameworks.emplace_back();
      else if (!item.is_scalar()) problem(Errc::wrong_type, item.where, "must be a short name, is " + formats::describe(item));
      else if (!frameworks_.empty() && frameworks_.count(item.text) == 0) {
        Words known;
        for (const auto& [name, path] : frameworks_) known.push_back(name);
        out.problems.push_back(make_diagnostic(Errc::out_of_range, item.where, "there is no framework configuration '" + item.text + "'", core::name_hint(item.text, known)));
      } else out.frameworks.push_back(item.text);
    };
    if (!list.is_sequence()) one(list);
    else for (const auto& item : list.items) one(item);
  }

  void check_matrices() {
    const auto check = [&](const std::optional<std::vector<std::int64_t>>& values, const char* option) {
      if (!values) return;
      if (values->empty()) problem(Errc::missing_field, {{}, 0, 0, option}, "has no values");
      for (const auto value : *values)
        if (value < 1 || value > kLargestCount) problem(Errc::out_of_range, {{}, 0, 0, option}, fmt::format("must be from 1 to {}, is {}", kLargestCount, value));
    };
    check(request_.num_gpus, "--num_gpus_matrix");
    check(request_.effective_batch_size, "--effective_batch_size_matrix");
    check(request_.max_seq_len, "--max_seq_len_matrix");
  }

  static Words texts(const std::vector<std::int64_t>& values) {
    Words out;
    for (const auto value : values) out.push_back(std::to_string(value));
    return out;
  }

  /// Command line, else scenario, else defaults file, else what the harness itself would take.
  Words layered(const Scenario& scenario, std::string_view name, const std::optional<Words>& stated, const Words& fallback) {
    const auto own = scenario.settings.find(name);
    const auto below = defaults_.find(name);
    const Setting* file = own != scenario.settings.end() ? &own->second : below != defaults_.end() ? &below->second : nullptr;
    if (stated) {
      if (file != nullptr && file->values && *file->values != *stated) note(file->where, fmt::format("{} is overridden by the command line", name));
      return *stated;
    }
    return file != nullptr && file->values && !file->values->empty() ? *file->values : fallback;
  }

  std::vector<Axis> axes(const Scenario& scenario) {
    const auto numbers = [](const std::optional<std::vector<std::int64_t>>& values) { return values ? std::optional(texts(*values)) : std::nullopt; };
    std::optional<Words> packing;
    if (request_.packing) {
      packing.emplace();
      for (const bool value : *request_.packing) packing->push_back(value ? "True" : "False");
    }
    std::vector<Axis> out{{std::string(kModel), scenario.models}};
    if (scenario.states_frameworks) out.push_back({"framework_config", scenario.frameworks});
    out.push_back({std::string(kBatch), layered(scenario, kBatch, numbers(request_.effective_batch_size), {"4", "8"})});
    out.push_back({std::string(kGpus), layered(scenario, kGpus, numbers(request_.num_gpus), {"1", "2"})});
    out.push_back({std::string(kPacking), layered(scenario, kPacking, packing, {"True"})});
    out.push_back({std::string(kSequence), layered(scenario, kSequence, numbers(request_.max_seq_len), {"4096"})});
    return out;
  }

  void expand(const Scenario& scenario) {
    Settings constants = defaults_;
    for (const auto& [name, setting] : scenario.settings) constants[name] = setting;
    const auto columns = axes(scenario);
    for (const auto& column : columns) {
      constants.erase(column.name);
      if (column.values.empty()) return problem(Errc::missing_field, scenario.where, fmt::format("scenario {} has no value for {}", scenario.name, column.name));
    }
    for (const auto& [name, setting] : constants)
      if (!setting.values && name != kMicroBatch && name != kAccumulation) note(setting.where, name + " is null and not passed");
    std::vector<std::size_t> at(columns.size(), 0);
    for (bool more = true; more;) {
      std::map<std::string, std::string, std::less<>> point;
      for (std::size_t i = 0; i < columns.size(); ++i) point[columns[i].name] = columns[i].values[at[i]];
      add_run(scenario, constants, point);
      more = false;
      for (std::size_t i = columns.size(); i-- > 0 && !more;) {  // the last column runs fastest
        at[i] = (at[i] + 1) % columns[i].values.size();
        more = at[i] != 0;
      }
    }
  }

  std::optional<std::int64_t> count(std::string_view name, const std::string& text, const SourceRef& where) {
    const auto value = core::parse_integer(text);
    if (value && *value >= 1 && *value <= kLargestCount) return value;
    problem(Errc::out_of_range, where, fmt::format("{} must be a whole number from 1 on, is '{}'", name, text));
    return std::nullopt;
  }
  std::optional<std::int64_t> count(const Settings& settings, std::string_view name) {
    const auto found = settings.find(name);
    if (found == settings.end() || !found->second.values) return std::nullopt;
    if (found->second.values->size() == 1) return count(name, found->second.values->front(), found->second.where);
    problem(Errc::wrong_type, found->second.where, fmt::format("{} must be one number", name));
    return std::nullopt;
  }

  struct Batch {
    std::int64_t micro_batch = 0, accumulation = 0;
    std::string skip;
  };
  /// effective = devices * per device * accumulation, exactly; what is not stated follows, the accumulation from the micro-batch first.
  static Batch batch(std::int64_t effective, std::int64_t devices, std::optional<std::int64_t> micro_batch, std::optional<std::int64_t> accumulation) {
    Batch out{micro_batch.value_or(1), accumulation.value_or(1), {}};
    const std::int64_t stated = devices * out.micro_batch * out.accumulation;
    if (effective % stated != 0)
      out.skip = fmt::format("effective batch {} is no multiple of {} devices x {} x {} accumulation steps", effective, devices, out.micro_batch, out.accumulation);
    else if (micro_batch && accumulation && effective != stated)
      out.skip = fmt::format("effective batch {} is not {} devices x {} x {} accumulation steps, which are all stated", effective, devices, out.micro_batch, out.accumulation);
    else if (micro_batch && !accumulation) out.accumulation = effective / stated;
    else if (!micro_batch) out.micro_batch = effective / stated;
    return out;
  }

  void add_run(const Scenario& scenario, const Settings& constants, const std::map<std::string, std::string, std::less<>>& point) {
    const auto effective = count(kBatch, point.find(kBatch)->second, scenario.where);
    const auto devices = count(kGpus, point.find(kGpus)->second, scenario.where);
    const auto sequence = count(kSequence, point.find(kSequence)->second, scenario.where);
    const auto micro_batch = count(constants, kMicroBatch), accumulation = count(constants, kAccumulation);
    if (!effective || !devices || !sequence) return;
    const auto split = batch(*effective, *devices, micro_batch, accumulation);
    PlannedRun run;
    run.devices = *devices;
    run.skip = split.skip;
    const std::string& model = point.find(kModel)->second;
    const auto argument = [&](std::string_view name, Words values) {
      run.facts.emplace_back(name, fmt::format("{}", fmt::join(values, " ")));
      run.arguments.push_back({std::string(name), std::move(values)});
    };
    const auto framework = point.find("framework_config");
    const std::string short_name = framework == point.end() || framework->second.empty() ? "none" : framework->second;
    run.facts = {{"scenario", scenario.name}, {"framework_config", short_name}, {std::string(kGpus), std::to_string(*devices)},
                 {std::string(kBatch), std::to_string(*effective)}};
    if (short_name != "none") {
      const auto known = frameworks_.find(short_name);
      const std::string& path = known != frameworks_.end() ? known->second : short_name;
      run.environment.emplace_back("ACCELERATION_FRAMEWORK_CONFIG_FILE", path);
      run.facts.emplace_back("acceleration_framework_config_file", path);
    }
    argument(kModel, {model});
    argument(kPacking, {point.find(kPacking)->second});
    argument(kSequence, {std::to_string(*sequence)});
    if (!request_.training_data.empty()) argument("training_data_path", {request_.training_data});
    for (const auto& [name, setting] : constants)
      if (setting.values && name != kMicroBatch && name != kAccumulation) argument(name, *setting.values);
    if (run.skip.empty()) {
      argument(kMicroBatch, {std::to_string(split.micro_batch)});
      argument(kAccumulation, {std::to_string(split.accumulation)});
      run.facts.emplace_back("gbs", std::to_string(*devices * split.micro_batch * split.accumulation));
    }
    run.facts.emplace_back("seq_length", std::to_string(*sequence));
    run.arguments.push_back({"output_dir", {"{run_dir}/hf"}});
    run.arguments.push_back({"skip_memory_metrics", {request_.memory_counters ? "False" : "True"}});
    run.name = fmt::format("{}-{}-{}-{}dev-b{}", scenario.name, model.substr(model.find_last_of('/') + 1), short_name, *devices, *effective);
    out_.runs.push_back(std::move(run));
  }

  const FmsRequest& request_;
  std::map<std::string, std::string> frameworks_;
  Settings defaults_;
  std::vector<Scenario> scenarios_;
};

}  // namespace

Result<Campaign> plan_fms(const FmsRequest& request) { return FmsPlanner(request).plan(); }

}  // namespace nd
