// SPDX-License-Identifier: Apache-2.0
#include "formats/readers/framework.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/text.hpp"
#include "formats/figure.hpp"
#include "formats/tree/map_reader.hpp"
#include "formats/tree/scalar.hpp"
#include "nd/schedule.hpp"
#include "run/profile_fields.hpp"

namespace nd::formats {
namespace {

/// The texts of an enum, in order of its values.
template <class Enum, std::size_t N>
std::optional<Enum> parse_enum(const ConfigNode& node, const std::array<Enum, N>& all, std::string& hint) {
  std::vector<std::string> known;
  for (const Enum value : all) {
    known.emplace_back(to_text(value));
    if (node.text == known.back()) return value;
  }
  hint = core::name_hint(node.text, known);
  return std::nullopt;
}
std::optional<Dispatcher> parse(const ConfigNode& node, Dispatcher, std::string& hint) {
  return parse_enum(node, std::array{Dispatcher::all_gather, Dispatcher::all_to_all, Dispatcher::deduplicating}, hint);
}
std::optional<OptimizerTemporary> parse(const ConfigNode& node, OptimizerTemporary, std::string& hint) {
  using enum OptimizerTemporary;
  return parse_enum(node, std::array{none, largest_tensor, all_gradients}, hint);
}
std::optional<DataParallelStyle> parse(const ConfigNode& node, DataParallelStyle, std::string& hint) {
  using enum DataParallelStyle;
  return parse_enum(node, std::array{megatron, fsdp, fsdp2, deepspeed, mindspore}, hint);
}
std::optional<LayerSplit> parse(const ConfigNode& node, LayerSplit, std::string& hint) {
  return parse_enum(node, std::array{LayerSplit::even, LayerSplit::block_cost}, hint);
}
std::optional<SequenceParallelRule> parse(const ConfigNode& node, SequenceParallelRule, std::string& hint) {
  return parse_enum(node, std::array{SequenceParallelRule::optional, SequenceParallelRule::with_experts, SequenceParallelRule::always}, hint);
}
std::optional<double> parse(const ConfigNode& node, double, std::string& hint) {
  hint = "a number that is not negative";
  const auto value = as_real(node);
  if (!value || *value < 0) return std::nullopt;
  return value;
}
std::optional<bool> parse(const ConfigNode& node, bool, std::string& hint) {
  hint = "true or false";
  return as_boolean(node);
}
std::optional<std::int64_t> parse(const ConfigNode& node, std::int64_t, std::string& hint) {
  hint = "a whole number that is not negative";
  const auto value = as_integer(node);
  if (!value || *value < 0) return std::nullopt;
  return value;
}
std::optional<int> parse(const ConfigNode& node, int, std::string& hint) {
  const auto value = parse(node, std::int64_t{}, hint);
  if (!value || *value > 1'000'000) return std::nullopt;
  return static_cast<int>(*value);
}
std::optional<std::string> parse(const ConfigNode& node, const std::string&, std::string& hint) {
  hint = "a text";
  return as_string(node);
}

/// Puts the figures of one section ("memory") over those of `profile`.
class Overlay {
 public:
  Overlay(const Citations& citations, std::vector<Diagnostic>& sink) : citations_(citations), sink_(sink) {}

  /// `reader` is at a mapping that may hold memory, time and capabilities.
  void apply(MapReader& reader, FrameworkProfile& profile) {
    section(reader, "memory", run::memory_fields(), profile.memory, profile);
    section(reader, "time", run::time_fields(), profile.time, profile);
    apply_capabilities(reader, profile);
  }
  void apply_capabilities(MapReader& reader, FrameworkProfile& profile) {
    section(reader, "capabilities", run::capability_fields(), profile.can, profile);
  }

 private:
  template <class Section>
  void section(MapReader& reader, const char* name, std::span<const run::ProfileField<Section>> table, Section& target,
               FrameworkProfile& profile) {
    const ConfigNode* node = reader.child(name);
    if (node == nullptr) return;
    if (!node->is_mapping()) {
      sink_.push_back(make_diagnostic(Errc::wrong_type, node->where, "must be a mapping of figures"));
      return;
    }
    for (const auto& member : node->members) {
      const std::string& key = member.first;
      const ConfigNode& value = member.second;
      const auto row = std::find_if(table.begin(), table.end(), [&](const auto& field) { return field.name == key; });
      if (row == table.end()) {
        std::vector<std::string> known;
        for (const auto& field : table) known.emplace_back(field.name);
        sink_.push_back(make_diagnostic(Errc::unknown_key, value.where, "unknown key '" + key + "'", core::name_hint(key, known)));
        continue;
      }
      const auto figure = read_figure(value, citations_, sink_);
      if (!figure) continue;
      if (assign(*row, *figure->value, target)) profile.sources.insert_or_assign(std::string(name) + "." + key, figure->source);
    }
  }

