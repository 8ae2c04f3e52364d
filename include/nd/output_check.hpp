// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/diagnostic.hpp"

namespace nd {

/// A file a program reads or writes, and the option that names it.
struct NamedFile {
  std::string option, path;
};

/// Errors (conflict) for every output that is one of the inputs or another output, compared as files, not as names.
/// "-" and what is no regular file (a pipe, a device) may be named twice.
[[nodiscard]] std::vector<Diagnostic> check_outputs(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs);

}  // namespace nd
