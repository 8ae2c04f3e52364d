// SPDX-License-Identifier: Apache-2.0
// Output of the Ascend profiler (torch_npu.profiler): step_trace_time.csv holds microseconds per step, communication.json the elapse of
// every collective.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "formats/csv.hpp"
#include "traces/chrome.hpp"

namespace nd::traces {

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 32;
constexpr double kMostMicroseconds = 1e12;

/// Elapse of the collectives of one step, milliseconds and calls by name.
struct Collectives {
  std::map<std::string, std::pair<double, std::int64_t>> elapse;
};

/// step -> kind -> collective -> "Communication Time Info" -> "Elapse Time(ms)". Holds nothing but the sums.
class CommunicationHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit CommunicationHandler(std::map<std::string, Collectives>& steps) : steps_(steps) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    path_.push_back(key_);
    return path_.size() <= kDeepest;
  }
  bool end_object() override {
    path_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return start_object(0); }
  bool end_array() override { return end_object(); }
  bool key(string_t& name) override {
    key_ = name.substr(0, 512);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }
  [[nodiscard]] std::size_t position() const { return position_; }

 private:
  bool number(double value) {
    if (key_ != "Elapse Time(ms)" || path_.size() != 5 || path_[4] != "Communication Time Info" || path_[3] == "Total Op Info") return true;
    auto& [elapse, calls] = steps_[path_[1]].elapse[path_[3]];
    elapse += value;
    ++calls;
    return true;
  }
  std::map<std::string, Collectives>& steps_;
  std::vector<std::string> path_;
  std::string key_;
  std::size_t position_ = 0;
};

std::int64_t to_ns(double microseconds) { return std::llround(microseconds * 1000.0); }

class AscendRun {
 public:
  AscendRun(const std::string& folder, const ClassifyRequest& request) : folder_(folder), request_(request) {}

  Result<std::vector<ClassifiedStep>> run() {
    const fs::path output = fs::exists(fs::path(folder_) / "ASCEND_PROFILER_OUTPUT") ? fs::path(folder_) / "ASCEND_PROFILER_OUTPUT" : fs::path(folder_);
    if (request_.dims.empty())
      problems_.push_back(make_diagnostic(Errc::missing_field, {folder_, 0, 0, "--dims"}, "an Ascend run needs the degrees: its collectives are told apart by them", "--dims DP=8,MP=1,..."));
    const auto table = formats::read_csv((output / "step_trace_time.csv").string());
    if (!table) append(table.error());
    read_collectives((output / "communication.json").string());
    if (!problems_.empty()) return Error(std::move(problems_));
    check_columns(*table);
    std::vector<ClassifiedStep> out;
    if (problems_.empty())
      for (const auto& row : table->rows) out.push_back(classify(*table, row));
    if (out.empty() && problems_.empty()) problems_.push_back(make_diagnostic(Errc::missing_field, {table->file, 1, 0, {}}, "the table has no steps"));
    if (!problems_.empty()) return Error(std::move(problems_));
    return out;
  }

 private:
  void append(const Error& error) { problems_.insert(problems_.end(), error.diagnostics.begin(), error.diagnostics.end()); }

  void read_collectives(const std::string& path) {
    const auto stream = open_stream(path);
    std::error_code error;
    if (stream == nullptr || !fs::is_regular_file(path, error)) {
      problems_.push_back(make_diagnostic(Errc::io, {path, 0, 0, {}}, "cannot be read"));
      return;
    }
    CommunicationHandler handler(steps_);
    if (!nlohmann::json::sax_parse(*stream, &handler))
      problems_.push_back(make_diagnostic(Errc::syntax, {path, 0, 0, {}}, "is no JSON document from byte " + std::to_string(handler.position()) + " on"));
  }

  void check_columns(const formats::CsvTable& table) {
    for (const char* name : {"Computing", "Communication(Not Overlapped)", "Free", "Stage", "Bubble"})
      if (!table.column(name)) problems_.push_back(make_diagnostic(Errc::missing_field, {table.file, 1, 0, name}, "the column is missing", core::name_hint(name, table.header)));
  }

  double microseconds(formats::CsvRecord& cells, const char* column) {
    const double value = cells.real(column).value_or(0);
    if (std::isfinite(value) && value >= 0 && value <= kMostMicroseconds) return value;
    problems_.push_back(make_diagnostic(Errc::out_of_range, cells.where(column), "is no time in microseconds"));
    return 0;
  }

  ClassifiedStep classify(const formats::CsvTable& table, const formats::CsvTable::Row& row) {
    ClassifiedStep out;
    formats::CsvRecord cells(table, row, problems_);
    out.file = table.file;
    out.step = cells.integer("Step").value_or(0);
    out.rank = rank_in_name(folder_).value_or(cells.integer("Device_id").value_or(0));
    const double bubble = microseconds(cells, "Bubble"), stage = microseconds(cells, "Stage"), idle = microseconds(cells, "Free");
    const double computing = microseconds(cells, "Computing");
    double exposed = microseconds(cells, "Communication(Not Overlapped)");
    // A step is its stage and its bubble (waiting to receive). The profiler counts the bubble as exposed communication too; where the figures
    // say that it stands beside it, nothing is taken off.
    const double listed = computing + exposed + idle;
    if (std::abs(listed - stage - bubble) <= std::abs(listed - stage)) exposed = std::max(0.0, exposed - bubble);
    out.compute_ns[static_cast<std::size_t>(ComputePhase::unsplit)] = to_ns(computing);
    out.wait_ns[static_cast<std::size_t>(WaitKind::pp)] = to_ns(bubble);
    apportion(step_text(cells), exposed, out);
    out.idle_ns = to_ns(idle);
    out.time_ns = out.compute_total() + out.unclassified_ns + out.idle_ns;
    for (const std::int64_t wait : out.wait_ns) out.time_ns += wait;
    return out;
  }

  /// "step3", or the only one there is.
  std::string step_text(const formats::CsvRecord& cells) const {
    const std::string name = "step" + cells.text("Step").value_or("");
    return steps_.count(name) == 0 && steps_.size() == 1 ? steps_.begin()->first : name;
  }

  /// Exposed communication is shared out over the collectives in proportion to their elapse.
  void apportion(const std::string& step, double exposed, ClassifiedStep& out) const {
    const auto found = steps_.find(step);
    double all = 0;
    if (found != steps_.end())
      for (const auto& [name, elapse] : found->second.elapse) all += elapse.first;
    if (all <= 0) {
      out.unclassified_ns += to_ns(exposed);
      return;
    }
    // Running sums are rounded, not the shares: the nanoseconds add up to what was exposed.
    double before = 0;
    for (const auto& [name, elapse] : found->second.elapse) {
      const double after = before + elapse.first;
      const std::int64_t share = to_ns(exposed * after / all) - to_ns(exposed * before / all);
      before = after;
      const auto kind = wait_by_collective(name, request_);
      if (kind) out.wait_ns[static_cast<std::size_t>(*kind)] += share;
      else out.unclassified_ns += share;
      CallSite& site = out.sites[name.substr(0, name.find("__"))];
      site.time_ns += share;
      site.calls += elapse.second;
      site.wait = kind ? std::string(to_text(*kind)) : "unclassified";
    }
  }

  const std::string& folder_;
  const ClassifyRequest& request_;
  std::map<std::string, Collectives> steps_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

Result<std::vector<ClassifiedStep>> classify_ascend(const std::string& folder, const ClassifyRequest& request) { return AscendRun(folder, request).run(); }

}  // namespace nd::traces
