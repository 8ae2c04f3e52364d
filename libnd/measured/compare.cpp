// SPDX-License-Identifier: Apache-2.0
#include "nd/compare.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "core/text.hpp"
#include "measured/agreement.hpp"
#include "nd/ops.hpp"
#include "nd/search.hpp"
#include "nd/validation.hpp"
#include "nd/version.hpp"
#include "report/validation_mapping.hpp"
#include "report/validation_pricer.hpp"
#include "report/validation_rules.hpp"

namespace nd {

namespace {

constexpr double kVisible = 1e-9;  // share of a step

std::string first_message(const Error& error) {
  return error.diagnostics.empty() ? std::string("unknown reason") : error.diagnostics.front().message;
}

void state(RunSpec& run, Dimension dimension, std::int64_t value) {
  switch (dimension) {
    case Dimension::tp: run.tp = value; break;
    case Dimension::pp: run.pp = value; break;
    case Dimension::cp: run.cp = value; break;
    case Dimension::dp: run.dp = value; break;
    case Dimension::ep: run.ep = value; break;
    case Dimension::etp: run.etp = value; break;
    case Dimension::sequence_parallel: run.sequence_parallel = value != 0; break;
    case Dimension::micro_batch_size: run.micro_batch_size = value; break;
    case Dimension::micro_batch_num: run.micro_batch_num = value; break;
    case Dimension::vpp: run.vpp = value; break;
    case Dimension::schedule: run.schedule = static_cast<Schedule>(value); break;
    case Dimension::zero: run.zero = static_cast<ZeroLevel>(value); break;
    case Dimension::optimizer_shard: run.optimizer_shard = value; break;
    case Dimension::recompute: run.recompute = static_cast<Recompute>(value); break;
  }
}

/// The stated run with a row's degrees over it. dp and the number of micro-batches follow from the others unless the row says them.
RunSpec row_run(const RunSpec& stated, const MeasuredStep& step) {
  RunSpec run = stated;
  const auto has = [&step](Dimension dimension) { return step.degrees.count(dimension) > 0; };
  if (step.devices) run.devices = step.devices;
  run.dp.reset();
  run.micro_batch_num.reset();
  for (const auto& [dimension, value] : step.degrees) state(run, dimension, value);
  // Lists name layers of the stated stages and of the stated mode.
  if (run.pp != stated.pp || run.vpp != stated.vpp) {
    run.layers_per_chunk.clear();
    run.full_recompute_layers.clear();
    run.selective_recompute_layers.clear();
  }
  if (has(Dimension::recompute)) {
    run.full_recompute_layers.clear();
    run.selective_recompute_layers.clear();
  }
  if (run.pp.value_or(1) == 1 && !has(Dimension::vpp)) run.vpp = 1;
  if (run.tp.value_or(1) == 1 && !has(Dimension::sequence_parallel)) run.sequence_parallel.reset();
  // Shards of the stated run need not fit the group of another dp.
  if (!has(Dimension::optimizer_shard) && (has(Dimension::tp) || has(Dimension::pp) || has(Dimension::cp) || has(Dimension::dp))) run.optimizer_shard.reset();
  if (step.global_batch) run.global_batch_size = step.global_batch;
  return run;
}

void add_memory(const StageMemory& stage, bool reserved, RatioSample& sample) { sample.estimated_memory = to_gib(reserved ? stage.reserved : stage.allocated); }

/// What only the rows of one table can tell: the waits that were measured cover all that is estimated, so that the rest is idle.
void add_idle(RatioSample& sample) {
  if (!sample.columns[static_cast<std::size_t>(MeasuredColumn::compute)]) return;
  double rest = sample.step;
  for (const auto& column : sample.columns) rest -= column.value_or(0);
  const bool joint = !sample.columns[static_cast<std::size_t>(MeasuredColumn::op_wait)];
  for (std::size_t part = 0; part < kTimePartCount; ++part) {
    if (sample.estimated[part] <= kVisible * sample.step) continue;
    for (std::size_t c = 0; c + 1 < kMeasuredColumnCount; ++c) {
      const auto column = static_cast<MeasuredColumn>(c);
      if (!covers(column, static_cast<TimePart>(part)) || sample.columns[c]) continue;
      if (joint && column == MeasuredColumn::op_wait && sample.columns[static_cast<std::size_t>(MeasuredColumn::dp_wait)]) continue;
      return;  // a wait that nobody measured is somewhere in the rest
    }
  }
  sample.columns[static_cast<std::size_t>(MeasuredColumn::idle)] = std::max(0.0, rest);
}

class StepPricer {
 public:
  explicit StepPricer(const ComparisonBase& base) : base_(base) {}

