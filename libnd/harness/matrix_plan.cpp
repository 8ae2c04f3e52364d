// SPDX-License-Identifier: Apache-2.0
// Campaign files, schema nd/campaign/1: docs/bench.md#campaign.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "harness/placeholders.hpp"
#include "harness/plan_builder.hpp"
#include "core/text.hpp"
#include "formats/figure.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/campaign.hpp"

namespace nd {

namespace {

using harness::Values;
using formats::ConfigNode;
using formats::MapReader;

constexpr std::size_t kMostRuns = 100'000;  ///< a sweep beyond that is a slip of the pen
const std::set<std::string> kAtRunTime{"run_dir", "id", "port", "device_list"};  ///< filled in when the run starts

/// Variables that vary together: one matrix entry, or one group of zip.
struct Axis {
  std::vector<Values> points;
};
struct Condition {
  std::vector<std::pair<std::string, std::vector<std::string>>> wanted;
  [[nodiscard]] bool holds(const Values& values) const {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& want) {
      const auto found = values.find(want.first);
      return found != values.end() && std::find(want.second.begin(), want.second.end(), found->second) != want.second.end();
    });
  }
};
struct Rule {
  Condition when;
  NamedTexts set;
};

class CampaignReader : harness::PlanBuilder {
 public:
  explicit CampaignReader(const ConfigNode& root) : map_(root, problems_) {}

  Result<Campaign> read() {
    formats::check_schema(map_.node(), "nd/campaign/1", problems_);
    map_.ignore({"schema"});
    read_head();
    read_variables();
    read_texts();
    map_.finish();
    check_names();
    return finished([this] { expand(); });
  }

 private:
  void read_head() {
    map_.require("program", "the training program");
    out_.name = map_.string("name").value_or(out_.name);
    if (const auto* python = map_.child("python")) out_.python = python->text;
    out_.program = map_.strings("program").value_or(Words{});
    out_.launcher = map_.string("launcher").value_or(out_.launcher);
    out_.log_profile = map_.string("log_profile").value_or(out_.log_profile);
    if (const auto* options = map_.child("launcher_options")) out_.launcher_options = texts(*options);
    if (const auto* node = map_.child("measure")) {
      MapReader rule(*node, problems_);
      out_.measure.warmup = rule.integer("warmup").value_or(out_.measure.warmup);
      out_.measure.least = rule.integer("least").value_or(out_.measure.least);
      out_.measure.enough = rule.integer("enough").value_or(out_.measure.enough);
      rule.finish();
    }
    if (const auto* node = map_.child("limits")) {
      MapReader limits(*node, problems_);
      const auto seconds = [&](const char* key, double& to) {
        const auto* value = limits.child(key);
        if (value == nullptr) return;
        if (const auto unit = formats::parse_seconds(value->text)) to = unit->value;
        else if (const auto plain = formats::as_real(*value)) to = *plain;
        else limits.error(key, Errc::wrong_type, "must be a time like '10 min' or a number of seconds, is " + formats::describe(*value));
      };
      seconds("total", out_.limits.total_s);
      seconds("start", out_.limits.start_s);
      seconds("stall", out_.limits.stall_s);
      seconds("grace", out_.limits.grace_s);
      out_.limits.retries = limits.integer("retries").value_or(out_.limits.retries);
      out_.limits.log_bytes = limits.integer("log_bytes").value_or(out_.limits.log_bytes);
      limits.finish();
    }
  }

  std::string scalar(const ConfigNode& node) {
    if (!node.is_scalar()) problem(Errc::wrong_type, node.where, "must be one value, is " + formats::describe(node));
    return node.text;
  }
  NamedTexts texts(const ConfigNode& node) {
    NamedTexts out;
    if (!node.is_mapping()) problem(Errc::wrong_type, node.where, "must be a mapping, is " + formats::describe(node));
    for (const auto& [name, value] : node.members) out.emplace_back(name, scalar(value));
    return out;
  }
  Words list(const ConfigNode& node) {
    Words out;
    if (!node.is_sequence() || node.items.empty()) problem(Errc::wrong_type, node.where, "must be a list of values, is " + formats::describe(node));
    for (const auto& item : node.items) out.push_back(scalar(item));
    return out;
  }

