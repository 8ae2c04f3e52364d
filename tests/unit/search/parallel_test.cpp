// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "search/parallel.hpp"

namespace nd::search {
namespace {

std::vector<Backend> backends() {
  std::vector<Backend> out{Backend::threads};
  if (has_backend(Backend::tbb)) out.push_back(Backend::tbb);
  return out;
}

LoopOptions options(Backend backend, int jobs, std::size_t grain) { return {.grain = grain, .jobs = jobs, .stop = {}, .backend = backend}; }

}  // namespace

TEST_CASE("Every index is visited once, whatever the backend, the workers and the grain") {
  for (const auto backend : backends())
    for (const int jobs : {1, 2, 3, 8})
      for (const std::size_t n : {0U, 1U, 7U, 1000U})
        for (const std::size_t grain : {0U, 1U, 3U, 5000U}) {
          std::vector<std::atomic<int>> visits(n);
          parallel_for_index(n, options(backend, jobs, grain), [&visits](const LoopChunk& chunk) {
            for (std::size_t i = chunk.begin; i < chunk.end; ++i) ++visits[i];
          });
          for (const auto& count : visits) REQUIRE(count == 1);
        }
}

TEST_CASE("Worker numbers stay below the workers and are never shared at one time") {
  for (const auto backend : backends()) {
    constexpr std::size_t kJobs = 4;
    std::vector<std::atomic<int>> inside(kJobs);
    std::atomic<bool> clash{false}, outside{false};
    std::atomic<int> work{0};
    parallel_for_index(2000, options(backend, kJobs, 1), [&](const LoopChunk& chunk) {
      if (chunk.worker >= kJobs) {
        outside = true;
        return;
      }
      if (inside[chunk.worker].fetch_add(1) != 0) clash = true;
      for (int spin = 0; spin < 200; ++spin) work.fetch_add(1);
      inside[chunk.worker].fetch_sub(1);
    });
    CHECK_FALSE(clash);
    CHECK_FALSE(outside);
  }
}

TEST_CASE("The failure of the lowest index is the one that is thrown") {
  for (const auto backend : backends())
    for (const int jobs : {1, 2, 8})
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::string what;
        try {
          parallel_for_index(500, options(backend, jobs, 1), [](const LoopChunk& chunk) {
            if (chunk.begin == 90 || chunk.begin == 91 || chunk.begin == 400) throw std::runtime_error(std::to_string(chunk.begin));
          });
        } catch (const std::runtime_error& error) {
          what = error.what();
        }
        REQUIRE(what == "90");
      }
}

TEST_CASE("A stop request ends the loop before further chunks") {
  for (const auto backend : backends()) {
    std::stop_source source;
    source.request_stop();
    std::atomic<int> visits{0};
    auto stopped = options(backend, 2, 1);
    stopped.stop = source.get_token();
    parallel_for_index(100, stopped, [&visits](const LoopChunk&) { ++visits; });
    CHECK(visits == 0);
  }
}

TEST_CASE("Workers") {
  CHECK(worker_count(3) == 3);
  CHECK(worker_count(0) >= 1);
}

}  // namespace nd::search
