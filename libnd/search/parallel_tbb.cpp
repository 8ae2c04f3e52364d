// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "search/parallel_backends.hpp"

namespace nd::search {

void run_on_tbb(const ChunkLoop& loop) {
  // More than the machine has would make TBB print a warning and change nothing else.
  const auto cores = static_cast<std::size_t>(std::max(1, tbb::info::default_concurrency()));
  tbb::task_arena arena(static_cast<int>(std::min(loop.workers, cores)));
  arena.execute([&loop] {
    // One range element per chunk: the caller chose the grain already.
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, loop.chunks, 1),
        [&loop](const tbb::blocked_range<std::size_t>& range) {
          const auto worker = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
          for (std::size_t index = range.begin(); index != range.end(); ++index) loop.chunk(index, worker);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace nd::search
