// SPDX-License-Identifier: Apache-2.0
#include "verify/expected.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/text.hpp"
#include "verify/names.hpp"

namespace nd {

namespace verify {

namespace {

constexpr std::string_view kTable = "embed_tokens.weight", kHead = "lm_head.weight";

constexpr std::array<std::string_view, 6> kScales{"_scale_inv", ".weight_scale", "_scales", ".input_scale", ".k_scale", ".v_scale"};
constexpr std::array<std::string_view, 2> kBuffers{"rotary_emb.inv_freq", "attn.masked_bias"};
constexpr std::array<std::string_view, 6> kVision{"vision_tower.", "vision_model.", "visual.", "multi_modal_projector.", "vision_encoder.", "mm_projector."};

}  // namespace

Sorted sort_census(const TensorCensus& census) {
  Sorted out;
  const auto ends = [](std::string_view name, const auto& list) { return std::any_of(list.begin(), list.end(), [&](std::string_view end) { return name.ends_with(end); }); };
  for (const auto& [name, tensor] : census.tensors) {
    const bool vision = std::any_of(kVision.begin(), kVision.end(), [&name = name](std::string_view part) { return name.find(part) != std::string::npos; });
    if (vision) out.vision += tensor.elements();
    else if (ends(name, kScales)) out.scales += tensor.elements();
    else if (ends(name, kBuffers)) out.buffers += tensor.elements();
    else if (name.ends_with("_blocks") && tensor.dtype == "U8" && tensor.shape.size() == 4) {
      // MXFP4 (gpt-oss): two values a byte, experts x rows x groups x bytes; the 16-bit tensor has rows and columns the other way round.
      CensusTensor whole = tensor;
      whole.shape = {tensor.shape[0], tensor.shape[2] * tensor.shape[3] * 2, tensor.shape[1]};
      out.tensors.emplace(name.substr(0, name.size() - std::string_view("_blocks").size()), std::move(whole));
    } else {
      out.tensors.emplace(name, tensor);
    }
  }
  return out;
}

Naming find_naming(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors) {
  Naming out{"model.", std::string(kHead)};
  std::optional<std::string> prefix;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(kHead)) out.head = name;
    if (!name.ends_with(kTable)) continue;
    const std::string before = name.substr(0, name.size() - kTable.size());
    // Tables inside a layer are copies for an MTP block.
    if (!prefix || before.size() < prefix->size()) prefix = before;
  }
  if (prefix) {
    out.prefix = *prefix;
    if (out.head == kHead && prefix->starts_with("language_model.")) out.head = "language_model." + std::string(kHead);
  } else if (model.model_type.starts_with("gemma3") || model.model_type.starts_with("llama4")) {
    out = {"language_model.model.", "language_model." + std::string(kHead)};
  } else if (model.model_type.starts_with("qwen3_5")) {
    out.prefix = "model.language_model.";
  }
  return out;
}

namespace {

class Expectation {
 public:
  Expectation(const ResolvedModel& model, const std::map<std::string, CensusTensor>& census)
      : model_(model), census_(census), naming_(find_naming(model, census)) {}

  std::vector<ExpectedTensor> run() {
    for (const NameGroup& group : model_groups(model_)) add(group, naming_.prefix, "", -1);
    for (std::size_t kind = 0; kind < model_.kinds.size(); ++kind) groups_.push_back(layer_groups(model_, model_.kinds[kind]));
    for (std::size_t i = 0; i < model_.layer_kind.size(); ++i) add_layer(static_cast<std::int64_t>(i), model_.layer_kind[i], "");
    for (std::int64_t block = 0; block < model_.mtp_depth; ++block) {
      const std::int64_t layer = model_.layers() + block;
      add_layer(layer, model_.mtp_kind, "mtp: ");
      for (const NameGroup& group : mtp_groups(model_)) add(group, at(layer), "mtp", layer);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string at(std::int64_t layer) const { return naming_.prefix + "layers." + std::to_string(layer) + "."; }

  void add_layer(std::int64_t layer, int kind, const std::string& before) {
    const auto index = static_cast<std::size_t>(kind);
    for (const NameGroup& group : groups_[index]) add(group, at(layer), before + kind_text(model_.kinds[index]), layer);
  }

  /// The variant that the checkpoint has most of, else the family's, else the usual one.
  const NameVariant& choose(const NameGroup& group, const std::string& prefix) const {
    const NameVariant* best = nullptr;
    std::size_t most = 0;
    for (const NameVariant& variant : group) {
      std::size_t found = 0, right = 0;
      for (const NamedTensor& tensor : variant.tensors) {
        const auto in = census_.find(full_name(tensor, prefix));
        if (in == census_.end()) continue;
        ++found;
        if (in->second.shape == tensor.shape) ++right;
      }
      // Two variants may share their names and differ in shapes.
      if (const std::size_t weight = 2 * found + right; weight > most) {
        most = weight;
        best = &variant;
      }
    }
    if (best != nullptr) return *best;
    for (const NameVariant& variant : group) {
      const auto families = core::split(variant.families, ' ');
      if (std::find(families.begin(), families.end(), model_.model_type) != families.end()) return variant;
    }
    return group.front();
  }

  [[nodiscard]] std::string full_name(const NamedTensor& tensor, const std::string& prefix) const { return tensor.name == kHead ? naming_.head : prefix + tensor.name; }

  void add(const NameGroup& group, const std::string& prefix, const std::string& kind, std::int64_t layer) {
    for (const NamedTensor& tensor : choose(group, prefix).tensors)
      out_.push_back({full_name(tensor, prefix), tensor.shape, tensor.part, kind, layer, tensor.copy});
  }

  const ResolvedModel& model_;
  const std::map<std::string, CensusTensor>& census_;
  Naming naming_;
  std::vector<std::vector<NameGroup>> groups_;
  std::vector<ExpectedTensor> out_;
};

}  // namespace

std::vector<ExpectedTensor> expect(const ResolvedModel& model, const std::map<std::string, CensusTensor>& tensors) { return Expectation(model, tensors).run(); }

}  // namespace verify

std::int64_t ExpectedTensor::elements() const {
  std::int64_t out = 1;
  for (const std::int64_t dimension : shape) out *= dimension;
  return out;
}

std::vector<ExpectedTensor> expected_tensors(const ResolvedModel& model, const TensorCensus& census) {
  return verify::expect(model, verify::sort_census(census).tensors);
}

}  // namespace nd
