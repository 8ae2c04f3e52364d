// SPDX-License-Identifier: Apache-2.0
// The safetensors format: https://huggingface.co/docs/safetensors (8 bytes length, JSON header, one buffer without holes).
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <tuple>

#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/verify.hpp"

namespace nd {

namespace {

namespace fs = std::filesystem;
using formats::ConfigNode;

constexpr std::uint64_t kLongestHeader = 100'000'000;  // bytes; the limit of the reference implementation
constexpr std::size_t kMostNodes = 6'000'000;          // a hundred thousand tensors have about nine each, with room
constexpr int kDeepest = 6;                            // name -> shape -> dimension
constexpr std::size_t kMostDimensions = 16;
constexpr std::size_t kMostProblems = 50;

struct ElementType {
  std::string_view name;
  std::uint64_t bits;
};
constexpr std::array<ElementType, 19> kTypes{{{"F64", 64}, {"F32", 32}, {"F16", 16}, {"BF16", 16}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
                                              {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4}, {"I64", 64}, {"I32", 32}, {"I16", 16}, {"I8", 8},
                                              {"U64", 64}, {"U32", 32}, {"U16", 16}, {"U8", 8}, {"BOOL", 8}}};

std::optional<std::uint64_t> bits_of(std::string_view type) {
  for (const ElementType& entry : kTypes)
    if (entry.name == type) return entry.bits;
  return std::nullopt;
}

/// Product of the shape; nullopt when it does not fit.
std::optional<std::uint64_t> product(const std::vector<std::int64_t>& shape) {
  std::uint64_t out = 1;
  for (const std::int64_t dimension : shape) {
    const auto factor = static_cast<std::uint64_t>(dimension);
    if (factor != 0 && out > (std::uint64_t{1} << 56U) / factor) return std::nullopt;
    out *= factor;
  }
  return out;
}

struct Span {
  std::uint64_t begin = 0, end = 0;
  std::string name;
};

class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::vector<Diagnostic>& problems) : path_(path), problems_(problems) {}

  void read(TensorCensus& census) {
    std::string header;
    if (!load(header)) return;
    formats::ParseLimits limits;
    limits.max_bytes = kLongestHeader;
    limits.max_nodes = kMostNodes;
    limits.max_depth = kDeepest;
    const auto root = formats::parse_json(header, path_, limits);
    if (!root) {
      problems_.insert(problems_.end(), root.error().diagnostics.begin(), root.error().diagnostics.end());
      return;
    }
    if (!root->is_mapping()) return refuse(Errc::wrong_type, "", "the header is no JSON object");
    for (const auto& [name, node] : root->members) {
      if (name == "__metadata__") continue;
      read_tensor(name, node, census);
      if (problems_.size() > kMostProblems) return;
    }
    check_buffer();
  }

 private:
  void refuse(Errc code, const std::string& tensor, std::string message) { problems_.push_back(make_diagnostic(code, {path_, 0, 0, tensor}, std::move(message))); }

  bool load(std::string& header) {
    std::error_code error;
    const std::uint64_t size = fs::file_size(path_, error);
    std::ifstream in(path_, std::ios::binary);
    if (error || !in) {
      refuse(Errc::io, "", "cannot be read");
      return false;
    }
    std::array<unsigned char, 8> raw{};
    if (size < raw.size() || !in.read(reinterpret_cast<char*>(raw.data()), static_cast<std::streamsize>(raw.size()))) {
      refuse(Errc::syntax, "", "too short for a safetensors file");
      return false;
    }
    std::uint64_t length = 0;
    for (std::size_t i = raw.size(); i-- > 0;) length = (length << 8U) | raw[i];
    if (length > kLongestHeader || length > size - raw.size()) {
      refuse(Errc::out_of_range, "", "the header claims " + std::to_string(length) + " bytes, the file has " + std::to_string(size) + " and a header at most " +
                                         std::to_string(kLongestHeader));
      return false;
    }
    buffer_size_ = size - raw.size() - length;
    header.resize(length);
    if (!in.read(header.data(), static_cast<std::streamsize>(length))) {
      refuse(Errc::io, "", "the header cannot be read");
      return false;
    }
    // Writers pad with spaces so that the buffer is aligned.
    header.erase(header.find_last_not_of(' ') + 1);
    return true;
  }

  static std::optional<std::vector<std::int64_t>> counts(const ConfigNode* node, std::size_t most) {
    if (node == nullptr || !node->is_sequence() || node->items.size() > most) return std::nullopt;
    std::vector<std::int64_t> out;
    for (const ConfigNode& item : node->items) {
      const auto value = formats::as_integer(item);
      if (!value || *value < 0) return std::nullopt;
      out.push_back(*value);
    }
    return out;
  }

