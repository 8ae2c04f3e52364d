// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <tuple>
#include <utility>

#include "formats/registry.hpp"
#include "formats/tree/scalar.hpp"
#include "formats/write/writers.hpp"

namespace nd::formats {
namespace {

std::string with_line_end(const std::string& text) { return text.empty() || text.back() == '\n' ? text : text + "\n"; }

/// Takes the text before a line that stands between two files.
std::string take_part(std::string& rest, const std::string& line) {
  const std::size_t at = rest.find(line);
  const std::string out = rest.substr(0, at);
  rest = at == std::string::npos ? std::string() : rest.substr(at + line.size());
  return out;
}

/// One companion, by what it looks like.
Result<ResolvedFile> write_one(const std::string& kind, const std::string& file, const std::string& text, const ResolvedStrategy& strategy) {
  const auto document = parse_document(text, file);
  if (!document) return document.error();
  const Format* const seen = recognise(*document);
  if (seen == nullptr || seen->write == nullptr || (seen->id != "hf_trainer" && seen->id != "accelerate" && seen->id != "deepspeed"))
    return make_error(Errc::unsupported, {file, 0, 0, {}}, "is no file a strategy is written into", "training arguments, an Accelerate YAML, a DeepSpeed JSON");
  auto written = seen->write({std::string(seen->id), file, text}, strategy);
  if (!written) return written.error();
  return ResolvedFile{"." + kind + suffix_of(file), std::move(written->front().text)};
}

}  // namespace

// The three files are one document in three places: they are edited as one, a line between them, and taken apart again. What two of them
// state cannot be edited so, and the editor's parser says it.
Result<std::vector<ResolvedFile>> write_hyperparallel2(const Original& original, const ResolvedStrategy& strategy) {
  const std::string first = "# nd: the train file begins here\n", second = "# nd: the accelerate file begins here\n";
  const Original all{"hyper_v2", original.file,
                     with_line_end(original.text) + first + with_line_end(original.train_text) + second + with_line_end(original.accelerate_text)};
  auto written = write_hyper_v2(all, strategy);
  if (!written) return written;
  std::string rest = std::move(written->front().text);
  std::vector<ResolvedFile> out;
  out.push_back({suffix_of(original.file), take_part(rest, first)});
  out.push_back({".train" + suffix_of(original.train_file), take_part(rest, second)});
  out.push_back({".accelerate" + suffix_of(original.accelerate_file), rest});
  return out;
}

Result<std::vector<ResolvedFile>> write_trainer_files(const Original& original, const ResolvedStrategy& strategy) {
  std::vector<ResolvedFile> out;
  // The trainer refuses its own checkpointing beside that of the FSDP plugin: where the launcher's file has the switch, it is the one.
  ResolvedStrategy arguments = strategy;
  if (!original.accelerate_file.empty()) {
    const auto launcher = parse_document(original.accelerate_text, original.accelerate_file);
    if (!launcher) return launcher.error();
    const ConfigNode* const plugin = launcher->find("fsdp_config");
    if (plugin != nullptr && plugin->find("fsdp_activation_checkpointing") != nullptr) arguments.config.recompute = Recompute::off;
  }
  for (const auto& [kind, file, text] : {std::tuple{"train", &original.train_file, &original.train_text}, std::tuple{"accelerate", &original.accelerate_file, &original.accelerate_text}}) {
    if (file->empty()) continue;
    auto one = write_one(kind, *file, *text, file == &original.train_file ? arguments : strategy);
    if (!one) return one.error();
    out.push_back(*std::move(one));
  }
  return out;
}

}  // namespace nd::formats
