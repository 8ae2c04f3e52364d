// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shell/script.hpp"
#include "formats/shell/value.hpp"
#include "nd/result.hpp"

namespace nd::formats::megatron {

/// One "--name value ..." of a launch command.
struct Argument {
  std::string name;                  ///< without dashes, '-' as '_'
  shell::Value flag;                 ///< the word of the name; with "--name=value" the whole word
  std::vector<shell::Value> values;  ///< none: a switch
};

/// The arguments of a training program.
struct Arguments {
  std::vector<Argument> list;            ///< in order; of two with one name the later counts
  std::optional<shell::Value> program;   ///< the program's own word on the launch line
  std::vector<shell::Value> launcher;    ///< words before the program
  std::vector<Diagnostic> notes;
  /// Index in `list` of the one that counts; nullopt when it is not there.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
};

/// Of all commands of a script the one that names most of a model's and a layout's arguments; without any, what its variables hold.
/// Errors: missing_field when nothing of the kind is there.
[[nodiscard]] Result<Arguments> find_arguments(const shell::Trace& trace, const std::string& file);

/// Spellings of a launcher's processes per node and nodes.
inline constexpr std::array<std::string_view, 4> kPerNode{"nproc_per_node", "num_gpus", "ntasks_per_node", "gpus_per_node"};
inline constexpr std::array<std::string_view, 4> kNodes{"nnodes", "num_nodes", "nodes", "-N"};
/// The value of a launcher's option under one of its names ('_' for '-').
[[nodiscard]] std::optional<shell::Value> launcher_value(const Arguments& arguments, std::span<const std::string_view> names);
/// Devices that a launcher starts: processes per node x nodes; text with open parts when the script does not say.
[[nodiscard]] std::optional<std::string> world_size(const Arguments& arguments, const shell::Trace& trace);

}  // namespace nd::formats::megatron
