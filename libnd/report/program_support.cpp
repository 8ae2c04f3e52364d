// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"
#include "core/text.hpp"
#include "nd/report.hpp"

namespace nd {

std::optional<Diagnostic> write_text_file(const std::string& path, std::string_view text) { return core::write_file(path, text); }

std::string suggest_name(std::string_view name, const std::vector<std::string>& known) { return core::name_hint(name, known); }

}  // namespace nd
