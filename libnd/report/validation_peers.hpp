// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nd/validation.hpp"
#include "report/validation_rules.hpp"
#include "report/validation_tables.hpp"

namespace nd::report {

/// Reads data/measured/peers.yaml and puts this report's errors on the same rows beside each published figure. A data folder
/// without the file has no peers; a broken file is an error.
[[nodiscard]] Result<std::vector<PeerGroup>> compare_peers(const ValidationReport& report, const DataStore& data);

/// One table: every group with this model first and the others below it; none when there are no groups.
[[nodiscard]] std::vector<StatisticsTable> peer_tables(const ValidationReport& report);

}  // namespace nd::report
