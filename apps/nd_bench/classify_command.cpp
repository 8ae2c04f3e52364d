// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "commands.hpp"

namespace nd_bench {

namespace {

struct Options {
  std::vector<std::string> inputs;
  std::string dims, csv, perf_parts, detail;
  bool append = false;
};

/// "-" is the standard output.
bool put(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  if (path == "-") return std::fputs(text.c_str(), stdout) >= 0;
  if (const auto problem = nd::write_text_file(path, text)) {
    std::fprintf(stderr, "%s\n", nd::to_text(*problem).c_str());
    return false;
  }
  return true;
}

Exit classify(const Options& options) {
  nd::ClassifyRequest request;
  request.inputs = options.inputs;
  std::vector<nd::Diagnostic> problems;
  const auto wrong = [&](const char* option, const char* message, const char* hint) {
    problems.push_back(nd::make_diagnostic(nd::Errc::out_of_range, {{}, 0, 0, option}, message, hint));
  };
  if (!options.dims.empty()) {
    auto dims = nd::parse_dims(options.dims, {{}, 0, 0, "--dims"});
    if (!dims) problems = dims.error().diagnostics;
    else request.dims = std::move(*dims);
  }
  if (options.dims.empty() && (!options.csv.empty() || !options.perf_parts.empty())) wrong("--dims", "is missing: the CSV states the strategy that was measured", "--dims DP=8,MP=2,PP=4");
  if (options.append && options.csv.empty()) wrong("--append", "needs --csv", "");
  if (options.append && options.csv == "-") wrong("--append", "cannot append to the standard output", "");
  std::vector<nd::NamedFile> inputs, outputs;
  for (const auto& input : options.inputs) inputs.push_back({"TRACE", input});
  for (const auto& [option, path] : {std::pair{"--csv", &options.csv}, std::pair{"--perf-parts", &options.perf_parts}, std::pair{"--detail", &options.detail}})
    if (!path->empty()) outputs.push_back({option, *path});
  for (auto& conflict : nd::check_outputs(inputs, outputs)) problems.push_back(std::move(conflict));
  if (!problems.empty()) return refuse(Exit::usage, problems);

  const auto result = nd::classify_traces(request);
  if (!result) return refuse(Exit::input, result.error().diagnostics);
  if (options.csv == "-") {
    if (!put("-", nd::classified_header(*result) + nd::classified_row(*result))) return Exit::output;
  } else if (!options.csv.empty()) {
    if (const auto problem = nd::write_classified(options.csv, *result, options.append)) return refuse(problem->code == nd::Errc::conflict ? Exit::input : Exit::output, {*problem});
  }
  if (!options.perf_parts.empty() && !put(options.perf_parts, nd::part_csv(*result))) return Exit::output;
  if (!options.detail.empty() && !put(options.detail, nd::classification_json(*result))) return Exit::output;
  const bool quiet = options.csv == "-" || options.perf_parts == "-" || options.detail == "-";
  if (!quiet) std::fputs(nd::classification_text(*result).c_str(), stdout);
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? Exit::done : Exit::output;
}

}  // namespace

std::function<Exit()> add_classify(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("classify", "where the time of recorded steps went, as one row of a classified CSV for run_nd --real_csv");
  command->add_option("TRACE", options->inputs, "one per rank: Chrome traces of torch.profiler (.json, .json.gz), run folders of the Ascend profiler, Nsight Systems exports (.sqlite)")->required();
  command->add_option("--dims", options->dims, "degrees of the run, e.g. DP=8,MP=2,PP=4; needed for the CSVs and for Ascend");
  command->add_option("--csv", options->csv, "write the classified row there; - is the standard output");
  command->add_flag("--append", options->append, "add the row to the file of --csv");
  command->add_option("--perf-parts", options->perf_parts, "write one row under the names of the estimate's parts");
  command->add_option("--detail", options->detail, "write every rank, step and call site as JSON (nd/classification/1)");
  return [options] { return classify(*options); };
}

}  // namespace nd_bench
