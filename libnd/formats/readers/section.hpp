// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_fields.hpp"
#include "formats/tree/map_reader.hpp"
#include "nd/run_spec.hpp"

namespace nd::formats {

/// Spellings of one setting, in the order of preference.
using Names = std::initializer_list<std::string_view>;

/// What reading one file finds.
struct Findings {
  std::vector<Diagnostic> problems;  ///< errors
  std::vector<Diagnostic> notes;     ///< warnings and notes

  void warn(Errc code, SourceRef where, std::string message, std::string hint = {});
  void note(SourceRef where, std::string message, std::string hint = {});
};

/// In the order of the files, whatever order the parts were read in.
void sort_by_place(std::vector<Diagnostic>& all);
/// A value several settings look at is reported once.
[[nodiscard]] std::vector<Diagnostic> without_repeats(std::vector<Diagnostic> all);
/// Adds what is wrong with a model as a whole. A field that was refused is open: it is not reported as missing besides.
void add_model_problems(const ModelSpec& spec, const ConfigNode& section, const FieldPlaces& places, Findings& findings);

/// One section of the file; an absent section reads as empty. Thread-compatible.
class Section {
 public:
  /// `parent` and `findings` must outlive the section. A section that is no mapping is an error.
  Section(const ConfigNode& parent, std::string_view name, Findings& findings);
  /// The whole document as a section.
  Section(const ConfigNode& root, Findings& findings);
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  [[nodiscard]] bool stated() const { return stated_; }
  [[nodiscard]] const ConfigNode& node() const { return node_; }
  [[nodiscard]] MapReader& map() { return map_; }
  /// The first spelling that is stated, the first of all when none is. Two spellings with different values are a conflict.
  [[nodiscard]] std::string_view key(Names names);
  [[nodiscard]] bool has(Names names);
  [[nodiscard]] SourceRef where(std::string_view key) const { return map_.where(key); }
  /// Reports the keys nobody asked for: an error when it is a near miss of one that was, else one note for all.
  void finish();
  /// Only the errors of finish(), for sections with many keys of no interest, and only for slips of one letter.
  void refuse_slips();

 private:
  bool stated_;
  ConfigNode node_;
  Findings& findings_;
  MapReader map_;
};

/// Sets a field of the run and where it came from. Nothing happens without a value.
template <class T, class Value>
void state(RunSpec& run, const char* field, std::optional<T> RunSpec::*member, const std::optional<Value>& value, SourceRef where) {
  if (!value) return;
  run.*member = *value;
  run.origins[field] = {Origin::Kind::file, std::move(where)};
}

}  // namespace nd::formats
