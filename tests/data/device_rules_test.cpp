// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <string>

#include "data_support.hpp"
#include "formats/readers/device.hpp"

namespace {

struct Corruption {
  const char* what;
  const char* old_text;
  const char* new_text;
  const char* expected;  ///< part of the messages
};

std::string read_edited(const Corruption& c) {
  const std::string text = nd::test::edited(std::string(ND_TEST_DATA_DIR) + "/devices/a100-sxm-80.yaml", {{c.old_text, c.new_text}});
  const auto root = nd::formats::parse_yaml(text, "a100.yaml");
  REQUIRE(root.has_value());
  return nd::test::problems(nd::formats::read_device(*root));
}

}  // namespace

TEST_CASE("a corrupt device file is refused with the place and the reason") {
  const Corruption all[] = {
      {"missing unit", "bf16: {value: \"312 TFLOP/s\"", "bf16: {value: 312", "'312' must be a rate with unit"},
      {"wrong dimension", "value: \"2039 GB/s\"", "value: \"2039 GB\"", "must be a bandwidth with unit"},
      {"unknown key", "  bandwidth_fraction:", "  bandwith_fraction:", "unknown key 'bandwith_fraction' (did you mean 'bandwidth_fraction'?)"},
      {"unknown key in a figure", "usable: {value: \"79.15 GiB\", kind: measured", "usable: {value: \"79.15 GiB\", sort: measured", "unknown key"},
      {"bare value", "operand_exposure: {value: 0.84, kind: fitted, source: [step-fit]}", "operand_exposure: 0.84",
       "must be a figure {value, kind, source} (a bare value has no source)"},
      {"no source", "operand_exposure: {value: 0.84, kind: fitted, source: [step-fit]}", "operand_exposure: {value: 0.84, kind: fitted}", "source"},
      {"empty source", "operand_exposure: {value: 0.84, kind: fitted, source: [step-fit]}",
       "operand_exposure: {value: 0.84, kind: fitted, source: []}", "the list of sources is empty"},
      {"unknown source", "operand_exposure: {value: 0.84, kind: fitted, source: [step-fit]}",
       "operand_exposure: {value: 0.84, kind: fitted, source: [step-fitt]}", "'step-fitt' is not a key of 'sources' (did you mean 'step-fit'?)"},
      {"no kind", "operand_exposure: {value: 0.84, kind: fitted, ", "operand_exposure: {value: 0.84, ", "kind"},
      {"unknown kind", "operand_exposure: {value: 0.84, kind: fitted", "operand_exposure: {value: 0.84, kind: fited",
       "unknown kind 'fited' (did you mean 'fitted'?)"},
      {"wrong type", "  node_size: 8", "  node_size: eight", "must be a whole number from 1 on"},
      {"not a fraction", "gemm_fraction: {value: 0.", "gemm_fraction: {value: 70.", "must be a number above 0 and up to 1.5"},
      {"missing field", "  cores: {value: 108, kind: datasheet, source: [whitepaper]}\n", "", "'cores' is missing"},
      {"missing section", "memory:\n", "memory_:\n", "unknown key 'memory_'"},
      {"schema", "schema: nd/device/1", "schema: nd/device/9", "schema 'nd/device/9' is not readable here"},
      {"peak forgotten", "    tf32: {value: \"156 TFLOP/s\", kind: datasheet, source: [mle-acc]}\n", "", "no peak for tf32"},
      {"peak and unsupported", "unsupported: [fp8, fp4]", "unsupported: [fp8, fp4, bf16]", "bf16 has a peak and is listed as unsupported"},
      {"no data type", "unsupported: [fp8, fp4]", "unsupported: [fp8, fp4, fp6]", "'fp6' is no data type"},
      {"usable above nominal", "usable: {value: \"79.15 GiB\"", "usable: {value: \"95 GiB\"", "usable memory is larger than the nominal memory"},
      {"usable_is", "usable_is: driver_total", "usable_is: drivers_total", "'drivers_total' is not known"},
      {"level order", "      devices: unbounded", "      devices: 4", "levels run from the inside out"},
      {"level not bounded", "      devices: unbounded", "      devices: 64", "the outermost level must be unbounded"},
      {"level without step model", "    scale-out:\n      bus:", "    outside:\n      bus:", "'outside' is no level of the network"},
      {"list without rows", "columns: [at_least, fraction_of_peak]", "columns: [at_least, fraction_of_peak, more]", "the row must have 3 entries"},
  };
  for (const Corruption& c : all) {
    INFO(c.what);
    const std::string text = read_edited(c);
    INFO(text);
    CHECK(text.find(c.expected) != std::string::npos);
    CHECK(text.find("a100.yaml:") != std::string::npos);
  }
}

