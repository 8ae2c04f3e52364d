// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "modes.hpp"
#include "nd/compare.hpp"
#include "request.hpp"

namespace run_nd {

namespace {

namespace fs = std::filesystem;

/// One comparison, from the table to the files.
class CompareMode {
 public:
  CompareMode(const Options& options, const nd::DataStore& data) : options_(options), data_(data) {}

  Exit run() {
    talks_ = options_.verbosity.value_or(2) > 0 && options_.json != "-";
    if (auto conflicts = output_conflicts(); !conflicts.empty()) return refuse(conflicts);
    const auto comparison = compare();
    if (!comparison) return refuse(comparison.error().diagnostics);
    if (!options_.write_ratios.empty()) fit_ = nd::fit_ratios(nd::ratio_samples(*comparison));
    if (!write(*comparison)) return Exit::output;
    if (talks_) print(*comparison);
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? Exit::done : Exit::output;
  }

 private:
  nd::Result<nd::Comparison> compare() {
    const auto table = nd::read_step_table(options_.real_csv);
    if (!table) return table.error();
    return table->kind == nd::TableKind::runs ? compare_runs() : compare_steps(*table);
  }

  /// A table of runs states everything; what the command line says besides would have to be ignored.
  nd::Result<nd::Comparison> compare_runs() {
    std::vector<nd::Diagnostic> problems;
    const auto unused = [&](const char* option, bool given) {
      if (given)
        problems.push_back(usage_error(option, "cannot be combined with a table of measured runs, whose rows state model, device and strategy", "leave it out"));
    };
    unused("-y", !options_.input.empty());
    unused("-m", !options_.model.empty());
    unused("-f", !options_.framework.empty());
    unused("-d", options_.devices.has_value());
    unused("-A", !options_.device_type.empty());
    unused("-b", options_.global_batch.has_value());
    unused("--seq-length", options_.seq_length.has_value());
    std::optional<nd::CalibrationRatios> ratios;
    if (!options_.calibration.empty()) {
      auto read = nd::read_ratios(options_.calibration);
      if (!read) problems.insert(problems.end(), read.error().diagnostics.begin(), read.error().diagnostics.end());
      else ratios = std::move(*read);
    }
    if (!problems.empty()) return nd::Error(std::move(problems));
    return nd::compare_runs(options_.real_csv, data_, ratios ? ratios->factors() : nd::PriceFactors{});
  }

  nd::Result<nd::Comparison> compare_steps(const nd::StepTable& table) {
    if (options_.input.empty() && options_.model.empty())
      return nd::Error(usage_error("-y", "is missing: a table of " + std::string(nd::to_text(table.kind)) + " does not say which run was measured",
                                   "the configuration that was measured, e.g. -y train.yaml -d 64 -A A3"));
    if (table.kind == nd::TableKind::benchmark && !options_.framework.empty())
      return nd::Error(usage_error("-f", "cannot be combined with results of fms-acceleration, which ran the Hugging Face trainer", "leave it out"));
    auto prepared = prepare_search(options_, data_);
    if (!prepared) return prepared.error();
    auto notes = prepared->notes;
    const auto calibration = read_calibration(options_, prepared->scenario, notes);
    if (!calibration) return calibration.error();
    const nd::PriceFactors& factors = *calibration;
    const nd::ComparisonBase base{prepared->scenario, prepared->stated};
    auto out = table.kind == nd::TableKind::benchmark ? nd::compare_benchmark(table, base, data_, factors) : nd::compare_steps(table, base, factors);
    if (out) out->notes.insert(out->notes.begin(), notes.begin(), notes.end());
    return out;
  }

  [[nodiscard]] std::string stem() const { return fs::path(options_.real_csv).stem().string(); }
  [[nodiscard]] std::string in_folder(const std::string& suffix) const { return (fs::path(options_.output_dir) / (stem() + suffix)).string(); }

  [[nodiscard]] std::vector<nd::Diagnostic> output_conflicts() const {
    std::vector<nd::NamedFile> inputs{{"--real_csv", options_.real_csv}}, outputs;
    if (!options_.input.empty()) inputs.push_back({"-y", options_.input});
    if (!options_.calibration.empty()) inputs.push_back({"-c", options_.calibration});
    for (const auto& [option, path] : {std::pair{"--json", &options_.json}, std::pair{"--report", &options_.report}, std::pair{"--write_ratios", &options_.write_ratios}})
      if (!path->empty()) outputs.push_back({option, *path});
    if (!options_.output_dir.empty())
      for (const char* suffix : {"_estimates.csv", "_comparison.json", "_comparison.html", "_bars.svg", "_scatter.svg", "_residuals.svg"})
        outputs.push_back({"-o", in_folder(suffix)});
    return nd::check_outputs(inputs, outputs);
  }

  bool put(const std::string& path, const std::string& text) {
    if (path.empty()) return true;
    if (path == "-") return std::fputs(text.c_str(), stdout) >= 0;
    if (const auto problem = nd::write_text_file(path, text)) {
      std::fprintf(stderr, "%s\n", nd::to_text(*problem).c_str());
      return false;
    }
    files_.push_back(path);
    return true;
  }

  bool write(const nd::Comparison& comparison) {
    const nd::RatioFit* fit = fit_ ? &*fit_ : nullptr;
    if (fit != nullptr && !put(options_.write_ratios, nd::ratios_json(fit->calibration(nd::fitted_on(comparison))))) return false;
    if (!options_.json.empty() && !put(options_.json, nd::comparison_json(comparison, fit))) return false;
    if (!options_.report.empty() && !put(options_.report, nd::comparison_html(comparison, fit))) return false;
    if (options_.output_dir.empty()) return true;
    if (!put(in_folder("_estimates.csv"), nd::comparison_csv(comparison)) || !put(in_folder("_comparison.json"), nd::comparison_json(comparison, fit)) ||
        !put(in_folder("_comparison.html"), nd::comparison_html(comparison, fit)))
      return false;
    for (const auto& chart : nd::comparison_charts(comparison))
      if (!put(in_folder("_" + chart.name + ".svg"), chart.svg)) return false;
    return true;
  }

  void print(const nd::Comparison& comparison) const {
    const auto verbosity = static_cast<int>(options_.verbosity.value_or(2));
    std::fputs(nd::comparison_text(comparison, verbosity).c_str(), stdout);
    if (fit_) std::fputs(nd::ratio_fit_text(*fit_).c_str(), stdout);
    for (const auto& file : files_) std::printf("wrote %s\n", file.c_str());
  }

  const Options& options_;
  const nd::DataStore& data_;
  std::optional<nd::RatioFit> fit_;
  std::vector<std::string> files_;
  bool talks_ = true;
};

}  // namespace

Exit run_compare(const Options& options, const nd::DataStore& data) { return CompareMode(options, data).run(); }

}  // namespace run_nd
