// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/writer.hpp"

#include "formats/megatron/document.hpp"
#include "formats/megatron/plan.hpp"
#include "formats/megatron/reader.hpp"
#include "formats/megatron/script_editor.hpp"

namespace nd::formats {

namespace {

std::string suffix_of(const std::string& file) {
  const auto dot = file.rfind('.');
  return dot == std::string::npos || file.find('/', dot) != std::string::npos ? std::string() : file.substr(dot);
}

}  // namespace

Result<std::vector<ResolvedFile>> write_megatron(const Original& original, const ResolvedStrategy& strategy) {
  const auto document = read_any(original.text, original.file);
  if (!document) return document.error();
  const ConfigNode arguments = megatron::flat(document->root);
  const auto changes = megatron::plan_changes(arguments, strategy);
  if (!is_script(original.text, original.file))
    return make_error(Errc::unsupported, {original.file, 0, 0, {}}, "only scripts and argument lists are written back");
  const auto text = megatron::edit_script(original.text, original.file, changes, strategy.devices);
  if (!text) return text.error();
  const std::string suffix = suffix_of(original.file);
  std::vector<ResolvedFile> out{{suffix, *text}};
  if (suffix != ".args") out.push_back({".args", megatron::argument_list(megatron::with_changes(arguments, changes))});
  return out;
}

}  // namespace nd::formats
