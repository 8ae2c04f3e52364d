// SPDX-License-Identifier: Apache-2.0
#include "perf/gemm.hpp"

#include <algorithm>
#include <cmath>

namespace nd::perf {

namespace {

constexpr double kNarrowTile = 64;       ///< columns of the narrow tile [assumed: 128 x 64 kernels of cuBLAS]
constexpr double kNarrowTileRate = 0.8;  ///< of the main tile's rate [assumed]
constexpr double kLeastShare = 0.05;     ///< below this other kernels (split along k) take over [assumed]
constexpr double kRowGranule = 64;       ///< rows are padded to this multiple whatever the tile [assumed]
constexpr double kOperandBytes = 2;      ///< 16 bit; fp8 operands are cast from 16 bit on the way
constexpr double kAlignedBelow = 512;    ///< narrower outputs do not feel misalignment [assumed]

double share_with_tile(const DeviceRates& rates, double count, double m, double n, double tile_n) {
  const auto tile_m = static_cast<double>(rates.tile_m);
  const auto cores = static_cast<double>(rates.cores);
  const double tiles = count * std::ceil(m / tile_m) * std::ceil(n / tile_n);
  return tiles / (std::ceil(tiles / cores) * cores);
}

double rate_of(const DeviceRates& rates, GemmClass kind) {
  switch (kind) {
    case GemmClass::expert:
      return rates.expert_flops;
    case GemmClass::head:
    case GemmClass::router:
      return rates.wide_flops;
    case GemmClass::dense:
      break;
  }
  return rates.dense_flops;
}

bool misaligned(const DeviceRates& rates, double n, double k) {
  const auto granule = static_cast<double>(rates.alignment);
  return n > kAlignedBelow && (std::fmod(n, granule) != 0 || std::fmod(k, granule) != 0);
}

struct Product {
  double count, m, n, k;
};

double product_seconds(const DeviceRates& rates, const Product& p, double flops_rate, double alignment_factor) {
  if (p.count <= 0 || p.m <= 0 || p.n <= 0 || p.k <= 0) return 0;
  const double flops = 2.0 * p.count * p.m * p.n * p.k;
  const double bytes = kOperandBytes * p.count * (p.m * p.k + p.k * p.n + p.m * p.n);
  return flops / (flops_rate * wave_share(rates, p.count, p.m, p.n)) * alignment_factor +
         rates.operand_exposure * bytes / rates.memory;
}

}  // namespace

double wave_share(const DeviceRates& rates, double count, double m, double n) {
  const double main_tile = share_with_tile(rates, count, m, n, static_cast<double>(rates.tile_n));
  const double narrow_tile = kNarrowTileRate * share_with_tile(rates, count, m, n, kNarrowTile);
  // Padding of the rows decides for the few rows of one expert; along n the libraries have tiles for every width.
  const double rows = m / (std::ceil(m / kRowGranule) * kRowGranule);
  return std::max(kLeastShare, rows * std::max(main_tile, narrow_tile));
}

double gemm_forward_seconds(const DeviceRates& rates, const Gemm& gemm) {
  const double factor = misaligned(rates, gemm.n, gemm.k) ? rates.misaligned_factor : 1.0;
  return product_seconds(rates, {gemm.count, gemm.m, gemm.n, gemm.k}, rate_of(rates, gemm.kind), factor);
}

double gemm_backward_seconds(const DeviceRates& rates, const Gemm& gemm, bool weight_gradient) {
  // The misaligned width is an operand of all three products, so all three pay.
  const double factor = misaligned(rates, gemm.n, gemm.k) ? rates.misaligned_factor : 1.0;
  const double rate = rate_of(rates, gemm.kind);
  const double input = product_seconds(rates, {gemm.count, gemm.m, gemm.k, gemm.n}, rate, factor);
  // Without a weight both factors are activations and both need a gradient.
  if (gemm.weight && !weight_gradient) return input;
  return input + product_seconds(rates, {gemm.count, gemm.k, gemm.n, gemm.m}, rate, factor);
}

}  // namespace nd::perf
