// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/tree/node.hpp"
#include "nd/device.hpp"
#include "nd/result.hpp"

namespace nd::formats {

/// A device file of schema nd/device/1 (data/schema/device.md). Every problem of the file at once, with positions:
/// besides those of read_fields, peaks that do not cover the data types, levels that do not nest, network figures whose
/// units contradict each other.
[[nodiscard]] Result<DeviceType> read_device(const ConfigNode& root);

}  // namespace nd::formats
