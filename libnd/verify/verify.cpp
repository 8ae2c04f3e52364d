// SPDX-License-Identifier: Apache-2.0
#include "nd/verify.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <tuple>

#include "nd/framework_profile.hpp"
#include "nd/ops.hpp"
#include "verify/expected.hpp"
#include "verify/facts.hpp"
#include "verify/names.hpp"

namespace nd {

namespace {

constexpr double kTolerance = 1e-3;  // share of the parameters
constexpr std::int64_t kTokens = 4096;  // of the sequence that ops and activations are counted for

using Key = std::pair<std::string, std::string>;  // kind, part

/// Parameters of the op table by kind and part.
std::map<Key, std::int64_t> priced_parts(const ResolvedModel& model) {
  const ResolvedRun run;
  const FrameworkProfile profile;
  const LayerShape shape;
  std::map<Key, std::int64_t> out;
  const auto add = [&out](const LayerLedger& ledger, const std::string& kind, std::int64_t times, const std::string& mtp) {
    for (const ParameterBlock& block : ledger.parameters) {
      const std::string part = verify::part_of(block.op);
      out[{part == "mtp" ? mtp : kind, part}] += times * std::llround(block.model_elements);
    }
  };
  std::vector<std::int64_t> layers(model.kinds.size(), 0);
  for (const int kind : model.layer_kind) ++layers[static_cast<std::size_t>(kind)];
  for (std::size_t k = 0; k < model.kinds.size(); ++k)
    if (layers[k] > 0) add(layer_ledger(model, model.kinds[k], run, profile, shape), verify::kind_text(model.kinds[k]), layers[k], "");
  add(embedding_ledger(model, run, profile, shape), "", 1, "");
  add(head_ledger(model, run, profile, shape, !model.tied_embeddings), "", 1, "");
  if (model.mtp_depth > 0)
    add(mtp_ledger(model, run, profile, shape), "mtp: " + verify::kind_text(model.kinds[static_cast<std::size_t>(model.mtp_kind)]), model.mtp_depth, "mtp");
  return out;
}

class Verifying {
 public:
  Verifying(const ModelSpec& stated, const ResolvedModel& model, const TensorCensus& census)
      : model_(model), sorted_(verify::sort_census(census)), expected_(verify::expect(model, sorted_.tensors)) {
    out_.source = census.source;
    out_.model = model.name.empty() ? stated.name : model.name;
    out_.notes = census.notes;
    out_.vision = sorted_.vision;
    out_.scales = sorted_.scales;
    out_.buffers = sorted_.buffers;
    out_.vision_configured = model.vision_parameters;
    out_.measured = stated;
    for (const auto& [name, tensor] : census.tensors) out_.dtypes[tensor.dtype] += tensor.elements();
  }

  Verification run() {
    match();
    count_parts();
    verify::measure_facts(model_, sorted_.tensors, out_);
    check_ops();
    check_activations();
    return std::move(out_);
  }

 private:
  void match() {
    std::set<std::string_view> seen;
    for (const ExpectedTensor& tensor : expected_) {
      const auto found = sorted_.tensors.find(tensor.name);
      const Key key{tensor.kind, tensor.part};
      if (!tensor.copy) by_names_[key] += tensor.elements();
      if (found == sorted_.tensors.end()) {
        if (!tensor.copy) out_.missing.push_back(tensor.name);
        continue;
      }
      seen.insert(found->first);
      if (tensor.copy) out_.copies += found->second.elements();
      else found_[key] += found->second.elements();
      if (found->second.shape != tensor.shape) out_.reshaped.push_back({tensor.name, tensor.shape, found->second.shape});
    }
    for (const auto& [name, tensor] : sorted_.tensors) {
      if (seen.count(name) > 0) continue;
      out_.unexpected.push_back(name);
      found_[{"", "not in the model"}] += tensor.elements();
    }
  }

  void count_parts() {
    const auto priced = priced_parts(model_);
    std::set<Key> keys;
    using Counts = std::map<Key, std::int64_t>;
    for (const Counts* counts : std::initializer_list<const Counts*>{&found_, &by_names_, &priced})
      for (const auto& [key, count] : *counts) keys.insert(key);
    const auto of = [](const Counts& counts, const Key& key) {
      const auto found = counts.find(key);
      return found == counts.end() ? std::int64_t{0} : found->second;
    };
    for (const Key& key : keys) {
      out_.parts.push_back({key.first, key.second, of(found_, key), of(by_names_, key), of(priced, key)});
      out_.checkpoint_elements += of(found_, key);
      out_.priced_elements += of(priced, key);
    }
  }

