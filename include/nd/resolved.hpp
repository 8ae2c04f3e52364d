// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nd/data_store.hpp"
#include "nd/diagnostic.hpp"
#include "nd/formats.hpp"
#include "nd/parallel_config.hpp"
#include "nd/result.hpp"
#include "nd/scenario.hpp"

namespace nd {

/// The input a search was asked with, as it stands on the disk.
struct Original {
  std::string format;  ///< id of its reader (Request::format)
  std::string file;    ///< path: positions in messages, companion files, and the suffix of what is written
  std::string text;
  std::string train_file = {}, train_text = {};            ///< of --train-yaml; empty without one
  std::string accelerate_file = {}, accelerate_text = {};  ///< of --accelerate-yaml
};

/// One file to write.
struct ResolvedFile {
  std::string suffix;  ///< behind the stem the caller chooses: ".yaml", ".sh", ".accelerate.yaml"
  std::string text;
  std::string note = {};  ///< parts of the strategy that the file leaves to others, for a person; usually empty
};

/// Reads the input again: `files.main` and the companions of its format. Errors: io, syntax (no text).
[[nodiscard]] Result<Original> read_original(std::string_view format, const RequestFiles& files);

/// Suffixes of the files that write_resolved() makes of this input; empty when the format has no writer (a bare model).
[[nodiscard]] std::vector<std::string> resolved_suffixes(std::string_view format, const RequestFiles& files);

/// The input with `config` in place of its own strategy: only fields of the strategy change, comments, order and unknown
/// fields stay. `scenario` is the one the search priced (search_scenario). What is returned has been read back: it gives this
/// strategy with these layers per stage, or there is an error that names what the format cannot say (unsupported).
[[nodiscard]] Result<std::vector<ResolvedFile>> write_resolved(const Original& original, const Scenario& scenario,
                                                               const ParallelConfig& config, const DataStore& data);

}  // namespace nd
