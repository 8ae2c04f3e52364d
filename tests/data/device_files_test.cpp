// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <map>
#include <string>

#include "core/text.hpp"
#include "data_support.hpp"
#include "nd/data_store.hpp"

namespace {

const nd::DataStore& store() {
  static const nd::DataStore data(ND_TEST_DATA_DIR);
  return data;
}

nd::DeviceType device(const std::string& name) {
  auto result = store().device(name);
  INFO(nd::test::problems(result));
  REQUIRE(result.has_value());
  return *result;
}

}  // namespace

TEST_CASE("every device file loads, carries its own name, peaks and sources") {
  const auto names = store().device_names();
  REQUIRE(names.has_value());
  REQUIRE(names->size() == 30);
  for (const std::string& name : *names) {
    INFO(name);
    const nd::DeviceType type = device(name);
    CHECK(type.name == name);
    CHECK_FALSE(type.title.empty());
    CHECK(type.peak[static_cast<std::size_t>(nd::Dtype::fp32)].value > 0);
    CHECK(type.peak[static_cast<std::size_t>(nd::Dtype::fp16)].value > 0);
    // No device is slower in 16 bit than in 32, none has more usable than nominal memory (read as GiB).
    CHECK(type.peak[static_cast<std::size_t>(nd::Dtype::fp16)] >= type.peak[static_cast<std::size_t>(nd::Dtype::fp32)]);
    CHECK(type.memory.usable.value > 0.85 * type.memory.nominal.value);
    CHECK(type.levels.size() >= 2);
    CHECK(type.levels.back().devices == 0);
    CHECK(type.node_devices >= 1);
    for (const nd::TopologyLevel& level : type.levels) {
      INFO(level.name);
      CHECK(level.bus.value > 0);
      CHECK(level.efficiency > 0.4);  // Omni-Path of 2020 reaches less than half its line rate
      CHECK(level.latency.value >= 20e-6);
      CHECK(level.latency.value < 1e-3);
      CHECK(type.sources.contains("network.levels." + level.name + ".bandwidth"));
      CHECK(type.sources.contains("step_model.levels." + level.name + ".efficiency"));
      for (const double factor : level.bus_factor) {
        CHECK(factor > 0.1);
        CHECK(factor <= 1.35);
      }
    }
    for (const char* path : {"memory.usable", "memory.bandwidth", "step_model.gemm_fraction", "step_model.cores",
                             "step_model.attention_fraction.flash2", "compute.peak.fp16"}) {
      REQUIRE(type.sources.contains(path));
      CHECK_FALSE(type.sources.at(path).citation.empty());
    }
  }
}

TEST_CASE("names and aliases are unique over all device files and find their file in any case") {
  const auto names = store().device_names();
  REQUIRE(names.has_value());
  std::map<std::string, std::string> owner;
  for (const std::string& name : *names) {
    std::vector<std::string> spellings = device(name).aliases;
    spellings.push_back(name);
    for (const std::string& spelling : spellings) {
      const auto [it, fresh] = owner.emplace(nd::core::canonical_name(spelling), name);
      INFO(spelling << " of " << name << " is also " << it->second);
      CHECK(fresh);
    }
  }
  for (const auto& [spelling, name] : owner) {
    const auto found = store().device(spelling);
    INFO(spelling);
    REQUIRE(found.has_value());
    CHECK(found->name == name);
  }
}

TEST_CASE("product names and the spellings of the measured tables name the devices they mean") {
  const std::map<std::string, std::string> meant = {
      {"A2", "ascend-910b3"},
      {"a3", "ascend-910c-die"},
      {"A100", "a100-sxm-80"},
      {"H100", "h100-sxm-80"},
      {"910B1", "ascend-910b1"},
      {"B200", "b200-sxm-180"},
      {"A100-40G-SXM", "a100-sxm-40"},
      {"A100-80G-SXM", "a100-sxm-80"},
      {"A100-SXM", "a100-sxm-80"},
      {"A100-80G-PCIe", "a100-pcie-80"},
      {"A800-80G-SXM", "a800-sxm-80"},
      {"Ascend-A2-910B-64G", "ascend-910b2"},  // the rows fit the 354/376 TFLOP/s class, see the remark in that file
      {"Ascend-A3-910C-64G", "ascend-910c-die"},
      {"B200-180G-SXM", "b200-sxm-180"},
      {"B300-288G", "b300-288"},
      {"GB200-192G", "gb200-nvl72"},
      {"GB300-288G", "gb300-nvl72"},
      {"H100-80G-SXM", "h100-sxm-80"},
      {"H100-96G-SXM-500W", "h100-96-500w"},
      {"H200-141G-SXM", "h200-sxm-141"},
      {"H800-80G-SXM", "h800-sxm-80"},
      {"MI300X-192G", "mi300x-192"},
      {"MI325X-256G", "mi325x-256"},
      {"MI355X-288G", "mi355x-288"},
      {"V100-16G-SXM", "v100-sxm-16"},
      {"V100-32G-SXM", "v100-sxm-32"},
  };
  for (const auto& [spelling, name] : meant) CHECK(device(spelling).name == name);
}