  template <class Section>
  bool assign(const run::ProfileField<Section>& field, const ConfigNode& node, Section& target) {
    return std::visit(
        [&](auto member) {
          using Value = std::remove_reference_t<decltype(target.*member)>;
          std::string hint;
          std::optional<Value> value;
          if (node.is_scalar()) value = parse(node, Value{}, hint);
          if (!value) {
            sink_.push_back(make_diagnostic(Errc::wrong_type, node.where, "'" + node.text + "' cannot be read", hint));
            return false;
          }
          if constexpr (std::is_same_v<Section, CapabilityProfile>) {
            if (field.name == "schedules" && !know_schedules(node)) return false;
          }
          target.*member = *std::move(value);
          return true;
        },
        field.member);
  }

  /// Every name of the list is one of the schedule table.
  bool know_schedules(const ConfigNode& node) {
    std::vector<std::string> known;
    for (const Schedule schedule : all_schedules()) known.emplace_back(to_text(schedule));
    bool all = true;
    for (const auto& part : core::split(node.text, ',')) {
      const std::string name(core::trim(part));
      if (find_schedule(name)) continue;
      sink_.push_back(make_diagnostic(Errc::out_of_range, node.where, "'" + name + "' is no pipeline schedule", core::name_hint(name, known)));
      all = false;
    }
    return all;
  }

