// SPDX-License-Identifier: Apache-2.0
#include "memory/in_flight.hpp"

#include <algorithm>

#include "layout/schedules/table.hpp"

namespace nd::memory {

namespace {

bool at_least_as_many(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x >= y; });
}

}  // namespace

// Schedules repeat after the warm-up. The remainder m mod p stays, because the interleaved schedule spreads it over its first
// groups; one more group than that shows a plain one. All forwards first keeps every micro-batch.
int KeptFront::representative_batch(const ParallelConfig& config) {
  const layout::ScheduleRow& row = layout::schedule_row(config.schedule);
  if (config.schedule == Schedule::gpipe || layout::why_invalid(row, schedule_shape(config))) return config.micro_batch_num;
  if (config.group_size() != config.pp) return config.micro_batch_num;  // groups of their own size
  const int rest = config.micro_batch_num % config.pp;
  return std::min(config.micro_batch_num, std::max(4, rest + 2) * config.pp + rest);
}

bool KeptFront::covers(const KeptFront& other) const {
  if (other.chunks_ != chunks_) return false;
  for (std::size_t n = 0; n < other.moments(); ++n) {
    bool covered = false;
    for (std::size_t own = 0; own < moments() && !covered; ++own) covered = at_least_as_many(moment(own), other.moment(n));
    if (!covered) return false;
  }
  return true;
}

KeptFront::KeptFront(const ParallelConfig& config, int stage, std::size_t chunks) : chunks_(chunks) {
  const layout::ScheduleRow& row = layout::schedule_row(config.schedule);
  layout::PassList passes;
  ScheduleShape shape = schedule_shape(config);
  const bool all_forwards_first = config.schedule == Schedule::gpipe;
  const bool runs = !layout::why_invalid(row, shape) && static_cast<std::size_t>(row.local_chunks(shape)) == chunks;
  if (all_forwards_first || !runs) {  // what a schedule cannot run keeps everything: the safe side
    counts_.assign(chunks, config.micro_batch_num);
    return;
  }
  shape.micro_batches = representative_batch(config);
  row.passes(shape, stage, passes);
  std::vector<double> now(chunks, 0.0);
  const double unit = 1.0 / shape.parts;
  for (const Pass& pass : passes) {
    double& count = now[static_cast<std::size_t>(pass.chunk)];
    if (pass.kind == PassKind::forward) {
      count += unit;
      offer(now);
    } else if (pass.kind != PassKind::backward_input) {
      count -= unit;
    }
  }
}

void KeptFront::offer(std::span<const double> counts) {
  for (std::size_t n = 0; n < moments(); ++n)
    if (at_least_as_many(moment(n), counts)) return;
  std::size_t kept = 0;
  for (std::size_t n = 0; n < moments(); ++n) {
    if (at_least_as_many(counts, moment(n))) continue;
    std::copy_n(counts_.begin() + static_cast<std::ptrdiff_t>(n * chunks_), chunks_, counts_.begin() + static_cast<std::ptrdiff_t>(kept * chunks_));
    ++kept;
  }
  counts_.resize(kept * chunks_);
  counts_.insert(counts_.end(), counts.begin(), counts.end());
}

std::span<const double> KeptFront::heaviest(std::span<const double> bytes) const {
  std::size_t best = 0;
  double most = -1;
  for (std::size_t n = 0; n < moments(); ++n) {
    const std::span<const double> counts = moment(n);
    double sum = 0;
    for (std::size_t c = 0; c < chunks_; ++c) sum += counts[c] * bytes[c];
    if (sum > most * (1 + 1e-12)) {
      most = sum;
      best = n;
    }
  }
  return moment(best);
}

}  // namespace nd::memory
