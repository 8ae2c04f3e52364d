// SPDX-License-Identifier: Apache-2.0
#include "formats/tree/node.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/text.hpp"
#include "formats/tree/text_check.hpp"

namespace nd::formats {

namespace {

std::string lower_suffix(const std::string& path) {
  return core::canonical_name(std::filesystem::path(path).extension().string());
}

Error cannot_read(const std::string& path, std::string why, std::string hint = {}) {
  return make_error(Errc::io, {path, 0, 0, {}}, std::move(why), std::move(hint));
}

/// A document whose name does not say what it is.
Result<ConfigNode> parse_by_content(std::string_view text, const std::string& file, const ParseLimits& limits) {
  const std::string_view start = core::trim(without_bom(text));
  if (!start.empty() && start.front() == '{') {
    auto json = parse_json(text, file, limits);
    if (json) return json;
    auto yaml = parse_yaml(text, file, limits);
    return yaml ? yaml : json;
  }
  auto yaml = parse_yaml(text, file, limits);
  if (yaml && yaml->is_mapping()) return yaml;
  auto toml = parse_toml(text, file, limits);
  return toml ? toml : yaml;
}

}  // namespace

ConfigNode::ConfigNode() = default;
ConfigNode::ConfigNode(const ConfigNode&) = default;
ConfigNode::ConfigNode(ConfigNode&&) noexcept = default;
ConfigNode& ConfigNode::operator=(const ConfigNode&) = default;
ConfigNode& ConfigNode::operator=(ConfigNode&&) noexcept = default;
ConfigNode::~ConfigNode() = default;

const ConfigNode* ConfigNode::find(std::string_view key) const {
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

SourceRef ConfigNode::key_where() const {
  SourceRef out = where;
  if (key_line > 0) {
    out.line = key_line;
    out.column = key_column;
  }
  return out;
}

Result<std::string> read_text_file(const std::string& path, const ParseLimits& limits) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return cannot_read(path, "no such file");
  if (error) return cannot_read(path, "cannot be read: " + error.message());
  if (fs::is_directory(status)) return cannot_read(path, "is a folder, not a file");
  if (!fs::is_regular_file(status)) return cannot_read(path, "is not a regular file");
  const auto size = fs::file_size(path, error);
  if (error) return cannot_read(path, "cannot be read: " + error.message());
  if (size > limits.max_bytes)
    return make_error(Errc::out_of_range, {path, 0, 0, {}},
                      "has " + std::to_string(size) + " bytes, more than the " + std::to_string(limits.max_bytes) + " that are read");
  std::ifstream in(path, std::ios::binary);
  if (!in) return cannot_read(path, "cannot be opened", "check its permissions");
  // One byte more than announced shows that the file grew meanwhile.
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto got = static_cast<std::size_t>(in.gcount());
  if (in.bad() || got > size) return cannot_read(path, "changed or failed while it was read");
  text.resize(got);
  if (auto problem = text_problem(text, path)) return Error(*std::move(problem));
  return text;
}

Result<ConfigNode> parse_document(std::string_view text, const std::string& path, const ParseLimits& limits) {
  const std::string suffix = lower_suffix(path);
  if (suffix == ".yaml" || suffix == ".yml") return parse_yaml(text, path, limits);
  if (suffix == ".json") return parse_json(text, path, limits);
  if (suffix == ".toml") return parse_toml(text, path, limits);
  return parse_by_content(text, path, limits);
}

Result<ConfigNode> read_document(const std::string& path, const ParseLimits& limits) {
  const auto text = read_text_file(path, limits);
  if (!text) return text.error();
  return parse_document(*text, path, limits);
}

}  // namespace nd::formats
