// SPDX-License-Identifier: Apache-2.0
// Search, write the strategy into the input, read it back: the same strategy at the same price, and a difference of strategy lines only.
#include "megatron_support.hpp"

#include <algorithm>
#include <array>

#include "formats/megatron/script_editor.hpp"
#include "nd/resolved.hpp"
#include "nd/search.hpp"
#include "nd/search_space.hpp"

using namespace nd;
using namespace nd::testing;

namespace {

/// Words of which one is on every line that a strategy may change.
constexpr std::array kStrategyWords{"TP",  "PP",   "EP",         "CP",       "VPP",       "MBS",     "GBS",     "parallel",  "micro-batch", "global-batch", "recompute", "optimizer",
                                    "virtual", "layers", "LAYERS", "schedules", "layer-list", "layout",  "seq-length", "NNODES", "nnodes",    "nproc",  "pipeline_split", "layer_list"};

struct Setting {
  Scenario scenario;
  RunSpec stated;
};

Setting setting(const Request& request, const char* device) {
  const auto model = resolve_model(request.model);
  REQUIRE(model);
  const auto base = data().framework(request.run.framework, request.run.framework_version, request.run.features);
  REQUIRE(base);
  const auto profile = effective_profile(*base, request.run);
  const auto run = resolve_run(request.run, *model, profile);
  if (!run) UNSCOPED_INFO(to_text(run.error().diagnostics.front()));
  REQUIRE(run);
  const auto type = data().device(device);
  REQUIRE(type);
  return {{*model, *run, profile, {*type, run->devices}}, request.run};
}

/// Without the comma between members of a JSON mapping: it moves when a member is added behind.
Texts lines_of(const std::string& text) {
  Texts out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    out.push_back(text.substr(from, end - from - (end > from && text[end - 1] == ',' ? 1 : 0)));
    from = end + 1;
  }
  return out;
}

/// Lines of `a` that are not in `b`, each as often as it is missing.
Texts missing(const Texts& a, Texts b) {
  Texts out;
  for (const auto& line : a) {
    const auto it = std::find(b.begin(), b.end(), line);
    if (it == b.end()) out.push_back(line);
    else b.erase(it);
  }
  return out;
}

void check_lines(const std::string& before, const std::string& after) {
  const Texts a = lines_of(before), b = lines_of(after);
  for (const auto& lines : {missing(a, b), missing(b, a)})
    for (const auto& line : lines) {
      INFO("changed: " << line);
      if (line.find_first_not_of(" \t") == std::string::npos) continue;  // where an argument stood
      CHECK(std::any_of(kStrategyWords.begin(), kStrategyWords.end(), [&line](const char* word) { return line.find(word) != std::string::npos; }));
    }
}

/// Writes every candidate back and reads it. Returns how many could be said.
int round_trips(const std::string& text, const std::string& file, const char* device, std::int64_t top) {
  const Request request = read_good(text, file);
  Setting now = setting(request, device);
  std::vector<Dimension> all;
  for (const auto& info : dimension_list()) all.push_back(info.id);
  SearchSpace space = pin_dimensions(now.stated, now.scenario.run.strategy, all);
  // Some of everything, in a second: degrees, virtual stages, schedules, sharding, recompute.
  for (const char* const condition : {"tp=2,4", "pp=4,8", "mbs=1", "cp<=2", "vpp<=4", "ep=1,8,32", "etp=1"}) {
    const auto next = with_setting(space, condition, {});
    REQUIRE(next);
    space = *next;
  }
  SearchOptions options;
  options.top = top;
  options.jobs = 1;
  options.memory_limit = Bytes{1e15};  // every kind of strategy, also those that need more than a device has
  const auto result = search_strategies(now.scenario, space, options);
  const Scenario searched = search_scenario(now.scenario, space, options);
  CHECK_FALSE(result.candidates.empty());
  int said = 0;
  for (const auto& candidate : result.candidates) {
    INFO(file << ": " << to_text(candidate.config) << " " << to_text(candidate.config.schedule));
    const auto files = write_resolved({request.format, file, text}, searched, candidate.config, data());
    if (!files) {
      for (const auto& one : files.error().diagnostics) UNSCOPED_INFO(to_text(one));
      CHECK(files);
      continue;
    }
    ++said;
    const Request again = read_good(files->front().text, file);
    Setting then = setting(again, device);
    then.scenario.run.device_memory = searched.run.device_memory;
    CHECK(then.scenario.run.strategy == candidate.config);
    CHECK(then.scenario.model == searched.model);
    CHECK(then.scenario.profile == searched.profile);
    const auto price = price_strategy(then.scenario, candidate.config);
    CHECK(price.time.step.value == Approx(candidate.time.step.value).epsilon(1e-12));
    CHECK(price.memory.stages[static_cast<std::size_t>(price.memory.peak_stage)].reserved.value ==
          Approx(candidate.memory.stages[static_cast<std::size_t>(candidate.memory.peak_stage)].reserved.value).epsilon(1e-12));
    CHECK(price.layers == candidate.layers);
    for (std::size_t part = 0; part < kTimePartCount; ++part) {
      INFO("part " << part);
      CHECK(price.time.exposed[part].value == Approx(candidate.time.exposed[part].value).epsilon(1e-12));
    }
    check_lines(text, files->front().text);
  }
  return said;
}

}  // namespace

