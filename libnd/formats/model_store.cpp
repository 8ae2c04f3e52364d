// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/text.hpp"
#include "formats/family.hpp"
#include "formats/model_fields.hpp"
#include "formats/readers/reader.hpp"
#include "nd/data_store.hpp"

namespace nd {

namespace fs = std::filesystem;

Result<std::vector<std::string>> DataStore::model_names() const {
  const std::string folder = root_ + "/models";
  std::error_code failure;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    std::error_code missing;
    if (fs::exists(it->path() / "config.json", missing)) names.push_back(it->path().filename().string());
  }
  if (failure) return make_error(Errc::io, {folder, 0, 0, ""}, "the folder cannot be read: " + failure.message(), "is the data folder complete?");
  std::sort(names.begin(), names.end());
  return names;
}

Result<ModelSpec> DataStore::model(std::string_view name) const {
  const auto names = model_names();
  if (!names) return names.error();
  const std::string wanted = core::canonical_name(name);
  for (const std::string& known : *names) {
    if (core::canonical_name(known) != wanted) continue;
    const std::string file = root_ + "/models/" + known + "/config.json";
    return formats::read_document(file)
        .and_then([&](const formats::ConfigNode& root) { return formats::read_hf(root, file, *this); })
        .transform([](const Request& request) { return request.model; });
  }
  return make_error(Errc::out_of_range, {"", 0, 0, "model"}, "unknown model '" + std::string(name) + "'", core::name_hint(name, *names));
}

Result<ModelSpec> DataStore::with_family_defaults(ModelSpec spec, std::vector<Diagnostic>& notes) const {
  const auto family = formats::find_family(root_ + "/arch", spec.model_type);
  if (!family) return family.error();
  if (!formats::lists(*family, spec.model_type)) {
    Diagnostic note = make_diagnostic(Errc::out_of_range, {"", 0, 0, "model_type"},
                                      spec.model_type.empty() ? std::string("no model_type is stated; the default family's facts are assumed")
                                                              : "model_type '" + spec.model_type + "' is in no family; the default family's facts are assumed",
                                      "biases, norms and gates are those of a Llama-like decoder");
    note.severity = Severity::note;
    notes.push_back(std::move(note));
  }
  formats::merge_model_fields(spec, family->defaults, formats::Precedence::fill_open);
  return spec;
}

}  // namespace nd
