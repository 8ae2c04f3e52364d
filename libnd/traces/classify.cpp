// SPDX-License-Identifier: Apache-2.0
#include "nd/classify.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/text.hpp"
#include "traces/chrome.hpp"

namespace nd {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, kWaitKindCount> kWaitNames{"dp_wait", "mp_wait", "ep_wait", "cp_wait", "pp_wait", "op_wait", "sp_wait"};
constexpr std::array<std::string_view, kComputePhaseCount> kPhaseNames{"fw", "bw", "rec", "opt", "other", "unsplit"};
const std::vector<std::string>& dim_names() {
  static const std::vector<std::string> kNames{"DP", "EP", "MP", "TP", "CP", "PP", "VPP", "MB", "MBS", "OP"};
  return kNames;
}

std::string ms(std::int64_t ns) { return fmt::format("{:.3f}", static_cast<double>(ns) / 1e6); }

Result<std::vector<ClassifiedStep>> classify_one(const std::string& input, const ClassifyRequest& request) {
  std::error_code error;
  if (fs::is_directory(input, error)) return traces::classify_ascend(input, request);
  if (!fs::exists(input, error)) return make_error(Errc::io, {input, 0, 0, {}}, "there is no such file or folder");
  const std::string name = core::canonical_name(input);
  if (name.ends_with(".sqlite") || name.ends_with(".db")) return traces::classify_nsight(input, request);
  if (name.ends_with(".json") || name.ends_with(".json.gz")) return traces::classify_chrome(input);
  return make_error(Errc::unsupported, {input, 0, 0, {}}, "is no trace that is known", "a Chrome trace (.json, .json.gz), a run folder of the Ascend profiler, or an export of Nsight Systems (.sqlite)");
}

std::vector<std::string> header_cells(const Classification& classification) {
  std::vector<std::string> out;
  for (const auto& [name, value] : classification.dims) out.push_back(name);
  out.emplace_back("time");
  out.emplace_back("comp");
  for (const auto& name : kWaitNames) out.emplace_back(name);
  return out;
}

std::string joined(const std::vector<std::string>& cells) {
  std::string out;
  for (const std::string& cell : cells) out += (out.empty() ? "" : ",") + cell;
  return out + "\n";
}

}  // namespace

std::string_view to_text(WaitKind kind) { return kWaitNames[static_cast<std::size_t>(kind)]; }
std::string_view to_text(ComputePhase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

std::int64_t ClassifiedStep::compute_total() const { return std::accumulate(compute_ns.begin(), compute_ns.end(), std::int64_t{0}); }

ClassifiedStep Classification::mean() const {
  ClassifiedStep out;
  const auto n = static_cast<std::int64_t>(steps.size());
  if (n == 0) return out;
  for (const ClassifiedStep& step : steps) {
    out.time_ns += step.time_ns;
    out.unclassified_ns += step.unclassified_ns;
    out.idle_ns += step.idle_ns;
    for (std::size_t i = 0; i < kComputePhaseCount; ++i) out.compute_ns[i] += step.compute_ns[i];
    for (std::size_t i = 0; i < kWaitKindCount; ++i) out.wait_ns[i] += step.wait_ns[i];
    for (const auto& [name, site] : step.sites) {
      CallSite& entry = out.sites[name];
      entry.time_ns += site.time_ns;
      entry.calls += site.calls;
      entry.bytes += site.bytes;
      entry.wait = site.wait;
    }
  }
  const auto divide = [n](std::int64_t& value) { value = static_cast<std::int64_t>(std::llround(static_cast<double>(value) / static_cast<double>(n))); };
  for (std::int64_t* value : {&out.time_ns, &out.unclassified_ns, &out.idle_ns}) divide(*value);
  for (auto& value : out.compute_ns) divide(value);
  for (auto& value : out.wait_ns) divide(value);
  return out;
}

Result<std::vector<std::pair<std::string, std::int64_t>>> parse_dims(std::string_view text, const SourceRef& where) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  std::vector<std::pair<std::string, std::int64_t>> out;
  std::vector<Diagnostic> problems;
  std::set<std::string> seen;
  for (const std::string& word : core::split(text, ',')) {
    const auto equals = word.find('=');
    std::string name(core::trim(std::string_view(word).substr(0, equals)));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const auto value = equals == std::string::npos ? std::nullopt : core::parse_integer(core::trim(std::string_view(word).substr(equals + 1)));
    if (name == "SP") problems.push_back(make_diagnostic(Errc::unsupported, where, "SP is no degree: sequence parallelism is on or off", "leave it out; its waits are in sp_wait"));
    else if (std::find(dim_names().begin(), dim_names().end(), name) == dim_names().end())
      problems.push_back(make_diagnostic(Errc::out_of_range, where, "unknown dimension '" + name + "'", core::name_hint(name, dim_names())));
    else if (!value || *value < 1 || *value > kMost) problems.push_back(make_diagnostic(Errc::out_of_range, where, "'" + word + "' is no NAME=VALUE with a degree from 1 on"));
    else if (!seen.insert(name).second) problems.push_back(make_diagnostic(Errc::duplicate_key, where, name + " is given twice"));
    else out.emplace_back(name, *value);
  }
  if (!problems.empty()) return Error(std::move(problems));
  return out;
}

