// SPDX-License-Identifier: Apache-2.0
// Whole searches with every dimension free, on one worker and on two: strategies per second, peak memory, speed-up.
// Figures are of this machine; only the ratios inside one run are comparable. Run: nd_macro_benchmarks
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "nd/search.hpp"
#include "support/scenarios.hpp"

namespace {

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux: KiB
}

struct Measured {
  double seconds = 0;
  nd::SearchStats stats;
};

Measured measure(const nd::Scenario& scenario, int jobs) {
  nd::SearchOptions options;
  options.jobs = jobs;
  const auto start = std::chrono::steady_clock::now();
  const auto result = nd::search_strategies(scenario, {}, options);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), result.stats};
}

}  // namespace

int main() {
  using namespace nd::testing;
  std::printf("%-12s %8s %12s %12s %12s %10s %10s %12s %8s %10s\n", "model", "devices", "combinations", "legal", "fitting", "1 job s", "2 jobs s",
              "legal/s", "speed-up", "peak MiB");
  for (const std::int64_t devices : {64, 1024, 8192})
    for (const bool moe : {false, true}) {
      const auto scenario =
          make_scenario(moe ? small_moe() : llama_8b(), {.devices = devices, .global_batch = 2 * devices, .seq_length = 4096});
      const auto one = measure(scenario, 1);
      const auto two = measure(scenario, 2);
      std::printf("%-12s %8lld %12lld %12lld %12lld %10.3f %10.3f %12.0f %8.2f %10.0f\n", scenario.model.name.c_str(),
                  static_cast<long long>(devices), static_cast<long long>(one.stats.enumerated), static_cast<long long>(one.stats.legal),
                  static_cast<long long>(one.stats.fitting), one.seconds, two.seconds, static_cast<double>(one.stats.legal) / one.seconds,
                  one.seconds / two.seconds, peak_mib());
      std::fflush(stdout);
    }
  return 0;
}
