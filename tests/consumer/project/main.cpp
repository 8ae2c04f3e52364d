// SPDX-License-Identifier: Apache-2.0
// Another project's use of the installed library: load a device, resolve a model, price one strategy.
#include <cstdio>

#include "nd/nd.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const nd::DataStore data(argv[1]);
  const auto request = nd::read_request("llama-3.1-8b", "", data);
  if (!request) return std::fprintf(stderr, "%s\n", nd::to_text(request.error().diagnostics.front()).c_str()), 1;
  const auto device = data.device("A3");
  const auto profile = data.framework("megatron-core", "", {});
  const auto model = nd::resolve_model(request->model);
  if (!device || !profile || !model) return 1;
  nd::RunSpec spec = request->run;
  spec.devices = 16;
  spec.tp = 4;
  spec.global_batch_size = 64;
  const auto run = nd::resolve_run(spec, *model, *profile);
  if (!run) return 1;
  const nd::Scenario scenario{*model, *run, *profile, {*device, 16}};
  const auto memory = nd::estimate_memory(scenario, run->strategy);
  const auto time = nd::estimate_time(scenario, run->strategy);
  std::printf("%.2f GiB, %.3f s\n", nd::to_gib(memory.peak().allocated), time.step.value);
  return memory.peak().allocated.value > 0 && time.step.value > 0 ? 0 : 1;
}
