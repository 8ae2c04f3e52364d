// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "modes.hpp"
#include "nd/verify.hpp"
#include "request.hpp"

namespace run_nd {

namespace {

/// Step and memory of the stated strategy with this model; empty when it cannot run.
std::string price_line(const char* name, nd::Scenario scenario, const nd::ResolvedModel& model, const nd::RunSpec& stated) {
  scenario.model = model;
  const auto run = nd::resolve_run(stated, model, scenario.profile);
  if (!run || nd::first_violation(scenario, run->strategy)) return {};
  scenario.run = *run;
  const auto priced = nd::price_strategy(scenario, run->strategy);
  char line[160];
  std::snprintf(line, sizeof line, "  %-12s step %.4g s, memory %.2f GiB\n", name, priced.time.step.value, nd::to_gib(priced.memory.peak().reserved));
  return line;
}

/// The run of -d and -A priced with either model.
std::string priced_with_each(const Options& options, const nd::DataStore& data, const nd::ResolvedModel& model, const nd::Verification& result) {
  if (!options.devices) return {};
  auto prepared = prepare_search(options, data);
  const auto measured = nd::resolve_model(result.measured, {"the measured spec", 0, 0, {}});
  if (!prepared) return "the run cannot be priced: " + nd::to_text(prepared.error().diagnostics.front()) + "\n";
  if (!measured) return "the measured spec is no model: " + nd::to_text(measured.error().diagnostics.front()) + "\n";
  const auto configured_line = price_line("configured", prepared->scenario, model, prepared->stated);
  const auto measured_line = price_line("measured", prepared->scenario, *measured, prepared->stated);
  if (configured_line.empty() || measured_line.empty()) return "the stated strategy does not run on these devices: not priced\n";
  return "the stated strategy priced with each spec:\n" + configured_line + measured_line;
}

}  // namespace

Exit run_verify(const Options& options, const nd::DataStore& data) {
  namespace fs = std::filesystem;
  Options with_model = options;
  if (with_model.input.empty() && with_model.model.empty()) with_model.input = options.verify;
  if (with_model.input.empty() && !options.census.empty() && with_model.model.empty())
    return refuse({usage_error("--census", "does not say which model it is of", "name it: -y PATH or -m NAME")});
  const auto census = options.census.empty() ? nd::read_checkpoint(options.verify) : nd::read_census(options.census);
  const auto request = nd::read_request(with_model.input.empty() ? with_model.model : with_model.input, "", data);
  std::vector<nd::Diagnostic> problems;
  if (!census) problems = census.error().diagnostics;
  if (!request) problems.insert(problems.end(), request.error().diagnostics.begin(), request.error().diagnostics.end());
  if (!problems.empty()) return refuse(problems);
  const auto model = nd::resolve_model(request->model, {request->file, 0, 0, {}});
  if (!model) return refuse(model.error().diagnostics);

  const auto result = nd::verify_model(request->model, *model, *census);
  const auto write = [](const std::string& path, const std::string& text) {
    if (path.empty()) return true;
    if (path == "-") return std::fputs(text.c_str(), stdout) >= 0;
    if (const auto problem = nd::write_text_file(path, text)) {
      std::fprintf(stderr, "%s\n", nd::to_text(*problem).c_str());
      return false;
    }
    return true;
  };
  if (!write(options.json, options.json.empty() ? "" : nd::verification_json(result))) return Exit::output;
  if (!options.output_dir.empty() && !write((fs::path(options.output_dir) / "measured_model.yaml").string(), nd::measured_spec_yaml(result))) return Exit::output;
  const auto verbosity = options.verbosity.value_or(2);
  if (verbosity > 0 && options.json != "-") {
    std::fputs(nd::verification_text(result, verbosity > 2 ? 1000 : 20).c_str(), stdout);
    std::fputs(priced_with_each(with_model, data, *model, result).c_str(), stdout);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return Exit::output;
  return result.differs() ? Exit::nothing_fits : Exit::done;
}

}  // namespace run_nd