TEST_CASE("figures of well-known devices") {
  const nd::DeviceType a100 = device("A100");
  CHECK(a100.peak[static_cast<std::size_t>(nd::Dtype::bf16)].value == Approx(312e12));     // data sheet
  CHECK(a100.memory.bandwidth.value == Approx(2039e9));                                    // data sheet
  CHECK(nd::to_gib(a100.memory.usable) == Approx(79.15));                                  // full-card readings of failed runs
  CHECK(a100.compute.cores == 108);
  CHECK(a100.levels[0].bus.value == Approx(230e9));                                         // nccl-tests, 8 ranks
  CHECK(std::abs(a100.levels[0].efficiency - 0.96) < 0.12);                                // fitted, prior 0.96 +- 12 %
  CHECK(a100.levels[1].bandwidth.value == Approx(25e9));                                   // 200 Gbit/s a device
  CHECK(a100.levels[0].latency.value == Approx(43e-6));
  CHECK(a100.levels[1].latency.value == Approx(73e-6));                                    // 43 + 30 across nodes
  CHECK(a100.levels[1].latency_per_doubling.value == Approx(16e-6));
  CHECK(a100.sources.at("step_model.gemm_fraction").kind == nd::FigureKind::fitted);
  CHECK(a100.sources.at("compute.peak.bf16").kind == nd::FigureKind::datasheet);

  const nd::DeviceType a2 = device("910b2");
  CHECK(a2.levels[0].full_mesh);
  CHECK(a2.levels[0].bus.value == Approx(129e9));
  REQUIRE(a2.compute.vector_bandwidth.has_value());
  CHECK(std::abs(a2.compute.vector_bandwidth->value / 1600e9 - 0.19) < 0.06);  // fitted, prior 0.19 of the HBM rate +- 30 %
  CHECK(a2.memory.usable_is_allocatable);
  REQUIRE(a2.memory.usual_budget.has_value());
  CHECK(nd::to_gib(*a2.memory.usual_budget) == Approx(58.0));

  const nd::DeviceType a3 = device("A3");
  REQUIRE(a3.levels.size() == 4);
  CHECK(a3.levels[1].devices == 16);
  CHECK(a3.levels[2].devices == 768);
  // All-gather 204 GB/s measured in a node: bus 187 GB/s x 204/187.
  CHECK(a3.levels[1].bus.value * a3.levels[1].bus_factor[static_cast<std::size_t>(nd::CollectiveKind::all_gather)] == Approx(204e9).epsilon(1e-3));
  REQUIRE(a3.host_link.has_value());
  CHECK(a3.host_link->copy_cost_s_per_byte == Approx(2.8e-3 / nd::kGiB));  // 2.8 ms a GiB
  // 16 dies: 43 us + 8 x 6.25 us = 93 us, the mean of the measured 82 (all-gather) and 104 us (reduce-scatter).
  CHECK(a3.levels[1].latency.value + 8 * a3.levels[1].latency_per_rank.value == Approx(93e-6));
}

TEST_CASE("a device can be named by the path of its file") {
  const std::string path = std::string(ND_TEST_DATA_DIR) + "/devices/h100-sxm-80.yaml";
  CHECK(device(path) == device("h100"));
}

TEST_CASE("an unknown device is refused with the nearest name") {
  const auto wrong = store().device("H10O");
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().code() == nd::Errc::out_of_range);
  CHECK(nd::test::problems(wrong).find("unknown device 'H10O'") != std::string::npos);
  CHECK(nd::test::problems(wrong).find("did you mean 'h100'?") != std::string::npos);
  const auto missing = store().device("no/such/file.yaml");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code() == nd::Errc::io);
  const auto nowhere = nd::DataStore("/nonexistent").device("A100");
  REQUIRE_FALSE(nowhere.has_value());
  CHECK(nowhere.error().code() == nd::Errc::io);
}
