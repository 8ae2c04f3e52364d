// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nd/result.hpp"

struct sqlite3;

namespace nd::harness {

/// One start of one run.
struct Attempt {
  std::string run;
  std::int64_t number = 0;
  bool finished = false;
  std::string job;     ///< of a batch system
  std::string result;  ///< nd/run_result/1 when finished
};

/// The journal of a campaign: one SQLite database in write-ahead mode. Every change is a transaction that is on the disk before the call
/// returns. Thread-compatible. Errors of all members: io.
class Store {
 public:
  [[nodiscard]] static Result<Store> open(const std::string& path);
  Store(Store&& other) noexcept;
  Store& operator=(Store&&) = delete;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  /// Makes this process the only one that may write. Errors: conflict (another living harness has it).
  [[nodiscard]] std::optional<Diagnostic> claim();
  void release();

  [[nodiscard]] std::optional<Diagnostic> save_plan(const std::string& run, std::string_view plan);
  [[nodiscard]] std::optional<Diagnostic> begin(const std::string& run, std::int64_t attempt);
  [[nodiscard]] std::optional<Diagnostic> set_job(const std::string& run, std::int64_t attempt, const std::string& job);
  [[nodiscard]] std::optional<Diagnostic> finish(const std::string& run, std::int64_t attempt, std::string_view result);
  /// All attempts, by run, then number.
  [[nodiscard]] Result<std::vector<Attempt>> attempts() const;
  /// Plans by run: those of every run that was ever planned in this folder.
  [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> plans() const;

 private:
  explicit Store(sqlite3* database, std::string path) : database_(database), path_(std::move(path)) {}
  [[nodiscard]] std::optional<Diagnostic> run(const char* sql, const std::vector<std::string>& values);
  [[nodiscard]] Result<std::vector<std::vector<std::string>>> rows(const char* sql) const;
  [[nodiscard]] Diagnostic failure() const;
  sqlite3* database_ = nullptr;
  std::string path_;
  bool claimed_ = false;
};

/// Name of this machine.
[[nodiscard]] std::string host_name();

}  // namespace nd::harness
