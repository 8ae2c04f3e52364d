// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <utility>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/readers/hf_run.hpp"
#include "formats/readers/reader.hpp"
#include "formats/tree/scalar.hpp"

namespace nd::formats {
namespace {

Result<Request> finished(HfRunReader& reader, Findings& findings) {
  Request out;
  out.run = reader.finish();
  sort_by_place(findings.problems);
  if (!findings.problems.empty()) return Error(without_repeats(std::move(findings.problems)));
  sort_by_place(findings.notes);
  out.notes = std::move(findings.notes);
  return out;
}

/// The model of `model_name_or_path`: a folder beside the file, or a preset of that name ("meta-llama/Llama-3.1-8B" is
/// llama-3.1-8b). What is neither is noted and left open.
void named_model(const ConfigNode& root, const std::string& path, const DataStore& data, Request& out) {
  const ConfigNode* const named = find_path(root, "model_name_or_path");
  if (named == nullptr || !named->is_scalar()) return;
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path() / named->text;
  if (std::filesystem::exists(folder / "config.json", failure)) {
    if (auto model = read_request((folder / "config.json").lexically_normal().string(), "hf", data)) {
      out.model = std::move(model->model);
      out.notes.insert(out.notes.end(), model->notes.begin(), model->notes.end());
      return;
    }
  }
  if (auto preset = data.model(std::filesystem::path(named->text).filename().string())) {
    out.model = *std::move(preset);
    return;
  }
  Diagnostic note = make_diagnostic(Errc::io, named->where, "'" + named->text.substr(0, 120) + "' is neither a folder here nor a model preset", "-m NAME or a path");
  note.severity = Severity::note;
  out.notes.push_back(std::move(note));
}

}  // namespace

Result<Request> read_deepspeed(const ConfigNode& root, const std::string&, const DataStore&, const ReadOptions& options) {
  Findings findings;
  HfRunReader reader(options, findings);
  reader.deepspeed(root);
  return finished(reader, findings);
}

Result<Request> read_accelerate(const ConfigNode& root, const std::string& path, const DataStore&, const ReadOptions& options) {
  Findings findings;
  HfRunReader reader(options, findings);
  reader.accelerate(root, path);
  return finished(reader, findings);
}

Result<Request> read_hf_trainer(const ConfigNode& root, const std::string& path, const DataStore& data, const ReadOptions& options) {
  Findings findings;
  HfRunReader reader(options, findings);
  reader.trainer(root, path);
  Request named;
  named_model(root, path, data, named);
  reader.adapters_of(named.model);
  auto out = finished(reader, findings);
  if (!out) return out;
  out->model = std::move(named.model);
  out->notes.insert(out->notes.end(), named.notes.begin(), named.notes.end());
  return out;
}

}  // namespace nd::formats
