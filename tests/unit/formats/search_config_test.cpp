// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "formats/readers/reader.hpp"
#include "nd/formats.hpp"
#include "nd/units.hpp"

using namespace nd;
using namespace nd::formats;

namespace {

const DataStore& data() {
  static const DataStore store(ND_TEST_DATA_DIR);
  return store;
}

const std::string kModel =
    "model: {name: llama, num_hidden_layers: 32, hidden_size: 4096, intermediate_size: 14336, num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 128256, "
    "max_position_embeddings: 8192}\n";
const std::string kCluster = "cluster: {num_nodes: 4, cards_per_node: 8, device_type: A2}\n";

Result<Request> read_text(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) {
  return parse_yaml(text, "s.yaml").and_then([&](const ConfigNode& root) { return read_search_config(root, "s.yaml", data(), {.devices = devices}); });
}

/// "line:column message" of every problem.
std::string problems(const Result<Request>& result) {
  std::string out;
  if (result) return out;
  for (const auto& one : result.error().diagnostics) out += std::to_string(one.where.line) + ":" + std::to_string(one.where.column) + " " + one.message + "\n";
  return out;
}

Request good(const std::string& text, std::optional<std::int64_t> devices = std::nullopt) {
  auto request = read_text(text, devices);
  if (!request) FAIL(problems(request));
  return *std::move(request);
}

const DimensionCandidates* of(const Request& request, Dimension dimension) {
  for (const auto& one : request.candidates)
    if (one.dimension == dimension) return &one;
  return nullptr;
}

bool said(const Request& request, Severity severity, std::string_view part) {
  return std::any_of(request.notes.begin(), request.notes.end(),
                     [&](const Diagnostic& one) { return one.severity == severity && one.message.find(part) != std::string::npos; });
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("nd_search_config_" + std::to_string(::getpid()))) { std::filesystem::create_directories(path_); }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("search config: a number pins, a list is tried, auto is free, silence asks the run", "[search_config]") {
  const auto request = good(kModel + kCluster + "parallelism: {tp: 2, pp: [1, 2, 2], dp: auto, cp: [1]}\nconstraint: {global_batch_size: 64}\n");
  REQUIRE(of(request, Dimension::tp) != nullptr);
  CHECK(of(request, Dimension::tp)->values == std::vector<std::int64_t>{2});
  CHECK(request.run.tp == 2);
  CHECK(of(request, Dimension::pp)->values == std::vector<std::int64_t>{1, 2});
  CHECK_FALSE(request.run.pp);
  CHECK(of(request, Dimension::dp)->values.empty());
  CHECK(request.run.cp == 1);
  CHECK(of(request, Dimension::ep) == nullptr);
  CHECK(request.run.devices == 32);
  CHECK(request.run.micro_batch_size == 1);
  CHECK(request.run.vpp == 1);
  CHECK(request.run.seq_length == 8192);
  CHECK(request.run.framework == "hyperparallel");
}

TEST_CASE("search config: other values are refused, each at its place", "[search_config]") {
  const auto text = problems(read_text(kModel + kCluster + "parallelism:\n  tp: two\n  pp: []\n  cp: [1, x, 0]\n  dp: true\n  ep: 1.5\n"));
  for (const char* const part : {"4:7 must be a degree, is 'two'", "5:7 an empty list leaves nothing", "6:11 must be a degree, is 'x'", "6:14 must be from 1 to", "7:7 must be a degree, is 'true'",
                                 "8:7 must be a degree, is '1.5'"}) {
    INFO(text << "\n" << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("search config: impossible list values are errors of their own, with the search's own rules", "[search_config]") {
  const auto root = read_document(ND_TEST_SOURCE_DIR "/tests/unit/formats/invalid/search_many_errors.yaml");
  REQUIRE(root);
  const auto text = problems(read_search_config(*root, "s.yaml", data()));
  for (const char* const part :
       {"8:15 must be at least 1, is 0",                                   // vocab_size
        "the global batch 128 is no multiple of micro_batch_num 3",        //
        "hidden_size 100 is no multiple of tp 8", "num_attention_heads 10 is no multiple of tp 8", "intermediate_size 260 is no multiple of tp 8",
        "the sequence length 1000 is no multiple of cp 3",                 //
        "num_experts 6 is no multiple of ep 4",                            //
        "pp 16 is more than the 10 layers",                                //
        "stage_partition has 2 stages for pp 16", "stage_partition covers 4 of 10 layers", "the lowest offset 2 is above the highest -2",
        "there is no layer 99: the model has 0 to 9",                      //
        "the smallest dp x tp x pp x cp of the lists is 768, there are 8 devices",  // 2 x 8 x 16 x 3, without ep
        "must be a number of GiB, is -1"}) {
    INFO(text << "\n" << part);
    CHECK(text.find(part) != std::string::npos);
  }
  // Expert parallelism is taken out of dp x tp x cp, shards out of dp: 8 devices hold dp 8 with ep 8 and fsdp 8.
  CHECK(problems(read_text("model: {name: mixtral, num_hidden_layers: 4, hidden_size: 64, intermediate_size: 128, num_attention_heads: 8, vocab_size: 100, max_position_embeddings: 128, "
                           "num_experts: 8, num_experts_per_tok: 2}\ncluster: {num_nodes: 1}\nparallelism: {dp: [8], ep: [8], fsdp: [8]}\n"))
            .empty());
}

TEST_CASE("search config: memory, devices, device names", "[search_config]") {
  CHECK(good(kModel + "cluster: {num_nodes: 2, device_memory_gb: 64}\nconstraint: {memory_limit_gb: 58}\n").run.device_memory->value == 58 * kGiB);
  const auto above = good(kModel + "cluster: {num_nodes: 2, device_memory_gb: 32}\nconstraint: {memory_limit_gb: 58}\n");
  CHECK(above.run.device_memory->value == 32 * kGiB);
  CHECK(said(above, Severity::warning, "is above cluster.device_memory_gb"));
  CHECK(good(kModel + "cluster: {num_nodes: 2, device_type: ascend910_93}\n").run.devices == 32);  // nodes of 16
  CHECK(good(kModel + "cluster: {num_nodes: 2, device_type: ascend910_93}\n").run.device_type == "A3");
  CHECK(good(kModel + "cluster: {num_nodes: 2}\n").run.devices == 16);
  CHECK(good(kModel + kCluster, 64).run.devices == 64);
  CHECK(problems(read_text(kModel + kCluster, 60)).find("60 devices (-d) are no whole number of nodes with 8 cards") != std::string::npos);
  CHECK(problems(read_text(kModel)).find("the section 'cluster' is required") != std::string::npos);
}

TEST_CASE("search config: recompute", "[search_config]") {
  const auto modes = [](const std::string& text) -> std::vector<std::int64_t> {
    const auto request = good(kModel + kCluster + text);
    const auto* const one = of(request, Dimension::recompute);
    return one == nullptr ? std::vector<std::int64_t>{-1} : one->values;
  };
  CHECK(modes("") == std::vector<std::int64_t>{-1});
  CHECK(modes("recompute: auto\n") == std::vector<std::int64_t>{0, 2});
  CHECK(modes("recompute: full\n") == std::vector<std::int64_t>{2});
  CHECK(modes("recompute: off\n") == std::vector<std::int64_t>{0});  // a boolean in YAML
  CHECK(modes("recompute: auto\nparallelism: {recompute: [selective, full]}\n") == std::vector<std::int64_t>{1, 2});
  CHECK(modes("parallelism: {recompute: auto}\n").empty());
  // Every layer its own mode, from the listed ones or from all: off, selective, full.
  CHECK(modes("recompute: per_layer\n") == std::vector<std::int64_t>{3});
  CHECK(good(kModel + kCluster + "recompute: per_layer\n").run.layer_modes == std::array<bool, kLayerModes>{true, true, true});
  const std::string listed = "recompute: per_layer\nparallelism: {recompute: [off, full]}\n";
  CHECK(modes(listed) == std::vector<std::int64_t>{3});
  CHECK(good(kModel + kCluster + listed).run.layer_modes == std::array<bool, kLayerModes>{true, false, true});
  for (const char* const bad : {"recompute: ful\n", "parallelism: {recompute: [off, auto]}\n", "parallelism: {recompute: []}\n", "recompute: 3\n"})
    CHECK(problems(read_text(kModel + kCluster + bad)).find("is no recompute mode") != std::string::npos);
}

TEST_CASE("search config: over a train.yaml", "[search_config]") {
  const Folder folder;
  folder.write("train.yaml", kModel.substr(0, 7) + "{config_overrides: {num_hidden_layers: 8, hidden_size: 64, num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}}\n"
                             "training: {global_batch_size: 64, micro_batch_size: 2}\naccelerator: {tp_size: 2, pp_size: 2}\nfsdp_config: {dp_shard_size: 2}\n"
                             "dataset: {data_config: {seq_length: 1024}}\ncontext: {device_num: 8}\nactivation_checkpoint: {mode: full}\n");
  const std::string search = folder.write("search.yaml", "train_yaml: ./train.yaml\ncluster: {num_nodes: 2}\nparallelism: {tp: [1, 2]}\n");
  const auto request = read_request(RequestFiles{.search = search}, data());
  REQUIRE(request);
  CHECK(request->format == "hyper_v2");  // what a found strategy is written back into
  CHECK(request->run.devices == 16);
  CHECK(request->run.pp == 2);
  CHECK_FALSE(request->run.tp);
  CHECK(request->run.micro_batch_size == 2);
  CHECK(request->run.global_batch_size == 64);
  CHECK(request->run.recompute == Recompute::full);
  CHECK(of(*request, Dimension::recompute) == nullptr);
  // One file has one sequence length, whoever reads it.
  CHECK(request->run.seq_length == 1024);
  CHECK(request->run.seq_length == read_request((std::filesystem::path(search).parent_path() / "train.yaml").string(), "", data())->run.seq_length);
  // -y must be the same file.
  const std::string other = folder.write("other.yaml", kModel);
  CHECK(problems(read_request(RequestFiles{.main = other, .search = search}, data())).find("names another file than -y") != std::string::npos);
  CHECK(read_request(RequestFiles{.main = (std::filesystem::path(search).parent_path() / "train.yaml").string(), .search = search}, data()));
}

TEST_CASE("search config: over every other format", "[search_config]") {
  const Folder folder;
  const std::string search = folder.write("search.yaml", "cluster: {num_nodes: 4, cards_per_node: 16, device_type: A3}\nparallelism: {tp: [1, 2, 4], pp: 2}\nconstraint: {global_batch_size: 128}\n");
  const std::string examples = ND_TEST_DATA_DIR "/examples/";
  for (const auto& main : {examples + "mindformers/qwen3_32b_mcore.yaml", examples + "torchtitan/llama3_8b.toml", std::string("llama-3.1-8b"), std::string(ND_TEST_DATA_DIR "/models/llama-3.1-8b")}) {
    INFO(main);
    const auto request = read_request(RequestFiles{.main = main, .search = search}, data());
    INFO(problems(request));
    REQUIRE(request);
    CHECK(request->search_config);
    CHECK(request->run.devices == 64);
    CHECK(request->run.pp == 2);
    CHECK(of(*request, Dimension::tp)->values.size() == 3);
    CHECK(request->run.device_type == "A3");
  }
}

TEST_CASE("search config: files that are none", "[search_config]") {
  const Folder folder;
  const auto refused = [&](const std::string& path) { return problems(read_request(RequestFiles{.search = path}, data())); };
  CHECK(refused(folder.write("s.json", "{}")).find("a search config is a YAML file") != std::string::npos);
  CHECK(refused(folder.write("s.yaml", "- a\n")).find("the top level must be a mapping") != std::string::npos);
  CHECK(refused("nowhere.yaml").find("no such file") != std::string::npos);
  CHECK(refused(ND_TEST_SOURCE_DIR "/tests/unit/formats/invalid/search_missing_train.yaml").find("1:13 the train_yaml './no_such_train.yaml' is not there") == 0);
  CHECK(refused(folder.write("n.yaml", "cluster: {num_nodes: 1}\nparallelism: {tp: 1}\n")).find("nothing says which model is trained") != std::string::npos);
  CHECK(refused(folder.write("t.yaml", "cluster: {num_nodes: 1}\nparallelsim: {tp: 1}\n" + kModel)).find("unknown key 'parallelsim'") != std::string::npos);
}

TEST_CASE("three files are one train.yaml", "[hyperparallel2]") {
  const std::string root = ND_TEST_DATA_DIR "/examples/hyperparallel2/llama31_8b/";
  const RequestFiles files{.main = root + "model.yaml", .format = "hyperparallel2", .train = root + "train.yaml", .accelerate = root + "accelerate.yaml"};
  const auto request = read_request(files, data(), {.devices = 32});
  REQUIRE(request);
  CHECK(request->format == "hyperparallel2");
  CHECK(request->run.devices == 32);
  CHECK(request->run.optimizer_shard == 4);
  CHECK(request->run.tp == 4);
  CHECK(request->run.recompute == Recompute::full);
  // Where a value is from: its own file.
  CHECK(request->run.origins.at("tp").where.file == root + "accelerate.yaml");
  CHECK(request->run.origins.at("tp").where.line == 3);
  // -f need not be said when both companions are there.
  RequestFiles guessed = files;
  guessed.format.clear();
  CHECK(read_request(guessed, data(), {.devices = 32})->format == "hyperparallel2");
  RequestFiles alone = files;
  alone.train.clear();
  alone.accelerate.clear();
  const auto text = problems(read_request(alone, data()));
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);  // both missing files at once
}

TEST_CASE("three files: sections without a name, clashes", "[hyperparallel2]") {
  const Folder folder;
  const RequestFiles files{.main = folder.write("m.yaml", "config_overrides: {num_hidden_layers: 8, hidden_size: 64, num_attention_heads: 4, intermediate_size: 256, vocab_size: 1000}\n"),
                           .format = "hyperparallel2",
                           .train = folder.write("t.yaml", "global_batch_size: 32\nmicro_batch_size: 2\ndata: {max_seq_len: 512}\naccelerator: {tp_size: 1}\ntraining: {train_iters: 3}\n"),
                           .accelerate = folder.write("a.yaml", "tp_size: 2\ndp_shard_size: 4\n")};
  const auto request = read_request(files, data(), {.devices = 8});
  INFO(problems(request));
  REQUIRE(request);
  CHECK(request->run.tp == 2);
  CHECK(request->run.optimizer_shard == 4);
  CHECK(request->run.micro_batch_size == 2);
  CHECK(request->run.seq_length == 512);
  CHECK(said(*request, Severity::warning, "is stated in"));
}

TEST_CASE("companion files that complete nothing are refused", "[hyperparallel2]") {
  const std::string root = ND_TEST_DATA_DIR "/examples/";
  const auto refused = [](const RequestFiles& files) { return problems(read_request(files, data())); };
  CHECK(refused({.main = root + "mindformers/llama3_70b.yaml", .train = root + "hyperparallel2/llama31_8b/train.yaml"}).find("completes a Hugging Face model") != std::string::npos);
  CHECK(refused({.train = root + "hyperparallel2/llama31_8b/train.yaml"}).find("is missing: --train-yaml completes another file") != std::string::npos);
}