  ComparedRun price(const MeasuredStep& step) const {
    ComparedRun out;
    out.line = step.line;
    out.model = step.model.empty() ? base_.scenario.model.name : step.model;
    out.device = base_.scenario.cluster.device.name;
    out.skipped = step.skipped;
    if (!out.skipped.empty()) return out;
    Scenario scenario = base_.scenario;
    const RunSpec stated = row_run(base_.stated, step);
    const auto run = resolve_run(stated, scenario.model, scenario.profile);
    if (!run) {
      out.skipped = first_message(run.error());
      return out;
    }
    scenario.run = *run;
    scenario.cluster.devices = run->devices;
    if (const auto violation = first_violation(scenario, run->strategy)) {
      out.skipped = std::string(describe(*violation));
      return out;
    }
    fill(step, scenario, out);
    return out;
  }

 private:
  void fill(const MeasuredStep& step, const Scenario& scenario, ComparedRun& out) const {
    const ParallelConfig& config = scenario.run.strategy;
    out.config = config;
    out.strategy = to_text(config);
    out.problem = fmt::format("{} on {} x {}, batch {}, sequence {}", out.model, scenario.run.devices, out.device, scenario.run.global_batch_size, scenario.run.seq_length);
    out.trainer_time = step.trainer_time;
    const PricedCandidate priced = price_strategy(scenario, config);
    out.sample.name = out.strategy;
    out.sample.group = out.device;
    out.sample.problem = out.problem;
    out.sample.step = step.time;
    out.sample.columns = step.columns;
    out.sample.memory = step.memory_gib;
    for (std::size_t part = 0; part < kTimePartCount; ++part) out.sample.estimated[part] = priced.time.exposed[part].value;
    add_memory(priced.memory.peak(), step.memory_is_reserved, out.sample);
    add_idle(out.sample);
  }