TEST_CASE("scripts: every candidate of a search comes back as it was written", "[resolved]") {
  for (const auto& [name, device] : {std::pair{"pretrain_llama31_70b.sh", "A2"}, std::pair{"pretrain_mixtral_8x7b.sh", "H100"}, std::pair{"pretrain_qwen3_235b_a22b.sh", "A3"},
                                     std::pair{"pretrain_deepseek3_671b.sh", "A3"}}) {
    const auto original = read_original("megatron", {.main = example(std::string("megatron/") + name)});
    REQUIRE(original);
    CHECK(round_trips(original->text, original->file, device, 12) == 12);
  }
}

TEST_CASE("dumps: every candidate of a search comes back as it was written", "[resolved]") {
  for (const auto& [name, device] : {std::pair{"llama31_405b.args.json", "GB300"}, std::pair{"deepseek3_671b.args.json", "A3"}}) {
    const auto original = read_original("megatron", {.main = example(std::string("megatron/") + name)});
    REQUIRE(original);
    CHECK(round_trips(original->text, original->file, device, 12) >= 1);
  }
}

TEST_CASE("MindSpeed JSON: the strategy goes into both sections", "[resolved]") {
  const auto original = read_original("mindspeed", {.main = example("mindspeed/llama31_70b.json")});
  REQUIRE(original);
  const Request request = read_good(original->text, original->file);
  const Setting now = setting(request, "A2");
  const auto same = write_resolved(*original, now.scenario, now.scenario.run.strategy, data());
  REQUIRE(same);
  CHECK(same->front().text == original->text);
  ParallelConfig other = now.scenario.run.strategy;  // 128 devices and 16 sequences as before: dp x pp stays 16
  other.tp = 4;
  other.cp = 2;
  other.cp_algorithm = CpAlgorithm::all_gather;
  other.op = 4;
  other.sequence_parallel = false;
  other.recompute = Recompute::off;
  Scenario free = now.scenario;
  free.run.full_recompute_layers.clear();
  const auto files = write_resolved(*original, free, other, data());
  if (!files) UNSCOPED_INFO(to_text(files.error().diagnostics.front()));
  REQUIRE(files);
  const RunSpec run = read_good(files->front().text, "f.json").run;
  CHECK(run.tp == 4);
  CHECK(run.cp == 2);
  CHECK(run.recompute == Recompute::off);
  other.micro_batch_num = 8;  // the format runs as many as there are stages
  CHECK_FALSE(write_resolved(*original, free, other, data()));
}

