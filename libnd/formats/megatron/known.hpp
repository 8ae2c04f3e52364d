// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/megatron/fields.hpp"

namespace nd::formats::megatron {

/// Says which arguments nobody read: those known to change memory or time are warnings, near misses of one that is read are
/// errors, others are listed. `complete`: the file lists every argument of the trainer (a dump), so strange ones are no news.
void report_unread(Fields& fields, bool complete);

}  // namespace nd::formats::megatron