  const ComparisonBase& base_;
};

ComparedRun compared_row(const MeasuredRow& row, const report::MappedRow& mapped, const report::RowPricer& pricer, const report::RuleBook& book) {
  ComparedRun out;
  out.line = row.line;
  out.model = row.model;
  out.device = row.device;
  const ValidatedRow priced = pricer.price(row, mapped);
  out.skipped = priced.skipped;
  out.assumptions = priced.assumptions;
  out.device = priced.device;
  if (!out.skipped.empty()) return out;
  const report::QuarantineRule* rule = report::find_quarantine(book, row);
  const bool no_time = rule != nullptr && rule->figure != report::QuarantinedFigure::memory;
  if (row.out_of_memory()) out.skipped = "the run failed for memory: there is no step time";
  else if (no_time) out.skipped = "quarantine: " + rule->reason;
  else if (!priced.measured_step_time_s) out.skipped = "no step time or tokens per second stated";
  if (!out.skipped.empty()) return out;
  Scenario scenario;
  ValidatedRow scratch = priced;
  out.skipped = pricer.resolve(mapped, scenario, scratch);
  if (!out.skipped.empty()) return out;
  out.config = scenario.run.strategy;
  out.strategy = priced.strategy;
  const SweepPoint point = report::sweep_point(priced);
  out.problem = fmt::format("{} on {} x {}, batch {}, sequence {:.0f} ({}; {})", point.model, point.devices, point.device, point.gbs, point.seq_len, point.source, point.variant);
  out.sample.name = out.strategy;
  out.sample.group = priced.device;
  out.sample.problem = out.problem;
  out.sample.step = *priced.measured_step_time_s;
  out.sample.estimated = priced.time_parts_s;
  if (priced.measured_peak_mem_gib && !(rule != nullptr && rule->figure != report::QuarantinedFigure::time)) {
    out.sample.memory = priced.measured_peak_mem_gib;
    out.sample.estimated_memory = priced.predicted_peak_mem_gib;
  }
  return out;
}

void calibrate(ComparedRun& run, const PriceFactors& factors) {
  run.estimated = 0;
  for (std::size_t part = 0; part < kTimePartCount; ++part) {
    run.parts[part] = run.sample.estimated[part] * factors.time[part];
    run.estimated += run.parts[part];
  }
}

/// Statistics and names of what was priced; an error when nothing was.
Result<Comparison> finish(Comparison out, const PriceFactors& factors) {
  out.calibrated = !factors.identity();
  out.memory_factor = factors.memory;
  std::vector<Diagnostic> reasons;
  std::set<std::string> devices, models;
  std::int64_t foreign = 0;
  for (ComparedRun& run : out.rows) {
    if (!run.skipped.empty()) {
      reasons.push_back(make_diagnostic(Errc::unsupported, {out.file, run.line, 0, {}}, run.skipped));
      continue;
    }
    const bool fitted = factors.settings.empty() || run.settings.empty() ||
                        std::find(factors.settings.begin(), factors.settings.end(), run.settings) != factors.settings.end();
    if (!fitted) ++foreign;
    calibrate(run, fitted ? factors : PriceFactors{});
    devices.insert(run.device);
    models.insert(run.model);
  }
  out.devices.assign(devices.begin(), devices.end());
  out.models.assign(models.begin(), models.end());
  if (out.priced() == 0) {
    if (reasons.empty()) reasons.push_back(make_diagnostic(Errc::missing_field, {out.file, 0, 0, {}}, "the table has no rows"));
    return Error(std::move(reasons));
  }
  if (foreign > 0) {
    out.notes.push_back(make_diagnostic(Errc::conflict, {out.file, 0, 0, {}},
                                        std::to_string(foreign) + " rows run the trainer with settings that the ratios were not fitted on; their estimates stay as they are",
                                        "fit on rows with these settings as well"));
    out.notes.back().severity = Severity::warning;
  }
  measured::fill_agreement(out);
  return out;
}

/// Appends priced rows to what `out` has.
Result<Comparison> compare_rows(const std::vector<MeasuredRow>& rows, const DataStore& data, const PriceFactors& factors, Comparison out) {
  const auto book = report::load_rule_book(data);
  if (!book) return book.error();
  report::RowPricer pricer(data);
  std::vector<report::MappedRow> mapped;
  for (const MeasuredRow& row : rows) mapped.push_back(report::map_row(row, *book));
  for (const auto& row : mapped) pricer.prepare(row);
  std::set<std::string> frameworks;
  std::set<PriceFingerprint, measured::FingerprintOrder> prints;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.rows.push_back(compared_row(rows[i], mapped[i], pricer, *book));
    if (!out.rows.back().skipped.empty()) continue;
    Scenario scenario;
    ValidatedRow scratch;
    if (!pricer.resolve(mapped[i], scenario, scratch).empty()) continue;
    frameworks.insert(scenario.profile.name + " " + scenario.profile.version);
    prints.insert(fingerprint(scenario, factors));
    out.rows.back().settings = fingerprint(scenario).framework;
  }
  out.frameworks.assign(frameworks.begin(), frameworks.end());
  out.fingerprint = measured::common_fingerprint({prints.begin(), prints.end()});
  return finish(std::move(out), factors);
}

/// A table that names several models has rows about others than the one that was read.
std::string another_model(const std::string& named, const std::string& configured) {
  const auto letters = [](std::string_view name) {
    std::string out;
    for (const char c : name.substr(name.find_last_of('/') + 1))
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
  };
  const std::string row = letters(named), own = letters(configured);
  const bool same = !own.empty() && !row.empty() && (row.find(own) != std::string::npos || own.find(row) != std::string::npos);
  return same ? std::string() : "another model: " + named + ", the configuration has " + configured;
}

/// A benchmark row as a row of a table of runs: model and device of the configuration, FSDP full shard on more than one device.
MeasuredRow as_row(const StepTable& table, const MeasuredStep& step, const ComparisonBase& base) {
  const ResolvedModel& model = base.scenario.model;
  MeasuredRow row;
  row.file = table.file;
  row.line = step.line;
  row.source = "fms-acceleration " + table.file;
  row.model = core::canonical_name(step.model.substr(step.model.find_last_of('/') + 1));
  if (row.model.empty()) row.model = model.name;
  row.device = base.scenario.cluster.device.name;
  row.notes = step.notes;
  row.dtype = step.dtype;
  row.recompute = step.recompute;
  row.hidden = model.hidden_size;
  row.layers = model.layers();
  row.vocab = model.vocab_size;
  for (const LayerKind& kind : model.kinds) {
    row.heads = kind.attention.heads;
    row.kv_heads = kind.attention.kv_heads;
    row.head_dim = kind.attention.qk_dim;
    if (kind.ffn.kind == FfnKind::dense) row.ffn = kind.ffn.width;
    if (kind.ffn.kind != FfnKind::moe) continue;
    row.experts = kind.ffn.experts;
    row.topk = kind.ffn.experts_per_token;
    row.moe_ffn = kind.ffn.expert_width;
    row.shared_experts = kind.ffn.shared_experts;
  }
  row.params_b = static_cast<double>(count_parameters(model).total) / 1e9;
  row.seq_len = static_cast<double>(base.scenario.run.seq_length);
  row.devices = row.dp = step.devices;
  row.tp = row.pp = row.cp = 1;
  const auto degree = [&step](Dimension dimension) {
    const auto found = step.degrees.find(dimension);
    return found == step.degrees.end() ? std::int64_t{1} : found->second;
  };
  row.ep = degree(Dimension::ep);
  row.zero = *step.devices > 1 ? "zero3" : "none";
  row.mbs = degree(Dimension::micro_batch_size);
  row.gbs = *row.mbs * degree(Dimension::micro_batch_num) * *step.devices;
  row.step_time_s = step.time;
  row.peak_mem_gib = step.memory_gib;
  return row;
}

}  // namespace

