// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "harness/outcome.hpp"
#include "harness/step_log.hpp"

namespace {

using nd::RunStatus;
using nd::harness::StepLog;

const nd::DataStore kData(ND_TEST_DATA_DIR);

struct Reading {
  nd::harness::LogProfile profile;
  nd::harness::FailureTable failures;
  nd::harness::StepLog log;
  explicit Reading(const std::string& name, const std::string& text, std::int64_t every = 1)
      : profile(read(name)), failures(read_failures()), log(profile, failures, every) {
    log.feed(text, 0);
    log.finish(0);
  }
  static nd::harness::LogProfile read(const std::string& name) {
    auto profile = nd::harness::read_log_profile(name, kData);
    if (!profile)
      for (const auto& one : profile.error().diagnostics) UNSCOPED_INFO(nd::to_text(one));
    REQUIRE(profile.has_value());
    return std::move(*profile);
  }
  static nd::harness::FailureTable read_failures() {
    auto table = nd::harness::read_failures(kData);
    if (!table)
      for (const auto& one : table.error().diagnostics) UNSCOPED_INFO(nd::to_text(one));
    REQUIRE(table.has_value());
    return std::move(*table);
  }
};

nd::harness::Judgement judged(const Reading& reading, int code, bool enough = false) { return nd::harness::judge({code, {}, nd::harness::Stop::none, {}}, reading.log, enough); }

}  // namespace

TEST_CASE("numbers as trainers print them", "[log]") {
  using nd::harness::leading_number;
  CHECK(leading_number(": 3,456 x") == 3456.0);
  CHECK(leading_number("1,234,567.5") == 1234567.5);
  CHECK(leading_number("[ 12, 34]") == 12.0);
  CHECK(leading_number(" 1.2E+01 |") == 12.0);
  CHECK(leading_number("-5e-05,") == -5e-5);
  CHECK(leading_number("44.1GiB(55%)") == 44.1);
  CHECK(leading_number("1234ms") == 1234.0);
  CHECK(std::isnan(leading_number("nan,").value()));
  CHECK(leading_number("-inf").value() < 0);
  CHECK_FALSE(leading_number("None").has_value());
  CHECK_FALSE(leading_number("nano").has_value());
  CHECK_FALSE(leading_number("").has_value());
}

TEST_CASE("step lines of TorchTitan, with colours, rank prefixes and all ranks printing", "[log]") {
  const Reading reading("torchtitan",
                        "[rank0]:\x1b[31m2025-01-02 10:00:00,123 - root - INFO - step:  1  loss:  8.2  grad_norm: 1.1  memory:  2.95GiB(3.10%)  tps: 1,024  tflops: 7\x1b[39m\r\n"
                        "[rank1]:step:  1  loss:  8.2  memory:  3.50GiB(3.10%)  tps: 512  tflops: 7\n"
                        "step: 2  loss: nan  memory: 3.00GiB(3%)  wps: 2,048  mfu: 12%\nno step: here\n");
  REQUIRE(reading.log.steps().size() == 2);
  CHECK(reading.log.steps().at(1).tokens_per_s == 512.0);  // the slowest rank
  CHECK(reading.log.steps().at(2).tokens_per_s == 2048.0);
  CHECK(reading.log.reserved() == 3.5 * 1024 * 1024 * 1024);
  CHECK(reading.log.nan_loss());
  nd::PlannedRun run;
  run.devices = 2;
  run.facts = {{"gbs", "8"}, {"seq_length", "512"}};
  const auto steps = nd::harness::step_statistics(reading.log, run, {0, 1, 0}, 1);
  CHECK(steps.n == 2);
  CHECK(steps.mean_s == Approx((2048.0 / 512 + 2048.0 / 2048) / 2));  // 8 x 512 / 2 devices = 2048 tokens a step
  CHECK(steps.reading == "tokens_per_s");
}

