// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "nd/data_store.hpp"
#include "nd/ops.hpp"

namespace nd::test {

inline ResolvedModel resolved(const ModelSpec& spec) {
  const auto model = resolve_model(spec);
  REQUIRE(model);
  return *model;
}

inline ResolvedModel preset(const std::string& name) {
  const auto spec = DataStore(ND_TEST_DATA_DIR).model(name);
  REQUIRE(spec);
  return resolved(*spec);
}

/// A GPT of Korthikanti et al.: plain feed-forward of 4h, LayerNorm, multi-head attention.
inline ModelSpec gpt(std::int64_t hidden, std::int64_t heads, std::int64_t layers, std::int64_t vocabulary) {
  ModelSpec spec;
  spec.hidden_size = hidden;
  spec.num_attention_heads = heads;
  spec.num_hidden_layers = layers;
  spec.vocab_size = vocabulary;
  spec.intermediate_size = 4 * hidden;
  spec.gated_ffn = false;
  spec.norm_bias = true;
  return spec;
}

inline LayerShape shape_of(std::int64_t seq_length, int micro_batch_size, int tp = 1, bool sequence_parallel = false) {
  LayerShape shape;
  shape.seq_length = seq_length;
  shape.micro_batch_size = micro_batch_size;
  shape.tp = tp;
  shape.sequence_parallel = sequence_parallel;
  return shape;
}

inline double saved_of(const LayerLedger& ledger, std::string_view name) {
  double sum = 0;
  for (const SavedTensor& tensor : ledger.saved)
    if (tensor.name == name) sum += tensor.bytes;
  return sum;
}

inline double gemm_flops(const LayerLedger& ledger) {
  double sum = 0;
  for (const Gemm& gemm : ledger.gemms) sum += gemm.flops();
  return sum;
}

struct Traffic {
  double forward = 0, backward = 0;
};

inline Traffic stream_bytes(const LayerLedger& ledger, bool routed) {
  Traffic sum;
  for (const StreamWork& work : ledger.streams)
    if (work.routed == routed) {
      sum.forward += work.bytes_forward;
      sum.backward += work.bytes_backward;
    }
  return sum;
}

/// Bytes of all collectives of a kind and group, times how often they happen; re-gathers apart.
inline Traffic collective_bytes(const LayerLedger& ledger, CollectiveKind kind, GroupKind group, bool regather = false) {
  Traffic sum;
  for (const CollectiveWork& work : ledger.collectives)
    if (work.kind == kind && work.group == group && work.regather == regather) {
      sum.forward += work.bytes * work.forward;
      sum.backward += work.bytes * work.backward;
    }
  return sum;
}

}  // namespace nd::test
