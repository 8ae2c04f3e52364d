// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"
#include "nd/compare.hpp"
#include "nd/version.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;

/// Ratios of our estimates lie around 1; a file beyond this was fitted in another unit, whatever it says.
constexpr double kLeastRatio = 0.02, kMostRatio = 50.0;

/// Keys a file must have: those of the predecessor.
constexpr std::array kRequired{RatioKey::compute, RatioKey::dp_comm, RatioKey::dp_reduce, RatioKey::mp_comm,
                               RatioKey::ep_comm, RatioKey::cp_comm, RatioKey::pp_comm,   RatioKey::bubble};

struct TextField {
  const char* name;
  std::string FittedOn::*member;
};
constexpr std::array<TextField, 10> kFields{{{"csv", &FittedOn::csv},
                                             {"device", &FittedOn::device},
                                             {"model", &FittedOn::model},
                                             {"framework", &FittedOn::framework},
                                             {"estimator_version", &FittedOn::estimator_version},
                                             {"unit", &FittedOn::unit},
                                             {"device_digest", &FittedOn::device_digest},
                                             {"model_digest", &FittedOn::model_digest},
                                             {"framework_digest", &FittedOn::framework_digest},
                                             {"method", &FittedOn::method}}};

std::vector<std::string> key_names() {
  std::vector<std::string> out;
  for (std::size_t key = 0; key < kRatioKeyCount; ++key) out.emplace_back(to_text(static_cast<RatioKey>(key)));
  return out;
}

void read_fitted_on(const formats::ConfigNode& node, FittedOn& out, std::vector<Diagnostic>& problems) {
  formats::MapReader reader(node, problems);
  for (const TextField& field : kFields) out.*field.member = reader.string(field.name).value_or("");
  out.rows = reader.integer("rows").value_or(0);
  if (reader.has("settings")) out.settings = reader.strings("settings").value_or(std::vector<std::string>{});
  // The predecessor writes one text, we a list.
  const formats::ConfigNode* strategies = reader.child("strategies");
  if (strategies != nullptr && strategies->is_sequence()) {
    for (const auto& item : strategies->items) out.strategies.push_back(item.text);
  } else if (strategies != nullptr && strategies->is_scalar()) {
    out.strategies.push_back(strategies->text);
  }
  reader.ignore_rest();
}

void check_unit(const CalibrationRatios& ratios, const formats::ConfigNode& root, std::vector<Diagnostic>& problems) {
  const std::string& unit = ratios.fitted_on.unit;
  const std::string hint = "fit them again: run_nd -y RUN --real_csv MEASURED.csv --write_ratios FILE";
  SourceRef where = root.where;
  where.path = "_fitted_on.unit";
  if (unit.empty()) {
    problems.push_back(make_diagnostic(Errc::unsupported, where,
                                       "the file does not say that its ratios are " + std::string(kRatioUnit) +
                                           " of estimates in seconds; those of other estimators are milliseconds per unit of their own score",
                                       hint));
    return;
  }
  if (unit != kRatioUnit) {
    problems.push_back(make_diagnostic(Errc::unsupported, where, "ratios in '" + unit + "', ours are " + std::string(kRatioUnit), hint));
    return;
  }
  for (std::size_t key = 0; key < kRatioKeyCount; ++key) {
    const auto& value = ratios.value[key];
    if (!value || *value == 0 || (*value >= kLeastRatio && *value <= kMostRatio)) continue;
    where.path = to_text(static_cast<RatioKey>(key));
    problems.push_back(make_diagnostic(Errc::out_of_range, where, fmt::format("{:g} is no ratio of a measured to an estimated time (from {} to {}): another unit?", *value, kLeastRatio, kMostRatio), hint));
  }
}

