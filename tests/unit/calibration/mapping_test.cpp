// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "report/validation_mapping.hpp"

using nd::MeasuredRow;
using nd::report::map_row;
using nd::report::MappedRow;
using nd::report::RuleBook;
using nd::report::SourceRule;

namespace {

MeasuredRow plain_row() {
  MeasuredRow row;
  row.file = "t.csv";
  row.line = 2;
  row.source = "paper";
  row.model = "gpt-x";
  row.device = "A100";
  row.dtype = "bf16";
  row.recompute = "none";
  row.zero = "zero1";
  row.hidden = 1024;
  row.layers = 24;
  row.heads = 16;
  row.ffn = 4096;
  row.vocab = 50257;
  row.seq_len = 2048;
  row.devices = 16;
  row.dp = 2;
  row.tp = 4;
  row.pp = 2;
  row.cp = 1;
  row.vpp = 1;
  row.mbs = 2;
  row.gbs = 32;
  row.step_time_s = 1.0;
  return row;
}

SourceRule rule(std::string note, std::string setting, std::string value) {
  SourceRule out;
  out.match.when.push_back({"note", {std::move(note)}});
  out.set.emplace_back(std::move(setting), std::move(value));
  return out;
}

}  // namespace

TEST_CASE("a complete row becomes a model and a run", "[validation]") {
  const MappedRow mapped = map_row(plain_row(), RuleBook{});
  REQUIRE(mapped.skip.empty());
  CHECK(mapped.framework == "generic");
  CHECK(mapped.model.hidden_size == 1024);
  CHECK(mapped.run.dp == 2);
  CHECK(mapped.run.tp == 4);
  CHECK(mapped.run.pp == 2);
  CHECK(mapped.run.micro_batch_size == 2);
  CHECK(mapped.run.global_batch_size == 32);
  CHECK(mapped.run.zero == nd::ZeroLevel::optimizer);
  CHECK(mapped.run.recompute == nd::Recompute::off);
  CHECK(mapped.run.compute_dtype == nd::Dtype::bf16);
}

TEST_CASE("rows without a usable configuration say why", "[validation]") {
  MeasuredRow row = plain_row();
  row.devices = 32;
  CHECK(map_row(row, {}).skip == "dp x tp x pp x cp = 16 is not the 32 devices");
  row = plain_row();
  row.gbs = 30;
  CHECK(map_row(row, {}).skip == "global batch 30 is no multiple of dp 2 x micro-batch 2");
  row = plain_row();
  row.mbs.reset();
  row.seq_len = 8192;
  CHECK(map_row(row, {}).skip == "micro-batch size not stated for a pipeline");
  row = plain_row();
  row.hidden.reset();
  CHECK(map_row(row, {}).skip == "model shape not stated: hidden size");
  row = plain_row();
  row.seq_len.reset();
  CHECK(map_row(row, {}).skip == "sequence length not stated");
  row = plain_row();
  row.zero = "magic";
  CHECK(map_row(row, {}).skip == "sharding 'magic' not understood");
}

TEST_CASE("without a pipeline a long sequence stands for a micro-batch of one", "[validation]") {
  MeasuredRow row = plain_row();
  row.pp = 1;
  row.dp = 4;
  row.mbs.reset();
  CHECK(map_row(row, {}).skip == "micro-batch size not stated");  // 2048 tokens: too short to tell
  row.seq_len = 8192;  // 2048 on each of the four that share it
  CHECK(map_row(row, {}).skip == "micro-batch size not stated");
  row.seq_len = 16384;
  const MappedRow mapped = map_row(row, {});
  CHECK(mapped.skip.empty());
  CHECK(mapped.run.micro_batch_size == 1);
}

TEST_CASE("sharding levels and groups", "[validation]") {
  CHECK(nd::report::parse_sharding("zero3/8")->ranks == 8);
  CHECK(nd::report::parse_sharding("zero3/8")->level == nd::ZeroLevel::parameters);
  CHECK(nd::report::parse_sharding("none")->level == nd::ZeroLevel::none);
  CHECK(nd::report::parse_sharding("zero2")->level == nd::ZeroLevel::gradients);
  CHECK_FALSE(nd::report::parse_sharding("zero1/x"));
  MeasuredRow row = plain_row();
  row.tp = 1;
  row.dp = 8;
  row.zero = "zero1/4";
  CHECK(map_row(row, {}).run.optimizer_shard == 4);
}

