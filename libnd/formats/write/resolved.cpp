// SPDX-License-Identifier: Apache-2.0
#include "nd/resolved.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "formats/registry.hpp"
#include "formats/tree/node.hpp"
#include "formats/write/writer.hpp"
#include "formats/write/writers.hpp"
#include "layout/layout.hpp"
#include "nd/plan.hpp"
#include "nd/run_spec.hpp"
#include "nd/search_space.hpp"

namespace nd {

namespace formats {

std::string suffix_of(const std::string& file) { return std::filesystem::path(file).extension().string(); }
namespace {

const Format* find_row(std::string_view id) {
  for (const auto& format : formats())
    if (format.id == id) return &format;
  return nullptr;
}

SourceRef at(const Original& original) { return {original.file, 0, 0, {}}; }

/// The formats that spread a run over companions of the main file.
bool has_companions(std::string_view format, const RequestFiles& files) {
  return (format == "hyperparallel2" || format == "hf") && (!files.train.empty() || !files.accelerate.empty());
}

/// The original with what was written in place of its texts.
Original written_over(Original original, const std::vector<ResolvedFile>& files) {
  for (const auto& file : files) {
    if (file.suffix.starts_with(".train")) original.train_text = file.text;
    else if (file.suffix.starts_with(".accelerate")) original.accelerate_text = file.text;
    else original.text = file.text;
  }
  return original;
}

/// Layers and recomputed layers of each stage and chunk as they are priced.
ResolvedStrategy strategy_of(const Scenario& scenario, const ParallelConfig& config) {
  ResolvedStrategy out;
  out.config = config;
  out.devices = scenario.run.devices;
  out.global_batch_size = config.global_batch();
  out.seq_length = scenario.run.seq_length;
  out.layers = scenario.model.layers();
  out.mtp_depth = scenario.model.mtp_depth;
  out.has_experts = scenario.model.has_experts();
  const auto layout = layout::make_layout(scenario.model, scenario.run, config);
  const auto chunks = layout.stages.front().size();
  const std::vector<std::int64_t> stages(layout.stages.size());
  out.layers_per_chunk.assign(chunks, stages);
  out.full_recompute = out.selective_recompute = out.layers_per_chunk;
  const std::int64_t first = layout.stages.front().front().layers();
  for (std::size_t s = 0; s < layout.stages.size(); ++s) {
    for (std::size_t c = 0; c < chunks; ++c) {
      const auto& chunk = layout.stages[s][c];
      out.layers_per_chunk[c][s] = chunk.layers();
      out.full_recompute[c][s] = chunk.full_recompute;
      out.selective_recompute[c][s] = chunk.selective_recompute;
      out.even = out.even && chunk.layers() == first;
      out.uniform = out.uniform && chunk.full_recompute == (config.recompute == Recompute::full ? chunk.layers() : 0) &&
                    chunk.selective_recompute == (config.recompute == Recompute::selective ? chunk.layers() : 0);
    }
  }
  return out;
}

/// What the written text would be read as, against what was to be written.
class ReadBack {
 public:
  ReadBack(const Original& original, const Scenario& scenario, const ParallelConfig& config)
      : original_(original), scenario_(scenario), wanted_(config) {}

  std::vector<Diagnostic> check(RunSpec spec, const DataStore& data) {
    profile(spec, data);
    if (!spec.devices) spec.devices = scenario_.run.devices;
    leave_open(spec);
    const auto run = resolve_run(spec, scenario_.model, scenario_.profile);
    if (!run) return run.error().diagnostics;
    dimensions(run->strategy);
    differ("devices", std::to_string(scenario_.run.devices), std::to_string(run->devices));
    differ("sequence length", std::to_string(scenario_.run.seq_length), std::to_string(run->seq_length));
    if (problems_.empty()) stages(*run);
    return std::move(problems_);
  }

  /// What the file leaves to other files or the command line.
  [[nodiscard]] const std::string& left_open() const { return left_open_; }