Result<Classification> classify_traces(const ClassifyRequest& request) {
  Classification out;
  out.dims = request.dims;
  std::vector<Diagnostic> problems;
  for (const std::string& input : request.inputs) {
    auto steps = classify_one(input, request);
    if (!steps) problems.insert(problems.end(), steps.error().diagnostics.begin(), steps.error().diagnostics.end());
    else out.steps.insert(out.steps.end(), std::make_move_iterator(steps->begin()), std::make_move_iterator(steps->end()));
  }
  if (!problems.empty()) return Error(std::move(problems));
  std::stable_sort(out.steps.begin(), out.steps.end(), [](const ClassifiedStep& a, const ClassifiedStep& b) { return std::tie(a.rank, a.step) < std::tie(b.rank, b.step); });
  const bool host = std::any_of(request.inputs.begin(), request.inputs.end(), [](const std::string& input) { return core::canonical_name(input).find(".json") != std::string::npos; });
  if (host) {
    auto note = make_diagnostic(Errc::unsupported, {}, "waits of Chrome traces are what blocks the host: exact for gloo, not the exposed time on the device");
    note.severity = Severity::note;
    out.notes.push_back(std::move(note));
  }
  return out;
}

std::string classified_header(const Classification& classification) { return joined(header_cells(classification)); }

std::string classified_row(const Classification& classification) {
  const ClassifiedStep mean = classification.mean();
  std::vector<std::string> cells;
  for (const auto& [name, value] : classification.dims) cells.push_back(std::to_string(value));
  cells.push_back(ms(mean.time_ns));
  cells.push_back(ms(mean.compute_total()));
  for (const std::int64_t wait : mean.wait_ns) cells.push_back(ms(wait));
  return joined(cells);
}

std::string part_csv(const Classification& classification) {
  const ClassifiedStep mean = classification.mean();
  std::vector<std::string> head, cells;
  const auto add = [&](std::string name, std::string value) {
    head.push_back(std::move(name));
    cells.push_back(std::move(value));
  };
  for (const auto& [name, value] : classification.dims) add(name, std::to_string(value));
  const auto phase = [&](ComputePhase which) { return mean.compute_ns[static_cast<std::size_t>(which)]; };
  const auto wait = [&](WaitKind which) { return mean.wait_ns[static_cast<std::size_t>(which)]; };
  const std::vector<std::pair<const char*, std::int64_t>> parts{{"FW_COMPUTE", phase(ComputePhase::forward)},
                                                                {"BW_COMPUTE", phase(ComputePhase::backward)},
                                                                {"RECOMPUTE", phase(ComputePhase::recompute)},
                                                                {"DP_COMM", wait(WaitKind::dp) + wait(WaitKind::op)},
                                                                {"MP_COMM", wait(WaitKind::mp) + wait(WaitKind::sp)},
                                                                {"EP_COMM", wait(WaitKind::ep)},
                                                                {"CP_COMM", wait(WaitKind::cp)},
                                                                {"PP_COMM", wait(WaitKind::pp)},
                                                                {"BUBBLE", 0},
                                                                {"TOTAL", mean.time_ns},
                                                                {"OPTIMIZER", phase(ComputePhase::optimizer)},
                                                                {"OTHER_COMPUTE", phase(ComputePhase::other)},
                                                                {"UNSPLIT_COMPUTE", phase(ComputePhase::unsplit)},
                                                                {"UNCLASSIFIED_COMM", mean.unclassified_ns},
                                                                {"IDLE", mean.idle_ns}};
  for (const auto& [name, value] : parts) add(name, ms(value));
  return joined(head) + joined(cells);
}

