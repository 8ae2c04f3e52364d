// SPDX-License-Identifier: Apache-2.0
#include "megatron_support.hpp"

#include <cmath>

using namespace nd;
using namespace nd::testing;

namespace {

using Int = std::int64_t;

/// A published figure and how far its digits let it be from the count.
struct Published {
  const char* name;
  Int total;         ///< counted by hand from the dimensions
  double figure;     ///< as published, parameters
  double rounding;   ///< relative
  const char* source;
};

/// GPT-2 layer: attention 4h^2 + 4h, feed-forward 2hf + f + h, two norms of 2h.
constexpr Int gpt_layer(Int h, Int f) { return 4 * h * h + 4 * h + 2 * h * f + f + h + 4 * h; }
/// GPT-2 model with a tied table and `positions` learned ones.
constexpr Int gpt(Int layers, Int h, Int vocab, Int positions) { return layers * gpt_layer(h, 4 * h) + (vocab + positions) * h + 2 * h; }
/// Llama layer with kv width k: 2h^2 + 2hk, 3hf, two norms of h; untied table and head.
constexpr Int llama(Int layers, Int h, Int k, Int f, Int vocab) { return layers * (2 * h * h + 2 * h * k + 3 * h * f + 2 * h) + 2 * vocab * h + h; }
constexpr Int neox(Int layers, Int h, Int vocab) { return layers * gpt_layer(h, 4 * h) + 2 * vocab * h + 2 * h; }

const std::vector<Published> kPresets{
    {"gpt3-175b", gpt(96, 12288, 50257, 2048), 174'600e6, 3e-4, "arXiv 2005.14165, table D.1: 174,600 million"},
    {"megatron-22b", gpt(48, 6144, 51200, 2048), 22e9, 2.5e-2, "arXiv 2205.05198, table 3: 22B"},
    {"megatron-530b", gpt(105, 20480, 51200, 2048), 529.6e9, 1e-4, "arXiv 2104.04473, table 1: 529.6 billion"},
    {"megatron-1t", gpt(128, 25600, 51200, 2048), 1008.0e9, 1e-4, "arXiv 2104.04473, table 1: 1008.0 billion"},
    {"mpt-1b", gpt(24, 2048, 50368, 2048), 1.31595e9, 1e-5, "mosaicml/llm-foundry scripts/train/benchmarking/README.md, 2048 tokens"},
    {"mpt-3b", gpt(32, 2560, 50368, 2048), 2.65184e9, 1e-5, "the same table"},
    {"mpt-7b", gpt(32, 4096, 50368, 2048), 6.65886e9, 1e-5, "the same table"},
    {"mpt-13b", gpt(40, 5120, 50368, 2048), 12.8540e9, 1e-5, "the same table"},
    {"mpt-30b", gpt(48, 7168, 50368, 2048), 29.9752e9, 1e-5, "the same table"},
    {"mpt-70b", gpt(80, 8192, 50368, 2048), 64.8624e9, 1e-5, "the same table"},
    // Without positions (ALiBi), with a norm of 2h behind the table.
    {"bloom-176b", gpt(70, 14336, 250880, 0) + 2 * 14336, 176'247'271'424.0, 0, "hub metadata of bigscience/bloom"},
    // The published tables have two rows of positions more than the model can use.
    {"opt-13b", gpt(40, 5120, 50272, 2048), 12'853'473'280.0, 1e-6, "hub metadata of facebook/opt-13b"},
    {"opt-30b", gpt(48, 7168, 50272, 2048), 29'974'540'288.0, 1e-6, "hub metadata of facebook/opt-30b"},
    {"opt-175b", gpt(96, 12288, 50272, 2048), 175e9, 3e-3, "arXiv 2205.01068: 175B"},
    {"gpt-neox-20b", neox(44, 6144, 50432), 20'554'567'680.0, 0, "arXiv 2204.06745, table 1"},
    {"pythia-6.9b", neox(32, 4096, 50432), 6'857'302'016.0, 0, "EleutherAI/pythia README"},
    {"pythia-12b", neox(36, 5120, 50688), 11'846'072'320.0, 0, "EleutherAI/pythia README"},
    // No biases but those of the norms; squared ReLU, so two matrices; 8 KV heads of 192.
    {"nemotron-4-340b", 96 * (2LL * 18432 * 18432 + 2LL * 18432 * 1536 + 2LL * 18432 * 73728 + 4 * 18432) + 2LL * 256000 * 18432 + 2 * 18432, 341.0e9, 5e-4,
     "arXiv 2406.11704, table 1: 9.4B of embeddings and 331.6B others"},
    // 8 experts of 32768, router, four norms; the table is tied and not in the published round figure.
    {"grok-1", 64 * (2LL * 6144 * 6144 + 2LL * 6144 * 1024 + 24LL * 6144 * 32768 + 8 * 6144 + 4 * 6144) + 131072LL * 6144 + 6144, 314.0e9 + 131072.0 * 6144, 3e-3,
     "xai-org/grok-1 README: 314B; run.py: width 8 x 6144 x 2 / 3"},
    {"phi-3-mini", llama(32, 3072, 3072, 8192, 32064), 3'821'079'552.0, 0, "hub metadata of microsoft/Phi-3-mini-4k-instruct"},
    {"phi-3-medium", llama(40, 5120, 1280, 17920, 32064), 13'960'238'080.0, 0, "hub metadata of microsoft/Phi-3-medium-4k-instruct"},
    {"phi-4", llama(40, 5120, 1280, 17920, 100352), 14'659'507'200.0, 0, "hub metadata of microsoft/phi-4"},
    {"baichuan2-7b", llama(32, 4096, 4096, 11008, 125696), 7'505'973'248.0, 0, "hub metadata of baichuan-inc/Baichuan2-7B-Base"},
    {"baichuan2-13b", llama(40, 5120, 5120, 13696, 125696), 13'896'668'160.0, 0, "hub metadata of baichuan-inc/Baichuan2-13B-Base"},
    // Biases of q, k, v: h + 2 x 256 a layer.
    {"glm-4-9b", llama(40, 4096, 256, 13696, 151552) + 40 * (4096 + 512), 9'399'951'360.0, 0, "hub metadata of THUDM/glm-4-9b"},
    {"chatglm3-6b", llama(28, 4096, 256, 13696, 65024) + 28 * (4096 + 512), 6'243'584'000.0, 0, "hub metadata of THUDM/chatglm3-6b"},
};

}  // namespace

TEST_CASE("presets count as their dimensions and as published", "[presets]") {
  for (const auto& preset : kPresets) {
    INFO(preset.name << ": " << preset.source);
    const auto request = read_request(preset.name, "", data());
    REQUIRE(request);
    CHECK(parameters(request->model) == preset.total);
    CHECK(std::abs(static_cast<double>(preset.total) / preset.figure - 1) <= preset.rounding);
  }
}
