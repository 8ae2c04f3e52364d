// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/tree/scalar.hpp"

using namespace nd::formats;

namespace {
ConfigNode plain(std::string text) {
  ConfigNode node;
  node.kind = NodeKind::scalar;
  node.text = std::move(text);
  return node;
}
}  // namespace

// The second column is what PyYAML 6.0 makes of the text (type of yaml.safe_load(text)), except sexagesimal numbers
// (190:20:30) and dates, which stay strings here.
TEST_CASE("scalars are typed as PyYAML types them", "[scalar]") {
  struct Row {
    const char* text;
    ScalarType type;
  };
  using enum ScalarType;
  const std::vector<Row> rows{
      {"~", null},         {"null", null},      {"Null", null},       {"NULL", null},      {"", null},          {"nULL", string},
      {"yes", boolean},    {"No", boolean},     {"on", boolean},      {"OFF", boolean},    {"true", boolean},   {"False", boolean},
      {"y", string},       {"n", string},       {"oN", string},       {"tRUE", string},    {"0", integer},      {"-0", integer},
      {"12", integer},     {"+12", integer},    {"1_000", integer},   {"010", integer},    {"0o10", string},    {"08", string},
      {"0x1F", integer},   {"0X1F", string},    {"0b101", integer},   {"-0x10", integer},  {"1_", integer},     {"_1", string},
      {"1.", real},        {"1.0", real},       {".5", real},         {"-.5", string},     {"1.e-8", real},     {"3.0e-4", real},
      {"1.0e+3", real},    {"1.0e3", string},   {"1e-5", string},     {"1e5", string},     {"1e400", string},   {"1_0.5_0", real},
      {".inf", real},      {"-.INF", real},     {".nan", real},       {".NaN", real},      {"inf", string},     {"nan", string},
      {".", string},       {"-", string},       {"+", string},        {"0x", string},      {"1.2.3", string},   {"12abc", string},
      {"1.0.0", string},   {"190:20:30", string}, {"2024-01-02", string}, {"1,000", string}, {"00", integer},    {"-012", integer},
      {"0_7", integer},    {"99999999999999999999", integer}, {"._5", string}, {"1.5e", string}, {"1.5e+", string}, {"1.5e+x", string}};
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(scalar_type(plain(row.text)) == row.type);
  }
}

TEST_CASE("integers", "[scalar]") {
  struct Row {
    const char* text;
    std::optional<std::int64_t> value;
  };
  const std::vector<Row> rows{{"1_000", 1000},
                              {"010", 8},
                              {"-012", -10},
                              {"0x1F", 31},
                              {"-0x10", -16},
                              {"0b101", 5},
                              {"+7", 7},
                              {"2.0", 2},
                              {"1.0e3", 1000},
                              {"1e3", 1000},
                              {"2.5", {}},
                              {"08", {}},
                              {"yes", {}},
                              {"", {}},
                              {"abc", {}},
                              {".inf", {}},
                              {"9223372036854775807", INT64_C(9223372036854775807)},
                              {"9223372036854775808", {}},
                              {"1e30", {}},
                              {"0x", {}},
                              {"__", {}}};
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(as_integer(plain(row.text)) == row.value);
  }
}

TEST_CASE("reals take integers and what reads as a number, never infinity", "[scalar]") {
  CHECK(as_real(plain("1e-5")) == std::optional<double>(1e-5));
  CHECK(as_real(plain("1.e-8")) == std::optional<double>(1e-8));
  CHECK(as_real(plain("-.5")) == std::optional<double>(-0.5));
  CHECK(as_real(plain("3")) == std::optional<double>(3.0));
  CHECK(as_real(plain("1_0.5_0")) == std::optional<double>(10.5));
  CHECK(as_real(plain("99999999999999999999")) == std::optional<double>(1e20));
  for (const char* text : {".inf", "-.inf", ".nan", "inf", "nan", "1e400", "1.0e+400", "08", "true", "1.2.3", "e5", "infinity", "0x1p3"}) {
    INFO(text);
    CHECK_FALSE(as_real(plain(text)));
  }
}

TEST_CASE("a quoted scalar is a string whatever it looks like", "[scalar]") {
  ConfigNode node = plain("12");
  node.quoted = true;
  CHECK(scalar_type(node) == ScalarType::string);
  CHECK_FALSE(as_integer(node));
  CHECK_FALSE(as_real(node));
  CHECK_FALSE(as_boolean(node));
  CHECK(as_string(node) == std::optional<std::string>("12"));
  CHECK_FALSE(as_string(plain("12")));
  CHECK(as_boolean(plain("On")) == std::optional<bool>(true));
  CHECK(as_boolean(plain("no")) == std::optional<bool>(false));
  CHECK(describe(plain("12")) == "'12' (an integer)");
  CHECK(describe(ConfigNode{}) == "nothing");
}

TEST_CASE("figures with units", "[scalar]") {
  CHECK(nd::formats::parse_bytes("64 GiB")->value == 64.0 * 1073741824.0);
  CHECK(nd::formats::parse_bytes("80 GB")->value == 80e9);
  CHECK(nd::formats::parse_bytes("400 MiB")->value == 400.0 * 1048576.0);
  CHECK(nd::formats::parse_bytes("512 B")->value == 512.0);
  CHECK(nd::formats::parse_bytes("1.5TiB")->value == 1.5 * 1099511627776.0);
  CHECK(nd::formats::parse_bandwidth("196 GB/s")->value == 196e9);
  CHECK(nd::formats::parse_bandwidth("6.92 GiB/s")->value == 6.92 * 1073741824.0);
  CHECK(nd::formats::parse_bandwidth("200 Gbit/s")->value == 25e9);
  CHECK(nd::formats::parse_rate("353.9 TFLOP/s")->value == Approx(353.9e12).epsilon(1e-15));
  CHECK(nd::formats::parse_rate("2 EFLOP/s")->value == 2e18);
  CHECK(nd::formats::parse_rate("2EFLOP/s")->value == 2e18);
  CHECK(nd::formats::parse_seconds("5 us")->value == Approx(5e-6).epsilon(1e-15));
  CHECK(nd::formats::parse_seconds("2.8 ms")->value == Approx(2.8e-3).epsilon(1e-15));
  CHECK(nd::formats::parse_seconds("1 s")->value == 1.0);
  CHECK(nd::formats::parse_seconds("1e-3 s")->value == 1e-3);
  for (const char* text : {"64", "GiB", "", " ", "64 Gi", "64 gib", "-1 GB", "64 GB/s", "1e400 GB", "nan GB", "1 2 GB", "64 GiB x"}) {
    INFO(text);
    CHECK_FALSE(nd::formats::parse_bytes(text));
  }
  CHECK_FALSE(nd::formats::parse_bandwidth("196 GB"));
  CHECK_FALSE(nd::formats::parse_bandwidth("196 GB /s"));
  CHECK_FALSE(nd::formats::parse_bandwidth("5 s"));
  CHECK_FALSE(nd::formats::parse_rate("5 TFLOPS"));
  CHECK_FALSE(nd::formats::parse_seconds("5 m"));
}

TEST_CASE("numbers are written so that they read back", "[scalar]") {
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(1e-5) == "1e-05");
  CHECK(number_text(3) == "3");
  for (const double value : {0.1, 1.0 / 3.0, 1e300, 5e-324, -2.5}) CHECK(as_real(plain(number_text(value))) == std::optional<double>(value));
}