 private:
  /// Files of the Hugging Face stack state parts of a run: what they do not mention stands elsewhere, as the strategy has it.
  void leave_open(RunSpec& spec) {
    if (original_.format != "accelerate" && original_.format != "deepspeed" && original_.format != "hf_trainer" && original_.format != "hf") return;
    const auto add = [this](const std::string& what) { left_open_ += (left_open_.empty() ? "" : ", ") + what; };
    if (!spec.micro_batch_size) {
      spec.micro_batch_size = wanted_.micro_batch_size;
      add("mbs=" + std::to_string(wanted_.micro_batch_size));
    }
    if (!spec.micro_batch_num && !spec.global_batch_size) {
      spec.micro_batch_num = wanted_.micro_batch_num;
      add("mb=" + std::to_string(wanted_.micro_batch_num));
    }
    if (!spec.recompute) {
      spec.recompute = wanted_.recompute;
      add("recompute=" + std::string(to_text(wanted_.recompute)));
    }
    if (!spec.seq_length) spec.seq_length = scenario_.run.seq_length;
  }

  void differ(const std::string& what, const std::string& wanted, const std::string& read) {
    if (wanted == read) return;
    problems_.push_back(make_diagnostic(Errc::unsupported, at(original_),
                                        "cannot say " + what + " = " + wanted + "; what is written would be read as " + read));
  }

  /// What switches features must say the same trainer as before: its profile is half of the price.
  void profile(const RunSpec& spec, const DataStore& data) {
    if (spec.framework.empty()) return;  // the caller chose it
    const auto read = data.framework(spec.framework, spec.framework_version, spec.features);
    if (read && effective_profile(*read, spec) == scenario_.profile) return;
    problems_.push_back(make_diagnostic(Errc::unsupported, at(original_), "cannot say the strategy without changing what is known of the trainer"));
  }

  void dimensions(const ParallelConfig& read) {
    for (const auto& info : dimension_list())
      differ(std::string(info.name), value_text(info.id, value_of(wanted_, info.id)), value_text(info.id, value_of(read, info.id)));
    if (wanted_.cp > 1) differ("cp_algorithm", to_text(wanted_.cp_algorithm), to_text(read.cp_algorithm));
    if (wanted_.schedule == Schedule::interleaved)
      differ("micro_batch_group", std::to_string(wanted_.group_size()), std::to_string(read.group_size()));
    differ("seq_split", std::to_string(wanted_.seq_split), std::to_string(read.seq_split));
  }

  void stages(const ResolvedRun& run) {
    Scenario read = scenario_;
    read.run.layers_per_chunk = run.layers_per_chunk;
    read.run.full_recompute_layers = run.full_recompute_layers;
    read.run.selective_recompute_layers = run.selective_recompute_layers;
    read.run.strategy.recompute = run.strategy.recompute;
    const auto before = strategy_of(scenario_, wanted_), after = strategy_of(read, wanted_);
    differ("layers per stage", counts(before.layers_per_chunk), counts(after.layers_per_chunk));
    differ("fully recomputed layers", counts(before.full_recompute), counts(after.full_recompute));
    differ("selectively recomputed layers", counts(before.selective_recompute), counts(after.selective_recompute));
  }

  static std::string counts(const std::vector<std::vector<std::int64_t>>& chunks) {
    std::string out;
    for (const auto& chunk : chunks) {
      out += out.empty() ? "" : "; ";
      for (std::size_t i = 0; i < chunk.size(); ++i) out += (i == 0 ? "" : ",") + std::to_string(chunk[i]);
    }
    return out;
  }

