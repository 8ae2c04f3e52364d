// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/reader.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "formats/megatron/known.hpp"
#include "formats/megatron/model.hpp"
#include "formats/megatron/run.hpp"
#include "formats/megatron/stages.hpp"
#include "formats/readers/reader.hpp"

namespace nd::formats {

namespace {

using megatron::Fields;

/// Sections that group the arguments in YAML files: those of Megatron's --yaml-cfg and of its test recipes.
constexpr std::array<std::string_view, 5> kSections{"MODEL_ARGS", "language_model", "model_parallel", "ARGS", "model_config"};

void add_members(const ConfigNode& section, ConfigNode& out) {
  constexpr std::size_t kMost = 5000;
  for (const auto& [key, value] : section.members) {
    if (out.members.size() >= kMost) return;
    std::string name = key.starts_with("--") ? key.substr(2) : key;
    std::replace(name.begin(), name.end(), '-', '_');
    if (out.find(name) == nullptr) out.members.emplace_back(std::move(name), value);
  }
}

/// A dump lists what nobody stated as well; no person writes 150 arguments.
bool is_complete(const ConfigNode& root) {
  constexpr std::size_t kWritten = 150;
  return root.members.size() > kWritten;
}

/// What is wrong with the model as a whole, without what was refused already.
void check_model(Fields& fields, const megatron::Model& model) {
  if (!fields.problems.empty()) return;
  for (auto& problem : model_problems(model.spec, fields.root(), model.places)) fields.problems.push_back(std::move(problem));
}

}  // namespace

ConfigNode megatron::flat(const ConfigNode& root) {
  ConfigNode out;
  out.kind = NodeKind::mapping;
  out.where = root.where;
  for (const auto name : kSections)
    if (const auto* const section = root.find(name); section != nullptr && section->is_mapping()) add_members(*section, out);
  add_members(root, out);
  std::erase_if(out.members, [](const auto& member) { return std::find(kSections.begin(), kSections.end(), member.first) != kSections.end(); });
  return out;
}

std::string megatron::place_of(const ConfigNode& root, std::string_view name) {
  std::string dashed = "--" + std::string(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  std::string section;
  for (const auto group : kSections) {
    const auto* const node = root.find(group);
    if (node == nullptr || !node->is_mapping()) continue;
    if (section.empty()) section = std::string(group) + ".";
    for (const std::string& key : {std::string(name), dashed})
      if (node->find(key) != nullptr) return std::string(group) + "." + key;
  }
  if (root.find(name) != nullptr) return std::string(name);
  if (root.find(dashed) != nullptr) return dashed;
  const bool dashes = section == "MODEL_ARGS.";
  return section + (dashes ? dashed : std::string(name));
}

Result<Request> read_megatron(const ConfigNode& root, const std::string& path, const DataStore&, const ReadOptions& options) {
  const ConfigNode arguments = megatron::flat(root);
  Fields fields(arguments);
  auto model = megatron::read_model(fields);
  Request out;
  megatron::read_stages(fields, model, out.run);
  megatron::read_run(fields, model, options.devices, out.run);
  megatron::report_unread(fields, is_complete(arguments));
  check_model(fields, model);
  if (!fields.problems.empty()) {
    sort_by_place(fields.problems);
    return Error(std::move(fields.problems));
  }
  out.model = std::move(model.spec);
  out.model.name = std::filesystem::path(path).stem().string();
  out.model.model_type = "megatron";
  sort_by_place(fields.notes);
  out.notes = std::move(fields.notes);
  return out;
}

}  // namespace nd::formats
