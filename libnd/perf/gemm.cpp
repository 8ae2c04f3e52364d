// SPDX-License-Identifier: Apache-2.0
#include "perf/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace nd::perf {

namespace {

constexpr double kNarrowTile = 64;       ///< columns of the narrow tile [assumed: 128 x 64 kernels of cuBLAS]
constexpr double kNarrowTileRate = 0.8;  ///< of the main tile's rate [assumed]
constexpr double kLeastShare = 0.05;     ///< below this other kernels (split along k) take over [assumed]
constexpr double kRowGranule = 64;       ///< rows are padded to this multiple whatever the tile [assumed]
constexpr double kOperandBytes = 2;      ///< 16 bit; fp8 operands are cast from 16 bit on the way
constexpr double kAlignedBelow = 512;    ///< narrower outputs do not feel misalignment [assumed]
constexpr std::int64_t kWideLoad = 8;    ///< 16-bit elements the matrix units' loads move at once: 16 bytes [counted]
/// Extra time per load that a row start off that grid adds [fitted: heads of 50257 columns take 3.2 times as long as padded ones;
/// 4 and 2 elements in between by the number of loads, assumed].
constexpr double kNarrowLoadPenalty = 0.31;

double share_with_tile(const DeviceRates& rates, double count, double m, double n, double tile_n) {
  const auto tile_m = static_cast<double>(rates.tile_m);
  const auto cores = static_cast<double>(rates.cores);
  const double tiles = count * std::ceil(m / tile_m) * std::ceil(n / tile_n);
  return tiles / (std::ceil(tiles / cores) * cores);
}

double rate_of(const DeviceRates& rates, const Gemm& gemm) {
  switch (gemm.kind) {
    case GemmClass::expert:
      // One expert alone is one large product, not a group.
      return gemm.count > 1 ? rates.expert_flops : rates.dense_flops;
    case GemmClass::head:
    case GemmClass::router:
      return rates.wide_flops;
    case GemmClass::dense:
      break;
  }
  return rates.dense_flops;
}

/// Loads needed where one would do if rows of `width` elements started on 16-byte boundaries, minus that one.
double more_loads(double width) {
  return static_cast<double>(kWideLoad / std::gcd(static_cast<std::int64_t>(width), kWideLoad) - 1);
}

/// Time of a product with these widths / that of an aligned one.
double alignment_factor(const DeviceRates& rates, double n, double k) {
  if (n <= kAlignedBelow) return 1.0;
  const auto granule = static_cast<double>(rates.alignment);
  const bool off_tile = std::fmod(n, granule) != 0 || std::fmod(k, granule) != 0;
  return std::max(off_tile ? rates.misaligned_factor : 1.0, 1.0 + kNarrowLoadPenalty * std::max(more_loads(n), more_loads(k)));
}

struct Product {
  double count, m, n, k;
};

/// One of the three products of an op row. A misaligned width is an operand of all three, so all three pay for it.
double product_seconds(const DeviceRates& rates, const Gemm& gemm, const Product& p) {
  if (p.count <= 0 || p.m <= 0 || p.n <= 0 || p.k <= 0) return 0;
  const double flops = 2.0 * p.count * p.m * p.n * p.k;
  const double bytes = kOperandBytes * p.count * (p.m * p.k + p.k * p.n + p.m * p.n);
  const double alignment = alignment_factor(rates, gemm.n, gemm.k);
  return flops / (rate_of(rates, gemm) * wave_share(rates, p.count, p.m, p.n)) * alignment +
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
