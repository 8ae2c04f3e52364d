// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <catch2/catch.hpp>

using namespace nd::core;

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps", "[text]") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("tp_size", "tp_size") == 0);
  CHECK(edit_distance("tp_szie", "tp_size") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest known name is proposed when it is near", "[text]") {
  const std::vector<std::string> known{"num_attention_heads", "num_hidden_layers", "vocab_size"};
  CHECK(nearest_name("num_attn_heads", known) == std::optional<std::string>("num_attention_heads"));
  CHECK_FALSE(nearest_name("colour", known));
  CHECK(name_hint("vocab-sise", known) == "did you mean 'vocab_size'?");
  CHECK(name_hint("zzz", known) == "known: num_attention_heads, num_hidden_layers, vocab_size");
  CHECK_FALSE(nearest_name(std::string(100000, 'x'), known));
}

TEST_CASE("a name far away is no slip", "[text]") {
  const std::vector<std::string> known{"hf", "search", "megatron", "mindspeed", "tp", "micro_batch_size", "use_gmm"};
  // Half of a short word, or another word of the same length, is not a slip of the finger.
  for (const char* const name : {"zz", "x", "", "magnet", "research_x", "mindless", "user", "match_size", "mixed_precision_type"}) {
    INFO(name);
    CHECK_FALSE(nearest_name(name, known));
  }
  CHECK(nearest_name("seach", known) == std::optional<std::string>("search"));
  CHECK(nearest_name("megatorn", known) == std::optional<std::string>("megatron"));
  CHECK(nearest_name("micro_bs", known) == std::nullopt);
  CHECK(nearest_name("micro_batch", known) == std::optional<std::string>("micro_batch_size"));  // letters left out
}

TEST_CASE("numbers are read whole or not at all", "[text]") {
  CHECK(parse_integer("-12") == std::optional<std::int64_t>(-12));
  CHECK_FALSE(parse_integer("12x"));
  CHECK_FALSE(parse_integer(""));
  CHECK_FALSE(parse_integer("9223372036854775808"));
  CHECK(parse_real("1e3") == std::optional<double>(1000.0));
  CHECK_FALSE(parse_real("nan"));
  CHECK_FALSE(parse_real("1e400"));
}

TEST_CASE("trim and split", "[text]") {
  CHECK(trim("  a b\t\n") == "a b");
  CHECK(trim(" \n").empty());
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(contains_ignoring_case("Flash-Attention", "flash"));
}
