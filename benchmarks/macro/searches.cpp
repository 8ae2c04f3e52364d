// SPDX-License-Identifier: Apache-2.0
// What the search does per second and core, and whole searches with every dimension free. Seconds per core are of the thread's
// own CPU clock, so that other load on the machine counts less; only ratios inside one run are comparable.
// Run: nd_macro_benchmarks
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "nd/nd.hpp"
#include "search/group_pricer.hpp"

namespace {

using nd::search::GroupPricer;
using nd::space::CandidateGroup;

double cpu_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;  // Linux: KiB
}

/// The request of `run_nd -m MODEL -d DEVICES -A A3`: 4 Mi tokens a step, sequences of 4096.
nd::Result<nd::Scenario> a3_scenario(const nd::DataStore& data, const std::string& name, std::int64_t devices) {
  auto request = nd::read_request(name, "", data);
  if (!request) return request.error();
  auto model = nd::resolve_model(request->model);
  if (!model) return model.error();
  auto device = data.device("A3");
  if (!device) return device.error();
  auto profile = data.framework("mindspeed-llm", "", {});
  if (!profile) return profile.error();
  nd::RunSpec stated = request->run;
  stated.devices = devices;
  stated.seq_length = 4096;
  stated.global_batch_size = (1024 + devices - 1) / devices * devices;
  nd::Scenario out{std::move(*model), {}, nd::effective_profile(*profile, stated), {}};
  auto run = nd::resolve_run(stated, out.model, out.profile);
  if (!run) return run.error();
  out.run = std::move(*run);
  out.cluster = {std::move(*device), devices};
  return out;
}

/// The shortest of several runs of `work`, in seconds of this thread.
template <class Work>
double shortest(const Work& work) {
  constexpr int kRuns = 3;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRuns; ++i) {
    const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    work();
    best = std::min(best, cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start);
  }
  return best;
}

struct Request {
  const char* model;
  std::int64_t devices;
};

struct Rates {
  double members = 0, seconds = 0;
  [[nodiscard]] double millions() const { return seconds > 0 ? members / seconds / 1e6 : 0; }
};

/// Members of the groups that `pick` admits, priced over and over by one pricer with its factors warm.
template <class Pick>
Rates warm_rate(const nd::Scenario& scenario, const std::vector<CandidateGroup>& groups, Pick pick) {
  constexpr std::int64_t kMost = 20'000;
  GroupPricer pricer(scenario, {.order = nd::search::RankOrder{}, .keep = 20, .near_misses = 5, .pareto = false});
  std::vector<CandidateGroup> chosen;
  Rates out;
  for (const auto& group : groups) {
    if (out.members > kMost) break;
    if (!pick(pricer, group)) continue;
    chosen.push_back(group);
    out.members += static_cast<double>(group.size());
  }
  const auto all = [&] {
    for (const auto& group : chosen) pricer.price(group, std::numeric_limits<double>::infinity());
  };
  all();
  out.seconds = shortest(all);
  return out;
}

