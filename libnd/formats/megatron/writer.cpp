// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/writer.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "formats/megatron/document.hpp"
#include "formats/megatron/plan.hpp"
#include "formats/megatron/reader.hpp"
#include "formats/megatron/script_editor.hpp"
#include "formats/write/config_editor.hpp"

namespace nd::formats {

namespace {

using megatron::Change;

/// The value of a change as a document's own: numbers and switches have types there.
WrittenValue typed(const std::string& value) {
  if (value.empty()) return true;
  if (const auto number = core::parse_integer(value)) return *number;
  return value;
}

/// Changes of a mapping of names, wherever its file keeps them.
Result<std::string> edit_tree(const Original& original, const std::vector<Change>& changes, const ConfigNode& root) {
  auto editor = ConfigEditor::open(original.text, original.file, syntax_of(original.file));
  if (!editor) return editor.error();
  for (const auto& change : changes) {
    const std::string path = megatron::place_of(root, change.name);
    if (change.value) editor->set(path, typed(*change.value));
    else editor->remove(path);
  }
  return editor->finish();
}

/// One count for every stage and chunk, which the file can say as one number.
bool same_everywhere(const std::vector<std::vector<std::int64_t>>& chunks) {
  const std::int64_t first = chunks.front().front();
  return std::all_of(chunks.begin(), chunks.end(), [first](const auto& chunk) {
    return std::all_of(chunk.begin(), chunk.end(), [first](std::int64_t count) { return count == first; });
  });
}

}  // namespace

Result<std::vector<ResolvedFile>> write_megatron(const Original& original, const ResolvedStrategy& strategy) {
  const auto document = read_any(original.text, original.file);
  if (!document) return document.error();
  const ConfigNode arguments = megatron::flat(document->root);
  const auto changes = megatron::plan_changes(arguments, strategy);
  Result<std::string> text = make_error(Errc::unsupported, {original.file, 0, 0, {}}, "a printed table or a list of words is nothing that a trainer reads",
                                        "the argument list is");
  const bool script = is_script(original.text, original.file);
  const auto tree = parse_document(original.text, original.file);
  if (script) text = megatron::edit_script(original.text, original.file, changes, strategy.devices);
  else if (tree && tree->is_mapping()) text = edit_tree(original, changes, document->root);
  if (!text) return text.error();
  const std::string suffix = suffix_of(original.file);
  std::vector<ResolvedFile> out{{suffix, *text}};
  if (suffix != ".args") out.push_back({".args", megatron::argument_list(megatron::with_changes(arguments, changes))});
  return out;
}

Result<std::vector<ResolvedFile>> write_mindspeed(const Original& original, const ResolvedStrategy& strategy) {
  auto editor = ConfigEditor::open(original.text, original.file, Syntax::json);
  if (!editor) return editor.error();
  const auto& c = strategy.config;
  const std::string module = main_module_path(editor->root());
  const auto degree = [&](const char* key, const char* of_module, std::int64_t value) {
    const std::string path = std::string("tmp.") + key;
    // 0 and nothing are how the file says 1.
    const bool stated = editor->find(path) != nullptr;
    if (stated || value > 1) editor->set(path, value);
    if (*of_module != '\0' && editor->find(module + "." + of_module) != nullptr) editor->set(module + "." + of_module, value);
  };
  degree("dp", "", c.dp);
  degree("tp", "tensor_model_parallel_size", c.tp);
  degree("pp", "pipeline_model_parallel_size", c.pp);
  degree("cp", "", c.cp);
  if (strategy.has_experts) {
    degree("ep", "expert_model_parallel_size", c.ep);
    degree("etp", "", c.etp);
  }
  degree("vpp", "", c.vpp);
  degree("mbs", "", c.micro_batch_size);
  editor->set("tmp.seqlen", strategy.seq_length);
  if (c.tp > 1) editor->set(module + ".sequence_parallel", c.sequence_parallel);
  const auto lists = [&](const std::string& key, const std::vector<std::vector<std::int64_t>>& chunks, bool alike) {
    if (alike) editor->set(key, chunks.front().front());
    else if (chunks.size() == 1) editor->set(key, chunks.front());
    else editor->set(key, chunks);
  };
  const std::string layers = module + ".pipeline_num_layers", recomputed = module + ".recompute_num_layers";
  // The even split is the trainer's own: it need not be stated.
  if (!strategy.even || editor->find(layers) != nullptr) lists(layers, strategy.layers_per_chunk, false);
  if (c.recompute == Recompute::full) lists(recomputed, strategy.full_recompute, same_everywhere(strategy.full_recompute));
  else if (editor->find(recomputed) != nullptr) editor->set(recomputed, std::int64_t{0});
  const auto text = editor->finish();
  if (!text) return text.error();
  return std::vector<ResolvedFile>{{suffix_of(original.file), *text}};
}

}  // namespace nd::formats
