// SPDX-License-Identifier: Apache-2.0
#include "nd/calibration.hpp"

namespace nd {

std::string MeasuredRow::file_name() const {
  const auto slash = file.find_last_of('/');
  return slash == std::string::npos ? file : file.substr(slash + 1);
}

bool MeasuredRow::out_of_memory() const {
  return notes.rfind("OOM", 0) == 0 && (notes.size() == 3 || notes[3] == ';' || notes[3] == ' ');
}

std::optional<double> MeasuredRow::measured_step_time() const {
  if (step_time_s && *step_time_s > 0) return step_time_s;
  if (!tokens_per_s_per_device || !gbs || !seq_len || !devices) return std::nullopt;
  if (*tokens_per_s_per_device <= 0 || *devices <= 0) return std::nullopt;
  return static_cast<double>(*gbs) * *seq_len / (*tokens_per_s_per_device * static_cast<double>(*devices));
}

}  // namespace nd