void print_rates(const nd::Scenario& scenario, const Request& request) {
  const nd::space::SpaceContext context(scenario);
  nd::space::GroupSpace space(context, {});
  std::vector<CandidateGroup> groups;
  double members = 0;
  const double walk = shortest([&] {
    groups.clear();
    (void)space.visit([&groups](const CandidateGroup& group) {
      groups.push_back(group);
      return true;
    });
  });
  for (const auto& group : groups) members += static_cast<double>(group.size());
  // A part of the groups that stays warm: what a bound costs once the factors of its degrees are there.
  const std::vector<CandidateGroup> some(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(groups.size(), 4000)));
  double bounded = 0;
  for (const auto& group : some) bounded += static_cast<double>(group.size());
  GroupPricer bounder(scenario, {.order = nd::search::RankOrder{}, .keep = 20, .near_misses = 5, .pareto = false});
  const auto bound_all = [&] {
    for (const auto& group : some) (void)bounder.time_bound(group);
  };
  bound_all();
  const double bounding = shortest(bound_all);
  // All members of these fit or none does, so that each rate is of one kind of work.
  const auto fits = [](int least_pp, int most_pp) {
    return [least_pp, most_pp](GroupPricer& pricer, const CandidateGroup& group) {
      if (group.head.pp < least_pp || group.head.pp > most_pp) return false;
      const auto before = pricer.tally().out_of_memory;
      pricer.price(group, std::numeric_limits<double>::infinity());
      return pricer.tally().out_of_memory == before;
    };
  };
  const auto refused = [](GroupPricer& pricer, const CandidateGroup& group) {
    const auto before = pricer.tally().out_of_memory;
    pricer.price(group, std::numeric_limits<double>::infinity());
    return pricer.tally().out_of_memory == before + group.size();
  };
  const Rates flat = warm_rate(scenario, groups, fits(1, 1)), piped = warm_rate(scenario, groups, fits(2, 1 << 20));
  const Rates rejected = warm_rate(scenario, groups, refused);
  std::printf("%-16s %7lld %10.0f %9.1f %9.1f %9.2f %9.2f %9.3f\n", request.model, static_cast<long long>(request.devices), members,
              members / walk / 1e6, bounded / bounding / 1e6, rejected.millions(), flat.millions(), piped.millions());
  std::fflush(stdout);
}

struct Measured {
  double wall = 0, cpu = 0;
  nd::SearchStats stats;
};

Measured measure(const nd::Scenario& scenario, int jobs) {
  constexpr int kRuns = 3;
  Measured best;
  best.wall = std::numeric_limits<double>::infinity();
  nd::SearchOptions options;
  options.jobs = jobs;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const auto result = nd::search_strategies(scenario, {}, options);
    const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (wall < best.wall) best = {wall, cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, result.stats};
  }
  return best;
}

void print_search(const nd::Scenario& scenario, const Request& request) {
  const Measured one = measure(scenario, 1), two = measure(scenario, 2);
  std::printf("%-16s %7lld %10lld %10lld %8lld %9.3f %9.3f %9.3f %9.3f %8.2f %8.0f\n", request.model, static_cast<long long>(request.devices),
              static_cast<long long>(one.stats.legal), static_cast<long long>(one.stats.pruned), static_cast<long long>(one.stats.priced), one.wall,
              one.cpu, two.wall, two.cpu, one.wall / two.wall, peak_mib());
  std::fflush(stdout);
}

}  // namespace

int main() {
  const nd::DataStore data(ND_BENCH_DATA_DIR);
  const Request requests[] = {{"llama-3.1-8b", 64}, {"llama-3.1-70b", 64}, {"deepseek-v3", 2048}, {"deepseek-v3", 16384}};
  std::vector<nd::Scenario> scenarios;
  for (const auto& request : requests) {
    auto scenario = a3_scenario(data, request.model, request.devices);
    if (!scenario) {
      std::fprintf(stderr, "%s\n", nd::to_text(scenario.error().diagnostics.front()).c_str());
      return 1;
    }
    scenarios.push_back(std::move(*scenario));
  }
  std::printf("millions of strategies per second of one core, factors warm\n%-16s %7s %10s %9s %9s %9s %9s %9s\n", "model, A3", "devices", "legal",
              "walked", "pruned", "refused", "priced", "priced pp");
  for (std::size_t i = 0; i < scenarios.size(); ++i) print_rates(scenarios[i], requests[i]);
  std::printf("\nwhole searches, every dimension free, best of three\n%-16s %7s %10s %10s %8s %9s %9s %9s %9s %8s %8s\n", "model, A3", "devices",
              "legal", "pruned", "priced", "1 job s", "its CPU s", "2 jobs s", "CPU s", "speed-up", "peak MiB");
  for (std::size_t i = 0; i < scenarios.size(); ++i) print_search(scenarios[i], requests[i]);
  return 0;
}
