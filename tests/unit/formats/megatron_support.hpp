// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "formats/registry.hpp"
#include "nd/formats.hpp"
#include "nd/ops.hpp"

namespace nd::testing {

using Counts = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

inline const DataStore& data() {
  static const DataStore kData(ND_TEST_DATA_DIR);
  return kData;
}

inline std::string example(const std::string& name) { return std::string(ND_TEST_DATA_DIR) + "/examples/" + name; }

/// Every problem as a line, the file without its folder.
inline Texts problems(const Result<Request>& result) {
  Texts out;
  if (result) return out;
  for (Diagnostic one : result.error().diagnostics) {
    one.where.file = one.where.file.substr(one.where.file.rfind('/') + 1);
    out.push_back(to_text(one));
  }
  return out;
}

inline Result<Request> read(const std::string& text, const std::string& file = "run.sh", ReadOptions options = {}) {
  return formats::read_text(text, file, data(), {"", options});
}

/// Fails the test with the reasons when the text is refused.
inline Request read_good(const std::string& text, const std::string& file = "run.sh", ReadOptions options = {}) {
  const auto request = read(text, file, options);
  for (const auto& line : problems(request)) UNSCOPED_INFO(line);
  REQUIRE(request);
  return *request;
}

inline Request read_example(const std::string& name) {
  const auto request = read_request(example(name), "", data());
  for (const auto& line : problems(request)) UNSCOPED_INFO(line);
  REQUIRE(request);
  return *request;
}

inline std::int64_t parameters(const ModelSpec& spec) {
  const auto model = resolve_model(spec);
  REQUIRE(model);
  return count_parameters(*model).total;
}

/// Whether a warning or note has this part.
inline bool says(const Request& request, const std::string& part) {
  for (const auto& note : request.notes)
    if (to_text(note).find(part) != std::string::npos) return true;
  return false;
}
inline bool warns(const Request& request, const std::string& part) {
  for (const auto& note : request.notes)
    if (note.severity == Severity::warning && to_text(note).find(part) != std::string::npos) return true;
  return false;
}

/// A small complete argument list.
inline const char* const kSmall =
    "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1 --padded-vocab-size 1024 "
    "--bf16 --attention-dropout 0 --hidden-dropout 0 ";
/// A launch of 16 devices with the small list and more.
inline std::string launch(const std::string& more) {
  return "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py " + std::string(kSmall) + more + "\n";
}

}  // namespace nd::testing
