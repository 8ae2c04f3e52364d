// SPDX-License-Identifier: Apache-2.0
#include "report/validation_left_out.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include "run/profile_fields.hpp"

namespace nd::report {
namespace {

using Field = run::ProfileField<MemoryProfile>;

bool is_fitted(const FrameworkProfile& profile, const Field& field) {
  const auto source = profile.sources.find("memory." + std::string(field.name));
  return source != profile.sources.end() && source->second.kind == FigureKind::fitted;
}

std::string value_text(const MemoryProfile& memory, const Field& field) {
  return std::visit(
      [&memory](auto member) -> std::string {
        using Value = std::decay_t<decltype(memory.*member)>;
        if constexpr (std::is_same_v<Value, std::string>) return memory.*member;
        else if constexpr (std::is_enum_v<Value>) return to_text(memory.*member);
        else return fmt::format("{}", memory.*member);
      },
      field.member);
}

std::string key(const FrameworkProfile& profile, const Field& field) {
  return profile.name + "." + std::string(field.name) + "=" + value_text(profile.memory, field);
}

}  // namespace

void FittedEvidence::add(const FrameworkProfile& profile, const std::string& file) {
  for (const Field& field : run::memory_fields())
    if (is_fitted(profile, field)) files_[key(profile, field)].insert(file);
}

FrameworkProfile FittedEvidence::without(const FrameworkProfile& profile, const FrameworkProfile& fallback, const std::string& file) const {
  FrameworkProfile out = profile;
  for (const Field& field : run::memory_fields()) {
    if (!is_fitted(profile, field)) continue;
    const auto known = files_.find(key(profile, field));
    const bool only = known == files_.end() || (known->second.size() == 1 && *known->second.begin() == file);
    if (only) std::visit([&](auto member) { out.memory.*member = fallback.memory.*member; }, field.member);
  }
  return out;
}

}  // namespace nd::report
