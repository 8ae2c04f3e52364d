// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "nd/verify.hpp"
#include "report/text_table.hpp"

namespace nd {

namespace {

using Json = nlohmann::ordered_json;
using report::Align;
using report::TextTable;
using report::with_thousands;

std::string apart(double ours, double theirs) {
  if (ours == theirs) return "equal";
  if (theirs == 0) return "-";
  return fmt::format("{:+.3f} %", 100 * (ours / theirs - 1));
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out;
  for (const std::int64_t dimension : shape) out += (out.empty() ? "" : " x ") + std::to_string(dimension);
  return out.empty() ? "scalar" : out;
}

std::string parts_table(const Verification& v) {
  TextTable table({{"layers of", Align::left}, {"part", Align::left}, {"checkpoint", Align::right}, {"priced", Align::right}, {"difference", Align::right}});
  for (const PartCensus& part : v.parts)
    table.add({part.kind.empty() ? "(model)" : part.kind, part.part, with_thousands(part.checkpoint), with_thousands(part.priced),
               part.checkpoint == part.priced ? "" : fmt::format("{:+d}", part.checkpoint - part.priced)});
  table.add({"", "all", with_thousands(v.checkpoint_elements), with_thousands(v.priced_elements), fmt::format("{:.4f} %", 100 * v.difference())});
  return table.text();
}

void list(std::string& out, const char* title, const std::vector<std::string>& names, std::size_t most) {
  if (names.empty()) return;
  out += fmt::format("\n{} ({}):\n", title, names.size());
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) out += "  " + names[i] + "\n";
  if (names.size() > most) out += fmt::format("  and {} more\n", names.size() - most);
}

std::string facts_table(const Verification& v) {
  TextTable table({{"fact", Align::left}, {"configured", Align::right}, {"by the tensors", Align::right}, {"", Align::left}});
  for (const SpecFact& fact : v.facts)
    table.add({fact.field, std::to_string(fact.configured), fact.measured ? std::to_string(*fact.measured) : "not shown", fact.measured && *fact.measured != fact.configured ? "differs" : ""});
  return table.text();
}

std::string ops_table(const Verification& v) {
  TextTable table({{"layers of", Align::left}, {"op", Align::left}, {"FLOP/token", Align::right}, {"by tensors", Align::right}, {"", Align::right}, {"bytes/token", Align::right}, {"FLOP/byte", Align::right}});
  for (const OpCheck& op : v.ops)
    table.add({op.kind, op.op, fmt::format("{:.6g}", op.flops), fmt::format("{:.6g}", op.flops_by_tensors), apart(op.flops, op.flops_by_tensors), fmt::format("{:.4g}", op.bytes_moved), fmt::format("{:.0f}", op.intensity())});
  return table.text();
}

std::string activations_table(const Verification& v) {
  TextTable table({{"layers of", Align::left}, {"part", Align::left}, {"bytes/token", Align::right}, {"published", Align::right}, {"", Align::right}});
  for (const ActivationCheck& check : v.activations) table.add({check.kind, check.part, fmt::format("{:.0f}", check.bytes), fmt::format("{:.0f}", check.published), apart(check.bytes, check.published)});
  return table.text();
}

}  // namespace