TEST_CASE("the place of a problem is the line and column of the value") {
  const std::string text = read_edited({"", "    bf16: {value: \"312 TFLOP/s\"", "    bf16: {value: \"312 TFLOPS\"", ""});
  // schema .. compute, peak, fp32, tf32, fp16 stand on lines 2 to 12 of the file, bf16 on 13; its value starts at column 19.
  CHECK(text.find("a100.yaml:13:19: compute.peak.bf16") != std::string::npos);
}

TEST_CASE("all problems of a device file are reported together") {
  const std::string path = std::string(ND_TEST_DATA_DIR) + "/devices/a100-sxm-80.yaml";
  const std::string text = nd::test::edited(path, {{"  node_size: 8", "  node_size: 0"},
                                                   {"value: \"2039 GB/s\"", "value: \"fast\""},
                                                   {"vendor: nvidia", "vender: nvidia"}});
  const auto root = nd::formats::parse_yaml(text, "a100.yaml");
  REQUIRE(root.has_value());
  const std::string all = nd::test::problems(nd::formats::read_device(*root));
  for (const char* part : {"must be a whole number from 1 on", "'fast' must be a bandwidth", "unknown key 'vender'", "'vendor' is missing"}) {
    INFO(all);
    CHECK(all.find(part) != std::string::npos);
  }
}

TEST_CASE("network figures per node instead of per device are caught") {
  // 8 devices with 25 GB/s each make the 200 GB/s (1600 Gbit/s) of a node: writing 200 GB/s a device is the known trap.
  const std::string nic = read_edited({"", "      bandwidth: {value: \"25 GB/s\"", "      bandwidth: {value: \"200 GB/s\"", ""});
  CHECK(nic.find("200 GB/s a device, but its NIC carries 25 GB/s (bandwidths are per device, not per node)") != std::string::npos);
  CHECK(nic.find("8 devices of a node with 200 GB/s each do not give the stated node total of 200 GB/s") != std::string::npos);
  // Gbit/s written as GB/s: twice what is inside the node.
  const std::string bits = read_edited({"", "      bandwidth: {value: \"25 GB/s\"", "      bandwidth: {value: \"400 GB/s\"", ""});
  CHECK(bits.find("400 GB/s is more than the 300 GB/s of the level 'node' inside it") != std::string::npos);
  // Said on purpose it is accepted.
  const std::string path = std::string(ND_TEST_DATA_DIR) + "/devices/rtx4090-24.yaml";
  const std::string text = nd::test::edited(path, {{"      bandwidth: {value: \"12.5 GB/s\"", "      faster_than_inner: \"test\"\n      bandwidth: {value: \"50 GB/s\""},
                                                   {"nic: {value: \"100 Gbit/s\"", "nic: {value: \"400 Gbit/s\""}});
  const auto root = nd::formats::parse_yaml(text, "rtx.yaml");
  REQUIRE(root.has_value());
  const auto read = nd::formats::read_device(*root);
  INFO(nd::test::problems(read));
  CHECK(read.has_value());
}

TEST_CASE("without a figure of the step model the measured collectives give bus and factors") {
  const std::string path = std::string(ND_TEST_DATA_DIR) + "/devices/mi250x-gcd.yaml";
  const std::string text = nd::test::edited(path, {{"      bus: {value: \"67.5 GB/s\", kind: assumed, source: [derived], note: \"as bus_bandwidth.all_reduce\"}\n", ""}});
  const auto root = nd::formats::parse_yaml(text, "mi250x.yaml");
  REQUIRE(root.has_value());
  const auto read = nd::formats::read_device(*root);
  REQUIRE(read.has_value());
  const nd::TopologyLevel& node = read->levels[1];
  CHECK(node.bus.value == Approx(67.5e9));                                                                            // all-reduce, measured
  CHECK(node.bus_factor[static_cast<std::size_t>(nd::CollectiveKind::all_gather)] == Approx(48.1 / 67.5));             // measured
  CHECK(node.bus_factor[static_cast<std::size_t>(nd::CollectiveKind::broadcast)] == Approx(1.0));                      // no figure
}