Result<std::string> append_classified(std::string_view existing, const std::string& path, const Classification& classification) {
  const std::string header = classified_header(classification);
  if (existing.empty()) return header + classified_row(classification);
  std::string first(existing.substr(0, existing.find('\n')));
  if (first.ends_with('\r')) first.pop_back();
  if (first + "\n" != header)
    return make_error(Errc::conflict, {path, 1, 0, {}}, "has the columns " + first + ", the new row " + header.substr(0, header.size() - 1), "the same --dims for every row, or another file");
  std::string out(existing);
  if (!out.ends_with('\n')) out += '\n';
  return out + classified_row(classification);
}

std::optional<Diagnostic> write_classified(const std::string& path, const Classification& classification, bool append) {
  std::string existing;
  if (append) {
    std::error_code error;
    if (fs::exists(path, error)) {
      std::ifstream in(path, std::ios::binary);
      existing.assign(std::istreambuf_iterator<char>(in), {});
      if (!in) return make_diagnostic(Errc::io, {path, 0, 0, {}}, "cannot be read");
    }
  }
  const auto text = append_classified(existing, path, classification);
  if (!text) return text.error().diagnostics.front();
  return core::write_file(path, *text);
}

std::string classification_json(const Classification& classification) {
  Json steps = Json::array(), dims = Json::object();
  for (const auto& [name, value] : classification.dims) dims[name] = value;
  const auto milliseconds = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  for (const ClassifiedStep& step : classification.steps) {
    Json compute = Json::object(), waits = Json::object(), sites = Json::array();
    for (std::size_t i = 0; i < kComputePhaseCount; ++i) compute[std::string(kPhaseNames[i])] = milliseconds(step.compute_ns[i]);
    for (std::size_t i = 0; i < kWaitKindCount; ++i) waits[std::string(kWaitNames[i])] = milliseconds(step.wait_ns[i]);
    for (const auto& [name, site] : step.sites)
      sites.push_back({{"site", name}, {"wait", site.wait}, {"ms", milliseconds(site.time_ns)}, {"calls", site.calls}, {"mib", site.bytes / (1024.0 * 1024.0)}});
    steps.push_back({{"file", step.file}, {"rank", step.rank}, {"step", step.step}, {"time_ms", milliseconds(step.time_ns)}, {"comp_ms", std::move(compute)}, {"wait_ms", std::move(waits)},
                     {"unclassified_ms", milliseconds(step.unclassified_ns)}, {"idle_ms", milliseconds(step.idle_ns)}, {"sites", std::move(sites)}});
  }
  const Json document{{"schema", "nd/classification/1"}, {"dims", std::move(dims)}, {"steps", std::move(steps)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string classification_text(const Classification& classification) {
  const ClassifiedStep mean = classification.mean();
  std::set<std::int64_t> ranks;
  for (const ClassifiedStep& step : classification.steps) ranks.insert(step.rank);
  std::string out = fmt::format("{} steps of {} ranks, means in milliseconds\n", classification.steps.size(), ranks.size());
  const auto line = [&](std::string_view name, std::int64_t ns) {
    if (ns != 0) out += fmt::format("  {:<14} {:>12}  {:5.1f} %\n", name, ms(ns), mean.time_ns > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(mean.time_ns) : 0.0);
  };
  line("step", mean.time_ns);
  for (std::size_t i = 0; i < kComputePhaseCount; ++i) line("comp " + std::string(kPhaseNames[i]), mean.compute_ns[i]);
  for (std::size_t i = 0; i < kWaitKindCount; ++i) line(kWaitNames[i], mean.wait_ns[i]);
  line("unclassified", mean.unclassified_ns);
  line("idle", mean.idle_ns);
  for (const Diagnostic& note : classification.notes) out += to_text(note) + "\n";
  return out;
}

}  // namespace nd
