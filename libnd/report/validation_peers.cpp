// SPDX-License-Identifier: Apache-2.0
#include "report/validation_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "formats/tree/map_reader.hpp"
#include "formats/tree/node.hpp"
#include "report/validation_pricer.hpp"

namespace nd::report {
namespace {

using formats::ConfigNode;
using formats::MapReader;
using Sink = std::vector<Diagnostic>;

PeerFigures read_peer(const ConfigNode& node, Sink& sink) {
  MapReader reader(node, sink);
  PeerFigures peer;
  peer.name = reader.string("name").value_or("");
  peer.setting = reader.string("setting").value_or("");
  peer.rows = reader.integer("rows");
  const auto share = [&](const char* key) -> std::optional<double> {
    const auto value = reader.real(key);
    return value ? std::optional(*value / 100.0) : std::nullopt;
  };
  peer.mean = share("mean");
  peer.median = share("median");
  peer.max = share("max");
  peer.bias = share("bias");
  peer.regret = share("regret");
  peer.rank_correlation = reader.real("rank_correlation");
  reader.ignore({"source"});
  reader.finish();
  return peer;
}

/// What this report says about the rows of one group.
PeerFigures own_figures(const ValidationReport& report, const RowMatch& match) {
  PeerFigures own;
  own.name = "nd";
  std::vector<double> errors;
  std::vector<SweepPoint> points;
  for (const ValidatedRow& row : report.rows) {
    const auto error = row.time_error();
    if (!error || !match.captures(row.measured)) continue;
    errors.push_back(*error);
    points.push_back(sweep_point(row));
  }
  if (errors.empty()) return own;
  const ErrorStatistics statistics = error_statistics(errors);
  own.rows = statistics.n;
  own.mean = statistics.mean_ape;
  own.median = statistics.median_ape;
  own.max = statistics.max_ape;
  own.bias = statistics.bias;
  // A ranking is of one problem; groups of several have none to compare.
  const std::vector<Sweep> sweeps = find_sweeps(points);
  if (sweeps.size() != 1) return own;
  own.regret = sweeps.front().regret;
  own.rank_correlation = sweeps.front().spearman;
  return own;
}

std::string cell(const std::optional<double>& share) { return share ? fmt::format("{:.1f}", *share * 100.0) : std::string("-"); }

std::vector<std::string> cells(const std::string& title, const PeerFigures& peer) {
  return {title,
          peer.setting.empty() ? peer.name : peer.name + ": " + peer.setting,
          peer.rows ? std::to_string(*peer.rows) : std::string("-"),
          cell(peer.mean),
          cell(peer.median),
          cell(peer.max),
          peer.bias ? fmt::format("{:+.1f}", *peer.bias * 100.0) : std::string("-"),
          peer.rank_correlation ? fmt::format("{:.2f}", *peer.rank_correlation) : std::string("-"),
          cell(peer.regret)};
}

}  // namespace

Result<std::vector<PeerGroup>> compare_peers(const ValidationReport& report, const DataStore& data) {
  std::vector<PeerGroup> out;
  const std::string path = data.root() + "/measured/peers.yaml";
  if (!std::filesystem::exists(path)) return out;
  const auto root = formats::read_document(path);
  if (!root) return root.error();
  Sink sink;
  MapReader reader(*root, sink);
  if (reader.string("schema").value_or("") != "nd/measured-peers/1") reader.error("schema", Errc::unsupported, "must be nd/measured-peers/1");
  reader.ignore({"sources"});
  const ConfigNode* groups = reader.child("groups");
  if (groups == nullptr || !groups->is_sequence()) {
    reader.error("groups", Errc::wrong_type, "must be a list");
    return Error(std::move(sink));
  }
  reader.finish();
  for (const ConfigNode& item : groups->items) {
    MapReader entry(item, sink);
    PeerGroup group;
    group.title = entry.string("title").value_or("");
    const RowMatch match = read_row_match(entry, sink);
    if (const ConfigNode* peers = entry.child("peers"); peers != nullptr && peers->is_sequence())
      for (const ConfigNode& peer : peers->items) group.peers.push_back(read_peer(peer, sink));
    entry.finish();
    group.own = own_figures(report, match);
    if (group.own.rows) out.push_back(std::move(group));
  }
  if (std::any_of(sink.begin(), sink.end(), [](const Diagnostic& d) { return d.severity == Severity::error; })) return Error(std::move(sink));
  return out;
}

std::vector<StatisticsTable> peer_tables(const ValidationReport& report) {
  if (report.peers.empty()) return {};
  StatisticsTable table;
  table.title = "Beside other models";
  table.note = "Errors in per cent of this model on the rows given here and of others as published or re-run without calibration on the whole "
               "published table (data/measured/peers.yaml). Regret is that of the first pick.";
  table.header = {"rows", "model", "n", "mean", "median", "max", "bias", "rank correlation", "regret"};
  for (const PeerGroup& group : report.peers) {
    table.rows.push_back(cells(group.title, group.own));
    for (const PeerFigures& peer : group.peers) table.rows.push_back(cells("", peer));
  }
  return {std::move(table)};
}

}  // namespace nd::report
