// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "nd/framework_profile.hpp"

namespace nd::run {

/// One member of a profile section: the key of data/frameworks/*.yaml is the member's name.
template <class Section>
struct ProfileField {
  std::string_view name;
  std::variant<double Section::*, bool Section::*, int Section::*, std::int64_t Section::*, std::string Section::*,
               Dispatcher Section::*, OptimizerTemporary Section::*, DataParallelStyle Section::*, LayerSplit Section::*,
               SequenceParallelRule Section::*>
      member;
};

/// Every member of the section, once. A new member of nd/framework_profile.hpp is one row there.
[[nodiscard]] std::span<const ProfileField<MemoryProfile>> memory_fields();
[[nodiscard]] std::span<const ProfileField<TimeProfile>> time_fields();
[[nodiscard]] std::span<const ProfileField<CapabilityProfile>> capability_fields();

}  // namespace nd::run
