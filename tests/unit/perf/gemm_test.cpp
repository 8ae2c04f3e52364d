// SPDX-License-Identifier: Apache-2.0
#include "perf/gemm.hpp"

#include <catch2/catch.hpp>

#include "perf/device_rates.hpp"
#include "unit/perf/fixtures.hpp"

namespace nd::perf {
namespace {

using namespace perf_test;

/// 100 TFLOP/s on 100 cores, 1 TB/s: figures one can follow by hand.
DeviceRates round_rates() {
  DeviceRates rates;
  rates.dense_flops = 100e12;
  rates.expert_flops = 80e12;
  rates.wide_flops = 50e12;
  rates.memory = rates.stream = 1e12;
  rates.operand_exposure = 1.0;
  rates.misaligned_factor = 1.45;
  rates.alignment = 64;
  rates.tile_m = 128;
  rates.tile_n = 256;
  rates.cores = 100;
  return rates;
}

}  // namespace

TEST_CASE("a product costs arithmetic plus exposed operand traffic", "[perf][gemm]") {
  // 12800 x 2560 output: 100 x 10 tiles = 10 full waves of 100 cores, so w = 1.
  // Arithmetic 2*12800*2560*4096/1e14 = 2.68435 ms; operands 2*(12800*4096 + 4096*2560 + 12800*2560) = 191.36 MB = 0.19137 ms.
  const Gemm gemm{.op = "x", .m = 12800, .n = 2560, .k = 4096};
  const double arithmetic = 2.0 * 12800 * 2560 * 4096 / 1e14;
  const double operands = 2.0 * (12800.0 * 4096 + 4096.0 * 2560 + 12800.0 * 2560) / 1e12;
  CHECK(wave_share(round_rates(), 1, 12800, 2560) == Approx(1.0));
  CHECK(gemm_forward_seconds(round_rates(), gemm) == Approx(arithmetic + operands).epsilon(1e-12));
}

TEST_CASE("a partly filled wave costs as much as a full one", "[perf][gemm]") {
  DeviceRates rates = round_rates();
  // 128 x 101 tiles of 256 columns: 101 tiles = 2 waves of 100: 0.505. Narrow tiles: 404 in 5 waves, 0.8 * 404/500 = 0.6464.
  CHECK(wave_share(rates, 1, 128, 101 * 256) == Approx(0.6464));
  // 200 tiles fill two waves: 1.
  CHECK(wave_share(rates, 1, 128, 200 * 256) == Approx(1.0));
}

TEST_CASE("experts feel the few rows each of them gets", "[perf][gemm]") {
  const DeviceRates rates = round_rates();
  const auto seconds = [&](double count, double rows) {
    return gemm_forward_seconds(rates, {.op = "e", .kind = GemmClass::expert, .count = count, .m = rows, .n = 2048, .k = 2048});
  };
  // The same 12800 rows over 1, 100 and 400 experts: more weights to read, then rows padded to 64.
  CHECK(seconds(1, 12800) < seconds(100, 128));
  CHECK(seconds(100, 128) < seconds(400, 32));
  // A single local expert is one large product: 12800 x 2048 outputs at the dense rate, 100 x 8 tiles fill 8 waves of 100 cores.
  CHECK(seconds(1, 12800) == Approx(2.0 * 12800 * 2048 * 2048 / 100e12 + 2.0 * (2.0 * 12800 * 2048 + 2048.0 * 2048) / 1e12));
  // 32 of 64 rows are padding: half the share of 64 rows.
  CHECK(wave_share(rates, 400, 32, 2048) == Approx(0.5 * wave_share(rates, 400, 64, 2048)));
}

TEST_CASE("a misaligned width slows all three products", "[perf][gemm]") {
  const DeviceRates rates = round_rates();
  // Exactly 1.45 on the arithmetic: compare without operand traffic.
  DeviceRates dry = rates;
  dry.operand_exposure = 0;
  const Gemm aligned{.op = "a", .m = 12800, .n = 2560, .k = 1792};
  Gemm odd = aligned;
  odd.k = 1800;
  CHECK(gemm_forward_seconds(dry, odd) / gemm_forward_seconds(dry, aligned) == Approx(1.45 * 1800 / 1792));
  CHECK(gemm_input_gradient_seconds(dry, odd) > 1.3 * gemm_input_gradient_seconds(dry, aligned));
  CHECK(gemm_weight_gradient_seconds(dry, odd) > 1.3 * gemm_weight_gradient_seconds(dry, aligned));
  // Narrow outputs (routers) are not slowed.
  Gemm router{.op = "r", .m = 12800, .n = 60, .k = 2048};
  Gemm router64 = router;
  router64.n = 64;
  CHECK(gemm_forward_seconds(dry, router) <= gemm_forward_seconds(dry, router64));
}

TEST_CASE("rows that do not start on 16 bytes need more loads", "[perf][gemm]") {
  DeviceRates dry = round_rates();
  dry.operand_exposure = 0;
  const auto head = [&](double columns) {
    return gemm_forward_seconds(dry, {.op = "head", .kind = GemmClass::head, .m = 12800, .n = columns, .k = 2048}) / columns;
  };
  // 51200 = 64 x 800. The others are off the tile grid (1.45) and aligned to 8, 4, 2 and 1 elements: 0, 1, 3 and 7 more loads, 0.31
  // each; the larger of the two counts.
  // All fill whole waves of 256-wide tiles but the last: below 1 % of padding.
  CHECK(head(51208) / head(51200) == Approx(1.45).epsilon(0.02));
  CHECK(head(51204) / head(51200) == Approx(1.45).epsilon(0.02));
  CHECK(head(51202) / head(51200) == Approx(1.93).epsilon(0.02));
  CHECK(head(51201) / head(51200) == Approx(3.17).epsilon(0.02));
}

TEST_CASE("the gradients are products of the same work and other shapes", "[perf][gemm]") {
  DeviceRates rates = round_rates();
  rates.operand_exposure = 0;
  // All three outputs of the cube fill whole waves: 100 x 50 tiles.
  const Gemm cube{.op = "x", .m = 12800, .n = 12800, .k = 12800};
  CHECK(gemm_input_gradient_seconds(rates, cube) == Approx(gemm_forward_seconds(rates, cube)));
  CHECK(gemm_weight_gradient_seconds(rates, cube) == Approx(gemm_forward_seconds(rates, cube)));
  // k = 128: the weight gradient's output of 128 x 12800 is 50 tiles on 100 cores, narrow tiles 200: 0.8 of the rate.
  const Gemm thin{.op = "y", .m = 12800, .n = 12800, .k = 128};
  CHECK(gemm_weight_gradient_seconds(rates, thin) == Approx(gemm_forward_seconds(rates, thin) / 0.8));
}

TEST_CASE("only large products run in the recipe's type", "[perf][gemm]") {
  Scenario scenario = scenario_of(llama(2, 4096, 11008, 32, 32), h100(), fused_trainer(), 8, 4096);
  const DeviceRates wide = device_rates(scenario);
  scenario.run.gemm_dtype = Dtype::fp8;
  const DeviceRates fp8 = device_rates(scenario);
  // 989.4 + 0.85 * (1978.9 - 989.4) = 1830.475 TFLOP/s, times 0.715 sustained.
  CHECK(fp8.dense_flops == Approx(1830.475e12 * 0.715));
  CHECK(wide.dense_flops == Approx(989.4e12 * 0.715));
  CHECK(fp8.wide_flops == wide.wide_flops);
  CHECK(fp8.attention_flops == wide.attention_flops);
  const Gemm head{.op = "head", .kind = GemmClass::head, .m = 4096, .n = 32000, .k = 4096};
  CHECK(gemm_forward_seconds(fp8, head) == gemm_forward_seconds(wide, head));
}

TEST_CASE("a type the device lacks falls back to one it has", "[perf][gemm]") {
  DeviceType device = a100();
  CHECK(peak_flops(device, Dtype::fp8) == 312e12);
  CHECK(peak_flops(device, Dtype::fp4) == 312e12);
  device.peak[static_cast<std::size_t>(Dtype::bf16)] = {};
  CHECK(peak_flops(device, Dtype::bf16) == 312e12);  // fp16
  CHECK(peak_flops(device, Dtype::fp32) == 19.5e12);
}

}  // namespace nd::perf
