// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "nd/fit.hpp"
#include "report/text_table.hpp"

namespace nd {
namespace {

using report::Align;
using report::TextTable;

std::string errors_text(const ErrorStatistics& errors) {
  if (errors.n == 0) return "-";
  return fmt::format("{:.1f} / {:.1f} / {:.1f} / {:+.1f}", 100 * errors.mean_ape, 100 * errors.median_ape, 100 * errors.p90_ape, 100 * errors.bias);
}

void add_errors(const std::string& name, const FitErrors& errors, TextTable& table) {
  table.add({name, std::to_string(errors.data.n), errors_text(errors.data), errors_text(errors.priors), errors_text(errors.fitted),
             errors_text(errors.by_model), errors_text(errors.by_file)});
}

/// How much freedom the fit had: constants a group of framework versions or devices has to itself, and those far from their prior.
std::string free_constants(const FitReport& report) {
  std::map<std::string, int> groups;
  std::string far;
  for (const FittedConstant& constant : report.constants) {
    ++groups[constant.group];
    if (std::abs(constant.z) > 2) far += (far.empty() ? "" : ", ") + constant.group + " " + constant.member;
  }
  const auto most = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string out = fmt::format("{} constants in {} groups", report.constants.size(), groups.size());
  if (most != groups.end()) out += fmt::format("; most in one: {} ({})", most->second, most->first);
  return out + "; beyond two prior deviations: " + (far.empty() ? "none" : far) + "\n";
}

}  // namespace

std::string fit_text(const FitReport& report) {
  std::string out = fmt::format("Fit on {} of {} rows; loss {:.1f} with the figures of the data, {:.1f} at the priors, {:.1f} fitted\n\n",
                                report.learned_rows, report.rows, report.loss_data, report.loss_priors, report.loss_fitted);
  out += "Error of seconds per step, %: mean / median / p90 / bias\n";
  TextTable errors({{"file", Align::left}, {"rows"}, {"data"}, {"priors"}, {"fitted"}, {"five-fold by (file, model)"}, {"file left out"}});
  for (const auto& [file, of] : report.files) add_errors(file, of, errors);
  add_errors("all but launch-bound", report.all, errors);
  add_errors("mean of the files", report.file_means, errors);
  out += errors.text() + "\nConstants, by what they bring\n";
  TextTable table({{"group", Align::left}, {"constant", Align::left}, {"rows"}, {"prior"}, {"+-"}, {"data"}, {"fitted"}, {"z"}, {"brings"},
                   {"reading", Align::left}});
  std::vector<const FittedConstant*> order;
  for (const FittedConstant& constant : report.constants) order.push_back(&constant);
  std::stable_sort(order.begin(), order.end(), [](const FittedConstant* a, const FittedConstant* b) { return a->sensitivity > b->sensitivity; });
  for (const FittedConstant* c : order) {
    table.add({c->group, c->member + (c->feature.empty() ? "" : " (" + c->feature + ")"), std::to_string(c->rows), fmt::format("{:.4g}", c->prior),
               fmt::format("{:.0f}%", 100 * c->width), fmt::format("{:.4g}", c->before), fmt::format("{:.4g}", c->fitted),
               fmt::format("{:+.2f}{}", c->z, std::abs(c->z) > 2 ? " !" : ""), fmt::format("{:.2f}", c->sensitivity), c->reading});
  }
  return out + table.text() + "\n" + free_constants(report);
}

}  // namespace nd
