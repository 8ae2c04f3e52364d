// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nd/campaign.hpp"
#include "nd/diagnostic.hpp"
#include "nd/result.hpp"

namespace nd::harness {

/// What the front ends of a campaign have in common: the plan as it grows, and all problems of the input at once.
class PlanBuilder {
 protected:
  void problem(Errc code, SourceRef where, std::string message, std::string hint = {}) {
    problems_.push_back(make_diagnostic(code, std::move(where), std::move(message), std::move(hint)));
  }
  /// The value, or its problems among ours.
  template <class T>
  std::optional<T> take(Result<T> result) {
    if (result) return std::move(*result);
    problems_.insert(problems_.end(), result.error().diagnostics.begin(), result.error().diagnostics.end());
    return std::nullopt;
  }
  /// The plan with the identities of its runs, made from what was read by `expand`; the problems when there were or are any.
  template <class Expand>
  Result<Campaign> finished(Expand expand) {
    if (problems_.empty()) expand();
    if (!problems_.empty()) return Error(std::move(problems_));
    identify_runs(out_);
    return std::move(out_);
  }

  Campaign out_;
  std::vector<Diagnostic> problems_;
};

}  // namespace nd::harness