  void variable(const std::string& name, const SourceRef& where) {
    if (kAtRunTime.count(name) == 1) problem(Errc::conflict, where, "'" + name + "' is a name that the launcher fills in", "take another name");
    if (!variables_.insert(name).second) problem(Errc::duplicate_key, where, "'" + name + "' varies twice");
    if (harness::placeholders_of("{" + name + "}").empty()) problem(Errc::out_of_range, where, "'" + name + "' is no name", "letters, digits and _");
  }

  void read_variables() {
    if (const auto* matrix = map_.child("matrix")) {
      if (!matrix->is_mapping()) problem(Errc::wrong_type, matrix->where, "must be a mapping, is " + formats::describe(*matrix));
      for (const auto& [name, values] : matrix->members) {
        variable(name, values.where);
        Axis axis;
        for (const auto& value : list(values)) axis.points.push_back({{name, value}});
        axes_.push_back(std::move(axis));
      }
    }
    each("zip", [this](const ConfigNode& group) { read_zip(group); });
    each("exclude", [this](const ConfigNode& node) { excluded_.push_back(condition(node)); });
    each("when", [this](const ConfigNode& node) {
      MapReader rule(node, problems_);
      rule.require("if", "the condition");
      rule.require("set", "what it sets");
      const auto* condition_node = rule.child("if");
      const auto* set = rule.child("set");
      rule.finish();
      if (condition_node == nullptr || set == nullptr) return;
      rules_.push_back({condition(*condition_node), texts(*set)});
    });
    for (const auto& rule : rules_)
      for (const auto& [name, value] : rule.set) set_.insert(name);
  }

  void each(const char* key, const std::function<void(const ConfigNode&)>& read) {
    const auto* node = map_.child(key);
    if (node == nullptr) return;
    if (!node->is_sequence()) return problem(Errc::wrong_type, node->where, "must be a list, is " + formats::describe(*node));
    for (const auto& item : node->items) read(item);
  }

  void read_zip(const ConfigNode& group) {
    if (!group.is_mapping() || group.members.empty()) return problem(Errc::wrong_type, group.where, "must be a mapping of lists, is " + formats::describe(group));
    Axis axis;
    for (const auto& [name, values] : group.members) {
      variable(name, values.where);
      const auto all = list(values);
      if (axis.points.empty()) axis.points.resize(all.size());
      if (all.size() != axis.points.size()) {
        problem(Errc::conflict, values.where, fmt::format("has {} values, the others of the group have {}", all.size(), axis.points.size()));
        continue;
      }
      for (std::size_t i = 0; i < all.size(); ++i) axis.points[i][name] = all[i];
    }
    axes_.push_back(std::move(axis));
  }

  Condition condition(const ConfigNode& node) {
    Condition out;
    if (!node.is_mapping() || node.members.empty()) problem(Errc::wrong_type, node.where, "must be a mapping of variables, is " + formats::describe(node));
    for (const auto& [name, value] : node.members) {
      asked_.emplace_back(name, value.where);
      out.wanted.emplace_back(name, value.is_sequence() ? list(value) : Words{scalar(value)});
    }
    return out;
  }

  void read_texts() {
    devices_ = map_.has("devices") ? scalar(*map_.child("devices")) : (variables_.count("devices") == 1 ? "{devices}" : "1");
    use(devices_, map_.where("devices"));
    for (const auto& word : out_.program) use(word, map_.where("program"));
    if (const auto* arguments = map_.child("arguments")) {
      if (!arguments->is_mapping()) problem(Errc::wrong_type, arguments->where, "must be a mapping, is " + formats::describe(*arguments));
      for (const auto& [name, value] : arguments->members) read_argument(name, value);
    }
    read_pairs("environment", environment_);
    read_pairs("facts", facts_);
    read_pairs("files", files_);
    for (const auto& pairs : {environment_, facts_, files_})
      for (const auto& [name, value] : pairs) use(value, map_.where("files"));
  }
  void read_argument(const std::string& name, const ConfigNode& value) {
    if (value.is_null()) return;
    RunArgument argument{name, {}};
    if (value.is_sequence()) {
      for (const auto& item : value.items) argument.values.push_back(scalar(item));
    } else if (const auto truth = formats::as_boolean(value)) {  // a switch that is there or not
      if (!*truth) return;
    } else {
      argument.values.push_back(scalar(value));
    }
    for (const auto& text : argument.values) use(text, value.where);
    arguments_.push_back(std::move(argument));
  }
  void read_pairs(const char* key, NamedTexts& to) {
    if (const auto* node = map_.child(key)) to = texts(*node);
  }
  void use(const std::string& text, const SourceRef& where) {
    for (const auto& name : harness::placeholders_of(text)) used_.emplace(name, where);
  }

