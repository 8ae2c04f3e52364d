// SPDX-License-Identifier: Apache-2.0
#include "what_if.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "values.hpp"

namespace run_nd {

namespace {

using Problem = std::optional<nd::Diagnostic>;

nd::Diagnostic wrong(const std::string& change, std::string message, std::string hint = {}) {
  return usage_error("--what-if " + change, std::move(message), std::move(hint));
}

std::string lower(std::string text) {
  for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// One change with one value.
struct Change {
  std::string key, part;  ///< "bandwidth.node": key bandwidth, part node
  std::string value, text;
};

constexpr std::int64_t kMostDevices = 1 << 20, kMostTokens = 1 << 30;
constexpr double kLeastFactor = 1e-3, kMostFactor = 1e3;

Problem whole(const Change& change, std::int64_t most, std::optional<std::int64_t>& to) {
  const auto value = parse_integer(change.value);
  if (!value || *value < 1 || *value > most) return wrong(change.text, "must be a whole number from 1 to " + std::to_string(most));
  to = value;
  return std::nullopt;
}

Problem devices(const Change& change, const nd::DataStore&, Options& options) {
  std::optional<std::int64_t> count;
  if (auto problem = whole(change, kMostDevices, count)) return problem;
  options.devices = DeviceCounts{*count, *count, 0};
  return std::nullopt;
}

Problem device(const Change& change, const nd::DataStore& data, Options& options) {
  const auto type = data.device(change.value);
  if (!type) return wrong(change.text, type.error().diagnostics.front().message, type.error().diagnostics.front().hint);
  options.device_type = change.value;
  return std::nullopt;
}

Problem framework(const Change& change, const nd::DataStore& data, Options& options) {
  const auto names = data.framework_names();
  if (names && std::find(names->begin(), names->end(), change.value) == names->end())
    return wrong(change.text, "unknown framework", nd::suggest_name(change.value, *names));
  options.framework = change.value;
  return std::nullopt;
}

Problem sequence(const Change& change, const nd::DataStore&, Options& options) { return whole(change, kMostTokens, options.seq_length); }
Problem batch(const Change& change, const nd::DataStore&, Options& options) { return whole(change, kMostTokens, options.global_batch); }

Problem memory(const Change& change, const nd::DataStore&, Options& options) {
  const auto amount = parse_memory(change.value);
  if (!amount || amount->value <= 0) return wrong(change.text, "is no amount of memory", "a number and a unit: 96GB");
  options.max_memory = amount;
  options.supposed.memory = amount;
  return std::nullopt;
}

Problem bandwidth(const Change& change, const nd::DataStore&, Options& options) {
  std::string number = lower(change.value);
  if (number.ends_with('x')) number.pop_back();
  const auto factor = parse_real(number);
  if (!factor || *factor < kLeastFactor || *factor > kMostFactor) return wrong(change.text, "is no factor", "2x, 0.5x: times today's bandwidth");
  options.supposed.links.emplace_back(change.part, *factor);
  return std::nullopt;
}

struct Key {
  std::string_view name, alias;
  Problem (*apply)(const Change&, const nd::DataStore&, Options&);
  bool has_parts = false;
};
constexpr std::array<Key, 7> kKeys{{{"devices", "d", devices},
                                    {"device", "device_type", device},
                                    {"seq", "seq_length", sequence},
                                    {"batch", "global_batch_size", batch},
                                    {"memory", "max_mem", memory},
                                    {"bandwidth", "links", bandwidth, true},
                                    {"framework", "f", framework}}};

const Key* find_key(const std::string& name) {
  for (const auto& key : kKeys)
    if (key.name == name || key.alias == name) return &key;
  return nullptr;
}

Problem apply(const Change& change, const nd::DataStore& data, Options& options) {
  if (const auto* key = find_key(change.key)) {
    if (!change.part.empty() && !key->has_parts) return wrong(change.text, "'" + change.key + "' has no parts");
    return key->apply(change, data, options);
  }
  // A dimension: one more condition of the search.
  if (nd::parse_dimension(change.key, {})) {
    const auto condition = nd::with_setting({}, change.text, nd::SourceRef{{}, 0, 0, "--what-if"});
    if (!condition) return condition.error().diagnostics.front();
    options.settings.push_back(change.text);
    return std::nullopt;
  }
  std::vector<std::string> known;
  for (const auto& one : kKeys) known.emplace_back(one.name);
  for (const auto& info : nd::dimension_list()) known.emplace_back(info.name);
  return wrong(change.text, "unknown change '" + change.key + "'", nd::suggest_name(change.key, known));
}

/// The values that one joined part asks for: "seq=8192,16384" are two, "pp<=8" is one.
nd::Result<std::vector<Change>> values_of(const std::string& text) {
  const auto at = text.find_first_of("=<>!");
  if (at == std::string::npos || at == 0) return nd::Error(wrong(text, "is no change", "devices=128, device=H100, seq=8192,16384, tp<=4"));
  Change change;
  const std::string name = lower(text.substr(0, at));
  const auto dot = name.find('.');
  change.key = name.substr(0, dot);
  if (dot != std::string::npos) change.part = name.substr(dot + 1);
  if (text[at] != '=') {
    change.text = text;
    if (find_key(change.key) != nullptr) return nd::Error(wrong(text, "takes one value or several", change.key + "=..."));
    return std::vector<Change>{change};
  }
  std::vector<Change> out;
  for (const auto& value : split(text.substr(at + 1), ',')) {
    if (value.empty()) return nd::Error(wrong(text, "a value is missing"));
    out.push_back(change);
    out.back().value = value;
    out.back().text = text.substr(0, at + 1) + value;
  }
  return out;
}

class Reader {
 public:
  Reader(const Options& options, const nd::DataStore& data) : options_(options), data_(data) {}

  nd::Result<std::vector<Variant>> run() {
    for (const auto& word : options_.what_if) read(word);
    if (!problems_.empty()) return nd::Error(std::move(problems_));
    return std::move(variants_);
  }

 private:
  /// "devices=64,128+batch=512,1024": every combination, the last part varying fastest.
  void read(const std::string& word) {
    std::vector<Variant> cases{{"", options_}};
    for (const auto& part : split(word, '+')) {
      const auto values = values_of(part);
      if (!values) {
        problems_.insert(problems_.end(), values.error().diagnostics.begin(), values.error().diagnostics.end());
        return;
      }
      std::vector<Variant> longer;
      for (const auto& one : cases)
        for (const auto& change : *values) {
          longer.push_back({one.name + (one.name.empty() ? "" : " ") + change.text, one.options});
          if (auto problem = apply(change, data_, longer.back().options)) {
            problems_.push_back(std::move(*problem));
            return;
          }
        }
      cases = std::move(longer);
    }
    variants_.insert(variants_.end(), cases.begin(), cases.end());
  }

  const Options& options_;
  const nd::DataStore& data_;
  std::vector<Variant> variants_;
  std::vector<nd::Diagnostic> problems_;
};

}  // namespace

nd::Result<std::vector<Variant>> read_variants(const Options& options, const nd::DataStore& data) { return Reader(options, data).run(); }

}  // namespace run_nd
