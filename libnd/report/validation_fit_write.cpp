// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "core/file.hpp"
#include "core/text.hpp"
#include "nd/fit.hpp"
#include "report/validation_fit_plan.hpp"

namespace nd {
namespace {

using Path = std::vector<std::string>;

constexpr double kSilent = 0.02;  ///< prior standard deviations
constexpr double kNoMove = 0.004;

/// A figure to set: a plain number becomes `value`, a number with a unit is multiplied by `ratio`.
struct Change {
  double value = 0, ratio = 1;
  bool silent = false;  ///< the rows did not ask for another value than the prior

  [[nodiscard]] const char* kind() const { return silent ? "assumed" : "fitted"; }
  [[nodiscard]] bool moves() const { return std::abs(ratio - 1.0) > kNoMove; }
};

/// A data file whose figures are changed line by line, so that comments, order and everything unknown stay as they are.
class YamlLines {
 public:
  explicit YamlLines(const std::string& text) : lines_(core::split(text, '\n')) {}

  /// False when the file has no figure there.
  bool set(const Path& path, const Change& change) {
    const std::size_t line = find(path);
    if (line == kNone || lines_[line].find("value: ") == std::string::npos) return false;
    replace_value(lines_[line], change);
    replace_between(lines_[line], "kind: ", ",}", change.kind());
    replace_between(lines_[line], "source: ", "]", "[nd-fit");
    changed_ = true;
    return true;
  }
  /// Adds a figure that the block `path` inherited so far; makes its last mapping when there is none.
  bool add(const Path& block, const std::string& key, const Change& change) {
    if (change.silent && !change.moves()) return true;  // stays inherited
    const std::size_t parent = find(Path(block.begin(), block.end() - 1));
    if (parent == kNone) return false;
    std::size_t line = find(block);
    if (line == kNone) {
      line = parent + 1;
      // A list item's keys stand two columns behind its dash.
      const std::size_t indent = indent_of(lines_[parent]) + 2;
      lines_.insert(at(line), std::string(indent, ' ') + block.back() + ":");
    }
    const std::size_t indent = indent_of(lines_[line]) + 2;
    lines_.insert(at(line + 1), fmt::format("{}{}: {{value: {:.4g}, kind: {}, source: [nd-fit]}}", std::string(indent, ' '), key, change.value, change.kind()));
    changed_ = true;
    return true;
  }
  void cite(const std::string& citation) {
    if (!changed_) return;
    const std::string line = "  nd-fit: {citation: \"" + citation + "\"}";
    if (const std::size_t known = find({"sources", "nd-fit"}); known != kNone) lines_[known] = line;
    else if (const std::size_t sources = find({"sources"}); sources != kNone) lines_.insert(at(sources + 1), line);
  }
  [[nodiscard]] bool changed() const { return changed_; }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < lines_.size(); ++i) out += (i == 0 ? "" : "\n") + lines_[i];
    return out;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  [[nodiscard]] std::vector<std::string>::iterator at(std::size_t line) { return lines_.begin() + static_cast<std::ptrdiff_t>(line); }
  static std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

  /// "host_layer_ms" of "  host_layer_ms: {...}"; the version of "- version: x"; empty for anything else.
  static std::string key_of(const std::string& line) {
    std::string text = line.substr(indent_of(line));
    if (text.empty() || text.front() == '#') return {};
    constexpr std::string_view kItem = "- version: ";
    if (text.starts_with(kItem)) {
      text = text.substr(kItem.size());
    } else {
      const std::size_t colon = text.find(':');
      if (colon == std::string::npos) return {};
      text = text.substr(0, colon);
    }
    text.erase(std::remove(text.begin(), text.end(), '"'), text.end());
    return text;
  }

  [[nodiscard]] std::size_t find(const Path& path) const {
    std::vector<std::pair<std::size_t, std::string>> open;
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      const std::string key = key_of(lines_[line]);
      if (key.empty()) continue;
      const std::size_t indent = indent_of(lines_[line]);
      while (!open.empty() && open.back().first >= indent) open.pop_back();
      open.emplace_back(indent, key);
      const bool same = open.size() == path.size() && std::equal(path.begin(), path.end(), open.begin(),
                                                                 [](const std::string& a, const auto& b) { return a == b.second; });
      if (same) return line;
    }
    return kNone;
  }