  void check_names() {
    Words known(variables_.begin(), variables_.end());
    known.insert(known.end(), set_.begin(), set_.end());
    const auto is_known = [&](const std::string& name) { return std::find(known.begin(), known.end(), name) != known.end(); };
    for (const auto& [name, where] : used_)
      if (!is_known(name) && kAtRunTime.count(name) == 0) problem(Errc::out_of_range, where, "there is no variable '" + name + "'", core::name_hint(name, known));
    for (const auto& [name, where] : asked_)
      if (!is_known(name)) problem(Errc::out_of_range, where, "there is no variable '" + name + "'", core::name_hint(name, known));
    std::set<std::string> asked;
    for (const auto& [name, where] : asked_) asked.insert(name);
    for (const auto& name : variables_)
      if (used_.count(name) == 0 && asked.count(name) == 0)
        problem(Errc::conflict, map_.where("matrix"), "'" + name + "' varies, but nothing uses it: its runs would be the same", "write {" + name + "} where it belongs");
    std::size_t runs = 1;
    for (const auto& axis : axes_) runs = std::min(kMostRuns + 1, runs * std::max<std::size_t>(1, axis.points.size()));
    if (runs > kMostRuns) problem(Errc::out_of_range, map_.where("matrix"), fmt::format("makes more than {} runs", kMostRuns));
  }

  void expand() {
    std::vector<std::size_t> at(axes_.size(), 0);
    for (bool more = true; more;) {
      Values point;
      std::string name;
      for (std::size_t i = 0; i < axes_.size(); ++i)
        for (const auto& [key, value] : axes_[i].points[at[i]]) {
          point[key] = value;
          name += (name.empty() ? "" : "-") + key + value;
        }
      add_run(std::move(point), name.empty() ? out_.name : name);
      more = false;
      for (std::size_t i = axes_.size(); i-- > 0 && !more;) {
        at[i] = (at[i] + 1) % axes_[i].points.size();
        more = at[i] != 0;
      }
    }
    if (out_.runs.empty()) problem(Errc::empty_space, map_.where("exclude"), "leaves no run");
  }

  void add_run(Values point, const std::string& name) {
    for (const auto& rule : rules_)
      if (rule.when.holds(point))
        for (const auto& [key, value] : rule.set) point[key] = harness::fill_in(value, point);
    if (std::any_of(excluded_.begin(), excluded_.end(), [&](const Condition& one) { return one.holds(point); })) return;
    std::set<std::string> missing;
    const auto filled = [&](const std::string& text) { return harness::fill_in(text, point, &missing); };
    PlannedRun run;
    run.name = name;
    for (const auto& [key, value] : point) run.facts.emplace_back(key, value);
    for (const auto& [key, value] : facts_)
      if (point.count(key) == 0) run.facts.emplace_back(key, filled(value));
    for (const auto& argument : arguments_) {
      RunArgument one{argument.name, {}};
      for (const auto& value : argument.values) one.values.push_back(filled(value));
      run.arguments.push_back(std::move(one));
    }
    for (const auto& [key, value] : environment_) run.environment.emplace_back(key, filled(value));
    for (const auto& [key, value] : files_) run.files.push_back({key, filled(value)});
    const auto devices = core::parse_integer(filled(devices_));
    for (const auto& left : missing)
      if (kAtRunTime.count(left) == 0) problem(Errc::missing_field, map_.where("when"), "run " + name + " has no value for '" + left + "'", "set it in matrix, or in every case of when");
    if (!devices || *devices < 1) problem(Errc::out_of_range, map_.where("devices"), "run " + name + ": must be a whole number from 1 on, is '" + filled(devices_) + "'");
    run.devices = devices.value_or(1);
    out_.runs.push_back(std::move(run));
  }

  MapReader map_;
  std::vector<Axis> axes_;
  std::vector<Condition> excluded_;
  std::vector<Rule> rules_;
  std::set<std::string> variables_, set_;
  std::map<std::string, SourceRef> used_;
  std::vector<std::pair<std::string, SourceRef>> asked_;
  std::string devices_;
  std::vector<RunArgument> arguments_;
  NamedTexts environment_, facts_, files_;
};

}  // namespace

Result<Campaign> read_campaign(const std::string& path) {
  return formats::read_document(path).and_then([](const ConfigNode& root) { return CampaignReader(root).read(); });
}

}  // namespace nd
