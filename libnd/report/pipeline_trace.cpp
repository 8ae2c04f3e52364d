// SPDX-License-Identifier: Apache-2.0
#include "nd/report.hpp"

namespace nd {

std::string pipeline_trace(const SearchReport& report, const PricedCandidate& candidate) {
  const PipelinePasses passes = pipeline_passes(report.scenario, candidate.config);
  ReplayInput input = passes.input();
  input.timeline = true;
  const ReplayResult replay = replay_schedule(passes.schedule, input);
  ND_CHECK(replay.ok());
  return trace_json(replay, std::string(schedule_title(passes.schedule)) + ": " + to_text(candidate.config));
}

}  // namespace nd
