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

/// One of the three products of an op row. A misaligned width is an operand of all three, so all three pay for it.
double product_seconds(const DeviceRates& rates, const Gemm& gemm, const Product& p) {
  if (p.count <= 0 || p.m <= 0 || p.n <= 0 || p.k <= 0) return 0;
  const double flops = 2.0 * p.count * p.m * p.n * p.k;
  const double bytes = kOperandBytes * p.count * (p.m * p.k + p.k * p.n + p.m * p.n);
  const double alignment = misaligned(rates, gemm.n, gemm.k) ? rates.misaligned_factor : 1.0;
  return flops / (rate_of(rates, gemm.kind) * wave_share(rates, p.count, p.m, p.n)) * alignment +
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
  return product_seconds(rates, gemm, {gemm.count, gemm.m, gemm.n, gemm.k});
}

double gemm_input_gradient_seconds(const DeviceRates& rates, const Gemm& gemm) {
  return product_seconds(rates, gemm, {gemm.count, gemm.m, gemm.k, gemm.n});
}

double gemm_weight_gradient_seconds(const DeviceRates& rates, const Gemm& gemm) {
  return product_seconds(rates, gemm, {gemm.count, gemm.k, gemm.n, gemm.m});
}

}  // namespace nd::perf