  void read_tensor(const std::string& name, const ConfigNode& node, TensorCensus& census) {
    if (!node.is_mapping()) return refuse(Errc::wrong_type, name, "is no object of dtype, shape and data_offsets");
    const ConfigNode* type = node.find("dtype");
    const auto shape = counts(node.find("shape"), kMostDimensions);
    const auto offsets = counts(node.find("data_offsets"), 2);
    if (type == nullptr || !type->is_scalar()) return refuse(Errc::missing_field, name, "has no dtype");
    if (!shape) return refuse(Errc::wrong_type, name, "its shape is no list of counts");
    if (!offsets || offsets->size() != 2) return refuse(Errc::wrong_type, name, "its data_offsets are no pair of counts");
    const auto bits = bits_of(type->text);
    if (!bits) return refuse(Errc::out_of_range, name, "unknown dtype '" + type->text.substr(0, 20) + "'");
    const auto elements = product(*shape);
    if (!elements) return refuse(Errc::out_of_range, name, "its shape has more elements than memory can hold");
    const auto begin = static_cast<std::uint64_t>((*offsets)[0]), end = static_cast<std::uint64_t>((*offsets)[1]);
    if (end < begin || end > buffer_size_) return refuse(Errc::out_of_range, name, "its data_offsets are outside the buffer of " + std::to_string(buffer_size_) + " bytes");
    if ((*elements * *bits) % 8 != 0 || *elements * *bits / 8 != end - begin)
      return refuse(Errc::conflict, name, "shape and dtype take " + std::to_string(*elements * *bits / 8) + " bytes, the data_offsets span " + std::to_string(end - begin));
    spans_.push_back({begin, end, name});
    const auto [at, added] = census.tensors.emplace(name, CensusTensor{type->text, *shape, fs::path(path_).filename().string()});
    if (!added) refuse(Errc::duplicate_key, name, "is in " + at->second.file + " as well");
  }

  void check_buffer() {
    std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    std::uint64_t at = 0;
    for (const Span& span : spans_) {
      if (span.begin < at) return refuse(Errc::conflict, span.name, "its data overlaps the tensor before it");
      if (span.begin > at) return refuse(Errc::conflict, span.name, "a hole of " + std::to_string(span.begin - at) + " bytes before its data");
      at = span.end;
    }
    if (problems_.empty() && at != buffer_size_) refuse(Errc::conflict, "", std::to_string(buffer_size_ - at) + " bytes behind the last tensor belong to none");
  }

  const std::string& path_;
  std::vector<Diagnostic>& problems_;
  std::uint64_t buffer_size_ = 0;
  std::vector<Span> spans_;
};

/// The index against what the files hold.
void check_index(const fs::path& path, const TensorCensus& census, std::vector<Diagnostic>& problems) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  formats::ParseLimits limits;
  limits.max_nodes = kMostNodes;
  const auto text = formats::read_text_file(path.string(), limits);
  const auto root = text ? formats::parse_json(*text, path.string(), limits) : Result<ConfigNode>(text.error());
  if (!root) {
    problems.insert(problems.end(), root.error().diagnostics.begin(), root.error().diagnostics.end());
    return;
  }
  const ConfigNode* map = root->find("weight_map");
  const auto refuse = [&](const std::string& tensor, std::string message) {
    if (problems.size() < kMostProblems) problems.push_back(make_diagnostic(Errc::conflict, {path.string(), 0, 0, tensor}, std::move(message)));
  };
  if (map == nullptr || !map->is_mapping()) return refuse("weight_map", "is missing");
  std::set<std::string_view> indexed;
  for (const auto& [name, file] : map->members) {
    indexed.insert(name);
    const auto found = census.tensors.find(name);
    if (found == census.tensors.end()) refuse(name, "is in no file; the index says " + file.text);
    else if (found->second.file != file.text) refuse(name, "is in " + found->second.file + ", the index says " + file.text);
  }
  for (const auto& [name, tensor] : census.tensors)
    if (indexed.count(name) == 0) refuse(name, "is in " + tensor.file + " but not in the index");
}

}  // namespace

std::int64_t CensusTensor::elements() const {
  std::int64_t out = 1;
  for (const std::int64_t dimension : shape) out *= dimension;
  return out;
}

Result<TensorCensus> read_safetensors_header(const std::string& path) {
  std::vector<Diagnostic> problems;
  TensorCensus out;
  out.source = path;
  HeaderReader(path, problems).read(out);
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

Result<TensorCensus> read_checkpoint(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors") files.push_back(it->path().string());
  if (error) return make_error(Errc::io, {folder, 0, 0, {}}, "cannot be read: " + error.message());
  std::sort(files.begin(), files.end());
  if (files.empty())
    return make_error(Errc::io, {folder, 0, 0, {}}, "no *.safetensors in the folder", "a checkpoint folder of Hugging Face, or --census FILE.json");
  std::vector<Diagnostic> problems;
  TensorCensus out;
  out.source = folder;
  for (const std::string& file : files) HeaderReader(file, problems).read(out);
  if (problems.empty()) check_index(fs::path(folder) / "model.safetensors.index.json", out, problems);
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

}  // namespace nd
