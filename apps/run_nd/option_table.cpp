// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "options.hpp"

namespace run_nd {

namespace {

constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::int64_t kMostTokens = 1 << 30;

/// An option of the predecessor that this version refuses.
constexpr OptionRow later(std::string_view short_names, std::string_view name, Arity arity, std::string_view value) {
  OptionRow row;
  row.short_names = short_names;
  row.name = name;
  row.arity = arity;
  row.value = value;
  row.help = "not available in this version: refused";
  return row;
}

constexpr std::array kTable{
    OptionRow{"-y", "--yaml_config", Arity::one, "PATH", 0, 0, "",
              "configuration of the training run: a file of any known format, a folder with a Hugging Face config.json, or the name of a model preset",
              "", "", &Options::input},
    OptionRow{"-f", "--framework", Arity::one, "NAME", 0, 0, "guessed from the input",
              "framework of the run, or format of the input", "", "", &Options::framework},
    OptionRow{"-m", "--model", Arity::one, "NAME", 0, 0, "the input's", "model preset priced instead of the input's model", "", "", &Options::model},
    OptionRow{"-d", "--devices", Arity::one, "N", 1, kMostDevices, "the input's", "number of devices", "", "", &Options::devices},
    OptionRow{"-A", "--device_type", Arity::one, "NAME", 0, 0, "the input's, else A2", "device type: name, alias or path of a device file", "", "",
              &Options::device_type},
    OptionRow{"-b", "--global_batch_size", Arity::one, "B", 1, kMostTokens, "the input's, else 4 Mi tokens per step", "sequences per step", "", "",
              &Options::global_batch},
    OptionRow{"", "--seq-length", Arity::one, "TOKENS", 1, kMostTokens, "the input's, else the model's limit, at most 4096", "tokens per sequence", "", "",
              &Options::seq_length},
    OptionRow{"-l", "--dimensions", Arity::list, "DIM", 0, 0, "all", "dimensions to vary; the others stay as the input states them", "", "",
              &Options::dimensions},
    OptionRow{"", "--set", Arity::repeated, "DIM=VALUES", 0, 0, "", "condition on a dimension: tp=2,4 or 'pp<=8' or 'cp!=16'; may be repeated", "", "",
              &Options::settings},
    OptionRow{"", "--recompute", Arity::list, "MODE", 0, 0, "off selective full", "recompute modes to try: off, selective, full, or auto for all", "", "",
              &Options::recompute},
    OptionRow{"", "--schedule", Arity::list, "NAME", 0, 0, "1f1b interleaved",
              "pipeline schedules to try (--list schedules), or auto for all that the framework offers", "", "", &Options::schedules},
    OptionRow{"-M", "--max_mem", Arity::one, "MEMORY", 0, 0, "the input's, else the device's usual budget",
              "memory a device may use, e.g. 58GB (B, KB, MB, GB and KiB, MiB, GiB are powers of 1024)", "", "", &Options::max_memory},
    OptionRow{"-mem", "--mem_for_ppb", Arity::one, "MEMORY", 0, 0, "0GB", "memory taken off the budget, kept for pipeline balancing", "", "",
              &Options::memory_reserve},
    OptionRow{"-t", "--top_config_number", Arity::one, "K", 1, 1'000'000, "20", "candidates shown; documents have 100 unless this is given", "", "", &Options::top},
    OptionRow{"", "--all", Arity::flag, "", 0, 0, "off", "every candidate that fits goes into the JSON document, not only the best", "", "", &Options::all},
    OptionRow{"", "--explain", Arity::one, "RANK|file", 0, 0, "",
              "memory ledger and time parts of one ranked candidate, or of the strategy that the input states", "", "", &Options::explain},
    OptionRow{"-j", "--jobs", Arity::one, "N", 1, 1024, "all cores", "worker threads; never changes a result", "", "", &Options::jobs},
    OptionRow{"-o", "--output-dir", Arity::one, "DIR", 0, 0, "",
              "write ranking.csv, search.json, report.html and the input with the best strategy in it (resolved.*; with -t K also one file per rank, "
              "resolved/1.* ...) there",
              "", "", &Options::output_dir},
    OptionRow{"", "--trace", Arity::one, "PATH", 0, 0, "",
              "write the passes of the best candidate's pipeline, or of --explain's, for chrome://tracing and ui.perfetto.dev (JSON)", "", "", &Options::trace},
    OptionRow{"", "--report", Arity::one, "PATH", 0, 0, "", "write one HTML page: ranking, memory, time and pipeline of the best candidate, or of --explain's",
              "", "", &Options::report},
    OptionRow{"", "--ranking_csv", Arity::one, "PATH", 0, 0, "", "write every candidate that fits, in ranked order", "", "", &Options::ranking_csv},
    OptionRow{"", "--json", Arity::one, "PATH", 0, 0, "", "write one JSON document (nd/search/1); - is the standard output, which then has nothing else", "", "",
              &Options::json},
    OptionRow{"", "--timings", Arity::flag, "", 0, 0, "off", "seconds of the phases and workers used in the JSON document, which then differs from run to run", "", "",
              &Options::timings},
    OptionRow{"", "--strict", Arity::flag, "", 0, 0, "off", "refuse inputs with fields that nobody stated or that are not priced", "", "", &Options::strict},
    OptionRow{"-v", "--verbosity", Arity::one, "0..6", 0, 6, "2", "what is printed: 0 nothing, 1 the ranking, 2 and assumptions, 3 and examples of what was refused", "", "",
              &Options::verbosity},
    OptionRow{"", "--list", Arity::one, "WHAT", 0, 0, "", "list devices, models, frameworks, formats, dimensions or schedules", "", "--json", &Options::list},
    OptionRow{"", "--data-dir", Arity::one, "DIR", 0, 0, "beside the program", "folder with devices/, frameworks/, arch/ and models/", "", "", &Options::data_dir},
    OptionRow{"", "--version", Arity::flag, "", 0, 0, "", "print the version", "", "", &Options::version},
    OptionRow{"-h", "--help", Arity::flag, "", 0, 0, "", "print this text", "", "", &Options::help},
    OptionRow{"", "--help-markdown", Arity::flag, "", 0, 0, "", "print docs/cli.md", "", "", &Options::help_markdown, true},
    later("-k", "--ppb_k", Arity::one, "K"),
    later("-swap_os", "--swap_opt_state", Arity::flag, ""),
    later("-mppb", "--manual_pipeline_balance", Arity::flag, ""),
    later("-ar", "--auto_recompute", Arity::flag, ""),
    later("-ao", "--auto_offload", Arity::flag, ""),
    later("", "--host_link_gibps", Arity::one, "GIBPS"),
    later("", "--sustained_tflops", Arity::one, "TFLOPS"),
    later("", "--host_link_overlap", Arity::one, "SHARE"),
    later("", "--host_link_cost", Arity::one, "MS"),
    later("-e", "--exhaustive", Arity::one, "N"),
    later("-ee", "--force_exhaustive", Arity::one, "N"),
    later("-eee", "--fforce-exhaustive", Arity::one, "N"),
    later("-c", "--cache_file", Arity::one, "PATH"),
    later("", "--train-yaml", Arity::one, "PATH"),
    later("", "--accelerate-yaml", Arity::one, "PATH"),
    later("-s", "--search-config", Arity::one, "PATH"),
    later("-V", "--verify", Arity::flag, ""),
    later("", "--real_csv", Arity::one, "PATH"),
    later("", "--write_ratios", Arity::one, "PATH"),
    later("-rp", "--recompute_potentials", Arity::flag, ""),
    later("", "--what-if", Arity::repeated, "CHANGE"),
    later("", "--objective", Arity::one, "NAME"),
    later("", "--max-candidates", Arity::one, "N"),
    later("", "--time-limit", Arity::one, "SECONDS"),
    later("", "--shard", Arity::one, "I/N"),
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

}  // namespace run_nd
