// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "nd/run_spec.hpp"

namespace {

nd::ResolvedModel dense(int layers = 32) {
  nd::ResolvedModel model;
  model.hidden_size = 4096;
  model.vocab_size = 32000;
  model.max_positions = 8192;
  model.kinds.resize(1);
  model.layer_kind.assign(static_cast<std::size_t>(layers), 0);
  return model;
}

nd::ResolvedModel experts() {
  auto model = dense();
  model.kinds[0].ffn.kind = nd::FfnKind::moe;
  model.kinds[0].ffn.experts = 64;
  return model;
}

std::string first_problem(const nd::RunSpec& spec, const nd::ResolvedModel& model = dense()) {
  const auto run = resolve_run(spec, model, {});
  return run ? std::string("resolved") : to_text(run.error().diagnostics.front());
}

bool defaulted(const nd::ResolvedRun& run, const char* field) {
  return std::find(run.defaulted.begin(), run.defaulted.end(), field) != run.defaulted.end();
}

}  // namespace

TEST_CASE("what is missing follows from what is stated", "[run]") {
  nd::RunSpec spec;
  spec.devices = 64;
  spec.tp = 4;
  spec.pp = 2;
  spec.global_batch_size = 256;
  spec.micro_batch_size = 2;
  const auto run = resolve_run(spec, dense(), {});
  REQUIRE(run.has_value());
  CHECK(run->strategy.dp == 8);               // 64 / (4 * 2)
  CHECK(run->strategy.micro_batch_num == 16);  // 256 / (8 * 2)
  CHECK(run->seq_length == 4096);             // min(max_positions, 4096)
  CHECK(run->strategy.op == 8);
  CHECK(defaulted(*run, "seq_length"));
  CHECK(defaulted(*run, "optimizer_shard"));
  CHECK_FALSE(defaulted(*run, "micro_batch_size"));
}

TEST_CASE("statements that contradict each other are refused with the nearest that do not", "[run]") {
  nd::RunSpec spec;
  spec.devices = 20;
  spec.tp = 4;
  spec.pp = 2;
  CHECK(first_problem(spec) == "error: devices: 20 devices are no multiple of tp 4 x pp 2 x cp 1 = 8 (nearest: 16 or 24)");
  spec.devices = 16;
  spec.global_batch_size = 7;
  CHECK(first_problem(spec) == "error: global_batch_size: 7 sequences are no multiple of dp 2 x micro-batch size 1 (nearest: 6 or 8)");
  spec.micro_batch_num = 4;
  CHECK(first_problem(spec) ==
        "error: global_batch_size: dp 2 x micro-batch size 1 x 4 micro-batches = 8 is not the global batch of 7");
  spec = {};
  spec.devices = 16;
  spec.dp = 4;
  spec.tp = 2;
  CHECK(first_problem(spec) == "error: dp: dp 4 x tp 2 x pp 1 x cp 1 = 8 is not the 16 devices (dp would be 8)");
}

TEST_CASE("numbers out of range are refused, all at once", "[run]") {
  nd::RunSpec spec;
  spec.devices = 0;
  spec.tp = -3;
  spec.seq_length = std::int64_t{1} << 50;
  const auto run = resolve_run(spec, dense(), {});
  REQUIRE_FALSE(run.has_value());
  CHECK(run.error().diagnostics.size() == 3);
}

TEST_CASE("huge degrees do not overflow", "[run]") {
  nd::RunSpec spec;
  spec.tp = spec.pp = spec.cp = std::int64_t{1} << 30;
  CHECK(first_problem(spec) == "error: devices: tp x pp x cp is beyond any cluster");
}

TEST_CASE("experts need a group inside a stage", "[run]") {
  nd::RunSpec spec;
  spec.devices = 4;
  spec.tp = 2;
  spec.ep = 64;
  CHECK(first_problem(spec, experts()) == "error: ep: ep 64 x etp 1 does not divide the 4 ranks of a stage (dp x tp x cp)");
  spec.ep = 3;
  CHECK(first_problem(spec, experts()) == "error: ep: 64 experts are no multiple of ep 3");
  spec.ep = 2;
  CHECK(first_problem(spec, experts()) == "resolved");
  CHECK(first_problem(spec, dense()) == "error: ep: expert parallelism 2 for a model without experts");
}

