// SPDX-License-Identifier: Apache-2.0
// Every two options together: refused with status 2 and a reason, or both seen in what comes out.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>

#include "options.hpp"
#include "process.hpp"
#include "words.hpp"

namespace run_nd {
namespace {

using nd::testing::Folder;
using nd::testing::Outcome;

/// A model so small that a search takes no time.
constexpr const char* kModel =
    R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 4096, "max_position_embeddings": 8192})";

/// What the request says unless the options under test say it.
const std::vector<std::vector<std::string>> kBase{{"-y", "MODEL"}, {"-d", "8"}, {"-A", "A3"}, {"-f", "torchtitan"}, {"--set", "mbs=1,2"}};
/// Options that stand without a request.
const std::set<std::string> kAlone{"--list", "--merge"};

/// Words that use an option so that it shows: each differs from the default and from the base.
const std::map<std::string, std::vector<std::string>> kSamples{
    {"--yaml_config", {"-y", "OTHER"}},
    {"--framework", {"-f", "megatron-core"}},
    {"--model", {"-m", "llama-3.2-3b"}},
    {"--train-yaml", {"--train-yaml", "TRAIN", "-f", "hf"}},
    {"--accelerate-yaml", {"--accelerate-yaml", "LAUNCH", "-f", "hf"}},
    {"--search-config", {"-s", "SEARCH"}},
    {"--devices", {"-d", "4"}},
    {"--device_type", {"-A", "H100"}},
    {"--global_batch_size", {"-b", "32"}},
    {"--seq-length", {"--seq-length", "1024"}},
    {"--expert-load", {"--expert-load", "zipf:1"}},  // refused: the model has no experts
    {"--max_mem", {"-M", "30GB"}},
    {"--mem_for_ppb", {"-mem", "2GB"}},
    {"--strict", {"--strict"}},
    {"--dimensions", {"-l", "PP", "MBS"}},
    {"--set", {"--set", "zero=1"}},
    {"--recompute", {"--recompute", "full"}},
    {"--auto_recompute", {"-ar"}},
    {"--recompute_potentials", {"-rp"}},
    {"--swap_opt_state", {"-swap_os"}},
    {"--ppb_k", {"-k", "0"}},
    {"--manual_pipeline_balance", {"-mppb"}},  // refused: the model states no pipeline
    {"--schedule", {"--schedule", "gpipe", "--set", "pp=2"}},
    {"--top_config_number", {"-t", "3"}},
    {"--all", {"--all"}},
    {"--explain", {"--explain", "2"}},
    {"--what-if", {"--what-if", "seq=2048"}},
    {"--tokens", {"--tokens", "1T", "--what-if", "seq=2048"}},
    {"--deadline-days", {"--deadline-days", "3", "--tokens", "1T", "-d", "4..8"}},
    {"--price", {"--price", "2.5", "--objective", "cost"}},
    {"--objective", {"--objective", "memory"}},
    {"--pareto", {"--pareto"}},
    {"--exhaustive", {"-t", "2", "-e", "3"}},
    {"--force_exhaustive", {"-ee", "9"}},
    {"--fforce-exhaustive", {"-eee", "1"}},
    {"--time-limit", {"--time-limit", "600"}},
    {"--shard", {"--shard", "1/2", "--part", "DIR/part.json"}},
    {"--cache_file", {"-c", "RATIOS"}},
    // Refused beside --set, which the base states: these price what is measured or stored, not a space.
    {"--real_csv", {"--real_csv", "DIR/steps.csv"}},
    {"--write_ratios", {"--write_ratios", "DIR/ratios.json"}},
    {"--verify", {"-V", "DIR"}},
    {"--census", {"--census", "DIR/census.json"}},
    {"--part", {"--part", "DIR/part.json", "--shard", "2/2"}},
    {"--merge", {"--merge", "PART"}},
    {"--jobs", {"-j", "2"}},
    {"--output-dir", {"-o", "DIR/out"}},
    {"--report", {"--report", "DIR/report.html"}},
    {"--trace", {"--trace", "DIR/trace.json"}},
    {"--ranking_csv", {"--ranking_csv", "DIR/ranking.csv"}},
    {"--json", {"--json", "DIR/search.json"}},
    {"--timings", {"--timings"}},
    {"--verbosity", {"-v", "1"}},
    {"--list", {"--list", "devices"}},
    {"--data-dir", {"--data-dir", "DATA"}},
};

/// Options that never change what comes out, by what they promise.
const std::set<std::string> kUnseen{"--jobs", "--data-dir", "--time-limit"};

/// Everything that a run leaves behind, and its status.
struct Seen {
  int status = 0;
  std::string all, err;
};

