// SPDX-License-Identifier: Apache-2.0
#include "nd/parallel_config.hpp"

#include <array>
#include <cstddef>

namespace nd {

const char* to_text(Recompute mode) {
  constexpr std::array<const char*, 4> kText{"off", "selective", "full", "per_layer"};
  return kText.at(static_cast<std::size_t>(mode));
}

const char* to_text(Schedule schedule) {
  constexpr std::array<const char*, 8> kText{"gpipe", "1f1b",     "interleaved", "zb_h1",
                                             "zb_v",  "dualpipe", "dualpipe_v",  "seq_1f1b"};
  return kText.at(static_cast<std::size_t>(schedule));
}

const char* to_text(CpAlgorithm algorithm) {
  constexpr std::array<const char*, 3> kText{"ring", "all_gather", "ulysses"};
  return kText.at(static_cast<std::size_t>(algorithm));
}

std::string to_text(const ParallelConfig& config) {
  std::string out = "dp" + std::to_string(config.dp);
  const auto degree = [&out](const char* name, int value) {
    if (value != 1) out += " " + std::string(name) + std::to_string(value);
  };
  degree("tp", config.tp);
  degree("pp", config.pp);
  degree("cp", config.cp);
  degree("ep", config.ep);
  degree("etp", config.etp);
  degree("vpp", config.vpp);
  degree("op", config.op);
  if (config.group_size() != config.pp) degree("group", config.micro_batch_group);
  degree("seq_split", config.seq_split);
  if (config.sequence_parallel) out += " sp";
  out += " mbs" + std::to_string(config.micro_batch_size) + " mb" + std::to_string(config.micro_batch_num);
  if (config.recompute != Recompute::off) out += std::string(" recompute-") + to_text(config.recompute);
  return out;
}

}  // namespace nd
