// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "commands.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX declares it nowhere

namespace nd_bench {

namespace {

volatile std::sig_atomic_t interrupted = 0;
void on_signal(int) { interrupted = 1; }

/// All that the words of plan, run and resume say.
struct Options {
  std::string campaign;                        ///< nd/campaign/1
  nd::CandidateRequest candidates;
  nd::FmsRequest fms;
  std::vector<std::string> framework_configs, packing, launcher_options;
  std::string program;
  std::vector<std::int64_t> num_gpus, batch, length;
  std::string python, launcher, log_profile;
  std::optional<std::int64_t> warmup, least, enough, retries;
  std::optional<double> total, start, stall, grace;
  std::string output, data_dir, devices;
  std::vector<std::string> again;
  bool dry_run = false;
};

std::string own_program() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

/// "NAME=VALUE" words as pairs; problems name the option.
nd::NamedTexts pairs(const std::vector<std::string>& words, const char* option, std::vector<nd::Diagnostic>& problems) {
  nd::NamedTexts out;
  for (const auto& word : words) {
    const auto at = word.find('=');
    if (at == std::string::npos || at == 0) problems.push_back(nd::make_diagnostic(nd::Errc::syntax, {{}, 0, 0, option}, "'" + word + "' is not NAME=VALUE"));
    else out.emplace_back(word.substr(0, at), word.substr(at + 1));
  }
  return out;
}

/// The plan that the words ask for, with what they override.
nd::Result<nd::Campaign> make_plan(Options& options, const nd::DataStore& data) {
  std::vector<nd::Diagnostic> problems;
  const int sources = static_cast<int>(!options.campaign.empty()) + static_cast<int>(!options.candidates.ranking.empty()) + static_cast<int>(!options.fms.scenarios.empty());
  if (sources != 1) problems.push_back(nd::make_diagnostic(nd::Errc::conflict, {{}, 0, 0, "command line"}, "wants one of CAMPAIGN, --from and --scenarios"));
  if (options.candidates.ranking.empty() != options.candidates.base.empty())
    problems.push_back(nd::make_diagnostic(nd::Errc::missing_field, {{}, 0, 0, "--from"}, "--from and --base go together"));
  options.fms.framework_configs = pairs(options.framework_configs, "--framework-config", problems);
  const auto launcher_options = pairs(options.launcher_options, "--launcher-set", problems);
  for (const auto& word : options.packing) {
    if (!options.fms.packing) options.fms.packing.emplace();
    if (word == "true" || word == "True" || word == "1" || word == "yes") options.fms.packing->push_back(true);
    else if (word == "false" || word == "False" || word == "0" || word == "no") options.fms.packing->push_back(false);
    else problems.push_back(nd::make_diagnostic(nd::Errc::wrong_type, {{}, 0, 0, "--packing_matrix"}, "'" + word + "' is neither true nor false"));
  }
  if (!options.num_gpus.empty()) options.fms.num_gpus = options.num_gpus;
  if (!options.batch.empty()) options.fms.effective_batch_size = options.batch;
  if (!options.length.empty()) options.fms.max_seq_len = options.length;
  if (!problems.empty()) return nd::Error(std::move(problems));
  auto plan = !options.campaign.empty()     ? nd::read_campaign(options.campaign)
              : !options.fms.scenarios.empty() ? nd::plan_fms(options.fms)
                                               : nd::plan_candidates(options.candidates, data);
  if (!plan) return plan;
  if (!options.program.empty()) {
    plan->program.clear();
    std::stringstream words(options.program);
    for (std::string word; words >> word;) plan->program.push_back(word);
  }
  if (!options.python.empty()) plan->python = options.python == "none" ? "" : options.python;
  if (!options.launcher.empty()) plan->launcher = options.launcher;
  if (!options.log_profile.empty()) plan->log_profile = options.log_profile;
  for (const auto& one : launcher_options) plan->launcher_options.push_back(one);
  const auto put = [](auto& to, const auto& stated) {
    if (stated) to = *stated;
  };
  put(plan->measure.warmup, options.warmup);
  put(plan->measure.least, options.least);
  put(plan->measure.enough, options.enough);
  put(plan->limits.retries, options.retries);
  put(plan->limits.total_s, options.total);
  put(plan->limits.start_s, options.start);
  put(plan->limits.stall_s, options.stall);
  put(plan->limits.grace_s, options.grace);
  nd::identify_runs(*plan);
  return plan;
}

Exit exit_of(const nd::Error& error) {
  return error.code() == nd::Errc::io ? Exit::output : Exit::input;
}

Exit finish(const nd::CampaignOutcome& outcome) {
  std::size_t good = 0, bad = 0, skipped = 0;
  for (const auto& result : outcome.results) ++(nd::succeeded(result.status) ? good : result.status == nd::RunStatus::skipped ? skipped : bad);
  std::printf("%zu measured, %zu failed, %zu skipped; %lld finished before%s\n", good, bad, skipped, static_cast<long long>(outcome.reused),
              outcome.stopped ? "; stopped, 'nd_bench resume' goes on" : "");
  return bad > 0 || outcome.stopped ? Exit::answer_is_no : Exit::done;
}

Exit execute(const nd::Campaign& plan, const Options& options, const nd::DataStore& data) {
  nd::CampaignOptions run;
  run.folder = options.output;
  for (char** entry = environ; *entry != nullptr; ++entry) run.environment.emplace_back(*entry);
  std::stringstream list(options.devices);
  for (std::string device; std::getline(list, device, ',');) run.devices.push_back(device);
  for (const auto& name : options.again) {
    const auto status = nd::parse_status(name);
    if (!status) return refuse(Exit::usage, {nd::make_diagnostic(nd::Errc::out_of_range, {{}, 0, 0, "--retry"}, "'" + name + "' is no outcome class")});
    run.again.push_back(*status);
  }
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  run.stop = [] { return interrupted != 0; };
  run.progress = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  const auto outcome = nd::run_campaign(plan, run, data);
  if (!outcome) return refuse(exit_of(outcome.error()), outcome.error().diagnostics);
  return finish(*outcome);
}

Exit plan_or_run(Options& options) {
  const auto folder = nd::find_data_folder(options.data_dir, own_program());
  if (!folder) return refuse(Exit::input, folder.error().diagnostics);
  const nd::DataStore data(*folder);
  const auto plan = make_plan(options, data);
  if (!plan) return refuse(Exit::input, plan.error().diagnostics);
  for (const auto& note : plan->notes) std::fprintf(stderr, "%s\n", nd::to_text(note).c_str());
  if (const auto problems = nd::check_campaign(*plan, data); !problems.empty()) return refuse(Exit::input, problems);
  if (!options.dry_run) return execute(*plan, options, data);
  std::fputs(nd::plan_text(*plan).c_str(), stdout);
  if (options.output.empty()) return Exit::done;
  if (const auto problem = nd::write_text_file(options.output + "/plan.json", nd::plan_json(*plan))) return refuse(Exit::output, {*problem});
  return Exit::done;
}

Exit resume(Options& options) {
  const auto folder = nd::find_data_folder(options.data_dir, own_program());
  if (!folder) return refuse(Exit::input, folder.error().diagnostics);
  const std::string path = options.output + "/plan.json";
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) return refuse(Exit::input, {nd::make_diagnostic(nd::Errc::io, {path, 0, 0, {}}, "cannot be read", "a folder of nd_bench run")});
  const auto plan = nd::parse_plan(text.str(), path);
  if (!plan) return refuse(Exit::input, plan.error().diagnostics);
  return execute(*plan, options, nd::DataStore(*folder));
}

void add_front_ends(CLI::App& command, Options& o) {
  command.add_option("CAMPAIGN", o.campaign, "campaign file, schema nd/campaign/1");
  command.add_option("--from", o.candidates.ranking, "ranking of run_nd --ranking_csv");
  command.add_option("--base", o.candidates.base, "training configuration that the candidates are written into");
  command.add_option("-f,--format", o.candidates.format, "format of --base; guessed from its content without");
  command.add_option("-A,--device-type", o.candidates.device, "device of the candidates; the configuration's without");
  command.add_option("--top", o.candidates.top, "how many candidates")->capture_default_str();
  command.add_flag("--diverse", o.candidates.diverse, "candidates of other degrees first");
  command.add_option("--scenarios", o.fms.scenarios, "scenario file of fms-acceleration");
  command.add_option("--defaults", o.fms.defaults, "its defaults file");
  command.add_option("--contents", o.fms.contents, "its CONTENTS.yaml of framework configurations");
  command.add_option("--framework-config", o.framework_configs, "NAME=PATH of a further framework configuration");
  command.add_option("--num_gpus_matrix", o.num_gpus, "device counts");
  command.add_option("--effective_batch_size_matrix", o.batch, "global batch sizes");
  command.add_option("--packing_matrix", o.packing, "true, false or both");
  command.add_option("--max_seq_len_matrix", o.length, "sequence lengths in tokens");
  command.add_option("--run_only_scenarios", o.fms.only, "names of scenarios");
  command.add_option("--training-data", o.fms.training_data, "prepared data set, passed as training_data_path");
  command.add_flag("--log_memory_hf", o.fms.memory_counters, "ask the trainer for its memory counters");
  command.add_option("--program", o.program, "training program and its first words, separated by spaces; {run_dir}/{config} is a candidate's configuration");
  command.add_option("--python", o.python, "its interpreter; none = the program is one itself");
  command.add_option("--launcher", o.launcher, "name of data/launchers, or a file");
  command.add_option("--launcher-set", o.launcher_options, "NAME=VALUE of an option of the launcher");
  command.add_option("--log-profile", o.log_profile, "name of data/log_profiles, or a file");
  command.add_option("--warmup", o.warmup, "first steps left out");
  command.add_option("--least-steps", o.least, "fewer steps are no measurement");
  command.add_option("--enough-steps", o.enough, "end the run when that many are in; 0 = never");
  command.add_option("--total-limit", o.total, "seconds of a run; 0 = none");
  command.add_option("--start-limit", o.start, "seconds until its first step; 0 = none");
  command.add_option("--stall-limit", o.stall, "seconds without output; 0 = none");
  command.add_option("--grace", o.grace, "seconds between SIGTERM and SIGKILL");
  command.add_option("--retries", o.retries, "further attempts of runs that failed for a passing reason");
}

void add_data_folder(CLI::App& command, Options& o) { command.add_option("--data-dir", o.data_dir, "data folder"); }

/// What concerns runs, not plans.
void add_execution(CLI::App& command, Options& o) {
  command.add_option("--devices", o.devices, "indices of the accelerators to use, 0,1,...");
  command.add_option("--retry", o.again, "run finished runs of these classes again");
  add_data_folder(command, o);
}

}  // namespace

std::function<Exit()> add_plan(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  options->dry_run = true;
  CLI::App* command = app.add_subcommand("plan", "what would run: everything is checked, nothing is started");
  add_front_ends(*command, *options);
  command->add_option("-o,--output", options->output, "write plan.json there");
  add_data_folder(*command, *options);
  return [options] { return plan_or_run(*options); };
}

std::function<Exit()> add_run(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "runs what is not finished yet and writes the tables");
  add_front_ends(*command, *options);
  command->add_flag("--dry_run,--dry-run", options->dry_run, "as nd_bench plan");
  command->add_option("-o,--output", options->output, "folder of the campaign")->required();
  add_execution(*command, *options);
  return [options] { return plan_or_run(*options); };
}

std::function<Exit()> add_resume(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("resume", "goes on with the plan of a campaign's folder");
  command->add_option("FOLDER", options->output, "folder of the campaign")->required();
  add_execution(*command, *options);
  return [options] { return resume(*options); };
}

}  // namespace nd_bench
