// SPDX-License-Identifier: Apache-2.0
#include "pages.hpp"

namespace run_nd {

std::string_view group_title(Group group) {
  constexpr std::array<std::string_view, kGroups.size()> kTitles{"What is asked", "What may vary", "The answer", "Files and output", "The program"};
  return kTitles[static_cast<std::size_t>(group)];
}

std::vector<const OptionRow*> rows_of(Group group) {
  std::vector<const OptionRow*> out;
  for (const auto& row : option_table())
    if (row.available() && !row.hidden && row.group == group) out.push_back(&row);
  return out;
}

std::vector<const OptionRow*> refused_rows() {
  std::vector<const OptionRow*> out;
  for (const auto& row : option_table())
    if (!row.available() && !row.hidden) out.push_back(&row);
  return out;
}

std::string sentence(const OptionRow& row) {
  std::string out(row.help);
  if (!row.preset.empty()) out += " [" + std::string(row.preset) + "]";
  return out;
}

std::vector<Usage> usages() {
  return {{"run_nd -y train.yaml -d 64 -A A3", "search the strategies for a run on 64 devices"},
          {"run_nd -y llama-3.1-8b -d 64 --set tp=1,2 --json -", "a model preset, a condition, a document for programs"},
          {"run_nd -y train.yaml --explain file", "price the strategy that the file itself states"},
          {"run_nd -y train.yaml -d 64 --what-if devices=128 --what-if seq=16384", "what changes when one thing changes"},
          {"run_nd -y train.yaml -d 64..4096 --tokens 15T --deadline-days 60", "the smallest cluster that is fast enough"},
          {"run_nd merge PART...", "finish a search that --shard split over machines"},
          {"run_nd devices", "lists: devices, models, frameworks, formats, dimensions, schedules"}};
}

std::vector<Usage> exit_statuses() {
  return {{"0", "done"},
          {"1", "nothing fits"},
          {"2", "the command line is wrong"},
          {"3", "an input file is wrong"},
          {"4", "an output could not be written"},
          {"70", "a bug of run_nd"}};
}

std::optional<std::string> generated_page(std::string_view kind) {
  struct Page {
    std::string_view kind;
    std::string (*text)();
  };
  constexpr std::array<Page, kPageKinds.size()> kPages{
      {{"markdown", help_markdown}, {"man", man_page}, {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};
  for (const auto& page : kPages)
    if (page.kind == kind) return page.text();
  return std::nullopt;
}

}  // namespace run_nd
