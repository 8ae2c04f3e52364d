// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "search/ranking.hpp"

namespace nd::search {

/// A ranking of any length in bounded memory: sorted runs in a temporary file that has no name (nothing is left of it, however
/// the program ends), merged when they are read. Where no file can be written runs stay in memory.
class RankingStore {
 public:
  /// Strategies that a worker gathers before it hands over a run.
  static constexpr std::size_t kRun = std::size_t{1} << 17U;

  explicit RankingStore(RankOrder order) : order_(order) {}
  /// Takes the strategies and leaves `run` empty, its storage kept. Any order. Thread-safe.
  void add(std::vector<RankedCandidate>& run);
  /// Calls `visit` for all that was added, best first. Not while add() runs.
  void for_each(const std::function<void(const RankedCandidate&)>& visit);

 private:
  struct Run {
    long offset = 0;         ///< in the file, in strategies
    std::size_t count = 0;
    std::vector<RankedCandidate> kept;  ///< instead of the file
  };
  class Reader;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[nodiscard]] bool write(const std::vector<RankedCandidate>& run);

  RankOrder order_;
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;
  bool no_file_ = false;
  long stored_ = 0;
  std::vector<Run> runs_;
};

}  // namespace nd::search