TEST_CASE("scripts: edits stand where the value stands", "[resolved]") {
  const auto edited = [](const std::string& text, std::vector<formats::megatron::Change> changes) {
    const auto out = formats::megatron::edit_script(text, "run.sh", changes, std::nullopt);
    if (!out) UNSCOPED_INFO(to_text(out.error().diagnostics.front()));
    REQUIRE(out);
    return *out;
  };
  const std::string model = " --num-layers 8 --hidden-size 64 --micro-batch-size 1";
  const std::string tp = "tensor_model_parallel_size";
  // In the assignment.
  CHECK(edited("TP=8 # ranks\nx t.py --tensor-model-parallel-size ${TP}" + model + "\n", {{tp, "4"}}) ==
        "TP=4 # ranks\nx t.py --tensor-model-parallel-size ${TP}" + model + "\n");
  CHECK(edited("TP=${TP:-8}\nx t.py --tensor-model-parallel-size $TP" + model + "\n", {{tp, "4"}}) ==
        "TP=${TP:-4}\nx t.py --tensor-model-parallel-size $TP" + model + "\n");
  // The variable serves another argument as well: at the use.
  CHECK(edited("N=8\nx t.py --tensor-model-parallel-size $N --log-interval $N" + model + "\n", {{tp, "4"}}) ==
        "N=8\nx t.py --tensor-model-parallel-size 4 --log-interval $N" + model + "\n");
  CHECK(edited("N=8\nT=$((N / 2))\nx t.py --tensor-model-parallel-size $T" + model + "\n", {{tp, "2"}}) == "N=8\nT=2\nx t.py --tensor-model-parallel-size $T" + model + "\n");
  CHECK(edited("A=(\n  --tensor-model-parallel-size 8 # why\n)\nx t.py ${A[@]}" + model + "\n", {{tp, "4"}}) ==
        "A=(\n  --tensor-model-parallel-size 4 # why\n)\nx t.py ${A[@]}" + model + "\n");
  CHECK(edited("x t.py --tensor-model-parallel-size=8" + model + "\n", {{tp, "4"}}) == "x t.py --tensor-model-parallel-size=4" + model + "\n");
  // New and gone.
  CHECK(edited("A=\"\n  --pipeline-model-parallel-size 2 \\\n  --bf16\n\"\nx t.py $A" + model + "\n", {{tp, "4"}, {"sequence_parallel", ""}}) ==
        "A=\"\n  --pipeline-model-parallel-size 2 --tensor-model-parallel-size 4 --sequence-parallel \\\n  --bf16\n\"\nx t.py $A" + model + "\n");
  CHECK(edited("A=\"\n  --recompute-granularity full \\\n  --recompute-num-layers 1 \\\n  --bf16\n\"\nx t.py $A" + model + "\n",
               {{"recompute_granularity", std::nullopt}, {"recompute_num_layers", std::nullopt}}) == "A=\"\n  --bf16\n\"\nx t.py $A" + model + "\n");
  CHECK(edited("A=(\n  --sequence-parallel      # no effect\n  --bf16\n)\nx t.py ${A[@]}" + model + "\n", {{"sequence_parallel", std::nullopt}}) ==
        "A=(\n        # no effect\n  --bf16\n)\nx t.py ${A[@]}" + model + "\n");
  CHECK(edited("x t.py --sequence-parallel --bf16" + model + "\n", {{"sequence_parallel", std::nullopt}}) == "x t.py --bf16" + model + "\n");
  // The launcher's nodes.
  const auto moved = formats::megatron::edit_script("N=2\ntorchrun --nproc_per_node 8 --nnodes $N t.py" + model + "\n", "run.sh", {}, 64);
  REQUIRE(moved);
  CHECK(*moved == "N=8\ntorchrun --nproc_per_node 8 --nnodes $N t.py" + model + "\n");
  // Nothing to do.
  const std::string same = "x t.py" + model + "\n";
  CHECK(edited(same, {}) == same);
}

TEST_CASE("scripts: what cannot be changed alone is refused by name", "[resolved]") {
  const auto out = formats::megatron::edit_script("for i in 1; do A=\"--tensor-model-parallel-size $i$i\"; done\nx t.py $A --num-layers 8 --hidden-size 64 --sequence-parallel\n", "run.sh",
                                                  {{"tensor_model_parallel_size", "4"}}, std::nullopt);
  REQUIRE_FALSE(out);
  CHECK(out.error().code() == Errc::unsupported);
  CHECK(to_text(out.error().diagnostics.front()).find("--tensor-model-parallel-size") != std::string::npos);
}

TEST_CASE("scripts: the argument list reads like the script", "[resolved]") {
  const auto original = read_original("megatron", {.main = example("megatron/pretrain_mixtral_8x7b.sh")});
  REQUIRE(original);
  const Request request = read_good(original->text, original->file);
  const Setting now = setting(request, "H100");
  const auto files = write_resolved(*original, now.scenario, now.scenario.run.strategy, data());
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].text == original->text);  // the stated strategy: nothing changes
  CHECK((*files)[1].suffix == ".args");
  Request list = read_good((*files)[1].text, "resolved.args", {.devices = 32});
  list.model.name = request.model.name;
  CHECK(list.model == request.model);
  CHECK(list.run.dp == request.run.dp);
  CHECK(list.run.features == request.run.features);
}

TEST_CASE("formats without a writer say so", "[resolved]") {
  CHECK(resolved_suffixes("hf_none", {.main = "a.json"}).empty());
  CHECK(resolved_suffixes("megatron", {.main = "a/run.sh"}) == Texts{".sh", ".args"});
  CHECK(resolved_suffixes("megatron", {.main = "a/run.args"}) == Texts{".args"});
}