  static void replace_value(std::string& line, const Change& change) {
    constexpr std::string_view kValue = "value: ";
    std::size_t begin = line.find(kValue) + kValue.size();
    const bool quoted = line[begin] == '"';
    if (quoted) ++begin;
    std::size_t end = begin;
    while (end < line.size() && (std::isdigit(static_cast<unsigned char>(line[end])) != 0 || line[end] == '.')) ++end;
    const double old = core::parse_real(line.substr(begin, end - begin)).value_or(0.0);
    line.replace(begin, end - begin, fmt::format("{:.4g}", quoted ? old * change.ratio : change.value));
  }
  static void replace_between(std::string& line, std::string_view before, std::string_view stops, const std::string& text) {
    const std::size_t found = line.find(before);
    if (found == std::string::npos) return;
    const std::size_t begin = found + before.size();
    line.replace(begin, line.find_first_of(stops, begin) - begin, text);
  }

  std::vector<std::string> lines_;
  bool changed_ = false;
};

Path device_path(const std::string& member) {
  Path path{"step_model"};
  for (const std::string& part : core::split(member, '.')) path.push_back(part);
  return path;
}

void set_framework(const report::FitGroup& group, const FittedConstant& constant, const Change& change, YamlLines& file) {
  const auto in_versions = [&](const std::string& version) {
    Path path{"versions", version};
    if (!constant.feature.empty()) path.insert(path.end(), {"features", constant.feature});
    path.insert(path.end(), {"time", constant.member});
    return file.set(path, change);
  };
  if (!constant.feature.empty()) {
    bool found = false;
    for (const std::string& version : group.versions) found = in_versions(version) || found;
    if (!found) file.set({"features", constant.feature, "time", constant.member}, change);
    return;
  }
  if (group.versions.empty()) {
    if (!file.set({"defaults", "time", constant.member}, change)) file.add({"defaults", "time"}, constant.member, change);
    return;
  }
  for (const std::string& version : group.versions)
    if (!in_versions(version)) file.add({"versions", version, "time"}, constant.member, change);
}

std::string citation_of(const FitReport& report) {
  std::string out = fmt::format("nd_validate --fit on {} measured rows of {} files (maximum a posteriori, priors of data/measured/fit.yaml)",
                                report.learned_rows, report.files.size());
  if (report.by_model) out += fmt::format("; five-fold by (file, model) mean {:.1f} %, median {:.1f} %", 100 * report.all.by_model.mean_ape,
                                          100 * report.all.by_model.median_ape);
  if (report.by_file) out += fmt::format("; whole files left out mean {:.1f} %, median {:.1f} %", 100 * report.all.by_file.mean_ape,
                                         100 * report.all.by_file.median_ape);
  return out;
}

/// What the report changes in one file of `folder` ("devices" or "frameworks").
void apply(const FitReport& report, const report::FitPlan& plan, const std::string& folder, const std::string& name, YamlLines& file) {
  for (const FittedConstant& constant : report.constants) {
    const auto group = std::find_if(plan.groups.begin(), plan.groups.end(), [&](const report::FitGroup& g) { return g.name == constant.group; });
    if (group == plan.groups.end()) continue;
    const Change change{.value = constant.fitted, .ratio = constant.fitted / constant.before, .silent = std::abs(constant.z) < kSilent};
    if (change.silent && !change.moves()) continue;
    if (folder == "frameworks") {
      if (group->framework == name) set_framework(*group, constant, change, file);
    } else if (group->framework.empty() &&
               (group->covers_all_devices() || std::find(group->devices.begin(), group->devices.end(), name) != group->devices.end())) {
      file.set(device_path(constant.member), change);
    }
  }
}

}  // namespace

Result<std::vector<std::string>> write_fitted_files(const FitReport& report, const DataStore& data, const std::string& folder) {
  const auto plan = report::load_fit_plan(data);
  if (!plan) return plan.error();
  const auto devices = data.device_names();
  if (!devices) return devices.error();
  const auto frameworks = data.framework_names();
  if (!frameworks) return frameworks.error();
  std::vector<std::string> written;
  for (const auto& [kind, names] : {std::pair("devices", &*devices), std::pair("frameworks", &*frameworks)}) {
    for (const std::string& name : *names) {
      const std::string below = std::string("/") + kind + "/" + name + ".yaml";
      std::ifstream in(data.root() + below, std::ios::binary);
      const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
      YamlLines file(text);
      apply(report, *plan, kind, name, file);
      if (!file.changed()) continue;
      file.cite(citation_of(report));
      if (const auto problem = core::write_file(folder + below, file.text())) return Error(*problem);
      written.push_back(folder + below);
    }
  }
  return written;
}

}  // namespace nd