class Runner {
 public:
  Seen run(const std::vector<std::string>& options) {
    const Folder folder("pairs");
    std::vector<std::string> words;
    bool alone = false;
    for (const auto& name : options) {
      alone = alone || kAlone.count(name) == 1;
      words.insert(words.end(), kSamples.at(name).begin(), kSamples.at(name).end());
    }
    for (const auto& base : kBase) {
      const bool said = std::find(words.begin(), words.end(), base.front()) != words.end();
      if (!said && !alone) words.insert(words.end(), base.begin(), base.end());
    }
    for (auto& word : words) {
      if (word == "MODEL") word = models_.write("config.json", kModel);
      else if (word == "TRAIN") word = models_.write("train.yaml", "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n");
      else if (word == "LAUNCH") word = models_.write("launch.yaml", "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n");
      else if (word == "SEARCH") word = models_.write("search.yaml", "cluster: {num_nodes: 2, cards_per_node: 4}\nparallelism: {tp: [1, 2]}\nconstraint: {global_batch_size: 16}\n");
      else if (word == "RATIOS") word = models_.write("ratios.json", R"({"COMPUTE": 1.5, "DP_COMM": 1, "DP_REDUCE": 1, "MP_COMM": 1, "EP_COMM": 1, "CP_COMM": 1, "PP_COMM": 1, "BUBBLE": 1, "_fitted_on": {"unit": "measured/estimated"}})");
      else if (word == "OTHER") word = models_.write("other.json", other());
      else if (word == "PART") word = part();
      else if (word == "DATA") word = ND_TEST_DATA_DIR;
      else if (word.rfind("DIR/", 0) == 0) word = folder.path(word.substr(4));
    }
    const Outcome outcome = nd::testing::run_nd(words);
    Seen seen{outcome.status, outcome.out + outcome.err, outcome.err};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path(".")))
      if (entry.is_regular_file()) seen.all += entry.path().filename().string() + nd::testing::read_file(entry.path().string());
    return seen;
  }

 private:
  static std::string other() {
    std::string text = kModel;
    text.replace(text.find("\"num_hidden_layers\": 4"), 22, "\"num_hidden_layers\": 8");
    return text;
  }
  /// A search of one part, whole in itself.
  std::string part() {
    const std::string path = models_.path("part.json");
    if (!std::filesystem::exists(path))
      nd::testing::run_nd({"-y", models_.write("config.json", kModel), "-d", "8", "-A", "A3", "--set", "mbs=1", "--shard", "1/1", "--part", path});
    return path;
  }
  Folder models_{"pairs_models"};
};

std::vector<const OptionRow*> rows() {
  std::vector<const OptionRow*> out;
  for (const auto& row : option_table())
    if (row.available() && !row.hidden && row.modes != kPages) out.push_back(&row);
  return out;
}

}  // namespace

TEST_CASE("Every option has a sample", "[options]") {
  for (const auto* row : rows()) {
    INFO(row->name);
    CHECK(kSamples.count(std::string(row->name)) == 1);
  }
}

TEST_CASE("Every pair of options is refused with a reason, or both are honoured", "[options][pairs]") {
  Runner runner;
  std::map<std::string, Seen> alone;
  for (const auto* row : rows()) alone[std::string(row->name)] = runner.run({std::string(row->name)});
  const Seen nothing = runner.run({});
  REQUIRE(nothing.status == 0);
  const auto check = [&](const std::string& option, const Seen& with, const Seen& without) {
    if (kUnseen.count(option) == 1 || without.status == 2) return;
    INFO(option << " changes nothing");
    CHECK(with.all != without.all);
  };
  const auto all = rows();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string first(all[i]->name);
    INFO(first);
    const Seen& one = alone[first];
    CHECK((one.status == 0 || one.status == 1 || one.status == 2 || (first == "--strict" && one.status == 3)));
    if (one.status == 2) CHECK(one.err.rfind("error: ", 0) == 0);
    else check(first, one, nothing);
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const std::string second(all[j]->name);
      const Seen both = runner.run({first, second});
      INFO("with " << second << "\n" << both.err);
      // Reading the input twice in a row, and strictness about it, may refuse the file: 3.
      const bool strict = first == "--strict" || second == "--strict";
      CHECK((both.status == 0 || both.status == 1 || both.status == 2 || (strict && both.status == 3)));
      if (both.status == 2 || both.status == 3) {
        CHECK(both.err.rfind("error: ", 0) == 0);
        continue;
      }
      check(first, both, alone[second]);
      check(second, both, one);
    }
  }
}

TEST_CASE("Every option of the predecessor that is not there is refused whatever it is combined with", "[options]") {
  for (const auto& row : option_table()) {
    if (row.available()) continue;
    for (const char* more : {"", "--list devices", "--what-if devices=4", "-v 0"}) {
      std::string line = std::string(row.name) + (row.arity == Arity::flag ? "" : " 1") + " -y llama-3.1-8b -d 8 " + more;
      INFO(line);
      const auto outcome = nd::testing::run_nd(line);
      CHECK(outcome.status == 2);
      CHECK(outcome.err.find("not available in this version") != std::string::npos);
    }
  }
}

}  // namespace run_nd
