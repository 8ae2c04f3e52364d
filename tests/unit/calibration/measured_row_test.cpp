// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "nd/calibration.hpp"

using nd::MeasuredRow;

TEST_CASE("a row's step time is the stated one, else follows from tokens per second", "[calibration]") {
  MeasuredRow row;
  CHECK_FALSE(row.measured_step_time());
  row.tokens_per_s_per_device = 500.0;
  row.gbs = 64;
  row.seq_len = 2000.0;
  row.devices = 16;
  // 64 * 2000 tokens / (500 tokens/s * 16 devices) = 16 s
  REQUIRE(row.measured_step_time());
  CHECK(*row.measured_step_time() == 16.0);
  row.step_time_s = 15.5;
  CHECK(*row.measured_step_time() == 15.5);
}

TEST_CASE("TFLOP/s never make a step time", "[calibration]") {
  MeasuredRow row;
  row.tflops_per_device = 300;
  row.mfu = 0.4;
  row.gbs = 64;
  row.seq_len = 2048;
  row.devices = 8;
  CHECK_FALSE(row.measured_step_time());
}

TEST_CASE("only notes that start with OOM mark a failed run", "[calibration]") {
  MeasuredRow row;
  row.notes = "OOM; failed";
  CHECK(row.out_of_memory());
  row.notes = "OOM";
  CHECK(row.out_of_memory());
  row.notes = "full fine-tuning; OOM";
  CHECK_FALSE(row.out_of_memory());
  row.notes = "OOMPH";
  CHECK_FALSE(row.out_of_memory());
}

TEST_CASE("the file name leaves the folders out", "[calibration]") {
  MeasuredRow row;
  row.file = "a/b/c.csv";
  CHECK(row.file_name() == "c.csv");
  row.file = "c.csv";
  CHECK(row.file_name() == "c.csv");
}