TEST_CASE("iteration lines of Megatron with its memory report", "[log]") {
  std::string text;
  for (int i = 1; i <= 9; ++i)
    text += " [2025-01-02 10:00:00] iteration        " + std::to_string(i) + "/     100 | consumed samples: 10 | elapsed time per iteration (ms): " +
            std::to_string(i <= 5 ? 9000 : 1000 + i) + ".0 | throughput per GPU (TFLOP/s/GPU): 170.1 | learning rate: 1.0E-05 | global batch size: 128 | lm loss: 1.04E+01 |\n";
  text += "[Rank 3] (after 2 iterations) memory (MB) | allocated: 100.0 | max allocated: 2048.0 | reserved: 300.0 | max reserved: 4096.0\n";
  const Reading reading("megatron-core", text);
  const auto steps = nd::harness::step_statistics(reading.log, {}, {5, 3, 0}, 1);
  // Steps 6 to 9 behind the warm-up: 1006, 1007, 1008, 1009 ms.
  CHECK(steps.n == 4);
  CHECK(steps.median_s == Approx(1.0075));
  CHECK(steps.sd_s == Approx(std::sqrt(5.0 / 3) * 1e-3));  // squares 2.25 + 0.25 + 0.25 + 2.25 = 5 ms2 over n - 1 = 3
  CHECK(reading.log.steps().at(9).loss == 10.4);
  CHECK(reading.log.allocated() == 2048.0 * 1024 * 1024);
  CHECK(reading.log.reserved() == 4096.0 * 1024 * 1024);
}

TEST_CASE("step lines of MindFormers", "[log]") {
  const Reading reading("mindformers", "2025-01-02 - INFO - { Epoch:[  1/  2], step:[    7/ 1563], loss: 10.625, per_step_time: 1234ms, lr: 1e-06, overflow cond: False }\n");
  REQUIRE(reading.log.steps().count(7) == 1);
  CHECK(reading.log.steps().at(7).seconds == 1.234);
  CHECK(reading.log.steps().at(7).loss == 10.625);
}

TEST_CASE("dictionaries of the Hugging Face Trainer", "[log]") {
  // Defects 35 to 37: nan, None, an apostrophe, bare numbers and a second summary each lost all metrics.
  const std::string summary =
      "{'train_runtime': 50.0, 'train_samples_per_second': 16.0, 'train_steps_per_second': 2.0, 'train_tokens_per_second': 4096.0, 'train_loss': nan, 'note': None,"
      " 'before_init_mem_gpu': 36141687296, 'init_mem_gpu_alloc_delta': 0, 'init_mem_gpu_peaked_delta': 0, 'train_mem_gpu_alloc_delta': -17491768832,"
      " 'train_mem_gpu_peaked_delta': 26747825664, 'epoch': 0.5}\n";
  const Reading reading("hf_trainer", "123\ntrue\n{'loss': 1.5, 'grad_norm': 2, 'learning_rate': 1e-05, 'epoch': 0.1}\n" + summary + summary, 10);
  CHECK(reading.log.steps().at(10).loss == 1.5);
  CHECK(reading.log.summary().at("train_tokens_per_second") == 4096.0);
  CHECK(reading.log.nan_loss());
  const auto steps = nd::harness::step_statistics(reading.log, {}, {5, 5, 0}, 10);
  CHECK(steps.reading == "summary");
  CHECK(steps.median_s == 0.5);
  CHECK(steps.n == 100);  // 50 s x 2 a second
  // The published example: allocated max(m0, m0 - 17491768832), peak m0 - 17491768832 + 26747825664.
  const auto memory = nd::harness::trainer_memory(reading.log.summary());
  REQUIRE(memory.has_value());
  CHECK(memory->allocated == 36141687296.0);
  CHECK(memory->peak == 45397744128.0);
  CHECK_FALSE(nd::harness::trainer_memory({{"train_loss", 1.0}}).has_value());
  CHECK(nd::harness::trainer_memory({{"train_mem_gpu_alloc_delta", 5.0}}).value().allocated == 5.0);  // defect 41: no counter before init
}

TEST_CASE("pieces of any size and lines without end read alike", "[log]") {
  const std::string text = "step: 1 loss: 2.5 memory: 1GiB tps: 10\n" + std::string(100'000, 'x') + "\nstep: 2 loss: 3.5 memory: 1GiB tps: 20";
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, text.size()}) {
    const auto profile = Reading::read("torchtitan");
    const auto failures = Reading::read_failures();
    StepLog log(profile, failures);
    for (std::size_t at = 0; at < text.size(); at += size) log.feed(std::string_view(text).substr(at, size), 0);
    log.finish(0);
    CHECK(log.steps().size() == 2);
    CHECK(log.steps().at(2).loss == 3.5);
  }
}

