// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/text.hpp"
#include "formats/readers/hf_run.hpp"
#include "formats/readers/hyperparallel2.hpp"
#include "formats/readers/reader.hpp"
#include "formats/registry.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/formats.hpp"
#include "nd/resolved.hpp"

namespace nd {

namespace formats {
namespace {

namespace fs = std::filesystem;

SourceRef at_option(std::string option) { return {"", 0, 0, std::move(option)}; }

bool is_three_files(const RequestFiles& files) { return core::canonical_name(files.format) == "hyperparallel2"; }

/// A companion file as a mapping; its problems name the option when the file is not there.
std::optional<ConfigNode> read_companion(const std::string& path, const char* option, std::vector<Diagnostic>& problems) {
  auto root = read_document(path);
  if (root && !root->is_mapping())
    root = make_error(Errc::wrong_type, root->where, "the top level must be a mapping, is " + describe(*root));
  if (root) return *std::move(root);
  if (root.error().code() == Errc::io) problems.push_back(make_diagnostic(Errc::io, at_option(option), path + ": " + root.error().diagnostics.front().message));
  else problems.insert(problems.end(), root.error().diagnostics.begin(), root.error().diagnostics.end());
  return std::nullopt;
}

Result<Request> read_merged(const ThreeFiles& files, const std::string& path, const DataStore& data, const ReadOptions& options) {
  std::vector<Diagnostic> notes;
  const auto merged = merge_three_files(files, notes);
  if (!merged) return merged.error();
  auto out = read_hyper_v2(*merged, path, data, options);
  if (!out) return out;
  out->format = "hyperparallel2";
  out->file = path;
  out->notes.insert(out->notes.begin(), notes.begin(), notes.end());
  return out;
}

/// The three files of `hyperparallel2`.
Result<Request> read_three(const RequestFiles& files, const DataStore& data, const ReadOptions& options) {
  std::vector<Diagnostic> problems;
  for (const auto& [option, path] : {std::pair{"-y", &files.main}, std::pair{"--train-yaml", &files.train}, std::pair{"--accelerate-yaml", &files.accelerate}})
    if (path->empty())
      problems.push_back(make_diagnostic(Errc::missing_field, at_option(option), "is missing: the three-file form takes a model, a train and an accelerate file",
                                         "-y MODEL --train-yaml TRAIN --accelerate-yaml ACCELERATE"));
  if (!problems.empty()) return Error(std::move(problems));
  const auto model = read_companion(files.main, "-y", problems), train = read_companion(files.train, "--train-yaml", problems),
             accelerate = read_companion(files.accelerate, "--accelerate-yaml", problems);
  if (!model || !train || !accelerate) return Error(std::move(problems));
  return read_merged({*model, *train, *accelerate}, files.main, data, options);
}

/// A Hugging Face model with the run that its trainer's files state.
struct TrainerFile {
  std::string path;
  std::optional<ConfigNode> root;
};
Result<Request> with_trainer_files(Request model, const TrainerFile& train, const TrainerFile& accelerate, const ReadOptions& options) {
  Findings findings;
  HfRunReader reader(options, findings);
  if (train.root) reader.any(*train.root, train.path);
  if (accelerate.root) reader.any(*accelerate.root, accelerate.path);
  reader.adapters_of(model.model);
  model.run = reader.finish();
  sort_by_place(findings.problems);
  if (!findings.problems.empty()) return Error(without_repeats(std::move(findings.problems)));
  sort_by_place(findings.notes);
  model.notes.insert(model.notes.end(), findings.notes.begin(), findings.notes.end());
  return model;
}

/// The run without a search config.
Result<Request> read_run(const RequestFiles& files, const DataStore& data, const ReadOptions& options) {
  if (is_three_files(files)) return read_three(files, data, options);
  if (files.train.empty() && files.accelerate.empty()) return read_request(files.main, files.format, data, options);
  const char* const option = files.train.empty() ? "--accelerate-yaml" : "--train-yaml";
  if (files.main.empty()) return make_error(Errc::missing_field, at_option("-y"), std::string("is missing: ") + option + " completes another file");
  // A model file of HyperParallel need not look like anything by itself; a model of Hugging Face does.
  const bool forced = !files.format.empty() && core::canonical_name(files.format) != "hf";
  std::error_code failure;
  if (!forced && !files.train.empty() && !files.accelerate.empty() && fs::is_regular_file(files.main, failure)) {
    const auto root = read_document(files.main);
    const Format* const seen = root && root->is_mapping() ? recognise(*root) : nullptr;
    if (root && root->is_mapping() && (seen == nullptr || seen->id == "hyper_v2")) return read_three(files, data, options);
  }
  auto base = read_request(files.main, files.format, data, options);
  if (!base) return base;
  if (base->format != "hf")
    return make_error(Errc::conflict, at_option(option), "completes a Hugging Face model, or HyperParallel's model file together with its other companion",
                      "-y is a file of format '" + base->format + "', which states its run itself");
  std::vector<Diagnostic> problems;
  TrainerFile train{files.train, {}}, accelerate{files.accelerate, {}};
  if (!files.train.empty()) train.root = read_companion(files.train, "--train-yaml", problems);
  if (!files.accelerate.empty()) accelerate.root = read_companion(files.accelerate, "--accelerate-yaml", problems);
  if (!problems.empty()) return Error(std::move(problems));
  return with_trainer_files(*std::move(base), train, accelerate, options);
}

Result<Request> read_with_search(const RequestFiles& files, const DataStore& data, const ReadOptions& options) {
  std::vector<Diagnostic> problems;
  const auto root = read_companion(files.search, "-s", problems);
  const std::string suffix = core::canonical_name(fs::path(files.search).extension().string());
  if (suffix != ".yaml" && suffix != ".yml")
    problems.push_back(make_diagnostic(Errc::unsupported, at_option("-s"), "a search config is a YAML file (.yaml, .yml), not '" + files.search + "'"));
  if (!problems.empty() || !root) return Error(std::move(problems));
  if (files.main.empty()) {
    auto out = read_search_config(*root, files.search, data, options);
    if (out && out->file.empty()) {
      out->format = "search";
      out->file = files.search;
    }
    return out;
  }
  if (const ConfigNode* const train = root->find("train_yaml"); train != nullptr && train->is_scalar()) {
    std::error_code failure;
    const fs::path beside = fs::path(files.search).parent_path() / train->text;
    const bool same = fs::equivalent(beside, files.main, failure) || fs::equivalent(train->text, files.main, failure);
    if (!same)
      return make_error(Errc::conflict, train->where, "names another file than -y " + files.main, "leave one of them out");
  }
  RequestFiles rest = files;
  rest.search.clear();
  auto base = read_run(rest, data, options);
  if (!base) return base;
  return read_search_config_over(*std::move(base), *root, data, options);
}

}  // namespace

Result<Request> read_documents(const Original& original, const DataStore& data, const ReadOptions& options) {
  const auto parsed = [](const std::string& text, const std::string& path) -> Result<ConfigNode> {
    if (path.empty()) return ConfigNode{};
    return parse_document(text, path);
  };
  const bool three = original.format == "hyperparallel2";
  const auto main = parsed(original.text, three ? original.file : std::string()), train = parsed(original.train_text, original.train_file),
             accelerate = parsed(original.accelerate_text, original.accelerate_file);
  for (const auto* const one : {&main, &train, &accelerate})
    if (!*one) return one->error();
  if (three) return read_merged({*main, *train, *accelerate}, original.file, data, options);
  auto base = read_request(original.file, original.format, data, options);
  if (!base) return base;
  const auto given = [](const std::string& path, const ConfigNode& root) { return TrainerFile{path, path.empty() ? std::nullopt : std::optional(root)}; };
  return with_trainer_files(*std::move(base), given(original.train_file, *train), given(original.accelerate_file, *accelerate), options);
}

}  // namespace formats

Result<Request> read_request(const RequestFiles& files, const DataStore& data, const ReadOptions& options) {
  return files.search.empty() ? formats::read_run(files, data, options) : formats::read_with_search(files, data, options);
}

}  // namespace nd
