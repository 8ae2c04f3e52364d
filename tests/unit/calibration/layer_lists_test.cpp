// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "report/validation_layers.hpp"

using nd::report::ChunkLayers;
using nd::report::StageGrid;
using List = std::vector<std::int64_t>;

TEST_CASE("layer lists as published", "[validation]") {
  CHECK(nd::report::parse_layer_list("1,2,2,1") == List{1, 2, 2, 1});
  CHECK(nd::report::parse_layer_list("[10, 8, 6]") == List{10, 8, 6});
  CHECK(nd::report::parse_layer_list("1 10 10 7") == List{1, 10, 10, 7});
  CHECK_FALSE(nd::report::parse_layer_list(""));
  CHECK_FALSE(nd::report::parse_layer_list("1,x"));
  CHECK_FALSE(nd::report::parse_layer_list("1,-2"));
}

TEST_CASE("a list must have one entry per chunk and the model's layers", "[validation]") {
  CHECK(nd::report::chunks_from_list({1, 2, 2, 1}, StageGrid{6, 4, 1}) == ChunkLayers{{1, 2, 2, 1}});
  CHECK(nd::report::chunks_from_list({1, 2, 2, 1}, StageGrid{6, 2, 2}) == ChunkLayers{{1, 2}, {2, 1}});
  CHECK_FALSE(nd::report::chunks_from_list({1, 2, 2}, StageGrid{5, 4, 1}));
  CHECK_FALSE(nd::report::chunks_from_list({1, 2, 2, 2}, StageGrid{6, 4, 1}));
}

TEST_CASE("no-op layers are among the stated count", "[validation]") {
  // 16 slots in 8 chunks of 2, slots 1 and 15 empty: 14 layers.
  const auto layout = nd::report::layout_with_noops({1, 15}, StageGrid{16, 2, 4});
  REQUIRE(layout);
  CHECK(layout->layers == 14);
  CHECK(layout->chunks == ChunkLayers{{1, 2}, {2, 2}, {2, 2}, {2, 1}});
  CHECK_FALSE(nd::report::layout_with_noops({3}, StageGrid{4, 3, 1}));     // 4 slots do not divide over 3 stages
  CHECK_FALSE(nd::report::layout_with_noops({9, 3}, StageGrid{4, 2, 1}));  // there is no slot 9
}

TEST_CASE("Megatron's layout string", "[validation]") {
  // E and 3 layers, 6 chunks of 2, MTP and loss: 15 layers in 8 chunks, stage = chunk modulo 2.
  CHECK(nd::report::layout_parts("Et*3|(tt|)*6mL") == 8);
  const auto layout = nd::report::parse_custom_layout("Et*3|(tt|)*6mL", StageGrid{15, 2, 4});
  REQUIRE(layout);
  CHECK(layout->mtp == 1);
  CHECK(layout->chunks == ChunkLayers{{3, 2}, {2, 2}, {2, 2}, {2, 0}});
  CHECK_FALSE(nd::report::parse_custom_layout("Et*3|(tt|)*6mL", StageGrid{16, 2, 4}));
  CHECK_FALSE(nd::report::parse_custom_layout("Et*3|(tt|*6mL", StageGrid{15, 2, 4}));
  CHECK_FALSE(nd::report::parse_custom_layout("Et*3|x", StageGrid{3, 2, 1}));
  CHECK_FALSE(nd::report::layout_parts(""));
}

TEST_CASE("layers per stage", "[validation]") {
  CHECK(nd::report::stage_layers({}, StageGrid{32, 4, 1}) == List{8, 8, 8, 8});
  CHECK(nd::report::stage_layers({}, StageGrid{30, 4, 1}).empty());
  CHECK(nd::report::stage_layers({{3, 2}, {2, 2}}, StageGrid{9, 2, 2}) == List{5, 4});
}