TEST_CASE("a stated layout must hold the model's layers", "[run]") {
  nd::RunSpec spec;
  spec.pp = 4;
  spec.layers_per_chunk = {{1, 2, 2, 3}};
  CHECK(first_problem(spec, dense(8)) == "resolved");
  CHECK(first_problem(spec, dense(9)) == "error: layers_per_chunk: the layout holds 8 layers, the model 9");
  spec.layers_per_chunk = {{4, 4, 0}};
  CHECK(first_problem(spec, dense(8)) == "error: layers_per_chunk: the layout has 3 entries for 4 stages");
}

TEST_CASE("groups of the interleaved schedule", "[run]") {
  nd::RunSpec spec;
  spec.devices = 16;
  spec.pp = 4;
  spec.vpp = 2;
  spec.micro_batch_num = 16;
  nd::FrameworkProfile profile;
  profile.title = "Trainer";
  profile.can.micro_batch_group = true;
  const auto group = [&](std::int64_t stated) {
    spec.micro_batch_group = stated;
    const auto run = resolve_run(spec, dense(), profile);
    return run ? "pp" + std::to_string(run->strategy.pp) + " group" + std::to_string(run->strategy.group_size())
               : to_text(run.error().diagnostics.front());
  };
  CHECK(group(4) == "pp4 group4");
  CHECK(group(8) == "pp4 group8");
  CHECK(group(3) == "error: micro_batch_group: a group of 3 micro-batches does not lie between pp = 4 and the 16 micro-batches of a step");
  CHECK(group(17) == "error: micro_batch_group: a group of 17 micro-batches does not lie between pp = 4 and the 16 micro-batches of a step");
  profile.can.micro_batch_group = false;
  CHECK(group(4) == "pp4 group4");
  CHECK(group(8) == "error: micro_batch_group: Trainer runs groups of pp = 4 micro-batches only");
  spec.vpp = 1;  // no groups without chunks: the statement has no effect there
  CHECK(group(8) == "pp4 group4");
}

TEST_CASE("one stage has no schedule of its own; the framework's split comes along", "[run]") {
  nd::RunSpec spec;
  spec.devices = 8;
  spec.schedule = nd::Schedule::zb_h1;
  nd::FrameworkProfile profile;
  profile.can.layer_split = nd::LayerSplit::block_cost;
  const auto one = resolve_run(spec, dense(), profile);
  REQUIRE(one.has_value());
  CHECK(one->strategy.schedule == nd::Schedule::one_f_one_b);
  CHECK(one->layer_split == nd::LayerSplit::block_cost);
  spec.pp = 2;
  CHECK(resolve_run(spec, dense(), profile)->strategy.schedule == nd::Schedule::zb_h1);
  spec.schedule = nd::Schedule::one_f_one_b;
  CHECK(resolve_run(spec, dense(), profile)->strategy.schedule == nd::Schedule::one_f_one_b);
  spec.vpp = 2;  // 1F1B with chunks is the interleaved one
  spec.micro_batch_num = 4;
  CHECK(resolve_run(spec, dense(), profile)->strategy.schedule == nd::Schedule::interleaved);
}

TEST_CASE("what the run states replaces the framework's habit", "[run]") {
  nd::RunSpec spec;
  spec.param_bytes = 4.0;
  spec.flash_attention = false;
  const auto profile = nd::effective_profile({}, spec);
  CHECK(profile.memory.weight_bytes == 4);
  CHECK(profile.memory.main_bytes == 0);
  CHECK_FALSE(profile.memory.flash_attention);
  CHECK(nd::effective_profile({}, {}).memory.main_bytes == 4);
}