TEST_CASE("the gate and the table follow from the parameter count when nothing else says", "[validation]") {
  MeasuredRow row = plain_row();
  // 24 layers of 4 h^2 + 2 h f = 12.58 M and one table of 51.5 M
  row.params_b = 0.3535;
  MappedRow mapped = map_row(row, {});
  CHECK(mapped.model.gated_ffn == false);
  CHECK(mapped.model.tie_word_embeddings == true);
  // three matrices: 24 * 16.78 M and two tables
  row.params_b = 0.5056;
  mapped = map_row(row, {});
  CHECK(mapped.model.gated_ffn == true);
  CHECK(mapped.model.tie_word_embeddings == false);
}

TEST_CASE("notes set recomputed layers per chunk and per rank", "[validation]") {
  MeasuredRow row = plain_row();
  row.recompute = "full";
  row.vpp = 3;
  row.notes = "recompute-method block num-layers 1";
  RuleBook book;
  book.sources.push_back(rule("recompute-method block num-layers #", "recompute_block", "$1"));
  // one layer of each of 3 chunks on both stages
  CHECK(map_row(row, book).run.full_recompute_layers == std::vector<std::int64_t>{3, 3});
  book.sources.push_back(rule("recompute-method block num-layers #", "recompute_per_rank", "$1"));
  CHECK(map_row(row, book).run.full_recompute_layers == std::vector<std::int64_t>{1, 1});
  row.notes = "recompute-method block num-layers 99";
  CHECK(map_row(row, book).run.full_recompute_layers == std::vector<std::int64_t>{12, 12});
}

TEST_CASE("later rules override settings, features add up", "[validation]") {
  MeasuredRow row = plain_row();
  row.notes = "a; b";
  RuleBook book;
  SourceRule first = rule("a", "etp", "1");
  first.framework = "one";
  first.version = "1";
  first.features = {"x", "y"};
  SourceRule second = rule("b", "etp", "2");
  second.framework = "two";
  second.features = {"y", "z"};
  book.sources = {first, second};
  const auto settings = nd::report::collect_settings(row, book);
  CHECK(settings.framework == "two");
  CHECK(settings.version.empty());
  CHECK(settings.features == std::vector<std::string>{"x", "y", "z"});
  CHECK(nd::report::setting_integer(settings, "etp") == 2);
}

TEST_CASE("a table's own framework column wins", "[validation]") {
  MeasuredRow row = plain_row();
  row.notes = "a";
  row.framework = "nanotron";
  row.framework_version = "2024";
  RuleBook book;
  SourceRule first = rule("a", "etp", "1");
  first.framework = "one";
  book.sources = {first};
  const auto settings = nd::report::collect_settings(row, book);
  CHECK(settings.framework == "nanotron");
  CHECK(settings.version == "2024");
}

TEST_CASE("adapters: rank times the widths of what they adapt", "[validation]") {
  MeasuredRow row = plain_row();
  row.kv_heads = 4;
  row.head_dim = 64;
  row.notes = "lora 8";
  RuleBook book;
  book.sources.push_back(rule("lora #", "lora_rank", "$1"));
  book.sources.push_back(rule("lora #", "frozen_base", "1"));
  book.sources.push_back(rule("lora #", "lora_targets", "q v"));
  const MappedRow mapped = map_row(row, book);
  CHECK(mapped.run.frozen_base == true);
  // q: 1024 + 16 * 64, v: 1024 + 4 * 64; rank 8, 24 layers
  CHECK(mapped.run.trained_parameters == 8.0 * 24 * (1024 + 1024 + 1024 + 256));
}

TEST_CASE("low-precision recipes keep 16-bit activations", "[validation]") {
  MeasuredRow row = plain_row();
  for (const auto& [text, gemm] : {std::pair{"mxfp8", nd::Dtype::fp8}, std::pair{"fp8", nd::Dtype::fp8}, std::pair{"nvfp4", nd::Dtype::fp4}}) {
    row.dtype = text;
    const MappedRow mapped = map_row(row, {});
    CHECK(mapped.run.compute_dtype == nd::Dtype::bf16);
    CHECK(mapped.run.gemm_dtype == gemm);
  }
}

TEST_CASE("the reading of the memory comes from rules or from the table", "[validation]") {
  MeasuredRow row = plain_row();
  row.reading = "reserved last_stage first_iteration";
  const MappedRow mapped = map_row(row, {});
  CHECK(mapped.reading == nd::MemoryReading{nd::MemoryCounter::reserved, nd::MemoryStage::last_stage, nd::ReadingTime::first_iteration});
}
