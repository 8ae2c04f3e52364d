// SPDX-License-Identifier: Apache-2.0
// libFuzzer target of every reader: --format=ID chooses the row of the format table, --formats lists them. The input is the text of a
// document; what is read is resolved as the program would. Anything but a value or a reason is a finding.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

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
  const auto request = nd::formats::read_text(text, "fuzz" + suffix(), data(), {format(), {}});
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
