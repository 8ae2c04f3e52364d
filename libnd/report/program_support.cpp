// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/file.hpp"
#include "core/text.hpp"
#include "nd/report.hpp"

namespace nd {

std::optional<Diagnostic> write_text_file(const std::string& path, std::string_view text) { return core::write_file(path, text); }

/// Every file on the disk without its name takes a descriptor; a process has about a thousand.
constexpr std::size_t kMostStaged = 64;

struct OutputFiles::Staged {
  std::vector<core::AtomicFile> files;
  std::vector<std::string> later;  ///< texts of the paths behind those of `files`
  std::vector<std::string> paths;
  std::vector<Diagnostic> problems;
};

OutputFiles::OutputFiles() : staged_(std::make_unique<Staged>()) {}
OutputFiles::~OutputFiles() = default;

void OutputFiles::add(const std::string& path, std::string_view text) {
  staged_->paths.push_back(path);
  if (staged_->files.size() == kMostStaged) {
    staged_->later.emplace_back(text);
    return;
  }
  core::AtomicFile file(path);
  file.write(text);
  if (auto problem = file.prepare()) staged_->problems.push_back(std::move(*problem));
  staged_->files.push_back(std::move(file));
}

const std::vector<Diagnostic>& OutputFiles::problems() const { return staged_->problems; }

const std::vector<Diagnostic>& OutputFiles::commit() {
  auto& problems = staged_->problems;
  const auto failed = [&problems](std::optional<Diagnostic> problem) {
    if (problem) problems.push_back(std::move(*problem));
    return !problems.empty();
  };
  if (!problems.empty()) return problems;
  for (auto& file : staged_->files)
    if (failed(file.commit())) return problems;
  for (std::size_t i = 0; i < staged_->later.size(); ++i)
    if (failed(core::write_file(staged_->paths[staged_->files.size() + i], staged_->later[i]))) return problems;
  return problems;
}

std::vector<std::string> OutputFiles::paths() const { return staged_->paths; }

std::string suggest_name(std::string_view name, const std::vector<std::string>& known) { return core::name_hint(name, known); }

}  // namespace nd
