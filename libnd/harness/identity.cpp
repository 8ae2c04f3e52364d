// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>

#include "harness/digest.hpp"
#include "core/text.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/campaign.hpp"

namespace nd {

namespace {

constexpr std::size_t kIdDigits = 16;

/// Every text with its length in front: no two lists of texts are spelt alike.
class Canonical {
 public:
  Canonical& add(std::string_view text) {
    text_ += std::to_string(text.size()) + ":";
    text_ += text;
    return *this;
  }
  Canonical& add(std::int64_t number) { return add(std::to_string(number)); }
  [[nodiscard]] std::string digest() const { return harness::sha256(text_).substr(0, kIdDigits); }

 private:
  std::string text_;
};

/// Numbers by what they are worth: 1e-4 and 0.0001 are one value.
std::string typed(const std::string& text) {
  // Whole numbers beyond 2^53 keep their digits: as doubles, neighbours would be one value.
  if (const auto whole = core::parse_integer(text)) return "#" + std::to_string(*whole);
  if (const auto real = core::parse_real(text)) return "#" + formats::number_text(*real);
  return text;
}

void add_sorted(Canonical& out, NamedTexts texts) {
  std::sort(texts.begin(), texts.end());
  out.add(static_cast<std::int64_t>(texts.size()));
  for (const auto& [name, value] : texts) out.add(name).add(value);
}

}  // namespace

std::string run_identity(const Campaign& campaign, const PlannedRun& run) {
  Canonical out;
  out.add("nd/run/1").add(campaign.python).add(campaign.launcher).add(run.devices);
  out.add(static_cast<std::int64_t>(campaign.program.size()));
  for (const auto& word : campaign.program) out.add(word);
  add_sorted(out, campaign.launcher_options);
  std::map<std::string, Words> arguments;
  for (const auto& argument : run.arguments) arguments[argument.name] = argument.values;
  out.add(static_cast<std::int64_t>(arguments.size()));
  for (const auto& [name, values] : arguments) {
    out.add(name).add(static_cast<std::int64_t>(values.size()));
    for (const auto& value : values) out.add(typed(value));
  }
  add_sorted(out, run.environment);
  NamedTexts files;
  for (const auto& file : run.files) files.emplace_back(file.name, harness::sha256(file.text));
  add_sorted(out, files);
  if (!run.skip.empty()) {  // it was never made complete: it is known by what it was to be
    out.add(run.skip);
    add_sorted(out, run.facts);
  }
  return out.digest();
}

void identify_runs(Campaign& campaign) {
  std::map<std::string, std::string> first;  // id -> name
  std::vector<PlannedRun> kept;
  for (auto& run : campaign.runs) {
    run.id = run_identity(campaign, run);
    const auto [known, fresh] = first.emplace(run.id, run.name);
    if (fresh) {
      kept.push_back(std::move(run));
      continue;
    }
    auto note = make_diagnostic(Errc::conflict, {{}, 0, 0, run.name}, "is the same run as " + known->second + "; it is run once");
    note.severity = Severity::note;
    campaign.notes.push_back(std::move(note));
  }
  campaign.runs = std::move(kept);
}

}  // namespace nd
