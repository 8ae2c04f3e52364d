// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nd/model_spec.hpp"
#include "nd/result.hpp"

// What a checkpoint holds against what is priced: docs/verify.md.
namespace nd {

/// One tensor of a checkpoint, known by its header alone.
struct CensusTensor {
  std::string dtype;                ///< as the header says: "BF16", "F8_E4M3"
  std::vector<std::int64_t> shape;
  std::string file;                 ///< without folder; empty in a census made elsewhere
  [[nodiscard]] std::int64_t elements() const;
  friend bool operator==(const CensusTensor&, const CensusTensor&) = default;
};

/// Every tensor of a checkpoint by name.
struct TensorCensus {
  std::string source;               ///< folder or file
  std::map<std::string, CensusTensor> tensors;
  std::vector<Diagnostic> notes;
};

/// Headers of every *.safetensors of a folder, and model.safetensors.index.json when it is there; no weight is read. Refused, every problem at
/// once: headers longer than the file or than 100 MB, JSON that is none or deep, offsets that overlap, leave holes or contradict shape and
/// type, a name twice, an index that names other files or tensors.
[[nodiscard]] Result<TensorCensus> read_checkpoint(const std::string& folder);
/// The header of one file.
[[nodiscard]] Result<TensorCensus> read_safetensors_header(const std::string& path);
/// A census made elsewhere: data/schema/census.schema.json.
[[nodiscard]] Result<TensorCensus> read_census(const std::string& path);
/// The schema's document.
[[nodiscard]] std::string census_json(const TensorCensus& census);

/// A tensor that the model has.
struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string part;                 ///< "attention", "experts", ...
  std::string kind;                 ///< "softmax attention + moe" of its layer; "" outside the layers
  std::int64_t layer = -1;          ///< -1 outside the layers
  bool copy = false;                ///< of a tensor counted elsewhere (tied or shared table): may be absent
  [[nodiscard]] std::int64_t elements() const;
};
/// Every tensor of the model under the names of the checkpoint where its variants are there (prefix, fused experts, ...), else of the
/// model's family.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const ResolvedModel& model, const TensorCensus& census = {});

/// Elements of one part over all layers of one kind.
struct PartCensus {
  std::string kind, part;
  std::int64_t checkpoint = 0, by_names = 0, priced = 0;  ///< found; by the expected tensors; by the op table
};

struct ReshapedTensor {
  std::string name;
  std::vector<std::int64_t> expected, found;
};

/// A fact of the model by the configuration and by the shapes.
struct SpecFact {
  std::string field;
  std::int64_t configured = 0;
  std::optional<std::int64_t> measured;  ///< absent: no tensor shows it
};

/// One op of a layer kind, by the op table and by the tensors alone, of one token forward.
struct OpCheck {
  std::string kind, op;
  double flops = 0, flops_by_tensors = 0;
  double bytes_moved = 0;            ///< operands and result once, 16 bit
  [[nodiscard]] double intensity() const { return bytes_moved > 0 ? flops / bytes_moved : 0; }
};

/// Bytes kept for the backward by one layer, per token, by the op table and by the published account.
struct ActivationCheck {
  std::string kind, part;
  double bytes = 0, published = 0;
};

struct Verification {
  std::string source;
  std::string model;
  std::int64_t checkpoint_elements = 0, priced_elements = 0;  ///< of the text model, MTP blocks included
  std::int64_t copies = 0, scales = 0, vision = 0, buffers = 0;  ///< elements of the checkpoint that are no parameters of the text model
  std::int64_t vision_configured = 0;
  std::vector<PartCensus> parts;
  std::vector<std::string> missing, unexpected;  ///< names
  std::vector<ReshapedTensor> reshaped;
  std::map<std::string, std::int64_t> dtypes;    ///< elements by type
  std::vector<SpecFact> facts;
  std::vector<OpCheck> ops;
  std::vector<ActivationCheck> activations;
  ModelSpec measured;                ///< the stated spec with every measured fact in place
  std::vector<Diagnostic> notes;
  /// |checkpoint - priced| / priced.
  [[nodiscard]] double difference() const;
  /// More than 0.1 % of the parameters apart, or a tensor missing, unexpected or reshaped.
  [[nodiscard]] bool differs() const;
};

[[nodiscard]] Verification verify_model(const ModelSpec& stated, const ResolvedModel& model, const TensorCensus& census);
/// Tables for a terminal; at most `names` names of each list.
[[nodiscard]] std::string verification_text(const Verification& verification, std::size_t names = 20);
/// nd/verification/1.
[[nodiscard]] std::string verification_json(const Verification& verification);
/// The measured facts as the YAML of a model (Hugging Face names).
[[nodiscard]] std::string measured_spec_yaml(const Verification& verification);

}  // namespace nd
