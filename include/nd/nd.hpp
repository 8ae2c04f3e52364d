// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything a user of the library needs.
#include "nd/calibration.hpp"
#include "nd/data_store.hpp"
#include "nd/device.hpp"
#include "nd/diagnostic.hpp"
#include "nd/formats.hpp"
#include "nd/framework_profile.hpp"
#include "nd/memory.hpp"
#include "nd/model_spec.hpp"
#include "nd/ops.hpp"
#include "nd/parallel_config.hpp"
#include "nd/perf.hpp"
#include "nd/report.hpp"
#include "nd/result.hpp"
#include "nd/run_spec.hpp"
#include "nd/scenario.hpp"
#include "nd/search.hpp"
#include "nd/search_space.hpp"
#include "nd/units.hpp"
#include "nd/validation.hpp"
#include "nd/version.hpp"
