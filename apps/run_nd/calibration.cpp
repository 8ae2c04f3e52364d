// SPDX-License-Identifier: Apache-2.0
#include "modes.hpp"

namespace run_nd {

nd::Result<nd::PriceFactors> read_calibration(const Options& options, const nd::Scenario& scenario, std::vector<nd::Diagnostic>& notes) {
  if (options.calibration.empty()) return nd::PriceFactors{};
  const auto ratios = nd::read_ratios(options.calibration);
  if (!ratios) return ratios.error();
  for (auto& warning : nd::check_calibration(*ratios, scenario, {options.calibration, 0, 0, "-c"})) notes.push_back(std::move(warning));
  auto note = nd::make_diagnostic(nd::Errc::unsupported, {options.calibration, 0, 0, "-c"},
                                  "step times are multiplied part by part with the ratios of " + std::to_string(ratios->fitted_on.rows) + " measured rows");
  note.severity = nd::Severity::note;
  notes.push_back(std::move(note));
  return ratios->factors();
}

}  // namespace run_nd
