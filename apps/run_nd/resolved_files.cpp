// SPDX-License-Identifier: Apache-2.0
#include "resolved_files.hpp"

#include <algorithm>
#include <utility>

namespace run_nd {

namespace {

/// Stems of the files: the best candidate, then one per rank.
std::vector<std::string> stems(const ResolvedPlace& place, std::int64_t ranks) {
  std::vector<std::string> out{place.folder + "/resolved"};
  for (std::int64_t rank = 1; rank <= ranks; ++rank) out.push_back(place.folder + "/resolved/" + std::to_string(rank));
  return out;
}

nd::Diagnostic note(const ResolvedPlace& place, std::string message) {
  auto out = nd::make_diagnostic(nd::Errc::unsupported, {place.files.main, 0, 0, {}}, std::move(message));
  out.severity = nd::Severity::note;
  return out;
}

}  // namespace

std::vector<std::string> resolved_paths(const ResolvedPlace& place) {
  std::vector<std::string> out;
  if (place.folder.empty()) return out;
  const auto suffixes = nd::resolved_suffixes(place.format, place.files);
  if (suffixes.empty()) return out;
  for (const auto& stem : stems(place, place.ranks))
    for (const auto& suffix : suffixes) out.push_back(stem + suffix);
  if (place.balanced)
    for (const auto& suffix : suffixes) out.push_back(balanced_stem(place) + suffix);
  return out;
}

ResolvedOutcome write_resolved_files(const ResolvedPlace& place, const nd::SearchReport& report, const nd::DataStore& data, nd::OutputFiles& output) {
  ResolvedOutcome out;
  const auto& candidates = report.result.candidates;
  if (place.folder.empty() || candidates.empty()) return out;
  if (nd::resolved_suffixes(place.format, place.files).empty()) {
    out.notes.push_back(note(place, "a file of this format states no strategy; none is written back"));
    return out;
  }
  const auto original = nd::read_original(place.format, place.files);
  if (!original) {
    out.problems = original.error().diagnostics;
    return out;
  }
  const auto names = stems(place, std::min(place.ranks, static_cast<std::int64_t>(candidates.size())));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& candidate = candidates[i == 0 ? 0 : i - 1];
    const auto files = nd::write_resolved(*original, report.scenario, candidate.config, data);
    if (!files) {
      for (const auto& problem : files.error().diagnostics)
        out.notes.push_back(note(place, "rank " + std::to_string(candidate.rank) + " is not written back: " + problem.message));
      continue;
    }
    if (const auto& open = files->front().note; !open.empty())
      out.notes.push_back(note(place, "rank " + std::to_string(candidate.rank) + " is written back without what stands in other files: " + open));
    for (const auto& file : *files) output.add(names[i] + file.suffix, file.text);
  }
  return out;
}

std::string balanced_stem(const ResolvedPlace& place) { return place.folder + "/resolved_balanced"; }

ResolvedOutcome write_balanced_files(const ResolvedPlace& place, const nd::SearchReport& report, const nd::DataStore& data, nd::OutputFiles& output) {
  ResolvedOutcome out;
  if (place.folder.empty() || !report.balance || !report.balance->balanced || nd::resolved_suffixes(place.format, place.files).empty()) return out;
  const auto original = nd::read_original(place.format, place.files);
  if (!original) return out;  // said when the ranks were written
  nd::Scenario scenario = report.scenario;
  scenario.run.layers_per_chunk = report.balance->balanced->layers_per_chunk;
  const auto files = nd::write_resolved(*original, scenario, report.balance->config, data);
  if (!files) {
    for (const auto& problem : files.error().diagnostics)
      out.notes.push_back(note(place, "the layout of rank " + std::to_string(report.balance->rank) + " is not written back: " + problem.message));
    return out;
  }
  for (const auto& file : *files) output.add(balanced_stem(place) + file.suffix, file.text);
  return out;
}

}  // namespace run_nd
