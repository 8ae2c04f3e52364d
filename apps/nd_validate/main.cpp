// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/fit.hpp"
#include "nd/output_check.hpp"
#include "nd/validation.hpp"
#include "options.hpp"

namespace nd_validate {
namespace {

enum Status { kDone = 0, kUsage = 2, kBadInput = 3, kNoOutput = 4, kBug = 70 };

void print(std::FILE* to, const std::string& text) { std::fwrite(text.data(), 1, text.size(), to); }

void print_problems(const nd::Error& error) {
  for (const nd::Diagnostic& diagnostic : error.diagnostics) print(stderr, nd::to_text(diagnostic) + "\n");
}

/// False when a file could not be written; the reason is on standard error.
bool write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  if (path == "-") {
    print(stdout, text);
    return true;
  }
  const auto problem = nd::write_validation_file(path, text);
  if (problem) print(stderr, nd::to_text(*problem) + "\n");
  return !problem;
}

int run_fit(const Options& options, const std::vector<nd::MeasuredRow>& rows, const nd::DataStore& data) {
  const bool both = options.folds == "both";
  const nd::FitRequest request{.by_model = both || options.folds == "model", .by_file = both || options.folds == "file", .jobs = options.jobs};
  const auto report = nd::fit_constants(rows, data, request);
  if (!report) {
    print_problems(report.error());
    return kBadInput;
  }
  print(stdout, nd::fit_text(*report));
  if (options.write.empty()) return kDone;
  const auto files = nd::write_fitted_files(*report, data, options.write);
  if (!files) {
    print_problems(files.error());
    return kNoOutput;
  }
  for (const std::string& file : *files) print(stdout, "wrote " + file + "\n");
  return kDone;
}

/// A table that is named twice would count twice.
std::vector<nd::Diagnostic> repeated_tables(const Options& options) {
  std::vector<nd::Diagnostic> problems;
  for (std::size_t i = 0; i < options.tables.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::error_code code;
      if (options.tables[i] != options.tables[j] && !std::filesystem::equivalent(options.tables[i], options.tables[j], code)) continue;
      problems.push_back(nd::make_diagnostic(nd::Errc::conflict, {"", 0, 0, "tables"},
                                             "'" + options.tables[i] + "' and '" + options.tables[j] + "' are the same table", "name each table once"));
      break;
    }
  }
  return problems;
}

/// Measured tables are somebody's work: no output may land on one.
std::vector<nd::Diagnostic> output_conflicts(const Options& options) {
  std::vector<nd::NamedFile> inputs, outputs;
  for (const std::string& table : options.tables) inputs.push_back({"the command line", table});
  const nd::NamedFile named[] = {{"--json", options.json}, {"--report", options.report}, {"--markdown", options.markdown}, {"--bands", options.bands}};
  for (const nd::NamedFile& output : named)
    if (!output.path.empty()) outputs.push_back(output);
  return nd::check_outputs(inputs, outputs);
}

int run(const Options& options) {
  auto conflicts = output_conflicts(options);
  for (nd::Diagnostic& repeated : repeated_tables(options)) conflicts.push_back(std::move(repeated));
  if (!conflicts.empty()) {
    print_problems(nd::Error(std::move(conflicts)));
    return kUsage;
  }
  std::vector<nd::MeasuredRow> rows;
  bool readable = true;
  for (const std::string& table : options.tables) {
    const auto read = nd::read_measured_rows(table);
    if (read) {
      rows.insert(rows.end(), read->begin(), read->end());
    } else {
      print_problems(read.error());
      readable = false;
    }
  }
  if (!readable) return kBadInput;
  std::error_code code;
  const auto folder = nd::find_data_folder(options.data_dir, std::filesystem::read_symlink("/proc/self/exe", code).string());
  if (!folder) {
    print(stderr, "error: --data-dir: " + folder.error().diagnostics.front().message + "\n");
    return kUsage;
  }
  const nd::DataStore data(*folder);
  if (options.fit) return run_fit(options, rows, data);
  const auto report = nd::validate_rows(rows, data, options.jobs);
  if (!report) {
    print_problems(report.error());
    return kBadInput;
  }
  bool written = true;
  if (!options.json.empty()) written = write_output(options.json, nd::validation_json(*report)) && written;
  if (!options.report.empty()) written = write_output(options.report, nd::validation_html(*report, options.worst)) && written;
  if (!options.markdown.empty()) written = write_output(options.markdown, nd::validation_markdown(*report, options.worst)) && written;
  if (!options.bands.empty()) written = write_output(options.bands, nd::step_time_bands_yaml(*report)) && written;
  const bool quiet = options.bands == "-" || options.json == "-" || options.report == "-" || options.markdown == "-";
  if (!quiet) {
    if (options.rows) print(stdout, nd::validation_row_list(*report) + "\n");
    print(stdout, nd::validation_text(*report, options.worst));
  }
  for (const nd::Diagnostic& note : report->notes) print(stderr, nd::to_text(note) + "\n");
  if (!written) return kNoOutput;
  return report->priced > 0 ? kDone : kBadInput;
}

}  // namespace
}  // namespace nd_validate

int main(int argc, char** argv) {
  try {
    const nd_validate::CommandLine line = nd_validate::parse_command_line(argc, argv);
    if (line.status) {
      nd_validate::print(*line.status == 0 ? stdout : stderr, line.text);
      return *line.status;
    }
    return nd_validate::run(line.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: internal: %s (please report this)\n", error.what());
    return nd_validate::kBug;
  }
}
