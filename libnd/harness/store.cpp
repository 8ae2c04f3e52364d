// SPDX-License-Identifier: Apache-2.0
#include "harness/store.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <utility>

#include "core/text.hpp"

namespace nd::harness {

namespace {

constexpr int kBusyMs = 10'000;
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS owner(one INTEGER PRIMARY KEY CHECK(one = 1), host TEXT, pid TEXT, start TEXT);"
    "CREATE TABLE IF NOT EXISTS plans(run TEXT PRIMARY KEY, plan TEXT);"
    "CREATE TABLE IF NOT EXISTS attempts(run TEXT, attempt INTEGER, finished INTEGER DEFAULT 0, job TEXT DEFAULT '', result TEXT DEFAULT '', PRIMARY KEY(run, attempt));";

/// When a process began, in ticks since the start of the machine; empty when there is none. A number that is used again has another one.
std::string start_of(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  std::string text;
  std::getline(in, text);
  const auto name_end = text.rfind(')');  // the program's name may contain anything
  if (name_end == std::string::npos) return {};
  const auto fields = core::split(text.substr(name_end + 1), ' ');
  constexpr std::size_t kStart = 20;  // field 22 of proc(5), behind an empty one, pid and name
  return fields.size() > kStart ? fields[kStart] : std::string();
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("unknown");
}

Result<Store> Store::open(const std::string& path) {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Store store(database, path);
  if (code != SQLITE_OK) return Error(store.failure());
  sqlite3_busy_timeout(database, kBusyMs);
  for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", kSchema})
    if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Error(store.failure());
  return store;
}

Store::Store(Store&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)), path_(std::move(other.path_)), claimed_(std::exchange(other.claimed_, false)) {}

Store::~Store() {
  release();
  sqlite3_close(database_);
}

Diagnostic Store::failure() const {
  return make_diagnostic(Errc::io, {path_, 0, 0, {}}, std::string("the journal cannot be used: ") + (database_ == nullptr ? "no memory" : sqlite3_errmsg(database_)));
}

std::optional<Diagnostic> Store::run(const char* sql, const std::vector<std::string>& values) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) return failure();
  int index = 0;
  for (const auto& value : values) sqlite3_bind_text(statement, ++index, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  const int code = sqlite3_step(statement);
  std::optional<Diagnostic> problem;
  if (code != SQLITE_DONE && code != SQLITE_ROW) problem = failure();
  sqlite3_finalize(statement);
  return problem;
}

Result<std::vector<std::vector<std::string>>> Store::rows(const char* sql) const {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) return Error(failure());
  std::vector<std::vector<std::string>> out;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    std::vector<std::string> row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, i));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
      row.push_back(bytes == nullptr ? std::string() : std::string(bytes, size));
    }
    out.push_back(std::move(row));
  }
  const bool done = code == SQLITE_DONE;
  auto problem = done ? Diagnostic{} : failure();
  sqlite3_finalize(statement);
  if (!done) return Error(std::move(problem));
  return out;
}

std::optional<Diagnostic> Store::claim() {
  const std::string host = host_name(), pid = std::to_string(getpid()), start = start_of(pid);
  if (auto problem = run("BEGIN IMMEDIATE", {})) return problem;
  const auto owner = rows("SELECT host, pid, start FROM owner");
  std::optional<Diagnostic> problem;
  if (!owner) problem = owner.error().diagnostics.front();
  if (!problem && !owner->empty()) {
    const auto& last = owner->front();
    const bool here = last[0] == host;
    if (!here || start_of(last[1]) == last[2])
      problem = make_diagnostic(Errc::conflict, {path_, 0, 0, {}}, "is in use by process " + last[1] + " on " + last[0],
                                here ? "end it first" : "end it there; if that machine is gone, delete the row of table 'owner'");
  }
  if (!problem) problem = run("INSERT OR REPLACE INTO owner VALUES(1, ?, ?, ?)", {host, pid, start});
  if (problem) {
    (void)run("ROLLBACK", {});
    return problem;
  }
  problem = run("COMMIT", {});
  claimed_ = !problem;
  return problem;
}

void Store::release() {
  if (database_ != nullptr && claimed_) (void)run("DELETE FROM owner", {});
  claimed_ = false;
}

std::optional<Diagnostic> Store::save_plan(const std::string& id, std::string_view plan) {
  return run("INSERT OR REPLACE INTO plans VALUES(?, ?)", {id, std::string(plan)});
}
std::optional<Diagnostic> Store::begin(const std::string& id, std::int64_t attempt) {
  return run("INSERT INTO attempts(run, attempt) VALUES(?, CAST(? AS INTEGER))", {id, std::to_string(attempt)});
}
std::optional<Diagnostic> Store::set_job(const std::string& id, std::int64_t attempt, const std::string& job) {
  return run("UPDATE attempts SET job = ? WHERE run = ? AND attempt = CAST(? AS INTEGER)", {job, id, std::to_string(attempt)});
}
std::optional<Diagnostic> Store::finish(const std::string& id, std::int64_t attempt, std::string_view result) {
  return run("UPDATE attempts SET finished = 1, result = ? WHERE run = ? AND attempt = CAST(? AS INTEGER)", {std::string(result), id, std::to_string(attempt)});
}

Result<std::vector<Attempt>> Store::attempts() const {
  return rows("SELECT run, attempt, finished, job, result FROM attempts ORDER BY run, attempt").transform([](const auto& all) {
    std::vector<Attempt> out;
    for (const auto& row : all) out.push_back({row[0], core::parse_integer(row[1]).value_or(0), row[2] == "1", row[3], row[4]});
    return out;
  });
}

Result<std::vector<std::pair<std::string, std::string>>> Store::plans() const {
  return rows("SELECT run, plan FROM plans ORDER BY rowid").transform([](const auto& all) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& row : all) out.emplace_back(row[0], row[1]);
    return out;
  });
}

}  // namespace nd::harness
