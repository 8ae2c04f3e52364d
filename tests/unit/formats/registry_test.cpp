// SPDX-License-Identifier: Apache-2.0
#include "formats/registry.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

using namespace nd;
using namespace nd::formats;

namespace {

std::string looks_like(const std::string& text) {
  const auto root = parse_yaml(text, "f");
  REQUIRE(root);
  const Format* const found = recognise(*root);
  return found == nullptr ? "" : std::string(found->id);
}

std::string first_problem(const Result<Request>& result) {
  if (result) return "ok";
  Diagnostic one = result.error().diagnostics.front();
  one.where.file = one.where.file.substr(one.where.file.rfind('/') + 1);
  return to_text(one);
}

const DataStore& data() {
  static const DataStore kData(ND_TEST_DATA_DIR);
  return kData;
}

std::string example(const std::string& name) { return std::string(ND_TEST_DATA_DIR) + "/examples/mindformers/" + name; }

/// A file with this text in a folder of its own, gone with the object.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : folder_(std::filesystem::temp_directory_path() / ("nd_registry_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / name).string();
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("documents are recognised by the keys only their format has", "[registry]") {
  CHECK(looks_like("trainer: {model_name: x}\nparallel_config: {}\n") == "mindformers");
  CHECK(looks_like("parallel_config: {}\nrecompute_config: {}\nmodel: {model_config: {}}\n") == "mindformers");
  CHECK(looks_like("model: {pretrained_model_name_or_path: x}\ntraining: {}\n") == "hyper_v2");
  CHECK(looks_like("train: {accelerator: {tp_degree: 2}}\nmodel: {config_overrides: {}}\n") == "hyper_v2");
  CHECK(looks_like("model_type: llama\nhidden_size: 8\n") == "hf");
  CHECK(looks_like("architectures: [x]\nn_embd: 8\n") == "hf");
  CHECK(looks_like("parallelism: {dp: auto}\ncluster: {num_nodes: 1}\nmodel: {}\n") == "search");
  CHECK(looks_like("train_yaml: x.yaml\nparallelism: {}\n") == "search");
  CHECK(looks_like("model_id: x\ntmp: {dp: 1}\n") == "mindspeed");
  CHECK(looks_like("num_attention_heads: 8\nhidden_size: 8\nnum_layers: 2\ntensor_model_parallel_size: 2\n") == "megatron");
  CHECK(looks_like("model: {name: llama3, flavor: 8B}\ntraining: {local_batch_size: 1}\nparallelism: {}\n") == "torchtitan");
  CHECK(looks_like("hello: world\n").empty());
}

TEST_CASE("format ids are unique and the readable ones are listed", "[registry]") {
  std::set<std::string_view> ids;
  for (const auto& format : formats::formats()) CHECK(ids.insert(format.id).second);
  std::set<std::string_view> listed;
  for (const auto& info : format_list()) listed.insert(info.id);
  for (const char* const id : {"mindformers", "hyper_v2", "hyperparallel2", "search", "hf", "mindspeed", "megatron", "hf_trainer", "accelerate", "deepspeed", "torchtitan"}) CHECK(listed.count(id) == 1);
}

TEST_CASE("a format that contradicts the content is refused", "[registry]") {
  CHECK(first_problem(read_request(example("llama3_70b.yaml"), "hf", data())) ==
        "error: llama3_70b.yaml:4:1: is read as Hugging Face config.json (hf) but looks like a MindFormers YAML (mindformers) (-f mindformers, or another file)");
  CHECK(first_problem(read_request(example("llama3_70b.yaml"), "mindformer", data())) == "error: -f: unknown format 'mindformer' (did you mean 'mindformers'?)");
  CHECK(first_problem(read_request(example("llama3_70b.yaml"), "MindFormers", data())) == "ok");
}

TEST_CASE("documents of formats that are not read say so", "[registry]") {
  const TemporaryFile other("other.yaml", "hello: world\n");
  CHECK(first_problem(read_request(other.path(), "", data())).find("error: other.yaml:1:1: the format cannot be told from the content") == 0);
  const TemporaryFile script("run.sh", "#!/bin/sh\n");
  CHECK(read_request(script.path(), "", data()).error().code() == Errc::missing_field);
}

TEST_CASE("paths, folders and presets", "[registry]") {
  CHECK(first_problem(read_request("missing.yaml", "", data())) == "error: missing.yaml: no such file");
  CHECK(first_problem(read_request("no/such/thing", "", data())) == "error: thing: no such file");
  CHECK(first_problem(read_request("", "", data())).find("no such file") != std::string::npos);
  const TemporaryFile other("other.txt", "x\n");
  CHECK(first_problem(read_request(other.folder(), "", data())).find("is a folder without a config.json") != std::string::npos);
  CHECK(first_problem(read_request("qwen3-32", "", data())) ==
        "error: qwen3-32: no such file or folder, and no model preset of that name (did you mean 'qwen3-32b'?)");
  const auto preset = read_request("qwen3-32b", "", data());
  REQUIRE(preset);
  CHECK(preset->format == "hf");
  CHECK(preset->model.hidden_size == 5120);
  CHECK(read_request("qwen3-32b", "mindformers", data()).error().code() == Errc::conflict);
  const auto folder = read_request(std::string(ND_TEST_DATA_DIR) + "/models/qwen3-32b", "", data());
  REQUIRE(folder);
  CHECK(folder->format == "hf");
  CHECK(folder->model.num_hidden_layers == 64);
  CHECK(std::any_of(folder->notes.begin(), folder->notes.end(), [](const Diagnostic& one) { return one.message.find("guessed") != std::string::npos; }));
}

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::size_t from = 0;
  while (from < text.size()) {
    const auto end = std::min(text.find('\n', from), text.size() - 1);
    out.push_back(text.substr(from, end + 1 - from));
    from = end + 1;
  }
  return out;
}

void check_survives(const std::vector<std::string>& lines, const std::string& file, ReadFunction read) {
  std::string text;
  for (const auto& line : lines) text += line;
  const auto root = parse_document(text, file);
  if (!root) {
    CHECK_FALSE(root.error().diagnostics.empty());
    return;
  }
  const auto request = read(*root, file, data(), {});
  if (!request) CHECK_FALSE(request.error().diagnostics.empty());
}

}  // namespace

// Every line of every example is deleted, doubled and damaged in turn: a value or a reason, never a crash.
TEST_CASE("damaged examples give a value or a reason", "[registry]") {
  namespace fs = std::filesystem;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(std::string(ND_TEST_DATA_DIR) + "/examples")) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string();
    const auto text = read_text_file(path);
    const auto root = read_document(path);
    if (!text || !root) continue;
    const Format* const format = recognise(*root);
    if (format == nullptr || format->read == nullptr) continue;
    ++files;
    const auto lines = lines_of(*text);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto changed = lines;
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
      check_survives(changed, path, format->read);
      changed = lines;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
      check_survives(changed, path, format->read);
      const auto colon = lines[i].find(':');
      for (const char* value : {"", " -1", " 0", " 1.5", " 99999999999999999999", " [1, [2]]", " {a: b}", " text", " !!x y", " [[-9000000000000000000]]"}) {
        if (colon == std::string::npos) continue;
        changed = lines;
        changed[i] = lines[i].substr(0, colon + 1) + value + "\n";
        check_survives(changed, path, format->read);
      }
    }
  }
  CHECK(files >= 4);
}
