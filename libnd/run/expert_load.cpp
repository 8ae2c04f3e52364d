// SPDX-License-Identifier: Apache-2.0
#include "run/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>

#include "core/text.hpp"

namespace nd {

namespace {

constexpr double kSteepest = 16;           // exponent of a Zipf law beyond which one expert gets everything
constexpr std::size_t kMostExperts = 1 << 16;

Error bad_load(const SourceRef& where, std::string message) {
  return Error(make_diagnostic(Errc::out_of_range, where, std::move(message),
                               "uniform, zipf:EXPONENT, or one number per expert (8,4,2,1)"));
}

std::vector<std::string> words_of(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == ',' || c == ';' || c == '\n' || c == '\r' || c == '\t'; }, ' ');
  std::vector<std::string> words;
  for (const std::string& word : core::split(text, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

}  // namespace

Result<ExpertLoad> parse_expert_load(const std::string& text, const SourceRef& where) {
  ExpertLoad load;
  const std::vector<std::string> words = words_of(text);
  if (words.empty()) return bad_load(where, "no distribution of tokens over experts");
  if (words.size() == 1 && words.front() == "uniform") return load;
  if (words.size() == 1 && words.front().starts_with("zipf")) {
    const std::string rest = words.front().substr(4);
    const auto exponent = rest.starts_with(":") ? core::parse_real(rest.substr(1)) : std::nullopt;
    if (!exponent || !(*exponent >= 0 && *exponent <= kSteepest))
      return bad_load(where, "'" + words.front() + "' needs an exponent from 0 to 16");
    load.kind = ExpertLoad::Kind::zipf;
    load.exponent = *exponent;
    return load;
  }
  if (words.size() > kMostExperts) return bad_load(where, "more shares than any model has experts");
  load.kind = ExpertLoad::Kind::shares;
  for (const std::string& word : words) {
    const auto share = core::parse_real(word);
    if (!share || !std::isfinite(*share) || *share < 0 || *share > 1e15) return bad_load(where, "'" + word + "' is no share of tokens");
    load.shares.push_back(*share);
  }
  if (!(std::accumulate(load.shares.begin(), load.shares.end(), 0.0) > 0)) return bad_load(where, "no expert gets a token");
  return load;
}

double busiest_rank_load(const ResolvedRun& run, std::int64_t experts, int ep) {
  if (ep <= 1 || experts < ep) return 1.0;
  if (static_cast<std::int64_t>(run.expert_load.size()) != experts) return run.expert_imbalance;
  const std::size_t local = run.expert_load.size() / static_cast<std::size_t>(ep);
  double most = 0;
  for (std::size_t first = 0; first + local <= run.expert_load.size(); first += local)
    most = std::max(most, std::accumulate(run.expert_load.begin() + static_cast<std::ptrdiff_t>(first),
                                          run.expert_load.begin() + static_cast<std::ptrdiff_t>(first + local), 0.0));
  return most * ep;
}

namespace run {

std::vector<double> expert_shares(const ExpertLoad& load, std::int64_t experts) {
  std::vector<double> shares(static_cast<std::size_t>(std::max<std::int64_t>(0, experts)), 1.0);
  if (load.kind == ExpertLoad::Kind::shares) {
    if (load.shares.size() != shares.size()) return {};
    shares = load.shares;
  } else if (load.kind == ExpertLoad::Kind::zipf) {
    // Frequent experts side by side, as they may fall: the first rank gets the most frequent ones, which is the safe side.
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = std::pow(static_cast<double>(i + 1), -load.exponent);
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace run
}  // namespace nd
