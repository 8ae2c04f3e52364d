// SPDX-License-Identifier: Apache-2.0
#include "report/validation_pricer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "core/text.hpp"
#include "formats/model_fields.hpp"
#include "nd/run_spec.hpp"
#include "nd/scenario.hpp"
#include "nd/schedule.hpp"
#include "report/validation_pattern.hpp"

namespace nd::report {
namespace {

std::string first_message(const Error& error) {
  return error.diagnostics.empty() ? std::string("unknown reason") : error.diagnostics.front().message;
}

/// The line rate out of a node, where a source states another than the device file, on the first level that leaves the node.
void set_node_rate(double gbit_per_second, DeviceType& device) {
  if (device.node_devices < 1) return;
  const double per_device = gbit_per_second * 1e9 / 8.0 / static_cast<double>(device.node_devices);
  for (TopologyLevel& level : device.levels) {
    if (level.devices != 0 && level.devices <= device.node_devices) continue;
    if (level.bandwidth.value <= 0) return;
    const double ratio = per_device / level.bandwidth.value;
    level.bandwidth.value = per_device;
    level.bus *= ratio;  // `bus` keeps its convention relative to the line rate
    return;
  }
}

const StageMemory& stage_read(const MemoryBreakdown& memory, MemoryStage stage) {
  if (stage == MemoryStage::maximum) return memory.peak();
  return stage == MemoryStage::last_stage ? memory.stages.back() : memory.stages.front();
}

std::vector<std::pair<std::string, double>> memory_parts(const StageMemory& stage) {
  return {{"parameters", to_gib(stage.parameters)},   {"gradients", to_gib(stage.gradients)},
          {"optimizer_states", to_gib(stage.optimizer_states)}, {"workspace", to_gib(stage.workspace)},
          {"buffers", to_gib(stage.buffers)},         {"activations", to_gib(stage.activations)},
          {"logits", to_gib(stage.logits)},           {"working_set", to_gib(stage.working_set)},
          {"temporary", to_gib(stage.temporary)}};
}

/// What the counter of a reading shows of one stage, GiB.
double shown_gib(const Scenario& scenario, MemoryCounter counter, const StageMemory& stage) {
  if (counter == MemoryCounter::allocated) return to_gib(stage.allocated);
  const Bytes shown = counter == MemoryCounter::device ? stage.reserved : stage.cached;
  // Where free memory runs out the caching allocator gives back what it holds: no reading is above the card's memory.
  return to_gib(std::min(shown, std::max(stage.allocated, scenario.cluster.device.memory.usable)));
}

/// "per-rank max allocated GiB 0:13.41 2:12.39": the fullest rank of each stage. Ranks of a stage follow each other.
std::vector<StagePeak> stage_peaks(const ValidatedRow& row, const Scenario& scenario, const MemoryBreakdown& read) {
  std::vector<StagePeak> out;
  if (row.reading.counter != MemoryCounter::allocated) return out;
  constexpr std::string_view kPhrase = "per-rank max allocated GiB ";
  const auto ranks_of_stage = scenario.cluster.devices / static_cast<std::int64_t>(read.stages.size());
  for (const std::string& phrase : note_phrases(row.measured.notes)) {
    if (!std::string_view(phrase).starts_with(kPhrase)) continue;
    for (const std::string& word : core::split(phrase.substr(kPhrase.size()), ' ')) {
      const auto colon = word.find(':');
      if (colon == std::string::npos) continue;
      const auto rank = core::parse_integer(word.substr(0, colon));
      const auto peak = core::parse_real(word.substr(colon + 1));
      if (!rank || !peak || *rank < 0 || *rank >= scenario.cluster.devices || !(*peak > 0)) continue;
      const auto stage = static_cast<int>(*rank / ranks_of_stage);
      const auto known = std::find_if(out.begin(), out.end(), [stage](const StagePeak& entry) { return entry.stage == stage; });
      if (known != out.end()) known->measured_gib = std::max(known->measured_gib, *peak);
      else out.push_back({stage, *peak, to_gib(read.stages[static_cast<std::size_t>(stage)].allocated)});
    }
  }
  return out;
}

void price_memory(const Scenario& scenario, const ParallelConfig& config, ValidatedRow& out) {
  const MemoryBreakdown steady = estimate_memory(scenario, config);
  out.fit = steady.fit;
  out.reserved_gib = to_gib(steady.peak().reserved);
  out.budget_gib = to_gib(steady.budget);
  const MemoryBreakdown read =
      out.reading.time == ReadingTime::steady ? steady : estimate_memory(scenario, config, out.reading.time);
  const StageMemory& stage = stage_read(read, out.reading.stage);
  out.predicted_peak_mem_gib = shown_gib(scenario, out.reading.counter, stage);
  out.stage_peaks = stage_peaks(out, scenario, read);
  out.memory_parts_gib = memory_parts(stage);
}

void price_time(const Scenario& scenario, const ParallelConfig& config, ValidatedRow& out) {
  const TimeBreakdown time = estimate_time(scenario, config);
  out.predicted_step_time_s = time.step.value;
  for (std::size_t part = 0; part < kTimePartCount; ++part) out.time_parts_s[part] = time.exposed[part].value;
}

std::string shape_text(const MeasuredRow& row) {
  const auto text = [](const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : std::string("-"); };
  return "h" + text(row.hidden) + " l" + text(row.layers) + " a" + text(row.heads) + " " + row.dtype;
}

std::string profile_key(const MappedRow& mapped) {
  std::string key = mapped.framework + "|" + mapped.version;
  for (const std::string& feature : mapped.features) key += "|" + feature;
  return key;
}

std::string list_text(const char* name, const std::vector<std::int64_t>& list) {
  if (list.empty()) return {};
  std::string out = std::string(" ") + name;
  for (std::size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "" : ",") + std::to_string(list[i]);
  return out;
}

/// Everything that makes two strategies of one row's problem different.
std::string strategy_text(const ResolvedRun& run) {
  constexpr std::array<const char*, 4> kZero{"", " zero1", " zero2", " zero3"};
  std::string out = to_text(run.strategy) + kZero.at(static_cast<std::size_t>(run.strategy.zero));
  out += list_text("full", run.full_recompute_layers) + list_text("selective", run.selective_recompute_layers);
  for (const auto& chunk : run.layers_per_chunk) out += list_text("layers", chunk);
  if (run.frozen_base) out += " frozen";
  return out;
}

}  // namespace

void RowPricer::prepare(const MappedRow& mapped) {
  if (!mapped.skip.empty()) return;
  if (devices_.find(mapped.device) == devices_.end()) devices_.emplace(mapped.device, load_device(mapped.device));
  std::string key = profile_key(mapped);
  if (profiles_.find(key) == profiles_.end()) profiles_.emplace(std::move(key), load_profile(mapped));
  const std::string& type = mapped.model.model_type;
  if (families_.find(type) == families_.end()) families_.emplace(type, load_family(type));
}

bool RowPricer::broken(const Error& error) {
  // A name nobody knows has no place in a file; what stands in a file and cannot be read must not pass for an unknown name.
  const auto in_file = [](const Diagnostic& d) { return d.severity == Severity::error && !d.where.file.empty() && d.where.line > 0; };
  const bool names_only = error.code() == Errc::out_of_range && error.diagnostics.size() == 1;
  if (names_only || !std::any_of(error.diagnostics.begin(), error.diagnostics.end(), in_file)) return false;
  for (const Diagnostic& d : error.diagnostics)
    if (std::find(problems_.begin(), problems_.end(), d) == problems_.end()) problems_.push_back(d);
  return true;
}

RowPricer::LoadedDevice RowPricer::load_device(const std::string& name) {
  LoadedDevice loaded;
  const auto device = data_.device(name);
  if (device) {
    loaded.device = *device;
  } else {
    loaded.problem = first_message(device.error());
    loaded.unknown = !broken(device.error());
  }
  return loaded;
}

RowPricer::LoadedFamily RowPricer::load_family(const std::string& model_type) {
  LoadedFamily loaded;
  ModelSpec bare;
  bare.model_type = model_type;
  std::vector<Diagnostic> notes;
  const auto defaults = data_.with_family_defaults(std::move(bare), notes);
  if (defaults) {
    loaded.defaults = *defaults;
  } else {
    broken(defaults.error());
    loaded.problem = first_message(defaults.error());
  }
  for (const Diagnostic& note : notes) loaded.assumptions.push_back(note.message);
  return loaded;
}

RowPricer::LoadedProfile RowPricer::load_profile(const MappedRow& mapped) {
  LoadedProfile loaded;
  std::string name = mapped.framework, version = mapped.version;
  auto profile = data_.framework(name, version, {});
  if (!profile && broken(profile.error())) {
    loaded.problem = "framework profile: " + first_message(profile.error());
    return loaded;
  }
  if (!profile && !version.empty()) {
    loaded.assumptions.push_back(name + " " + version + " is not in the data, its newest version taken");
    version.clear();
    profile = data_.framework(name, version, {});
  }
  if (!profile && name != "generic") {
    loaded.assumptions.push_back("no profile '" + name + "', generic taken");
    name = "generic";
    profile = data_.framework(name, version, {});
  }
  if (!profile) {
    loaded.problem = "framework profile: " + first_message(profile.error());
    return loaded;
  }
  loaded.profile = *profile;
  for (const std::string& feature : mapped.features) {
    std::vector<std::string> with = loaded.features;
    with.push_back(feature);
    auto next = data_.framework(name, version, with);
    if (next) {
      loaded.profile = *next;
      loaded.features = std::move(with);
    } else {
      loaded.assumptions.push_back("feature '" + feature + "' is not in profile " + name);
    }
  }
  return loaded;
}

std::string RowPricer::resolve(const MappedRow& mapped, Scenario& scenario, ValidatedRow& out) const {
  const LoadedDevice& loaded = devices_.at(mapped.device);
  if (!loaded.problem.empty()) return "device: " + loaded.problem;
  scenario.cluster.device = loaded.device;
  scenario.cluster.devices = mapped.run.devices.value_or(1);
  if (mapped.node_gbit) set_node_rate(*mapped.node_gbit, scenario.cluster.device);
  out.device = loaded.device.name;

  const LoadedProfile& trainer = profiles_.at(profile_key(mapped));
  if (!trainer.problem.empty()) return trainer.problem;
  scenario.profile = effective_profile(trainer.profile, mapped.run);
  out.framework = trainer.profile.name;
  out.framework_version = trainer.profile.version;
  out.features = trainer.features;
  out.assumptions.insert(out.assumptions.end(), trainer.assumptions.begin(), trainer.assumptions.end());

  const LoadedFamily& family = families_.at(mapped.model.model_type);
  if (!family.problem.empty()) return "model: " + family.problem;
  out.assumptions.insert(out.assumptions.end(), family.assumptions.begin(), family.assumptions.end());
  ModelSpec spec = mapped.model;
  formats::merge_model_fields(spec, family.defaults, formats::Precedence::fill_open);
  const auto model = resolve_model(spec, SourceRef{out.measured.file, out.measured.line, 0, {}});
  if (!model) return "model: " + first_message(model.error());
  scenario.model = *model;
  const auto run = resolve_run(mapped.run, scenario.model, scenario.profile);
  if (!run) return "strategy: " + first_message(run.error());
  if (const auto why = why_invalid(run->strategy.schedule, schedule_shape(run->strategy))) return "strategy: " + std::string(*why);
  scenario.run = *run;
  return {};
}

const FrameworkProfile* RowPricer::profile(const MappedRow& mapped) const {
  const auto found = profiles_.find(profile_key(mapped));
  return found == profiles_.end() || !found->second.problem.empty() ? nullptr : &found->second.profile;
}

std::optional<double> RowPricer::peak_with(const FrameworkProfile& profile, const ValidatedRow& row, const MappedRow& mapped) const {
  Scenario scenario;
  ValidatedRow scratch;
  scratch.measured = row.measured;
  if (!resolve(mapped, scenario, scratch).empty()) return std::nullopt;
  scenario.profile = effective_profile(profile, mapped.run);
  scenario.run.expert_imbalance = scenario.profile.memory.expert_imbalance;
  const MemoryBreakdown read = estimate_memory(scenario, scenario.run.strategy, row.reading.time);
  return shown_gib(scenario, row.reading.counter, stage_read(read, row.reading.stage));
}

ValidatedRow RowPricer::price(const MeasuredRow& row, const MappedRow& mapped) const {
  ValidatedRow out;
  out.measured = row;
  out.device = row.device;
  out.framework = mapped.framework;
  out.framework_version = mapped.version;
  out.features = mapped.features;
  out.assumptions = mapped.assumptions;
  out.reading = mapped.reading;
  out.memory_only = mapped.memory_only;
  out.skipped = mapped.skip;
  if (!out.skipped.empty()) return out;
  Scenario scenario;
  out.unknown_device = devices_.at(mapped.device).unknown;
  out.skipped = resolve(mapped, scenario, out);
  if (!out.skipped.empty()) return out;
  MeasuredRow complete = row;
  complete.gbs = scenario.run.global_batch_size;  // one micro-batch per rank where the table leaves it out
  if (!row.out_of_memory()) {
    if (!mapped.no_time) out.measured_step_time_s = complete.measured_step_time();
    if (!mapped.no_memory && row.peak_mem_gib && *row.peak_mem_gib > 0) out.measured_peak_mem_gib = row.peak_mem_gib;
  }
  if (!out.measured_step_time_s && !out.measured_peak_mem_gib && !row.out_of_memory()) {
    out.skipped = "no step time, tokens per second, memory or failure stated";
    return out;
  }
  out.strategy = strategy_text(scenario.run);
  try {
    price_memory(scenario, scenario.run.strategy, out);
    price_time(scenario, scenario.run.strategy, out);
  } catch (const InternalError& error) {
    // One row must not hide the other three thousand; the reason names the bug.
    out.predicted_step_time_s.reset();
    out.predicted_peak_mem_gib.reset();
    out.skipped = std::string("internal: ") + error.what();
  }
  return out;
}

SweepPoint sweep_point(const ValidatedRow& row) {
  SweepPoint out;
  out.source = row.measured.source;
  out.model = row.measured.model;
  out.device = row.device;
  out.devices = row.measured.devices.value_or(0);
  out.gbs = row.measured.gbs.value_or(0);
  out.seq_len = row.measured.seq_len.value_or(0);
  out.variant = shape_text(row.measured) + " " + row.framework + " " + row.framework_version;
  for (const std::string& feature : row.features) out.variant += " " + feature;
  out.strategy = row.strategy;
  out.measured = *row.measured_step_time_s;
  out.predicted = *row.predicted_step_time_s;
  return out;
}

}  // namespace nd::report
