// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>

#include "harness/outcome.hpp"

namespace nd {

Result<RunResult> read_logs(const LogRequest& request, const DataStore& data) {
  const auto profile = harness::read_log_profile(request.profile, data);
  const auto failures = harness::read_failures(data);
  std::vector<Diagnostic> problems;
  const auto add = [&](const Error& error) { problems.insert(problems.end(), error.diagnostics.begin(), error.diagnostics.end()); };
  if (!profile) add(profile.error());
  if (!failures) add(failures.error());
  // Logs are no text files in the strict sense: colour codes, control characters and broken UTF-8 are usual.
  std::vector<std::string> texts;
  for (const auto& file : request.files) {
    std::ifstream in(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (!in) problems.push_back(make_diagnostic(Errc::io, {file, 0, 0, {}}, "cannot be read"));
  }
  if (!problems.empty()) return Error(std::move(problems));
  const auto stated = harness::fact_number(request.run, profile->every);
  const std::int64_t every = stated && *stated >= 1 ? static_cast<std::int64_t>(*stated) : 1;
  harness::StepLog log(*profile, *failures, every);
  for (const auto& text : texts) {
    log.feed(text, 0);
    log.finish(0);
  }
  RunResult out;
  out.id = request.run.id;
  out.name = request.run.name;
  out.steps = harness::step_statistics(log, request.run, request.rule, every);
  // Nobody saw it end: what the log does not complain about ended well.
  const bool complains = !log.cause().empty() || !log.failures().empty();
  const auto judgement = harness::judge({complains ? 1 : 0, std::nullopt, harness::Stop::none, std::nullopt}, log, out.steps.n >= request.rule.least);
  out.status = judgement.status;
  out.reason = judgement.reason;
  harness::describe_log(log, request.run, out);
  return out;
}

}  // namespace nd