  const Original& original_;
  const Scenario& scenario_;
  const ParallelConfig& wanted_;
  std::vector<Diagnostic> problems_;
  std::string left_open_;
};

/// Whether counts per stage, the first layers recomputed most, are the plan.
bool says_plan(const ResolvedStrategy& strategy, const LayerPlan& plan) {
  auto full = strategy.full_recompute, selective = strategy.selective_recompute;
  const PlannedLayers* before = nullptr;
  for (const PlannedLayers& range : plan.layers) {
    if (range.kind < 0) continue;
    const auto chunk = static_cast<std::size_t>(range.chunk), stage = static_cast<std::size_t>(range.stage);
    if (chunk >= full.size() || stage >= full[chunk].size()) return false;
    const bool same_chunk = before != nullptr && before->stage == range.stage && before->chunk == range.chunk;
    if (same_chunk && range.mode > before->mode) return false;
    before = &range;
    if (range.mode == Recompute::full) full[chunk][stage] -= range.count;
    if (range.mode == Recompute::selective) selective[chunk][stage] -= range.count;
  }
  const auto nothing_left = [](const std::vector<std::vector<std::int64_t>>& counts) {
    return std::all_of(counts.begin(), counts.end(), [](const auto& chunk) { return std::all_of(chunk.begin(), chunk.end(), [](std::int64_t count) { return count == 0; }); });
  };
  return nothing_left(full) && nothing_left(selective);
}

Result<std::vector<ResolvedFile>> write_checked(const Original& original, const Scenario& scenario, const ResolvedStrategy& strategy, const DataStore& data) {
  const auto* const row = find_row(original.format);
  const bool several = !original.train_file.empty() || !original.accelerate_file.empty();
  const auto write = several && original.format == "hf" ? write_trainer_files : row == nullptr ? nullptr : row->write;
  if (write == nullptr) return make_error(Errc::unsupported, at(original), "a file of this format states no strategy; nothing is written back");
  auto files = write(original, strategy);
  if (!files) return files;
  const ReadOptions options{.devices = scenario.run.devices};
  const auto read = several ? read_documents(written_over(original, *files), data, options)
                            : read_text(files->front().text, original.file, data, {original.format, options});
  if (!read) {
    auto problems = read.error().diagnostics;
    problems.insert(problems.begin(), make_diagnostic(Errc::internal, at(original), "what was written back cannot be read"));
    return Error(std::move(problems));
  }
  ReadBack back(original, scenario, strategy.config);
  if (auto problems = back.check(read->run, data); !problems.empty()) return Error(std::move(problems));
  files->front().note = back.left_open();
  return files;
}

}  // namespace
}  // namespace formats

Result<Original> read_original(std::string_view format, const RequestFiles& files) {
  Original out;
  out.format = format;
  out.file = files.main;
  const bool several = formats::has_companions(format, files);
  if (several) {
    out.train_file = files.train;
    out.accelerate_file = files.accelerate;
  }
  for (const auto& [file, text] : {std::pair{&out.file, &out.text}, std::pair{&out.train_file, &out.train_text}, std::pair{&out.accelerate_file, &out.accelerate_text}}) {
    if (file->empty() || (format == "hf" && text == &out.text)) continue;  // the model is not written; it may be a preset
    auto read = formats::read_text_file(*file);
    if (!read) return read.error();
    *text = *std::move(read);
  }
  return out;
}

std::vector<std::string> resolved_suffixes(std::string_view format, const RequestFiles& files) {
  const auto* const row = formats::find_row(format);
  std::vector<std::string> out;
  if (row != nullptr && row->write != nullptr) out.push_back(formats::suffix_of(files.main));
  if (formats::has_companions(format, files)) {
    if (!files.train.empty()) out.push_back(".train" + formats::suffix_of(files.train));
    if (!files.accelerate.empty()) out.push_back(".accelerate" + formats::suffix_of(files.accelerate));
  }
  if (row == nullptr || row->write == nullptr) return out;
  for (std::size_t from = 0; from < row->extra_suffixes.size();) {
    const std::size_t end = std::min(row->extra_suffixes.find(' ', from), row->extra_suffixes.size());
    if (const auto suffix = row->extra_suffixes.substr(from, end - from); suffix != out.front()) out.emplace_back(suffix);
    from = end + 1;
  }
  return out;
}

Result<std::vector<ResolvedFile>> write_resolved(const Original& original, const Scenario& scenario, const ParallelConfig& config,
                                                 const DataStore& data) {
  if (config.recompute == Recompute::per_layer) {
    const StatedPlan stated = state_plan(scenario, config);
    auto strategy = formats::strategy_of(stated.scenario, stated.config);
    strategy.planned = true;
    if (!formats::says_plan(strategy, plan_layers(scenario, config)))
      return make_error(Errc::unsupported, formats::at(original), "cannot say the recompute of every layer: trainers count layers per stage, the first ones recomputed");
    return formats::write_checked(original, stated.scenario, strategy, data);
  }
  return formats::write_checked(original, scenario, formats::strategy_of(scenario, config), data);
}

}  // namespace nd