TEST_CASE("tracebacks of every form end in their exception", "[log]") {
  // Defects 38 and 39: prefixes and dotted classes hid every error.
  const std::string body = "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    run()\n";
  const auto prefixed = [](std::string text, const std::string& prefix) {
    std::string out;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      out += prefix + text.substr(at, end - at + 1);
    }
    return out;
  };
  for (const char* error : {"ValueError: bad", "subprocess.CalledProcessError: status 1", "KeyboardExceptionLike", "my.pkg.CustomException: x", "SystemExit: 3"})
    for (const char* prefix : {"", "[rank0]: ", "2025-01-02 10:00:01,123 worker: "}) {
      INFO(prefix << error);
      const Reading reading("torchtitan", prefixed(body + error + "\n", prefix));
      CHECK(reading.log.cause() == error);
      CHECK(judged(reading, 1).status == RunStatus::crash);
      CHECK(judged(reading, 1).reason == error);
    }
  // Two ranks at once; the one that only noticed comes first.
  const Reading both("torchtitan",
                     "[rank1]: Traceback (most recent call last):\n[rank0]: Traceback (most recent call last):\n[rank1]:   File \"a\"\n"
                     "[rank1]: torch.distributed.DistBackendError: NCCL error\n[rank0]:   File \"b\"\n[rank0]: ZeroDivisionError: division by zero\n");
  CHECK(both.log.cause() == "ZeroDivisionError: division by zero");
  CHECK(both.log.traceback().find("File \"b\"") != std::string::npos);
}

TEST_CASE("device memory that ran out is recognised with its amounts, whatever the exit status", "[log]") {
  const Reading fresh("torchtitan",
                      "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 11.38 MiB is free. Of the"
                      " allocated memory 77.19 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated.\n");
  CHECK(judged(fresh, 0).status == RunStatus::oom_device);
  CHECK(judged(fresh, 1).status == RunStatus::oom_device);
  CHECK(fresh.log.out_of_memory().at("requested") == 20.0 * 1024 * 1024);
  CHECK(fresh.log.out_of_memory().at("capacity") == Approx(79.15 * 1073741824.0));
  CHECK(fresh.log.out_of_memory().at("free") == Approx(11.38 * 1048576.0));
  CHECK(fresh.log.out_of_memory().at("allocated") == Approx(77.19 * 1073741824.0));
  const Reading npu("mindformers", "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity; 55.00 GiB already allocated; 1.50 GiB free; 58.00 GiB reserved in total by PyTorch)\n");
  CHECK(npu.log.out_of_memory().at("capacity") == Approx(60.97 * 1073741824.0));
  CHECK(npu.log.out_of_memory().at("free") == Approx(1.5 * 1073741824.0));
  CHECK(npu.log.out_of_memory().at("reserved") == Approx(58.0 * 1073741824.0));
}

TEST_CASE("outcomes by their evidence, in order", "[log]") {
  using nd::harness::judge;
  using nd::harness::Stop;
  const Reading silent("torchtitan", "hello\n");
  CHECK(judged(silent, 0, true).status == RunStatus::ok);
  CHECK(judged(silent, 0).status == RunStatus::no_metrics);  // defect 22: this counted as complete
  CHECK(judged(silent, 3).status == RunStatus::crash);
  CHECK(judged(silent, 137).status == RunStatus::oom_host);
  CHECK(judge({{}, 9, Stop::none, {}}, silent.log, true).status == RunStatus::oom_host);
  CHECK(judge({{}, 9, Stop::total, {}}, silent.log, true).status == RunStatus::timeout);
  CHECK(judge({{}, 15, Stop::stall, {}}, silent.log, false).status == RunStatus::hang);
  CHECK(judge({{}, 15, Stop::enough, {}}, silent.log, true).status == RunStatus::ok_partial);
  CHECK(judge({{}, 15, Stop::user, {}}, silent.log, false).status == RunStatus::cancelled);
  CHECK(judge({{}, 11, Stop::none, {}}, silent.log, false).status == RunStatus::crash);
  CHECK(judge({1, {}, Stop::none, RunStatus::node_fail}, silent.log, false).status == RunStatus::node_fail);
  CHECK(judged(Reading("torchtitan", "AssertionError: heads must be divisible by tp\n"), 1).status == RunStatus::invalid_config);
  CHECK(judged(Reading("torchtitan", "RuntimeError: Address already in use\n"), 1).status == RunStatus::launch_failed);
  CHECK(judged(Reading("torchtitan", "step: 1 loss: 1 tps: 5\nRuntimeError: Address already in use\n"), 1).status == RunStatus::crash);
}

TEST_CASE("a profile of one's own with regular expressions", "[log]") {
  CHECK_FALSE(nd::harness::read_log_profile("torchtitn", kData).has_value());
  for (const char* name : {"hf_trainer", "megatron", "mindformers", "torchtitan"}) CHECK(nd::harness::read_log_profile(name, kData).has_value());
}
