// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/section.hpp"

#include <algorithm>
#include <tuple>

#include "core/text.hpp"

namespace nd::formats {

namespace {

ConfigNode section_node(const ConfigNode& parent, std::string_view name) {
  const ConfigNode* const found = parent.find(name);
  if (found != nullptr && !found->is_null()) return *found;
  ConfigNode empty;
  empty.kind = NodeKind::mapping;
  empty.where = parent.where;
  empty.where.path += (empty.where.path.empty() ? "" : ".") + std::string(name);
  return empty;
}

bool same_value(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same_value(a.items[i], b.items[i])) return false;
  return true;
}

/// A key so near to a known one that it is taken for a slip of the pen; short keys are near to everything.
std::string near_miss(const std::string& key, const std::set<std::string, std::less<>>& known, int slip = 2) {
  constexpr std::size_t kShortest = 6, kLongest = 64;
  if (key.size() < kShortest || key.size() > kLongest) return {};
  std::string nearest;
  for (const auto& name : known) {
    if (name.size() < kShortest) continue;
    const int distance = core::edit_distance(core::canonical_name(key), core::canonical_name(name));
    if (distance > slip) continue;
    slip = distance - 1;
    nearest = name;
  }
  return nearest;
}

}  // namespace

void Findings::warn(Errc code, SourceRef where, std::string message, std::string hint) {
  notes.push_back({Severity::warning, code, std::move(where), std::move(message), std::move(hint)});
}

void Findings::note(SourceRef where, std::string message, std::string hint) {
  notes.push_back({Severity::note, Errc::unsupported, std::move(where), std::move(message), std::move(hint)});
}

void sort_by_place(std::vector<Diagnostic>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.where.file, a.where.line, a.where.column) < std::tie(b.where.file, b.where.line, b.where.column);
  });
}

std::vector<Diagnostic> without_repeats(std::vector<Diagnostic> all) {
  std::vector<Diagnostic> out;
  for (Diagnostic& one : all)
    if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(std::move(one));
  return out;
}

void add_model_problems(const ModelSpec& spec, const ConfigNode& section, const FieldPlaces& places, Findings& findings) {
  const std::vector<Diagnostic> before = findings.problems;
  for (auto& problem : model_problems(spec, section, places)) {
    const auto same_place = [&problem](const Diagnostic& other) { return other.where == problem.where; };
    if (problem.code != Errc::missing_field || std::none_of(before.begin(), before.end(), same_place))
      findings.problems.push_back(std::move(problem));
  }
}

Section::Section(const ConfigNode& parent, std::string_view name, Findings& findings)
    : stated_(parent.find(name) != nullptr && !parent.find(name)->is_null()),
      node_(section_node(parent, name)),
      findings_(findings),
      map_(node_, findings.problems) {}

Section::Section(const ConfigNode& root, Findings& findings)
    : stated_(true), node_(root), findings_(findings), map_(node_, findings.problems) {}

std::string_view Section::key(Names names) {
  const ConfigNode* first = nullptr;
  std::string_view chosen = *names.begin();
  for (const auto name : names) {
    const ConfigNode* const node = map_.child(name);
    if (node == nullptr) continue;
    if (first == nullptr) {
      first = node;
      chosen = name;
    } else if (!same_value(*first, *node)) {
      map_.error(name, Errc::conflict, "differs from '" + std::string(chosen) + "', another spelling of the same setting", "keep one of the two");
    }
  }
  return chosen;
}

bool Section::has(Names names) {
  return std::any_of(names.begin(), names.end(), [this](std::string_view name) { return map_.has(name); });
}

void Section::refuse_slips() {
  for (const auto& [key, value] : node_.members)
    if (map_.known().count(key) == 0)
      if (const std::string near = near_miss(key, map_.known(), 1); !near.empty())
        findings_.problems.push_back(make_diagnostic(Errc::unknown_key, value.key_where(), "unknown key '" + key + "'", "did you mean '" + near + "'?"));
}

void Section::finish() {
  constexpr std::size_t kShown = 20;
  std::string unread;
  std::size_t count = 0;
  for (const auto& [key, value] : node_.members) {
    if (map_.known().count(key) != 0) continue;
    if (const std::string near = near_miss(key, map_.known()); !near.empty()) {
      findings_.problems.push_back(make_diagnostic(Errc::unknown_key, value.key_where(), "unknown key '" + key + "'", "did you mean '" + near + "'?"));
      continue;
    }
    constexpr std::size_t kLongestName = 60;
    if (++count <= kShown) unread += (unread.empty() ? "" : ", ") + key.substr(0, kLongestName);
  }
  if (count > kShown) unread += " and " + std::to_string(count - kShown) + " more";
  if (count > 0) findings_.note(node_.where, "read by nobody, no part of the price: " + unread);
}

}  // namespace nd::formats
