// SPDX-License-Identifier: Apache-2.0
#include "nd/fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "calibration/fit.hpp"
#include "nd/perf.hpp"
#include "nd/validation.hpp"
#include "report/validation_fit_plan.hpp"
#include "report/validation_mapping.hpp"
#include "report/validation_pricer.hpp"
#include "report/validation_rules.hpp"

namespace nd {
namespace {

using calibration::FitConstant;
using calibration::FitResult;
using calibration::Fitter;

constexpr std::size_t kFolds = 5;

/// One measured step as a scenario whose constants can be changed.
struct FitRow {
  std::string file, model;
  bool launch_bound = false;
  double measured = 0;
  double data_error = 0;  ///< signed, under the figures of the data
  Scenario scenario;
  std::vector<std::string> features;
  std::vector<std::size_t> constants;
  std::vector<double*> addresses;  ///< into `scenario`
};

class StepModel : public calibration::FitModel {
 public:
  explicit StepModel(std::vector<FitRow>& rows) : rows_(rows) {}
  [[nodiscard]] std::size_t rows() const override { return rows_.size(); }
  double residual(std::size_t row, const std::vector<double>& values) override {
    FitRow& it = rows_[row];
    for (std::size_t i = 0; i < it.constants.size(); ++i) *it.addresses[i] = values[it.constants[i]];
    const TimeBreakdown time = estimate_time(it.scenario, it.scenario.run.strategy);
    return std::log(time.step.value / it.measured);
  }
  [[nodiscard]] const std::vector<std::size_t>& constants_of(std::size_t row) const override { return rows_[row].constants; }