std::string verification_text(const Verification& v, std::size_t names) {
  std::string out = fmt::format("{}: {} against {}\n\n", v.source, v.model, "its configuration");
  out += parts_table(v);
  std::string types;
  for (const auto& [type, elements] : v.dtypes) types += fmt::format("{}{} {}", types.empty() ? "" : ", ", type, with_thousands(elements));
  out += "\nelements by type: " + types + "\n";
  if (v.copies > 0) out += fmt::format("copies of shared tables: {} elements, not counted\n", with_thousands(v.copies));
  if (v.scales > 0) out += fmt::format("scales of quantised weights: {} elements, not counted\n", with_thousands(v.scales));
  if (v.buffers > 0) out += fmt::format("buffers: {} elements, not counted\n", with_thousands(v.buffers));
  if (v.vision > 0 || v.vision_configured > 0) out += fmt::format("vision tower: {} elements in the checkpoint, {} assumed by the configuration\n", with_thousands(v.vision), with_thousands(v.vision_configured));
  list(out, "tensors of the model that the checkpoint has not", v.missing, names);
  list(out, "tensors of the checkpoint that the model has not", v.unexpected, names);
  std::vector<std::string> reshaped;
  for (const ReshapedTensor& tensor : v.reshaped) reshaped.push_back(fmt::format("{}: {}, the model has {}", tensor.name, shape_text(tensor.found), shape_text(tensor.expected)));
  list(out, "tensors of another shape", reshaped, names);
  out += "\nby the configuration and by the tensors:\n" + facts_table(v);
  if (!v.ops.empty()) out += "\nproducts with weights, forward, one layer, and traffic of a sequence of 4096 tokens in 16 bit:\n" + ops_table(v);
  if (!v.activations.empty()) out += "\nbytes kept for the backward, one layer, 16 bit, nothing recomputed (Korthikanti et al. 2022, section 4.1):\n" + activations_table(v);
  for (const Diagnostic& note : v.notes) out += to_text(note) + "\n";
  out += v.differs() ? fmt::format("\ndiffers: {:.4f} % of the parameters, {} missing, {} unexpected, {} reshaped tensors\n", 100 * v.difference(), v.missing.size(), v.unexpected.size(), v.reshaped.size())
                     : fmt::format("\nagrees: every tensor is known, {} parameters{}\n", with_thousands(v.priced_elements), v.checkpoint_elements == v.priced_elements ? " on both sides" : "");
  return out;
}

std::string verification_json(const Verification& v) {
  Json parts = Json::array(), reshaped = Json::array(), facts = Json::array(), ops = Json::array(), activations = Json::array();
  for (const auto& p : v.parts) parts.push_back({{"kind", p.kind}, {"part", p.part}, {"checkpoint", p.checkpoint}, {"by_names", p.by_names}, {"priced", p.priced}});
  for (const auto& t : v.reshaped) reshaped.push_back({{"name", t.name}, {"expected", t.expected}, {"found", t.found}});
  for (const auto& f : v.facts) facts.push_back({{"field", f.field}, {"configured", f.configured}, {"measured", f.measured ? Json(*f.measured) : Json(nullptr)}});
  for (const auto& o : v.ops)
    ops.push_back({{"kind", o.kind}, {"op", o.op}, {"flops_per_token", o.flops}, {"flops_by_tensors", o.flops_by_tensors}, {"bytes_per_token", o.bytes_moved}, {"flops_per_byte", o.intensity()}});
  for (const auto& a : v.activations) activations.push_back({{"kind", a.kind}, {"part", a.part}, {"bytes_per_token", a.bytes}, {"published", a.published}});
  const Json document{{"schema", "nd/verification/1"},
                      {"source", v.source},
                      {"model", v.model},
                      {"differs", v.differs()},
                      {"difference", v.difference()},
                      {"checkpoint_elements", v.checkpoint_elements},
                      {"priced_elements", v.priced_elements},
                      {"copies", v.copies},
                      {"scales", v.scales},
                      {"buffers", v.buffers},
                      {"vision", v.vision},
                      {"dtypes", v.dtypes},
                      {"parts", std::move(parts)},
                      {"missing", v.missing},
                      {"unexpected", v.unexpected},
                      {"reshaped", std::move(reshaped)},
                      {"facts", std::move(facts)},
                      {"ops", std::move(ops)},
                      {"activations", std::move(activations)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string measured_spec_yaml(const Verification& v) {
  std::string out = "# Measured from the tensors of " + v.source + "; facts that no tensor shows are the configuration's.\n";
  for (const SpecFact& fact : v.facts) {
    // Names with a space are of no field.
    if (fact.field.find(' ') != std::string::npos) continue;
    const std::int64_t value = fact.measured.value_or(fact.configured);
    const std::string text = fact.field == "tie_word_embeddings" ? (value != 0 ? "true" : "false") : std::to_string(value);
    out += fmt::format("{}: {}{}\n", fact.field, text, fact.measured ? (*fact.measured != fact.configured ? fmt::format("  # configured: {}", fact.configured) : "") : "  # configured");
  }
  return out;
}

}  // namespace nd
