// SPDX-License-Identifier: Apache-2.0
#include "measured/fms_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text.hpp"

namespace nd::measured {

namespace {

constexpr std::int64_t kMostSequences = std::int64_t{1} << 24;

/// Columns that this reader asks for, in any of their spellings; the older ones have no "mem_".
constexpr std::array<std::string_view, 2> kAllocated{"mem_peak_torch_mem_alloc_in_bytes", "peak_torch_mem_alloc_in_bytes"};
constexpr std::array<std::string_view, 2> kDevice{"mem_nvidia_mem_reserved", "nvidia_mem_reserved"};

class FmsTable {
 public:
  explicit FmsTable(const formats::CsvTable& table) : table_(table) {}

  Result<StepTable> read() {
    require("per_device_train_batch_size");
    require("num_gpus");
    require_one_of({"train_samples_per_second", "train_runtime"});
    StepTable out;
    out.file = table_.file;
    out.kind = TableKind::benchmark;
    for (const auto& row : table_.rows) out.steps.push_back(read_row(row));
    if (table_.rows.empty()) problems_.push_back(make_diagnostic(Errc::missing_field, {table_.file, 1, 0, {}}, "the table has no rows"));
    if (!problems_.empty()) return Error(std::move(problems_));
    if (!table_.column("gradient_accumulation_steps")) out.notes.push_back(note("gradient_accumulation_steps", "no such column: one micro-batch per step"));
    return out;
  }

 private:
  [[nodiscard]] Diagnostic note(std::string_view column, std::string message) const {
    auto out = make_diagnostic(Errc::missing_field, {table_.file, 1, 0, std::string(column)}, std::move(message));
    out.severity = Severity::note;
    return out;
  }
  void require(std::string_view name) { require_one_of({name}); }
  void require_one_of(std::initializer_list<std::string_view> names) {
    std::string list;
    for (const auto name : names) {
      if (table_.column(name)) return;
      list += (list.empty() ? "" : " or ") + std::string(name);
    }
    problems_.push_back(make_diagnostic(Errc::missing_field, {table_.file, 1, 0, list}, "the column is missing", core::name_hint(*names.begin(), table_.header)));
  }

  std::optional<std::int64_t> count(formats::CsvRecord& cells, std::string_view name) {
    const auto value = cells.integer(name);
    if (value && (*value < 1 || *value > kMostSequences)) {
      problems_.push_back(make_diagnostic(Errc::out_of_range, cells.where(name), "must be from 1 to " + std::to_string(kMostSequences)));
      return std::nullopt;
    }
    return value;
  }

  MeasuredStep read_row(const formats::CsvTable::Row& row) {
    MeasuredStep out;
    out.line = row.line;
    formats::CsvRecord cells(table_, row, problems_);
    out.model = cells.text("model_name_or_path").value_or("");
    out.devices = count(cells, "num_gpus");
    const auto batch = count(cells, "per_device_train_batch_size");
    const auto accumulation = count(cells, "gradient_accumulation_steps").value_or(1);
    if (batch) {
      out.degrees[Dimension::micro_batch_size] = *batch;
      out.degrees[Dimension::micro_batch_num] = accumulation;
    }
    describe(cells, out);
    read_memory(cells, out);
    if (cells.text("error_messages")) out.skipped = "the run failed";
    else if (!batch) out.skipped = "per_device_train_batch_size is not stated";
    else if (!out.devices) out.skipped = "num_gpus is not stated";
    if (!out.skipped.empty()) return out;
    const auto time = step_time(cells, *batch * accumulation);
    if (!time) out.skipped = "the run ended without final metrics";
    else out.time = *time;
    return out;
  }

  /// The row in the words of our own tables, which data/measured/sources.yaml reads.
  static void describe(const formats::CsvRecord& cells, MeasuredStep& out) {
    const std::string config = cells.text("framework_config").value_or("none");
    out.notes = "framework_config " + config + "; ";
    if (cells.text("peft_method")) out.notes += "peft " + *cells.text("peft_method") + " r=" + cells.text("r").value_or("16") + " on q k v o";
    else out.notes += "full fine-tuning, 16-bit weights and Adam states";
    const std::string type = cells.text("torch_dtype").value_or("bfloat16");
    out.dtype = type == "float16" ? "fp16" : type == "float32" ? "fp32" : "bf16";
    // The harness switches checkpointing on unless told otherwise (its defaults.yaml).
    const auto checkpointing = cells.text("gradient_checkpointing");
    out.recompute = checkpointing && core::canonical_name(*checkpointing) == "false" ? "none" : "full";
    // "...-ep4-...": ranks the experts are spread over.
    for (const std::string& word : core::split(config, '-'))
      if (word.starts_with("ep"))
        if (const auto ranks = core::parse_integer(std::string_view(word).substr(2)); ranks && *ranks > 0 && *ranks <= kMostSequences) out.degrees[Dimension::ep] = *ranks;
  }

  /// runtime / steps where the steps are stated. Else the batch over samples per second, which is steps * batch / runtime: printed with
  /// three decimals it is finer than train_steps_per_second.
  std::optional<double> step_time(formats::CsvRecord& cells, std::int64_t per_device) {
    const auto runtime = cells.real("train_runtime");
    const auto steps = cells.real("max_steps");
    if (runtime && steps && *runtime > 0 && *steps > 0) return *runtime / *steps;
    const auto samples = cells.real("train_samples_per_second");
    const auto devices = cells.integer("num_gpus");
    if (!samples || !devices || !std::isfinite(*samples) || *samples <= 0) return std::nullopt;
    return static_cast<double>(per_device * *devices) / *samples;
  }

  void read_memory(formats::CsvRecord& cells, MeasuredStep& out) {
    for (const auto name : kAllocated)
      if (const auto bytes = cells.real(name); bytes && *bytes > 0) {
        out.memory_gib = *bytes / kGiB;
        out.notes += "; peak = torch max_memory_allocated of rank 0";
        return;
      }
    for (const auto name : kDevice)
      if (const auto mib = cells.real(name); mib && *mib > 0) {
        out.memory_gib = *mib / 1024.0;
        out.memory_is_reserved = true;
        out.notes += "; peak = nvidia-smi, mean over devices";
        return;
      }
  }

  const formats::CsvTable& table_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

Result<StepTable> read_fms_table(const formats::CsvTable& table) { return FmsTable(table).read(); }

}  // namespace nd::measured
