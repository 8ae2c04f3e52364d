// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al. 2019): all forwards, then all backwards. With more than one chunk per stage this is the
// breadth-first pipeline (Lamy-Poirier 2022): every micro-batch through chunk 0, then through chunk 1, ..., and back.
#include <algorithm>
#include <cstddef>

#include "layout/schedules/emit.hpp"
#include "layout/schedules/schedules.hpp"

namespace nd::layout::gpipe {

std::optional<std::string_view> why_invalid(const ScheduleShape&) { return std::nullopt; }

void passes(const ScheduleShape& shape, int, PassList& out) {
  for (int chunk = 0; chunk < shape.chunks; ++chunk)
    for (int unit = 0; unit < shape.micro_batches; ++unit) emit(out, PassKind::forward, chunk, unit);
  for (int chunk = shape.chunks - 1; chunk >= 0; --chunk)
    for (int unit = 0; unit < shape.micro_batches; ++unit) emit(out, PassKind::backward, chunk, unit);
}

// One chunk: the forwards are a flow shop of m equal jobs, and so are the backwards from the last stage's last forward on, by
// when every other stage has run all of its own.
std::optional<double> length(const ScheduleShape& shape, const StepTimes& times, StepScratch&) {
  if (shape.chunks > 1) return std::nullopt;
  double chain = 0, longest_forward = 0, longest_backward = 0;
  for (std::size_t i = 0; i < times.stages; ++i) {
    chain += times.forward[i] + times.forward_wait[i] + times.backward[i] + times.backward_wait[i];
    longest_forward = std::max(longest_forward, times.forward[i]);
    longest_backward = std::max(longest_backward, times.backward[i]);
  }
  return chain + (shape.micro_batches - 1) * (longest_forward + longest_backward);
}

HeldPeak held(const ScheduleShape& shape, int) {
  const double all = static_cast<double>(shape.micro_batches) * shape.chunks;
  return {all, 0, all};
}

// Stage p-1 starts p-1 forwards late and ends p-1 backwards early. With several chunks a micro-batch is back at stage 0
// after p chunk times, so m >= p micro-batches keep the loop full.
std::optional<double> bubble(const ScheduleShape& shape, const UniformTimes& times) {
  if (shape.chunks > 1 && shape.micro_batches < shape.stages) return std::nullopt;
  return (shape.stages - 1) * (times.forward + times.backward());
}

}  // namespace nd::layout::gpipe
