// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "options.hpp"

namespace run_nd {

namespace {

constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::int64_t kMostTokens = 1 << 30;

/// An option of the predecessor that this version refuses; `instead` says what does the job today, if anything does.
constexpr OptionRow refused(std::string_view short_names, std::string_view name, Arity arity, std::string_view instead) {
  return {.short_names = short_names, .name = name, .arity = arity, .help = instead};
}

constexpr std::array kTable{
    OptionRow{.short_names = "-y", .name = "--yaml_config", .arity = Arity::one, .value = "PATH",
              .help = "configuration of the training run: a file of any known format, a folder with a Hugging Face config.json, or the name of a model preset",
              .group = Group::input, .modes = kPricing, .offers = "@file", .target = &Options::input},
    OptionRow{.short_names = "-f", .name = "--framework", .arity = Arity::one, .value = "NAME", .preset = "guessed from the input",
              .help = "framework of the run, or format of the input", .group = Group::input, .modes = kPricing, .offers = "@frameworks",
              .target = &Options::framework},
    OptionRow{.short_names = "-m", .name = "--model", .arity = Arity::one, .value = "NAME", .preset = "the input's",
              .help = "model preset priced instead of the input's model", .group = Group::input, .modes = kPricing, .offers = "@models",
              .target = &Options::model},
    OptionRow{.short_names = "-d", .name = "--devices", .arity = Arity::one, .value = "N|A..B", .least = 1, .most = kMostDevices, .preset = "the input's",
              .help = "number of devices; a range compares clusters, doubling from A to B, or in steps of S with A..B:S", .group = Group::input, .modes = kPricing, .target = &Options::devices},
    OptionRow{.short_names = "-A", .name = "--device_type", .arity = Arity::one, .value = "NAME", .preset = "the input's, else A2",
              .help = "device type: name, alias or path of a device file", .group = Group::input, .modes = kPricing, .offers = "@devices",
              .target = &Options::device_type},
    OptionRow{.short_names = "-b", .name = "--global_batch_size", .arity = Arity::one, .value = "B", .least = 1, .most = kMostTokens,
              .preset = "the input's, else 4 Mi tokens per step", .help = "sequences per step", .group = Group::input, .modes = kPricing,
              .target = &Options::global_batch},
    OptionRow{.name = "--seq-length", .arity = Arity::one, .value = "TOKENS", .least = 1, .most = kMostTokens,
              .preset = "the input's, else the model's limit, at most 4096", .help = "tokens per sequence", .group = Group::input, .modes = kPricing,
              .target = &Options::seq_length},
    OptionRow{.short_names = "-M", .name = "--max_mem", .arity = Arity::one, .value = "MEMORY", .preset = "the input's, else the device's usual budget",
              .help = "memory a device may use, e.g. 58GB (B, KB, MB, GB and KiB, MiB, GiB are powers of 1024)", .group = Group::input, .modes = kPricing,
              .target = &Options::max_memory},
    OptionRow{.short_names = "-mem", .name = "--mem_for_ppb", .arity = Arity::one, .value = "MEMORY", .preset = "0GB",
              .help = "memory taken off the budget, kept for pipeline balancing", .group = Group::input, .modes = kPricing,
              .target = &Options::memory_reserve},
    OptionRow{.name = "--strict", .preset = "off", .help = "refuse inputs with fields that nobody stated or that are not priced", .group = Group::input,
              .modes = kPricing, .target = &Options::strict},

    OptionRow{.short_names = "-l", .name = "--dimensions", .arity = Arity::list, .value = "DIM", .preset = "all",
              .help = "dimensions to vary; the others stay as the input states them", .group = Group::space, .modes = kSearching,
              .offers = "@dimensions", .target = &Options::dimensions},
    OptionRow{.name = "--set", .arity = Arity::repeated, .value = "DIM=VALUES",
              .help = "condition on a dimension: tp=2,4 or 'pp<=8' or 'cp!=16'; may be repeated", .group = Group::space, .modes = kSearching,
              .target = &Options::settings},
    OptionRow{.name = "--recompute", .arity = Arity::list, .value = "MODE", .preset = "off selective full",
              .help = "recompute modes to try: off, selective, full, or auto for all", .group = Group::space, .modes = kSearching,
              .offers = "off selective full auto", .target = &Options::recompute},
    OptionRow{.name = "--schedule", .arity = Arity::list, .value = "NAME", .preset = "1f1b interleaved",
              .help = "pipeline schedules to try (--list schedules), or auto for all that the framework offers", .group = Group::space, .modes = kSearching,
              .offers = "@schedules", .target = &Options::schedules},

    OptionRow{.short_names = "-t", .name = "--top_config_number", .arity = Arity::one, .value = "K", .least = 1, .most = 1'000'000, .preset = "20",
              .help = "candidates shown; documents have 100 unless this is given", .group = Group::answer, .modes = kSearch, .target = &Options::top},
    OptionRow{.name = "--all", .preset = "off", .help = "every candidate that fits goes into the JSON document, not only the best",
              .group = Group::answer, .modes = kSearch, .needs = "--json --output-dir", .target = &Options::all},
    OptionRow{.name = "--explain", .arity = Arity::one, .value = "RANK|file",
              .help = "memory ledger and time parts of one ranked candidate, or of the strategy that the input states", .group = Group::answer,
              .modes = kExplain | kSearch, .offers = "1 file", .target = &Options::explain},
    OptionRow{.name = "--objective", .arity = Arity::one, .value = "NAME", .preset = "time",
              .help = "what the ranking is ordered by: time, memory, cost (needs a price per device-hour) or energy (needs the device's power)",
              .group = Group::answer, .modes = kSearch, .offers = "time memory cost energy", .target = &Options::objective},
    OptionRow{.name = "--pareto", .preset = "off", .help = "the front of time against memory as well: the strategies that no other beats in both",
              .group = Group::answer, .modes = kSearch, .target = &Options::pareto},
    OptionRow{.short_names = "-e", .name = "--exhaustive", .arity = Arity::one, .value = "N", .least = 0, .most = 1'000'000, .preset = "0",
              .help = "also show candidates below the best, until N of those shown use each dimension of -l (a degree above 1)", .group = Group::answer,
              .modes = kSearch, .target = &Options::exhaustive},
    OptionRow{.short_names = "-ee", .name = "--force_exhaustive", .arity = Arity::one, .value = "N", .least = 0, .most = 1'000'000, .preset = "0",
              .help = "also show the first N below the best that use each dimension; one may count for several", .group = Group::answer, .modes = kSearch,
              .target = &Options::force_exhaustive},
    OptionRow{.short_names = "-eee", .name = "--fforce-exhaustive", .arity = Arity::one, .value = "N", .least = 0, .most = 1'000'000, .preset = "0",
              .help = "also show N below the best for each dimension, each counted once; replaces -e and -ee", .group = Group::answer, .modes = kSearch,
              .excludes = "--exhaustive --force_exhaustive", .target = &Options::fforce_exhaustive},
    OptionRow{.name = "--time-limit", .arity = Arity::one, .value = "SECONDS", .least = 0, .most = 10'000'000,
              .help = "stop after so long and take the best of what was seen, which is said", .group = Group::answer, .modes = kSearching,
              .excludes = "--shard", .target = &Options::time_limit},
    OptionRow{.name = "--shard", .arity = Arity::one, .value = "I/N", .help = "search the I-th of N parts of the space, for run_nd merge", .group = Group::answer,
              .modes = kSearch, .needs = "--part", .target = &Options::shard},
    OptionRow{.name = "--part", .arity = Arity::one, .value = "PATH",
              .help = "where --shard writes what it found; the other outputs of the command are written by run_nd merge", .group = Group::output, .modes = kSearch,
              .needs = "--shard", .offers = "@file", .target = &Options::part},
    OptionRow{.name = "--what-if", .arity = Arity::repeated, .value = "CHANGE",
              .help = "the best strategy with one thing changed, beside the request as it stands: devices=128, device=H100, seq=8192,16384, batch=512, "
                      "memory=96GB, bandwidth=2x (or of one level: bandwidth.node=2x), framework=NAME, or a dimension: tp=8. Each value is one case; "
                      "+ joins changes: devices=128+batch=2048; may be repeated",
              .group = Group::answer, .modes = kWhatIf, .offers = "devices= device= seq= batch= memory= bandwidth= framework=", .target = &Options::what_if},
    OptionRow{.name = "--tokens", .arity = Arity::one, .value = "T", .help = "tokens of the whole training (15T, 300B): days and device-hours in a question's answer",
              .group = Group::answer, .modes = kStudy, .target = &Options::tokens},
    OptionRow{.name = "--deadline-days", .arity = Arity::one, .value = "D", .least = 0, .most = 1'000'000,
              .help = "with -d A..B: the smallest cluster that trains --tokens within these days", .group = Group::answer, .modes = kSizes, .needs = "--tokens",
              .target = &Options::deadline_days},
    OptionRow{.name = "--price", .arity = Arity::one, .value = "P", .least = 0, .most = 1'000'000, .preset = "the device file's, if it has one",
              .help = "price of a device-hour, for the cost of --tokens and --objective cost", .group = Group::answer, .modes = kSearching, .needs = "--tokens --objective",
              .target = &Options::price},
    OptionRow{.short_names = "-j", .name = "--jobs", .arity = Arity::one, .value = "N", .least = 1, .most = 1024, .preset = "all cores",
              .help = "worker threads; never changes a result", .group = Group::answer, .modes = kSearching | kMerge, .target = &Options::jobs},

    OptionRow{.short_names = "-o", .name = "--output-dir", .arity = Arity::one, .value = "DIR",
              .help = "write ranking.csv, search.json, report.html and the input with the best strategy in it (resolved.*; with -t K also one file per rank, "
                      "resolved/1.* ...) there", .group = Group::output, .modes = kSearch, .offers = "@dir",
              .target = &Options::output_dir},
    OptionRow{.name = "--report", .arity = Arity::one, .value = "PATH",
              .help = "write one HTML page: ranking, memory, time and pipeline of the best candidate, or of --explain's", .group = Group::output,
              .modes = kSearch, .offers = "@file", .target = &Options::report},
    OptionRow{.name = "--trace", .arity = Arity::one, .value = "PATH",
              .help = "write the passes of the best candidate's pipeline, or of --explain's, for chrome://tracing and ui.perfetto.dev (JSON)",
              .group = Group::output, .modes = kSearch, .offers = "@file", .target = &Options::trace},
    OptionRow{.name = "--ranking_csv", .arity = Arity::one, .value = "PATH", .help = "write every candidate that fits, in ranked order",
              .group = Group::output, .modes = kSearch, .offers = "@file", .target = &Options::ranking_csv},
    OptionRow{.name = "--json", .arity = Arity::one, .value = "PATH",
              .help = "write one JSON document (nd/search/1, questions nd/study/1); - is the standard output, which then has nothing else", .group = Group::output,
              .modes = kSearching, .offers = "@file", .target = &Options::json},
    OptionRow{.name = "--timings", .preset = "off",
              .help = "seconds of the phases and workers used in the JSON document, which then differs from run to run", .group = Group::output,
              .modes = kSearch, .needs = "--json --output-dir", .target = &Options::timings},
    OptionRow{.short_names = "-v", .name = "--verbosity", .arity = Arity::one, .value = "0..6", .least = 0, .most = 6, .preset = "2",
              .help = "what is printed: 0 nothing, 1 the ranking, 2 and assumptions, 3 and examples of what was refused", .group = Group::output,
              .modes = kPricing | kMerge, .offers = "0 1 2 3", .target = &Options::verbosity},

    OptionRow{.name = "--merge", .arity = Arity::list, .value = "PART",
              .help = "run_nd merge PART...: put the parts of --shard together and print and write what their command asks for", .modes = kMerge,
              .offers = "@file", .target = &Options::parts},
    OptionRow{.name = "--list", .arity = Arity::one, .value = "WHAT",
              .help = "list devices, models, frameworks, formats, dimensions or schedules", .modes = kList,
              .offers = "devices models frameworks formats dimensions schedules", .target = &Options::list},
    OptionRow{.name = "--data-dir", .arity = Arity::one, .value = "DIR", .preset = "beside the program",
              .help = "folder with devices/, frameworks/, arch/ and models/", .modes = kPricing | kList | kMerge, .offers = "@dir", .target = &Options::data_dir},
    OptionRow{.name = "--version", .help = "print the version", .modes = kPages, .target = &Options::version},
    OptionRow{.short_names = "-h", .name = "--help", .help = "print this text", .modes = kPages, .target = &Options::help},
    OptionRow{.name = "--generate", .arity = Arity::one, .value = "KIND", .help = "print a page made from the option table: markdown man bash zsh fish",
              .modes = kPages, .target = &Options::generate, .hidden = true},

    refused("-k", "--ppb_k", Arity::one, "--json has the layers, the memory and the time of every stage"),
    refused("-swap_os", "--swap_opt_state", Arity::flag, "--set 'zero>=1' shards the optimizer states over the replicas"),
    refused("-mppb", "--manual_pipeline_balance", Arity::flag, "-l without PP, VPP and RECOMPUTE keeps the stages and the recompute of the input"),
    refused("-ar", "--auto_recompute", Arity::flag, "--recompute tries the modes for the model as a whole"),
    refused("-ao", "--auto_offload", Arity::flag, ""),
    refused("", "--host_link_gibps", Arity::one, "a figure of -ao"),
    refused("", "--sustained_tflops", Arity::one, "a figure of -ao"),
    refused("", "--host_link_overlap", Arity::one, "a figure of -ao"),
    refused("", "--host_link_cost", Arity::one, "a figure of -ao"),
    refused("-c", "--cache_file", Arity::one, "-A takes a device file with figures of your own"),
    refused("", "--train-yaml", Arity::one, "-y takes the train.yaml itself"),
    refused("", "--accelerate-yaml", Arity::one, "-y takes the train.yaml itself"),
    refused("-s", "--search-config", Arity::one, "--set, --recompute, -b, -M and -A say the same on the command line"),
    refused("-V", "--verify", Arity::flag, "--json has the parameters and the FLOPs that are counted"),
    refused("", "--real_csv", Arity::one, "nd_validate prices tables of measured runs"),
    refused("", "--write_ratios", Arity::one, "nd_validate --fit fits figures on measured runs"),
    refused("-rp", "--recompute_potentials", Arity::flag, ""),
    refused("", "--max-candidates", Arity::one, "--time-limit bounds the work, --set the space"),
};

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

}  // namespace run_nd
