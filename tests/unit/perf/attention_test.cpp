// SPDX-License-Identifier: Apache-2.0
#include "perf/attention.hpp"

#include <catch2/catch.hpp>

#include "perf/stream.hpp"

namespace nd::perf {
namespace {

DeviceRates round_rates(bool fused) {
  DeviceRates rates;
  rates.attention_flops = 100e12;
  rates.attention_backward_ratio = 0.75;
  rates.attention_half_length = 600;
  rates.unfused_attention_flops = 50e12;
  rates.memory = 1e12;
  rates.stream = 0.5e12;
  rates.fused_attention = fused;
  return rates;
}

/// 32 heads of 128, one sequence of `s`, causal half.
AttentionWork work_of(double s, double window) {
  AttentionWork work;
  work.qk_dim = work.v_dim = 128;
  work.score_elements = 32 * s * s;
  work.flops_full = 2.0 * work.score_elements * 256;
  work.context = window > 0 ? window : s;
  work.flops_forward = window > 0 ? work.flops_full * window * (1 - window / (2 * s)) / s : work.flops_full / 2;
  return work;
}

}  // namespace

TEST_CASE("a fused kernel does the causal half and saturates with length", "[perf][attention]") {
  const DeviceRates rates = round_rates(true);
  const AttentionWork work = work_of(2400, 0);
  // 2400/(2400 + 600) = 0.8 of 100 TFLOP/s; half of 2*32*2400^2*256 = 4.7186e10 FLOPs -> 0.58982 ms.
  const double flops = 32 * 2400.0 * 2400.0 * 256;
  CHECK(attention_forward_seconds(rates, work) == Approx(flops / 80e12));
  // Backward: 2.5 times the work at 0.75 of the rate.
  CHECK(attention_backward_seconds(rates, work) == Approx(2.5 / 0.75 * flops / 80e12));
}

TEST_CASE("narrow heads pay for their scores: 64 wide at 0.8 of the rate", "[perf][attention]") {
  const DeviceRates rates = round_rates(true);
  AttentionWork narrow = work_of(4096, 0);
  narrow.qk_dim = 64;
  CHECK(attention_forward_seconds(rates, narrow) == Approx(attention_forward_seconds(rates, work_of(4096, 0)) / 0.8));
  narrow.qk_dim = 32;  // a quarter of the products for the same scores: 1 + 0.25 x 3
  CHECK(attention_forward_seconds(rates, narrow) == Approx(attention_forward_seconds(rates, work_of(4096, 0)) * 1.75));
  narrow.qk_dim = 192;  // wider than the kernels are built for: no faster
  CHECK(attention_forward_seconds(rates, narrow) == Approx(attention_forward_seconds(rates, work_of(4096, 0))));
}

TEST_CASE("a window makes attention cheaper", "[perf][attention]") {
  const DeviceRates rates = round_rates(true);
  // 4096 of 32768: FLOPs share 2*W*(1 - W/2s)/s of the half = 0.234; the shorter context also saturates less.
  const double ratio = attention_forward_seconds(rates, work_of(32768, 4096)) / attention_forward_seconds(rates, work_of(32768, 0));
  CHECK(ratio == Approx(0.234375 * (4696.0 / 4096.0) / (33368.0 / 32768.0)));
}

TEST_CASE("unfused attention does the full square and moves the scores", "[perf][attention]") {
  DeviceRates rates = round_rates(false);
  rates.attention_dropout = true;
  const AttentionWork work = work_of(2048, 0);
  const double square = 32 * 2048.0 * 2048.0;
  // 13 and 19 bytes per score element, 0.93 of them seen, on the element-wise path.
  CHECK(attention_forward_seconds(rates, work) == Approx(2 * square * 256 / 50e12 + 0.93 * 13 * square / 0.5e12));
  CHECK(attention_backward_seconds(rates, work) == Approx(4 * square * 256 / 50e12 + 0.93 * 19 * square / 0.5e12));
  // No softmax traffic is charged under a fused kernel.
  DeviceRates slow = round_rates(true);
  slow.stream = 1;
  CHECK(attention_forward_seconds(slow, work) == attention_forward_seconds(round_rates(true), work));
}

TEST_CASE("memory-bound work is bytes over bandwidth times the fusion state", "[perf][stream]") {
  DeviceRates rates = round_rates(true);
  rates.traffic_factor = 1.5;
  rates.routed_factor = 3.9;
  StreamWork work{.op = "norm", .bytes_forward = 1e9, .bytes_backward = 2e9};
  CHECK(stream_forward_seconds(rates, work) == Approx(1e9 * 1.5 / 0.5e12));
  CHECK(stream_backward_seconds(rates, work) == Approx(2e9 * 1.5 / 0.5e12));
  work.routed = true;
  CHECK(stream_forward_seconds(rates, work) == Approx(1e9 * 3.9 / 0.5e12));
}

}  // namespace nd::perf
