// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nd/nd.hpp"
#include "options.hpp"

namespace run_nd {

/// --json - and -v 0 keep the standard output to themselves.
[[nodiscard]] bool talks(const Options& options);
/// What is read must survive, and every file asked for must come out. `input` is the file of the request, `resolved` are files that -o
/// writes besides the reports.
[[nodiscard]] std::vector<nd::Diagnostic> output_conflicts(const Options& options, const std::string& input, const std::vector<std::string>& resolved);
/// Writes to a file, or to the standard output for "-". False: it failed and the reason is printed.
bool write_document(const std::string& text, const std::string& path);
/// A full disk or a closed pipe shows in the error flag of the stream, whichever write it was. False: it failed, as above.
bool stdout_written();

}  // namespace run_nd
