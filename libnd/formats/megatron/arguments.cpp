// SPDX-License-Identifier: Apache-2.0
#include "formats/megatron/arguments.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace nd::formats::megatron {

namespace {

using shell::text_of;
using shell::Value;

/// What tells a training run from any other command with options.
constexpr std::array<std::string_view, 8> kTelling{"num_layers",        "hidden_size", "num_attention_heads",       "tensor_model_parallel_size",
                                                   "micro_batch_size", "seq_length",  "pipeline_model_parallel_size", "global_batch_size"};

/// "--tensor-model-parallel-size=2" -> "tensor_model_parallel_size"; empty when the word is no option.
std::string option_name(std::string_view word) {
  if (!word.starts_with("--") || word.size() < 3 || !(std::isalpha(static_cast<unsigned char>(word[2])) != 0)) return {};
  std::string out(word.substr(2, word.find('=') == std::string_view::npos ? word.size() : word.find('=') - 2));
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

constexpr std::array<std::string_view, 4> kTasks{"ntasks", "-n", "-np", "np"};

bool is_program(const std::string& word) {
  return word.ends_with(".py") || word.find(".py\"") != std::string::npos;
}

std::vector<Argument> parse_list(std::vector<Value> words) {
  std::vector<Argument> out;
  for (auto& word : words) {
    const std::string text = text_of(word);
    if (const std::string name = option_name(text); !name.empty()) {
      Argument one{name, word, {}};
      if (const auto equals = text.find('='); equals != std::string::npos) one.values.push_back(shell::tail(word, equals + 1));
      out.push_back(std::move(one));
    } else if (!out.empty() && text != "\\") {
      out.back().values.push_back(std::move(word));
    }
  }
  return out;
}

std::size_t score(const std::vector<Argument>& list) {
  return static_cast<std::size_t>(std::count_if(kTelling.begin(), kTelling.end(), [&list](std::string_view name) {
    return std::any_of(list.begin(), list.end(), [name](const Argument& one) { return one.name == name; });
  }));
}

/// Words behind a command's end ("| tee log") are no arguments; the parser has cut them off. Those before the program start it.
Arguments split_command(const std::vector<Value>& words) {
  Arguments out;
  const auto program = std::find_if(words.begin(), words.end(), [](const Value& word) { return is_program(text_of(word)); });
  const bool bare = !words.empty() && !option_name(text_of(words.front())).empty();
  if (program == words.end()) {
    if (!bare) {  // "python -m package args", or a program of another kind: everything may be meant
      out.launcher = words;
      out.program = words.front();
    }
    out.list = parse_list(words);
    return out;
  }
  out.program = *program;
  out.launcher.assign(words.begin(), program);
  out.list = parse_list({program + 1, words.end()});
  return out;
}

std::size_t position(const shell::Variable& variable) {
  for (const auto& value : variable.values)
    for (const auto& piece : value)
      if (!piece.sites.empty()) return piece.sites.front().begin;
  return 0;
}

/// A file of variables that another script launches with.
Arguments from_variables(const shell::Trace& trace) {
  std::vector<const shell::Variable*> variables;
  for (const auto& [name, variable] : trace.variables) variables.push_back(&variable);
  std::stable_sort(variables.begin(), variables.end(), [](const auto* a, const auto* b) { return position(*a) < position(*b); });
  std::vector<Value> words;
  for (const auto* variable : variables) {
    std::vector<Value> own;
    for (Value value : variable->values) {
      for (auto& piece : value) piece.quoted = false;
      auto fields = shell::split(value);
      own.insert(own.end(), std::make_move_iterator(fields.begin()), std::make_move_iterator(fields.end()));
    }
    if (std::none_of(own.begin(), own.end(), [](const Value& one) { return !option_name(text_of(one)).empty(); })) continue;
    words.insert(words.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  }
  const auto program = std::find_if(words.begin(), words.end(), [](const Value& word) { return is_program(text_of(word)); });
  if (program != words.end()) return split_command(words);
  Arguments out;
  out.list = parse_list(words);
  return out;
}

}  // namespace

std::optional<std::size_t> Arguments::find(std::string_view name) const {
  for (std::size_t i = list.size(); i > 0; --i)
    if (list[i - 1].name == name) return i - 1;
  return std::nullopt;
}

Result<Arguments> find_arguments(const shell::Trace& trace, const std::string& file) {
  Arguments best;
  std::size_t most = 0, launches = 0;
  for (const auto& command : trace.commands) {
    Arguments one = split_command(command.words);
    const std::size_t points = score(one.list);
    if (points > 1) ++launches;
    if (points <= most) continue;
    most = points;
    best = std::move(one);
  }
  const auto note = [&](std::string message) {
    best.notes.push_back({Severity::note, Errc::unsupported, {file, 0, 0, {}}, std::move(message), {}});
  };
  if (most < 2) {
    best = from_variables(trace);
    if (score(best.list) == 0)
      return make_error(Errc::missing_field, {file, 0, 0, {}}, "no command or variable with the arguments of a training run is in it",
                        "--num-layers, --hidden-size, --tensor-model-parallel-size, ...");
    note("no launch line: the arguments are those of its variables");
  } else if (launches > 1) {
    note(std::to_string(launches) + " commands have arguments of a training run; the first with most of them is read");
  }
  return best;
}

std::optional<Value> launcher_value(const Arguments& arguments, std::span<const std::string_view> names) {
  const auto& words = arguments.launcher;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string text = text_of(words[i]);
    const std::string name = text.starts_with("--") ? option_name(text) : text;
    if (std::find(names.begin(), names.end(), std::string_view(name)) == names.end()) continue;
    if (const auto equals = text.find('='); equals != std::string::npos) return shell::tail(words[i], equals + 1);
    if (i + 1 < words.size()) return words[i + 1];
  }
  return std::nullopt;
}

std::optional<std::string> world_size(const Arguments& arguments, const shell::Trace& trace) {
  const auto option = [&arguments](std::span<const std::string_view> names) -> std::optional<std::string> {
    const auto value = launcher_value(arguments, names);
    return value ? std::optional<std::string>(text_of(*value)) : std::nullopt;
  };
  const auto per_node = option(kPerNode), nodes = option(kNodes), all = option(kTasks);
  const auto variable = trace.variables.find("WORLD_SIZE");
  const auto stated = [&]() -> std::optional<std::string> {
    if (variable == trace.variables.end() || variable->second.values.empty()) return std::nullopt;
    return text_of(variable->second.values.front());
  };
  if (per_node) {
    const auto a = core::parse_integer(*per_node), b = core::parse_integer(nodes.value_or("1"));
    if (a && b) {
      const auto product = core::multiply(*a, *b);
      if (product) return std::to_string(*product);
    }
    if (const auto other = stated(); other && shell::unset_names(*other).empty()) return other;
    return *per_node + nodes.value_or("");
  }
  if (const auto other = stated()) return other;
  return all;
}

}  // namespace nd::formats::megatron
