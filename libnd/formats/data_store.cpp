// SPDX-License-Identifier: Apache-2.0
#include "nd/data_store.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/text.hpp"
#include "formats/readers/device.hpp"
#include "formats/readers/framework.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"

namespace nd {
namespace {

namespace fs = std::filesystem;

/// Stems of the YAML files of a folder, sorted.
Result<std::vector<std::string>> stems(const std::string& folder) {
  std::error_code failure;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    if (it->path().extension() == ".yaml") names.push_back(it->path().stem().string());
  }
  if (failure) return make_error(Errc::io, {folder, 0, 0, ""}, "the folder cannot be read: " + failure.message(), "is the data folder complete?");
  std::sort(names.begin(), names.end());
  return names;
}

/// The `aliases` of a file without parsing the rest of it: looking a name up must not cost thirty documents.
std::vector<std::string> quick_aliases(const std::string& file) {
  const auto text = formats::read_text_file(file);
  if (!text) return {};
  const std::string& all = *text;
  std::size_t begin = all.starts_with("aliases:") ? 0 : all.find("\naliases:");
  if (begin == std::string::npos) return {};
  if (begin != 0) ++begin;
  std::size_t end = begin;
  do {  // the line and those that continue it
    end = all.find('\n', end);
    if (end == std::string::npos) end = all.size();
    else ++end;
  } while (end < all.size() && (all[end] == ' ' || all[end] == '-'));
  const auto node = formats::parse_yaml(std::string_view(all).substr(begin, end - begin), file);
  if (!node) return {};
  std::vector<Diagnostic> ignored;  // the full parse reports them
  formats::MapReader reader(*node, ignored);
  return reader.strings("aliases").value_or(std::vector<std::string>{});
}

bool same_name(std::string_view a, std::string_view b) { return core::canonical_name(a) == core::canonical_name(b); }

/// The file of a name or alias in a folder.
Result<std::string> find_file(const std::string& folder, std::string_view name, const char* what) {
  const auto names = stems(folder);
  if (!names) return names.error();
  for (const std::string& stem : *names) {
    if (same_name(stem, name)) return folder + "/" + stem + ".yaml";
  }
  std::vector<std::string> known = *names;
  for (const std::string& stem : *names) {
    const std::string file = folder + "/" + stem + ".yaml";
    for (std::string& alias : quick_aliases(file)) {
      if (same_name(alias, name)) return file;
      known.push_back(std::move(alias));
    }
  }
  const auto near = core::nearest_name(name, known);
  return make_error(Errc::out_of_range, {"", 0, 0, what}, std::string("unknown ") + what + " '" + std::string(name) + "'",
                    near ? "did you mean '" + *near + "'?" : core::name_hint(name, *names));
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

}  // namespace

Result<std::vector<std::string>> DataStore::device_names() const { return stems(root_ + "/devices"); }

Result<std::vector<std::string>> DataStore::framework_names() const { return stems(root_ + "/frameworks"); }

Result<DeviceType> DataStore::device(std::string_view name_or_path) const {
  std::string file(name_or_path);
  if (!is_path(name_or_path)) {
    auto found = find_file(root_ + "/devices", name_or_path, "device");
    if (!found) return found.error();
    file = *std::move(found);
  }
  return formats::read_document(file).and_then([](const formats::ConfigNode& root) { return formats::read_device(root); });
}

Result<FrameworkProfile> DataStore::framework(std::string_view name, std::string_view version,
                                              const std::vector<std::string>& features) const {
  std::string file(name);
  if (!is_path(name)) {
    auto found = find_file(root_ + "/frameworks", name, "framework");
    if (!found) return found.error();
    file = *std::move(found);
  }
  const auto root = formats::read_document(file);
  if (!root) return root.error();
  const auto read = formats::FrameworkFile::read(*root);
  if (!read) return read.error();
  return read->profile(version, features);
}

Result<std::string> find_data_folder(const std::string& stated, const std::string& program) {
  const auto is_data = [](const fs::path& folder) {
    std::error_code error;
    return fs::is_directory(folder / "devices", error);
  };
  if (!stated.empty()) {
    if (is_data(stated)) return stated;
    return make_error(Errc::io, {}, "'" + stated + "' has no folder devices", "the folder that holds devices/, frameworks/, arch/");
  }
  // An installed program, then a build folder inside the source tree (build/<preset>/bin, build/bin).
  if (!program.empty())
    for (const char* relative : {"../share/nd", "../../../data", "../../data"}) {
      const fs::path folder = (fs::path(program).parent_path() / relative).lexically_normal();
      if (is_data(folder)) return folder.string();
    }
  return make_error(Errc::io, {}, "the data folder is not beside the program", "name it with --data-dir DIR");
}

}  // namespace nd