std::int64_t Comparison::priced() const {
  return std::count_if(rows.begin(), rows.end(), [](const ComparedRun& run) { return run.skipped.empty(); });
}

Result<Comparison> compare_steps(const StepTable& table, const ComparisonBase& base, const PriceFactors& factors) {
  Comparison out;
  out.file = table.file;
  out.kind = table.kind;
  out.notes = table.notes;
  const StepPricer pricer(base);
  for (const MeasuredStep& step : table.steps) out.rows.push_back(pricer.price(step));
  out.fingerprint = fingerprint(base.scenario, factors);
  out.frameworks = {base.scenario.profile.name + " " + base.scenario.profile.version};
  return finish(std::move(out), factors);
}

Result<Comparison> compare_runs(const std::string& path, const DataStore& data, const PriceFactors& factors) {
  const auto rows = read_measured_rows(path);
  if (!rows) return rows.error();
  Comparison out;
  out.file = path;
  out.kind = TableKind::runs;
  return compare_rows(*rows, data, factors, std::move(out));
}

Result<Comparison> compare_benchmark(const StepTable& table, const ComparisonBase& base, const DataStore& data, const PriceFactors& factors) {
  std::set<std::string> models;
  for (const MeasuredStep& step : table.steps) models.insert(step.model);
  std::vector<MeasuredRow> rows;
  std::vector<ComparedRun> skipped;
  for (const MeasuredStep& step : table.steps) {
    const std::string reason = step.skipped.empty() && models.size() > 1 ? another_model(step.model, base.scenario.model.name) : step.skipped;
    if (reason.empty()) {
      rows.push_back(as_row(table, step, base));
      continue;
    }
    ComparedRun run;
    run.line = step.line;
    run.model = step.model;
    run.skipped = reason;
    skipped.push_back(std::move(run));
  }
  Comparison out;
  out.file = table.file;
  out.kind = table.kind;
  out.notes = table.notes;
  out.rows = std::move(skipped);
  auto compared = compare_rows(rows, data, factors, std::move(out));
  if (compared) std::stable_sort(compared->rows.begin(), compared->rows.end(), [](const ComparedRun& a, const ComparedRun& b) { return a.line < b.line; });
  return compared;
}

std::vector<RatioSample> ratio_samples(const Comparison& comparison) {
  std::vector<RatioSample> out;
  for (const ComparedRun& run : comparison.rows)
    if (run.skipped.empty()) out.push_back(run.sample);
  return out;
}

FittedOn fitted_on(const Comparison& comparison) {
  const auto join = [](const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
    return out;
  };
  FittedOn out;
  out.csv = comparison.file;
  std::set<std::string> strategies, settings;
  for (const ComparedRun& run : comparison.rows) {
    if (!run.skipped.empty()) continue;
    strategies.insert(run.strategy);
    if (!run.settings.empty()) settings.insert(run.settings);
  }
  out.settings.assign(settings.begin(), settings.end());
  out.strategies.assign(strategies.begin(), strategies.end());
  out.device = join(comparison.devices);
  out.model = join(comparison.models);
  out.framework = join(comparison.frameworks);
  out.estimator_version = kVersion;
  out.device_digest = comparison.fingerprint.device;
  out.model_digest = comparison.fingerprint.model;
  out.framework_digest = comparison.fingerprint.framework;
  return out;
}

}  // namespace nd
