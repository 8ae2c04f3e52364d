// SPDX-License-Identifier: Apache-2.0
// libFuzzer target of every reader: --format=ID chooses the row of the format table, --formats lists them. The input is the text of a
// document; what is read is resolved as the program would. Anything but a value or a reason is a finding.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/megatron/document.hpp"
#include "formats/readers/hyperparallel2.hpp"
#include "formats/readers/reader.hpp"
#include "formats/registry.hpp"
#include "nd/data_store.hpp"
#include "nd/formats.hpp"
#include "nd/run_spec.hpp"

namespace {

std::string& format() {
  static std::string id = "megatron";
  return id;
}

std::string& suffix() {
  static std::string text = ".sh";
  return text;
}

const nd::DataStore& data() {
  static const nd::DataStore store(ND_TEST_DATA_DIR);
  return store;
}

/// Profiles read from the disk would be most of the time: one of each trainer is kept.
const nd::FrameworkProfile& profile() {
  static const nd::FrameworkProfile kept = *data().framework("megatron-core", "", {});
  return kept;
}

/// The three-file form: model, train and accelerate file one after the other, a line "---" between them.
nd::Result<nd::Request> read_three(const std::string& text) {
  constexpr std::string_view kBetween = "\n---\n";
  const std::size_t first = text.find(kBetween), second = first == std::string::npos ? first : text.find(kBetween, first + 1);
  const auto part = [&](std::size_t from, std::size_t to) {
    return from == std::string::npos ? std::string("{}") : text.substr(from, to == std::string::npos ? to : to - from);
  };
  const auto behind = [&](std::size_t at) { return at == std::string::npos ? at : at + kBetween.size(); };
  std::vector<nd::formats::ConfigNode> roots;
  for (const auto& one : {part(0, first), part(behind(first), second), part(behind(second), std::string::npos)}) {
    auto document = nd::formats::read_any(one, "fuzz" + suffix());
    if (!document) return document.error();
    roots.push_back(std::move(document->root));
  }
  std::vector<nd::Diagnostic> notes;
  const auto merged = nd::formats::merge_three_files({roots[0], roots[1], roots[2]}, notes);
  if (!merged) return merged.error();
  return nd::formats::read_hyper_v2(*merged, "fuzz" + suffix(), data(), {});
}

nd::Result<nd::Request> read(const std::string& text) {
  if (format() == "hyperparallel2") return read_three(text);
  return nd::formats::read_text(text, "fuzz" + suffix(), data(), {format(), {}});
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  bool list = false;
  for (int i = 1; i < *count; ++i) {
    const std::string_view word = (*words)[i];
    if (word.starts_with("--format=")) format() = word.substr(9);
    if (word.starts_with("--suffix=")) suffix() = word.substr(9);
    if (word == "--formats") list = true;
  }
  for (const auto& row : nd::format_list()) {
    if (list) std::printf("%s %s\n", std::string(row.id).c_str(), std::string(row.suffixes).c_str());
  }
  if (list) std::exit(0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  const auto request = read(text);
  if (!request) {
    if (request.error().diagnostics.empty()) std::abort();
    return 0;
  }
  const auto model = nd::resolve_model(request->model);
  if (!model) return 0;
  const auto run = nd::resolve_run(request->run, *model, profile());
  if (!run && run.error().diagnostics.empty()) std::abort();
  return 0;
}