  /// Elements of the matrices of the first layer of a kind, by part; experts as one token meets them.
  std::map<std::string, double> matrix_elements(std::size_t kind) const {
    std::map<std::string, double> out;
    std::int64_t layer = -1;
    for (std::size_t i = 0; i < model_.layer_kind.size() && layer < 0; ++i)
      if (static_cast<std::size_t>(model_.layer_kind[i]) == kind) layer = static_cast<std::int64_t>(i);
    const FfnSpec& ffn = model_.kinds[kind].ffn;
    for (const ExpectedTensor& tensor : expected_) {
      if (tensor.layer != layer) continue;
      const auto found = sorted_.tensors.find(tensor.name);
      if (found == sorted_.tensors.end()) continue;
      const CensusTensor& real = found->second;
      const bool experts = tensor.part == "experts" && !tensor.name.ends_with("bias");
      // A convolution is (channels, 1, width): no product of the op table.
      if (!(real.shape.size() == 2 && !tensor.name.ends_with("bias")) && !(experts && real.shape.size() == 3)) continue;
      if (real.shape[0] == 1) continue;  // a gate of one column is a dot product: the op table has it among the moved bytes
      const double share = experts ? static_cast<double>(ffn.experts_per_token) / static_cast<double>(ffn.experts) : 1.0;
      out[tensor.part] += share * static_cast<double>(real.elements());
    }
    return out;
  }

  void check_ops() {
    const ResolvedRun run;
    const FrameworkProfile profile;
    LayerShape shape;
    shape.seq_length = kTokens;
    for (std::size_t k = 0; k < model_.kinds.size(); ++k) {
      const LayerLedger ledger = layer_ledger(model_, model_.kinds[k], run, profile, shape);
      const auto matrices = matrix_elements(k);
      std::map<std::string, OpCheck> checks;
      for (const Gemm& gemm : ledger.gemms) {
        if (!gemm.weight) continue;
        const std::string part = verify::part_of(gemm.op);
        OpCheck& check = checks[part];
        check.kind = verify::kind_text(model_.kinds[k]);
        check.op = part;
        check.flops += gemm.flops() / static_cast<double>(kTokens);
        check.bytes_moved += 2.0 * gemm.count * (gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n) / static_cast<double>(kTokens);
      }
      for (auto& [part, check] : checks) {
        const auto found = matrices.find(part);
        check.flops_by_tensors = found == matrices.end() ? 0 : 2.0 * found->second;
        out_.ops.push_back(check);
      }
    }
  }

  /// Korthikanti et al. 2022 (arXiv 2205.05198), section 4.1, per token and in 16 bit, with grouped keys and values and a gated network in
  /// place of theirs, no dropout, and a fused core that keeps its output and one fp32 per head instead of the squares (Dao et al. 2022).
  void check_activations() {
    const ResolvedRun run;
    const FrameworkProfile profile;
    LayerShape shape;
    shape.seq_length = kTokens;
    for (const LayerKind& kind : model_.kinds) {
      const AttentionSpec& a = kind.attention;
      if (a.kind != AttentionKind::softmax || kind.ffn.kind != FfnKind::dense || kind.norms != 2 || kind.parallel_residual || a.qk_norm || a.output_gate) continue;
      const double h = static_cast<double>(model_.hidden_size), f = static_cast<double>(kind.ffn.width);
      const double queries = static_cast<double>(a.heads * a.qk_dim), keys = static_cast<double>(a.kv_heads * (a.qk_dim + a.v_dim)), values = static_cast<double>(a.heads * a.v_dim);
      const std::map<std::string, double> published{{"norms", 2 * 2 * h + 2 * 2 * h},
                                                    {"attention", 2 * (queries + keys + values) + 4.0 * static_cast<double>(a.heads)},
                                                    {"dense ffn", 2 * (kind.ffn.gated ? 3 : 2) * f}};
      std::map<std::string, double> ours;
      for (const SavedTensor& tensor : layer_ledger(model_, kind, run, profile, shape).saved)
        if (tensor.kept[0]) ours[verify::part_of(tensor.op)] += tensor.bytes / static_cast<double>(kTokens);
      for (const auto& [part, bytes] : published) out_.activations.push_back({verify::kind_text(kind), part, ours[part], bytes});
    }
  }

  const ResolvedModel& model_;
  verify::Sorted sorted_;
  std::vector<ExpectedTensor> expected_;
  std::map<Key, std::int64_t> found_, by_names_;
  Verification out_;
};

}  // namespace

double Verification::difference() const {
  if (priced_elements == 0) return checkpoint_elements == 0 ? 0 : 1;
  return std::abs(static_cast<double>(checkpoint_elements - priced_elements)) / static_cast<double>(priced_elements);
}

bool Verification::differs() const { return difference() > kTolerance || !missing.empty() || !unexpected.empty() || !reshaped.empty(); }

Verification verify_model(const ModelSpec& stated, const ResolvedModel& model, const TensorCensus& census) { return Verifying(stated, model, census).run(); }

}  // namespace nd