 private:
  std::vector<FitRow>& rows_;
};

Result<std::vector<FitRow>> load_rows(const std::vector<MeasuredRow>& rows, const DataStore& data) {
  const auto book = report::load_rule_book(data);
  if (!book) return book.error();
  report::RowPricer pricer(data);
  std::vector<FitRow> out;
  for (const MeasuredRow& row : rows) {
    const report::MappedRow mapped = report::map_row(row, *book);
    pricer.prepare(mapped);
    const ValidatedRow priced = pricer.price(row, mapped);
    if (!priced.time_error()) continue;
    const report::QuarantineRule* rule = report::find_quarantine(*book, row);
    if (rule != nullptr && rule->figure != report::QuarantinedFigure::memory) continue;
    FitRow fit;
    ValidatedRow unused;
    if (!pricer.resolve(mapped, fit.scenario, unused).empty()) continue;
    fit.file = row.file_name();
    fit.model = row.model;
    fit.launch_bound = priced.memory_only;
    fit.measured = *priced.measured_step_time_s;
    fit.data_error = *priced.time_error();
    fit.features = priced.features;
    out.push_back(std::move(fit));
  }
  if (!pricer.problems().empty()) return Error(pricer.problems());
  if (out.empty()) return make_error(Errc::empty_space, {}, "no row has a step time to fit on");
  return out;
}

bool in_group_kind(const report::FitMember& member, const report::FitGroup& group) {
  if (member.of == "frameworks") return !group.framework.empty();
  return group.framework.empty() && group.covers_all_devices() == (member.of == "all devices");
}

/// The constants that at least one row depends on, and which rows those are.
std::vector<FittedConstant> bind_constants(const report::FitPlan& plan, std::vector<FitRow>& rows) {
  std::vector<FittedConstant> constants;
  for (const report::FitGroup& group : plan.groups) {
    for (const report::FitMember& member : plan.members) {
      if (!in_group_kind(member, group)) continue;
      const auto stated = group.priors.find(member.key());
      if (member.stated_only && stated == group.priors.end()) continue;
      FittedConstant constant{.group = group.name, .member = member.member, .feature = member.feature, .reading = member.reading,
                              .prior = stated != group.priors.end() ? stated->second : member.prior, .width = member.width};
      for (FitRow& row : rows) {
        if (!group.covers(row.scenario)) continue;
        if (!member.feature.empty() && std::find(row.features.begin(), row.features.end(), member.feature) == row.features.end()) continue;
        if (!report::fit_member_used(row.scenario, member.member)) continue;
        double* address = report::fit_member_address(row.scenario, member.member);
        if (address == nullptr || *address <= 0) continue;
        // A feature's figure is another constant than the one it replaces.
        const auto taken = std::find(row.addresses.begin(), row.addresses.end(), address);
        if (taken != row.addresses.end()) continue;
        if (constant.rows == 0) constant.before = *address;
        row.constants.push_back(constants.size());
        row.addresses.push_back(address);
        ++constant.rows;
      }
      if (constant.rows == 0) continue;
      if (constant.prior <= 0) constant.prior = constant.before;
      constants.push_back(std::move(constant));
    }
  }
  return constants;
}

std::vector<double> row_weights(const report::FitPlan& plan, const std::vector<FitRow>& rows) {
  std::map<std::string, double> in_file;
  for (const FitRow& row : rows) in_file[row.file] += 1;
  std::vector<double> weights;
  for (const FitRow& row : rows) {
    const bool never = std::find(plan.never.begin(), plan.never.end(), row.file) != plan.never.end();
    weights.push_back(never ? 0.0 : std::min(1.0, plan.rows_per_file / in_file[row.file]));
  }
  return weights;
}

/// Fold of every row: groups in alphabetical order, dealt out in turn.
std::vector<std::size_t> deal_folds(const std::vector<FitRow>& rows, bool by_file) {
  std::set<std::pair<std::string, std::string>> keys;
  const auto key = [&](const FitRow& row) { return std::pair(row.file, by_file ? std::string() : row.model); };
  for (const FitRow& row : rows) keys.insert(key(row));
  std::vector<std::size_t> folds;
  for (const FitRow& row : rows) {
    const auto place = static_cast<std::size_t>(std::distance(keys.begin(), keys.find(key(row))));
    folds.push_back(by_file ? place : place % kFolds);
  }
  return folds;
}

/// Residual of every row from a fit that has not seen its fold.
std::vector<double> held_out(const Fitter& fitter, const FitResult& whole, const std::vector<double>& weights, const std::vector<std::size_t>& folds) {
  std::vector<double> out = whole.residuals;
  const std::size_t count = folds.empty() ? 0 : *std::max_element(folds.begin(), folds.end()) + 1;
  for (std::size_t fold = 0; fold < count; ++fold) {
    std::vector<double> rest = weights;
    double held = 0;
    for (std::size_t row = 0; row < rest.size(); ++row)
      if (folds[row] == fold) held += std::exchange(rest[row], 0.0);
    if (held <= 0) continue;  // nothing was learned from it in the first place
    const FitResult fit = fitter.refit(rest, whole);
    for (std::size_t row = 0; row < rest.size(); ++row)
      if (folds[row] == fold) out[row] = fit.residuals[row];
  }
  return out;
}

struct Columns {
  std::vector<double> data, priors, fitted, by_model, by_file;  ///< signed errors
};

FitErrors statistics(const Columns& errors) {
  return {error_statistics(errors.data), error_statistics(errors.priors), error_statistics(errors.fitted),
          error_statistics(errors.by_model), error_statistics(errors.by_file)};
}

void add_mean(const ErrorStatistics& one, double share, ErrorStatistics& mean) {
  mean.n += one.n;
  mean.mean_ape += share * one.mean_ape;
  mean.median_ape += share * one.median_ape;
  mean.p90_ape += share * one.p90_ape;
}

struct Residuals {
  std::vector<double> priors, fitted, by_model, by_file;
};

void summarize(const std::vector<FitRow>& rows, const Residuals& residuals, FitReport& report) {
  std::map<std::string, Columns> files;
  Columns all;
  std::set<std::string> launch_bound;
  const auto append = [&](std::size_t row, Columns& to) {
    const auto add = [&](const std::vector<double>& from, std::vector<double>& errors) {
      if (!from.empty()) errors.push_back(std::exp(from[row]) - 1.0);
    };
    to.data.push_back(rows[row].data_error);
    add(residuals.priors, to.priors);
    add(residuals.fitted, to.fitted);
    add(residuals.by_model, to.by_model);
    add(residuals.by_file, to.by_file);
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    append(row, files[rows[row].file]);
    if (rows[row].launch_bound) launch_bound.insert(rows[row].file);
    else append(row, all);
  }
  report.all = statistics(all);
  for (const auto& [name, errors] : files) report.files[name] = statistics(errors);
  const double share = 1.0 / static_cast<double>(std::max<std::size_t>(1, files.size() - launch_bound.size()));
  for (const auto& [name, errors] : report.files) {
    if (launch_bound.count(name) > 0) continue;
    add_mean(errors.data, share, report.file_means.data);
    add_mean(errors.priors, share, report.file_means.priors);
    add_mean(errors.fitted, share, report.file_means.fitted);
    add_mean(errors.by_model, share, report.file_means.by_model);
    add_mean(errors.by_file, share, report.file_means.by_file);
  }
}

}  // namespace

Result<FitReport> fit_constants(const std::vector<MeasuredRow>& rows, const DataStore& data, const FitRequest& request) {
  const auto plan = report::load_fit_plan(data);
  if (!plan) return plan.error();
  auto loaded = load_rows(rows, data);
  if (!loaded) return loaded.error();
  std::vector<FitRow>& fit_rows = *loaded;
  FitReport report;
  report.constants = bind_constants(*plan, fit_rows);
  const std::vector<double> weights = row_weights(*plan, fit_rows);
  report.rows = static_cast<std::int64_t>(fit_rows.size());
  report.learned_rows = std::count_if(weights.begin(), weights.end(), [](double weight) { return weight > 0; });

  std::vector<FitConstant> constants;
  std::vector<double> start;
  for (const FittedConstant& constant : report.constants) {
    constants.push_back({constant.group + " " + constant.member, constant.prior, constant.width});
    start.push_back(constant.before);
  }
  StepModel model(fit_rows);
  Fitter fitter(std::move(constants), model, {.scale = plan->loss_scale, .jobs = std::max(1, request.jobs)});
  Residuals residuals;
  residuals.priors = fitter.predict({}, weights).residuals;
  const FitResult data_state = fitter.predict(start, weights);
  const FitResult whole = fitter.solve(weights, start);
  residuals.fitted = whole.residuals;
  if (request.by_model) residuals.by_model = held_out(fitter, whole, weights, deal_folds(fit_rows, false));
  if (request.by_file) residuals.by_file = held_out(fitter, whole, weights, deal_folds(fit_rows, true));
  report.by_model = request.by_model;
  report.by_file = request.by_file;
  report.loss_priors = fitter.predict({}, weights).row_cost;
  report.loss_data = data_state.row_cost;
  report.loss_fitted = whole.row_cost;
  for (std::size_t i = 0; i < report.constants.size(); ++i) {
    report.constants[i].fitted = whole.values[i];
    report.constants[i].z = whole.z[i];
    report.constants[i].sensitivity = whole.sensitivity[i];
  }
  summarize(fit_rows, residuals, report);
  return report;
}

}  // namespace nd
