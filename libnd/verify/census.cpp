// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"
#include "nd/verify.hpp"

namespace nd {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28U, kMostNodes = 6'000'000;
constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

}  // namespace

Result<TensorCensus> read_census(const std::string& path) {
  formats::ParseLimits limits;
  limits.max_bytes = kMostBytes;
  limits.max_nodes = kMostNodes;
  const auto text = formats::read_text_file(path, limits);
  if (!text) return text.error();
  const auto root = formats::parse_json(*text, path, limits);
  if (!root) return root.error();
  std::vector<Diagnostic> problems;
  formats::MapReader reader(*root, problems);
  TensorCensus out;
  out.source = path;
  const auto schema = reader.string("schema");
  if (schema && *schema != "nd/census/1") reader.error("schema", Errc::unsupported, "'" + *schema + "' is not nd/census/1");
  reader.require("schema", "a census");
  (void)reader.string("source");
  const auto* tensors = reader.child("tensors");
  reader.require("tensors", "a census");
  if (tensors != nullptr && tensors->is_mapping()) {
    for (const auto& [name, node] : tensors->members) {
      formats::MapReader tensor(node, problems);
      CensusTensor one;
      one.dtype = tensor.string("dtype").value_or("");
      one.shape = tensor.integers("shape").value_or(std::vector<std::int64_t>{});
      tensor.require("shape", "a tensor");
      tensor.finish();
      std::int64_t elements = 1;
      for (const std::int64_t dimension : one.shape) {
        if (dimension < 0 || (dimension > 0 && elements > kMostElements / dimension)) {
          tensor.error("shape", Errc::out_of_range, "is no shape of a tensor");
          elements = 0;
          break;
        }
        elements *= dimension;
      }
      out.tensors.emplace(name, std::move(one));
    }
  } else if (tensors != nullptr) {
    reader.error("tensors", Errc::wrong_type, "must map names to {dtype, shape}");
  }
  reader.finish();
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

std::string census_json(const TensorCensus& census) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  for (const auto& [name, tensor] : census.tensors) tensors[name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
  const nlohmann::ordered_json document{{"schema", "nd/census/1"}, {"source", census.source}, {"tensors", std::move(tensors)}};
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace nd
