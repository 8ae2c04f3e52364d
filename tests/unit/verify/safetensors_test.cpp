// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <fstream>

#include "checkpoint.hpp"
#include "nd/verify.hpp"

namespace {

using nd::testing::CheckpointFolder;
using nd::testing::write_raw;
using nd::testing::write_safetensors;

std::string refusal(const std::string& path) {
  const auto census = nd::read_safetensors_header(path);
  return census ? std::string() : nd::to_text(census.error().diagnostics.front());
}

std::string refused(const CheckpointFolder& folder, const std::string& header, std::uint64_t buffer = 0) {
  const std::string path = folder.path("model.safetensors");
  write_raw(path, header, header.size(), buffer);
  return refusal(path);
}

std::string tensor(const std::string& shape, const std::string& offsets, const std::string& dtype = "BF16") {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

}  // namespace

TEST_CASE("a header gives names, types and shapes; the weights are not read", "[verify]") {
  const CheckpointFolder folder("header");
  // 2^40 elements: 2 TiB that nobody could read.
  write_safetensors(folder.path("model.safetensors"), {{"a", {2, 3}}, {"b", {1 << 20, 1 << 20}}, {"scalar", {}}});
  const auto census = nd::read_safetensors_header(folder.path("model.safetensors"));
  REQUIRE(census);
  REQUIRE(census->tensors.size() == 3);
  CHECK(census->tensors.at("a").shape == std::vector<std::int64_t>{2, 3});
  CHECK(census->tensors.at("a").dtype == "BF16");
  CHECK(census->tensors.at("b").elements() == std::int64_t{1} << 40);
  CHECK(census->tensors.at("scalar").elements() == 1);
}

TEST_CASE("hostile and broken headers are refused with the reason", "[verify]") {
  using Catch::Contains;
  const CheckpointFolder folder("hostile");
  const std::string path = folder.path("model.safetensors");
  CHECK_THAT(refusal(folder.path("nowhere.safetensors")), Contains("cannot be read"));
  write_raw(path, "", 0, 0);
  std::filesystem::resize_file(path, 5);
  CHECK_THAT(refusal(path), Contains("too short"));
  // Longer than the file, longer than any header may be, longer than an address.
  write_raw(path, "{}", 3, 0);
  CHECK_THAT(refusal(path), Contains("the header claims 3 bytes"));
  write_raw(path, "{}", 200'000'000, 300'000'000);
  CHECK_THAT(refusal(path), Contains("the header claims 200000000 bytes"));
  write_raw(path, "{}", 0xffffffffffffffffULL, 0);
  CHECK_THAT(refusal(path), Contains("the header claims"));
  CHECK_THAT(refused(folder, "[1]"), Contains("no JSON object"));
  CHECK_THAT(refused(folder, "{\"a\":"), Contains("not a JSON document"));
  CHECK_THAT(refused(folder, "{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}"), Contains("error"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[0,4]") + ",\"a\":" + tensor("[2]", "[0,4]") + "}", 4), Contains("'a'"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[0,4]") + ",\"b\":" + tensor("[2]", "[2,6]") + "}", 6), Contains("b: its data overlaps"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[0,4]") + ",\"b\":" + tensor("[2]", "[6,10]") + "}", 10), Contains("b: a hole of 2 bytes"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[0,4]") + "}", 9), Contains("5 bytes behind the last tensor"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[3]", "[0,4]") + "}", 4), Contains("take 6 bytes, the data_offsets span 4"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[4,0]") + "}", 4), Contains("outside the buffer"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[0,4000]") + "}", 4), Contains("outside the buffer"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[-2]", "[0,4]") + "}", 4), Contains("no list of counts"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[4294967296,4294967296,4294967296]", "[0,4]") + "}", 4), Contains("more elements than memory"));
  CHECK_THAT(refused(folder, "{\"a\":" + tensor("[2]", "[0,4]", "Q7") + "}", 4), Contains("unknown dtype 'Q7'"));
  CHECK_THAT(refused(folder, "{\"a\":3}"), Contains("no object of dtype"));
  CHECK_THAT(refused(folder, "{\"a\":{\"shape\":[1],\"data_offsets\":[0,2]}}", 2), Contains("has no dtype"));
}

TEST_CASE("a checkpoint of several files is one census; the index has to agree", "[verify]") {
  using Catch::Contains;
  const CheckpointFolder folder("index");
  write_safetensors(folder.path("model-1.safetensors"), {{"a", {2}}});
  write_safetensors(folder.path("model-2.safetensors"), {{"b", {3}}});
  const auto index = [&](const std::string& map) { std::ofstream(folder.path("model.safetensors.index.json")) << "{\"metadata\":{},\"weight_map\":{" << map << "}}"; };
  const auto problem = [&]() {
    const auto census = nd::read_checkpoint(folder.path());
    return census ? std::string() : nd::to_text(census.error().diagnostics.front());
  };
  CHECK(problem().empty());
  index(R"("a":"model-1.safetensors","b":"model-2.safetensors")");
  CHECK(problem().empty());
  index(R"("a":"model-2.safetensors","b":"model-2.safetensors")");
  CHECK_THAT(problem(), Contains("is in model-1.safetensors, the index says model-2.safetensors"));
  index(R"("a":"model-1.safetensors")");
  CHECK_THAT(problem(), Contains("b: is in model-2.safetensors but not in the index"));
  index(R"("a":"model-1.safetensors","b":"model-2.safetensors","c":"model-3.safetensors")");
  CHECK_THAT(problem(), Contains("c: is in no file"));
  std::filesystem::remove(folder.path("model.safetensors.index.json"));
  write_safetensors(folder.path("model-3.safetensors"), {{"a", {2}}});
  CHECK_THAT(problem(), Contains("a: is in model-1.safetensors as well"));
  const CheckpointFolder empty("empty");
  const auto none = nd::read_checkpoint(empty.path());
  REQUIRE_FALSE(none);
  CHECK_THAT(nd::to_text(none.error().diagnostics.front()), Contains("no *.safetensors"));
}

TEST_CASE("a census written is the census read; broken ones are refused", "[verify]") {
  const CheckpointFolder folder("census");
  nd::TensorCensus census;
  census.tensors["a"] = {"BF16", {2, 3}, ""};
  census.tensors["b"] = {"F32", {}, ""};
  const auto write = [&](const std::string& text) { std::ofstream(folder.path("c.json")) << text; };
  write(nd::census_json(census));
  const auto read = nd::read_census(folder.path("c.json"));
  REQUIRE(read);
  CHECK(read->tensors == census.tensors);
  for (const char* text : {"{}", R"({"schema":"nd/census/2","tensors":{}})", R"({"schema":"nd/census/1","tensors":[]})",
                           R"({"schema":"nd/census/1","tensors":{"a":{"shape":[-1]}}})", R"({"schema":"nd/census/1","tensors":{"a":{}}})",
                           R"({"schema":"nd/census/1","tensors":{"a":{"shape":[4294967296,4294967296]}}})"}) {
    INFO(text);
    write(text);
    CHECK_FALSE(nd::read_census(folder.path("c.json")));
  }
}