std::optional<Diagnostic> differs(const SourceRef& where, const std::string& what, const std::string& fitted, const std::string& now) {
  if (fitted.empty() || now.empty() || fitted == now) return std::nullopt;
  const auto names = core::split(fitted, ',');
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return core::trim(name) == now; })) return std::nullopt;
  auto out = make_diagnostic(Errc::conflict, where, "the ratios were fitted on " + what + " " + fitted + ", this is " + now, "they are applied all the same");
  out.severity = Severity::warning;
  return out;
}

}  // namespace

Result<CalibrationRatios> read_ratios(const std::string& path) {
  const auto text = formats::read_text_file(path);
  if (!text) return text.error();
  const auto root = formats::parse_json(*text, path);
  if (!root) return root.error();
  std::vector<Diagnostic> problems;
  CalibrationRatios out;
  if (!root->is_mapping()) return make_error(Errc::wrong_type, root->where, "a calibration file is one JSON object of ratios");
  formats::MapReader reader(*root, problems);
  const std::vector<std::string> names = key_names();
  for (std::size_t key = 0; key < kRatioKeyCount; ++key) {
    const auto value = reader.real(names[key]);
    if (value && (!std::isfinite(*value) || *value < 0)) reader.error(names[key], Errc::out_of_range, "must be a ratio that is not negative");
    else out.value[key] = value;
  }
  for (const RatioKey key : kRequired) reader.require(std::string(to_text(key)), "every calibration");
  if (const auto* fitted = reader.child("_fitted_on")) read_fitted_on(*fitted, out.fitted_on, problems);
  reader.finish();
  check_unit(out, *root, problems);
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

std::string ratios_json(const CalibrationRatios& ratios) {
  Json document = Json::object();
  for (std::size_t key = 0; key < kRatioKeyCount; ++key)
    if (ratios.value[key]) document[std::string(to_text(static_cast<RatioKey>(key)))] = *ratios.value[key];
  Json fitted = Json::object();
  for (const TextField& field : kFields) fitted[field.name] = ratios.fitted_on.*field.member;
  fitted["rows"] = ratios.fitted_on.rows;
  fitted["strategies"] = ratios.fitted_on.strategies;
  if (!ratios.fitted_on.settings.empty()) fitted["settings"] = ratios.fitted_on.settings;
  document["_fitted_on"] = std::move(fitted);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<Diagnostic> check_calibration(const CalibrationRatios& ratios, const Scenario& scenario, const SourceRef& where) {
  std::vector<Diagnostic> out;
  const FittedOn& fitted = ratios.fitted_on;
  const PriceFingerprint now = fingerprint(scenario);
  const auto warn = [&](std::string message, std::string hint) {
    auto warning = make_diagnostic(Errc::conflict, where, std::move(message), std::move(hint));
    warning.severity = Severity::warning;
    out.push_back(std::move(warning));
  };
  const auto compare = [&](const std::string& what, const std::string& name, const std::string& now_name) {
    auto difference = differs(where, what, name, now_name);
    if (difference) out.push_back(std::move(*difference));
    return !difference;
  };
  // Same name, other content: the file was changed after the fit.
  const auto stale = [&](const std::string& what, const std::string& digest, const std::string& now_digest) {
    if (!digest.empty() && digest != now_digest) warn("the " + what + " has changed since the ratios were fitted", "fit them again");
  };
  if (compare("device", fitted.device, scenario.cluster.device.name)) stale("device file of " + scenario.cluster.device.name, fitted.device_digest, now.device);
  (void)compare("estimator version", fitted.estimator_version, kVersion);
  if (compare("framework", fitted.framework, scenario.profile.name + " " + scenario.profile.version))
    stale("profile of " + scenario.profile.name, fitted.framework_digest, now.framework);
  if (!fitted.model.empty() && fitted.model == scenario.model.name) stale("model " + scenario.model.name, fitted.model_digest, now.model);
  else (void)compare("model", fitted.model, scenario.model.name);
  if (fitted.method == to_text(RatioLevel::none)) warn("the fit of these ratios abstained: every time ratio is 1", "");
  return out;
}

}  // namespace nd