  const Citations& citations_;
  std::vector<Diagnostic>& sink_;
};

bool same_name(std::string_view a, std::string_view b) { return core::canonical_name(a) == core::canonical_name(b); }

/// "bridge-25.05" -> "bridge", "25", "05"; "r1.10.rc2" -> "1", "10", "rc", "2".
std::vector<std::string> version_parts(std::string_view version) {
  std::vector<std::string> parts;
  char previous = 0;  // 'd' after a digit, 'a' after a letter
  for (const char c : core::canonical_name(version)) {
    const auto byte = static_cast<unsigned char>(c);
    const char kind = std::isdigit(byte) != 0 ? 'd' : std::isalpha(byte) != 0 ? 'a' : '\0';
    if (kind != '\0') {
      if (kind != previous) parts.emplace_back();
      parts.back() += c;
    }
    previous = kind;
  }
  // "v2.1" and "r1.6" are releases like "2.1" and "1.6"; a longer word names a family of its own.
  if (parts.size() > 1 && (parts.front() == "v" || parts.front() == "r")) parts.erase(parts.begin());
  return parts;
}

bool is_number(const std::string& part) { return std::isdigit(static_cast<unsigned char>(part.front())) != 0; }

int sign(bool less, bool greater) { return less ? -1 : greater ? 1 : 0; }

/// A missing part counts as a release: above a word ("rc"), equal to a zero, below another number.
int compare_part(const std::string* a, const std::string* b) {
  if (a == nullptr) return -compare_part(b, nullptr);
  if (b == nullptr) {
    if (!is_number(*a)) return -1;
    return core::parse_integer(*a).value_or(0) == 0 ? 0 : 1;
  }
  if (is_number(*a) != is_number(*b)) return is_number(*a) ? 1 : -1;
  if (!is_number(*a)) return sign(*a < *b, *a > *b);
  const auto x = core::parse_integer(*a).value_or(0);
  const auto y = core::parse_integer(*b).value_or(0);
  return sign(x < y, x > y);
}

const FrameworkFeature* find_feature(const std::vector<FrameworkFeature>& features, std::string_view name) {
  const auto found = std::find_if(features.begin(), features.end(), [&](const FrameworkFeature& f) { return same_name(f.name, name); });
  return found == features.end() ? nullptr : &*found;
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

/// `features: {name: {title, memory, time, capabilities}}`; the figures are checked on a scratch profile.
std::vector<FrameworkFeature> read_features(const ConfigNode& node, Overlay& overlay, std::vector<Diagnostic>& sink) {
  std::vector<FrameworkFeature> features;
  if (!node.is_mapping()) sink.push_back(make_diagnostic(Errc::wrong_type, node.where, "must be a mapping of features"));
  for (const auto& [name, child] : node.members) {
    MapReader reader(child, sink);
    FrameworkProfile scratch;
    reader.require("title", "a feature says what it is");
    const std::string title = reader.string("title").value_or("");
    overlay.apply(reader, scratch);
    reader.finish();
    if (find_feature(features, name) != nullptr) {
      sink.push_back(make_diagnostic(Errc::duplicate_key, child.where, "feature '" + name + "' is listed twice"));
    }
    features.push_back({name, title, &child});
  }
  return features;
}

std::string family(const std::vector<std::string>& parts) {
  return parts.empty() || is_number(parts.front()) ? std::string() : parts.front();
}

}  // namespace

int compare_versions(std::string_view a, std::string_view b) {
  const auto x = version_parts(a);
  const auto y = version_parts(b);
  if (x.empty() || y.empty() || family(x) != family(y)) return 2;
  for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    const int order = compare_part(i < x.size() ? &x[i] : nullptr, i < y.size() ? &y[i] : nullptr);
    if (order != 0) return order;
  }
  return 0;
}

Result<FrameworkFile> FrameworkFile::read(const ConfigNode& root) {
  std::vector<Diagnostic> sink;
  check_schema(root, "nd/framework/1", sink);
  const Citations citations = read_citations(root, sink);
  Overlay overlay(citations, sink);
  FrameworkFile file;
  file.root_ = &root;

  MapReader top(root, sink);
  top.ignore({"schema", "sources", "remarks"});
  for (const char* key : {"name", "title", "aliases", "capabilities", "defaults", "versions", "features"}) top.require(key, "every framework file");
  file.name_ = top.string("name").value_or("");
  FrameworkProfile base;
  base.name = file.name_;
  base.title = top.string("title").value_or("");
  static_cast<void>(top.strings("aliases"));
  overlay.apply_capabilities(top, base);
  if (const ConfigNode* node = top.child("defaults")) {
    MapReader defaults(*node, sink);
    overlay.apply(defaults, base);
    defaults.finish();
  }
  if (const ConfigNode* node = top.child("versions")) {
    if (!node->is_sequence() || node->items.empty()) {
      sink.push_back(make_diagnostic(Errc::wrong_type, node->where, "must be a list of versions, oldest first"));
    }
    for (const ConfigNode& item : node->items) {
      MapReader reader(item, sink);
      FrameworkVersion version;
      reader.require("version", "the list of versions");
      version.name = reader.string("version").value_or("");
      version.aliases = reader.strings("aliases").value_or(std::vector<std::string>{});
      version.profile = base;
      version.profile.version = version.name;
      if (const auto title = reader.string("title")) version.profile.title = base.title + ", " + *title;
      overlay.apply(reader, version.profile);
      if (const ConfigNode* own = reader.child("features")) version.features = read_features(*own, overlay, sink);
      reader.finish();
      std::vector<std::string> names = version.aliases;
      names.push_back(version.name);
      for (const std::string& name : names) {
        if (file.find_version(name) != nullptr) {
          sink.push_back(make_diagnostic(Errc::duplicate_key, item.where, "version '" + name + "' is listed twice"));
        }
      }
      file.versions_.push_back(std::move(version));
    }
  }
  if (const ConfigNode* node = top.child("features")) file.features_ = read_features(*node, overlay, sink);
  for (const FrameworkVersion& version : file.versions_) {
    for (const FrameworkFeature& own : version.features) {
      if (find_feature(file.features_, own.name) != nullptr) continue;
      sink.push_back(make_diagnostic(Errc::unknown_key, own.node->where, "'" + own.name + "' is no feature of this file",
                                     core::name_hint(own.name, names_of(file.features_))));
    }
  }
  top.finish();
  if (has_error(sink)) return Error(std::move(sink));
  return file;
}

const FrameworkVersion* FrameworkFile::find_version(std::string_view version) const {
  for (const FrameworkVersion& candidate : versions_) {
    if (same_name(candidate.name, version)) return &candidate;
    for (const std::string& alias : candidate.aliases) {
      if (same_name(alias, version)) return &candidate;
    }
  }
  return nullptr;
}

/// Names and aliases alike mark the point from which an entry holds; the newest mark not after `version` wins.
const FrameworkVersion* FrameworkFile::newest_not_after(std::string_view version) const {
  const FrameworkVersion* chosen = nullptr;
  std::string mark;
  for (const FrameworkVersion& candidate : versions_) {
    std::vector<std::string> names = candidate.aliases;
    names.push_back(candidate.name);
    for (const std::string& name : names) {
      const int order = compare_versions(name, version);
      if (order != -1 && order != 0) continue;
      if (chosen != nullptr && compare_versions(name, mark) != 1) continue;
      chosen = &candidate;
      mark = name;
    }
  }
  return chosen;
}

Result<FrameworkProfile> FrameworkFile::profile(std::string_view version, const std::vector<std::string>& features) const {
  const FrameworkVersion* chosen = version.empty() ? &versions_.back() : find_version(version);
  if (chosen == nullptr) chosen = newest_not_after(version);
  SourceRef where = root_->where;
  if (chosen == nullptr) {
    where.path = "framework.version";
    return make_error(Errc::out_of_range, where, "no figures for version '" + std::string(version) + "' of " + name_,
                      core::name_hint(version, names_of(versions_)));
  }

  FrameworkProfile result = chosen->profile;
  std::vector<Diagnostic> sink;
  const Citations citations = read_citations(*root_, sink);
  Overlay overlay(citations, sink);
  where.path = "framework.features";
  for (const std::string& name : features) {
    const FrameworkFeature* common = find_feature(features_, name);
    if (common == nullptr) {
      sink.push_back(make_diagnostic(Errc::out_of_range, where, "unknown feature '" + name + "' of " + name_,
                                     core::name_hint(name, names_of(features_))));
      continue;
    }
    for (const FrameworkFeature* feature : {common, find_feature(chosen->features, name)}) {
      if (feature == nullptr) continue;
      MapReader reader(*feature->node, sink);
      overlay.apply(reader, result);
    }
  }
  if (has_error(sink)) return Error(std::move(sink));
  return result;
}

}  // namespace nd::formats
