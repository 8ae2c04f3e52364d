// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nd/classify.hpp"
#include "support/json_schema.hpp"
#include "traces/chrome.hpp"

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("nd_traces_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path(name);
  }

 private:
  fs::path path_;
};

/// Writes events of one trace; times in nanoseconds from an epoch as Kineto's.
class Trace {
 public:
  void add(const std::string& name, const std::string& category, std::int64_t begin, std::int64_t end, int thread = 7, const std::string& args = "{}") {
    const std::int64_t from = kEpoch + begin;
    events_ += fmt::format("{}{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":1,\"tid\":{},\"ts\":{}.{:03d},\"dur\":{}.{:03d},\"args\":{}}}", events_.empty() ? "" : ",\n", category, name, thread,
                           from / 1000, from % 1000, (end - begin) / 1000, (end - begin) % 1000, args);
  }
  void frame(const std::string& name, std::int64_t begin, std::int64_t end) { add(name, "python_function", begin, end); }
  void op(const std::string& name, std::int64_t begin, std::int64_t end) { add(name, "cpu_op", begin, end); }
  [[nodiscard]] std::string text() const { return "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0}],\"traceEvents\":[\n" + events_ + "\n],\"traceName\":\"t\"}"; }

 private:
  static constexpr std::int64_t kEpoch = 1'712'345'678'901'234'567;
  std::string events_;
};

/// One step of 100 us that has every kind of wait, events out of order.
std::string full_step() {
  Trace trace;
  trace.frame("train/trainer.py(10): train_step", 0, 100'000);
  trace.frame("nn.Module: Block_0 forward", 1'000, 20'000);
  trace.op("aten::linear", 1'000, 6'000);
  trace.op("aten::addmm", 1'500, 5'000);  // inside the one above
  trace.frame("torch/distributed/tensor/parallel/style.py(7): _prepare", 6'000, 9'000);
  trace.op("c10d::allreduce_", 6'500, 8'750);  // 2.250 us of mp_wait
  trace.frame("model/sequence_parallel.py(3): gather", 9'000, 11'000);
  trace.frame("<built-in method wait of torch._C._distributed_c10d.Work object at 0x7f0012>", 9'500, 10'501);  // 1.001 sp_wait
  trace.frame("torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py(2): unshard", 11'000, 15'000);
  trace.add("c10d::_allgather_base_", "cpu_op", 11'000, 14'000);  // 3 us op_wait
  trace.add("record_param_comms", "cpu_op", 11'100, 13'900, 7, R"({"Collective name":"_allgather_base","In msg nelems":524288,"dtype":"BFloat16"})");
  trace.frame("model/context_parallel.py(3): ring", 15'000, 16'000);
  trace.op("c10d::send", 15'000, 15'600);  // 0.6 cp_wait
  trace.frame("model/expert_parallel.py(3): dispatch", 16'000, 20'000);
  trace.op("c10d::alltoall_", 16'000, 19'000);  // 3 ep_wait
  trace.op("autograd::engine::evaluate_function: MmBackward0", 20'000, 50'000);
  trace.op("aten::mm", 20'000, 30'000);  // 10 bw
  trace.frame("torch/utils/checkpoint.py(99): unpack_hook", 30'000, 40'000);
  trace.op("aten::mm", 31'000, 38'000);  // 7 rec
  trace.frame("torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py(2): foreach_reduce", 40'000, 48'000);
  trace.op("c10d::_reduce_scatter_base_", 41'000, 45'600);  // 4.6 dp_wait
  trace.frame("torch/distributed/pipelining/stage.py(2): recv", 50'000, 60'000);
  trace.op("c10d::recv_", 50'000, 59'999);  // 9.999 pp_wait
  trace.frame("torch/nn/utils/clip_grad.py(2): clip_grad_norm_", 60'000, 64'000);
  trace.op("c10d::allreduce_", 60'000, 61'000);  // 1 dp_wait
  trace.frame("torch/optim/adamw.py(2): step", 64'000, 80'000);
  trace.op("aten::_fused_adamw_", 64'000, 78'000);  // 14 opt
  trace.op("aten::copy_", 80'000, 82'000);  // 2 other
  trace.op("aten::item", 82'000, 86'000);  // holds a wait: 1 dp_wait by the trainer, 3 other
  trace.op("c10d::allreduce_", 83'000, 84'000);
  trace.add("aten::mm", "cpu_op", 0, 100'000, 8);  // another thread
  trace.add("ProfilerStep#4", "user_annotation", 0, 100'000);
  return trace.text();
}

std::int64_t wait(const nd::ClassifiedStep& step, nd::WaitKind kind) { return step.wait_ns[static_cast<std::size_t>(kind)]; }
std::int64_t compute(const nd::ClassifiedStep& step, nd::ComputePhase phase) { return step.compute_ns[static_cast<std::size_t>(phase)]; }

void check_full(const nd::ClassifiedStep& step) {
  CHECK(step.step == 4);
  CHECK(step.time_ns == 100'000);
  CHECK(compute(step, nd::ComputePhase::forward) == 5'000);
  CHECK(compute(step, nd::ComputePhase::backward) == 10'000);
  CHECK(compute(step, nd::ComputePhase::recompute) == 7'000);
  CHECK(compute(step, nd::ComputePhase::optimizer) == 14'000);
  CHECK(compute(step, nd::ComputePhase::other) == 5'000);
  CHECK(wait(step, nd::WaitKind::mp) == 2'250);
  CHECK(wait(step, nd::WaitKind::sp) == 1'001);
  CHECK(wait(step, nd::WaitKind::op) == 3'000);
  CHECK(wait(step, nd::WaitKind::cp) == 600);
  CHECK(wait(step, nd::WaitKind::ep) == 3'000);
  CHECK(wait(step, nd::WaitKind::dp) == 4'600 + 1'000 + 1'000);
  CHECK(wait(step, nd::WaitKind::pp) == 9'999);
  CHECK(step.unclassified_ns == 0);
  // What is left of 100 us.
  CHECK(step.idle_ns == 100'000 - 41'000 - 2'250 - 1'001 - 3'000 - 600 - 3'000 - 6'600 - 9'999);
}

std::string refusal(const nd::ClassifyRequest& request) {
  const auto result = nd::classify_traces(request);
  return result ? std::string() : nd::to_text(result.error().diagnostics.front());
}

/// Problems of a document against a schema of the data folder.
std::vector<std::string> schema_problems(const nlohmann::json& document, const std::string& schema) {
  std::ifstream file(std::string(ND_TEST_DATA_DIR) + "/schema/" + schema + ".schema.json");
  return nd::testing::schema_problems(document, nlohmann::json::parse(file));
}

}  // namespace

TEST_CASE("a Chrome trace with known waits classifies to the nanosecond, packed or not", "[traces]") {
  const Folder folder;
  const std::string text = full_step();
  const std::string plain = folder.write("trace_rank3.json", text), packed = folder.path("trace_rank5.json.gz");
  gzFile file = gzopen(packed.c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  gzclose(file);
  const auto result = nd::classify_traces({{packed, plain}, {{"DP", 8}, {"MP", 2}}});
  REQUIRE(result);
  REQUIRE(result->steps.size() == 2);
  CHECK(result->steps[0].rank == 3);
  CHECK(result->steps[1].rank == 5);
  for (const auto& step : result->steps) check_full(step);
  CHECK(nd::classified_header(*result) == "DP,MP,time,comp,dp_wait,mp_wait,ep_wait,cp_wait,pp_wait,op_wait,sp_wait\n");
  // Milliseconds, three decimals: 0.1 ms in all.
  CHECK(nd::classified_row(*result) == "8,2,0.100,0.041,0.007,0.002,0.003,0.001,0.010,0.003,0.001\n");
  const auto json = nlohmann::json::parse(nd::classification_json(*result));
  CHECK(schema_problems(json, "classification") == std::vector<std::string>{});
  bool gathered = false;
  for (const auto& site : json["steps"][0]["sites"])
    if (site["wait"] == "op_wait") {
      gathered = true;
      CHECK(site["ms"].get<double>() == Approx(0.003));
      CHECK(site["calls"] == 1);
      CHECK(site["mib"].get<double>() == Approx(1.0));  // 524288 elements of two bytes
    }
  CHECK(gathered);
}

TEST_CASE("a wait that no call site explains is unclassified", "[traces]") {
  const Folder folder;
  Trace trace;
  trace.add("ProfilerStep#1", "user_annotation", 0, 10'000);
  trace.op("c10d::allreduce_", 1'000, 4'000);
  const auto result = nd::classify_traces({{folder.write("t.json", trace.text())}, {}});
  REQUIRE(result);
  CHECK(result->steps[0].unclassified_ns == 3'000);
  CHECK(result->steps[0].idle_ns == 7'000);
}

TEST_CASE("a frame that was open before the step began counts, in every step", "[traces]") {
  const Folder folder;
  Trace trace;
  trace.frame("train/trainer.py(1): fit", 0, 50'000);
  for (const std::int64_t begin : {1'000, 21'000}) {
    trace.add("ProfilerStep#" + std::to_string(begin), "user_annotation", begin, begin + 20'000);
    trace.op("c10d::allreduce_", begin + 1'000, begin + 4'000);
  }
  const auto result = nd::classify_traces({{folder.write("t.json", trace.text())}, {}});
  REQUIRE(result);
  REQUIRE(result->steps.size() == 2);
  for (const auto& step : result->steps) CHECK(wait(step, nd::WaitKind::dp) == 3'000);
}

TEST_CASE("traces that are none are refused with the reason", "[traces]") {
  using Catch::Contains;
  const Folder folder;
  CHECK_THAT(refusal({{folder.path("nowhere.json")}, {}}), Contains("no such file"));
  CHECK_THAT(refusal({{folder.write("a.json", "{\"traceEvents\":[")}, {}}), Contains("no JSON document"));
  CHECK_THAT(refusal({{folder.write("b.json", "{}")}, {}}), Contains("traceEvents"));
  CHECK_THAT(refusal({{folder.write("c.json", "{\"traceEvents\":[]}")}, {}}), Contains("no step is marked"));
  CHECK_THAT(refusal({{folder.write("d.json", std::string(100, '['))}, {}}), Contains("nested too deeply"));
  CHECK_THAT(refusal({{folder.write("e.txt", "hello")}, {}}), Contains("no trace that is known"));
  CHECK_THAT(refusal({{folder.write("f.sqlite", "no database")}, {}}), Contains("missing"));
  Trace bad;
  bad.add("ProfilerStep#1", "user_annotation", 0, 10'000);
  std::string text = bad.text();
  text.insert(text.find("\n],"), ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":7,\"ts\":\"soon\",\"dur\":1}");
  CHECK_THAT(refusal({{folder.write("g.json", text)}, {}}), Contains("1 events have no readable ts and dur"));
}

TEST_CASE("timestamps are read exactly", "[traces]") {
  CHECK(nd::traces::nanoseconds("1712345678901234.567") == 1'712'345'678'901'234'567);
  CHECK(nd::traces::nanoseconds("12") == 12'000);
  CHECK(nd::traces::nanoseconds("12.5") == 12'500);
  CHECK(nd::traces::nanoseconds("0.0019") == 1);
  CHECK_FALSE(nd::traces::nanoseconds("99999999999999999999"));
  CHECK_FALSE(nd::traces::nanoseconds("-1"));
  CHECK_FALSE(nd::traces::nanoseconds(""));
  CHECK(nd::traces::rank_in_name("/rank9/run/trace_rank12.pt.json") == 12);
  CHECK(nd::traces::rank_in_name("trace_rank_7.json") == 7);
  CHECK_FALSE(nd::traces::rank_in_name("ranking.json"));
}

TEST_CASE("an Ascend run: exposed communication by elapse, bubble to pp_wait", "[traces]") {
  const Folder folder;
  // 1000 + 400 + 50 us: the stage of 1350 and the bubble of 100, which is part of the 400.
  folder.write("run_rank2/ASCEND_PROFILER_OUTPUT/step_trace_time.csv",
               "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble\n0,5,1000,400,200,600,50,1350,100\n");
  folder.write("run_rank2/ASCEND_PROFILER_OUTPUT/communication.json",
               R"j({"step5":{"p2p":{"hcom_receive__1":{"Communication Time Info":{"Elapse Time(ms)":1.0,"Wait Time(ms)":9}}},
                   "collective":{"hcom_allReduce__2@3":{"Communication Time Info":{"Elapse Time(ms)":2.0}},
                                 "hcom_alltoall__4":{"Communication Time Info":{"Elapse Time(ms)":3.0}},
                                 "hcom_allGather__5":{"Communication Time Info":{"Elapse Time(ms)":2.5}},
                                 "hcom_broadcast__7":{"Communication Time Info":{"Elapse Time(ms)":1.5}},
                                 "Total Op Info":{"Communication Time Info":{"Elapse Time(ms)":10}}}}})j");
  const std::string run = folder.path("run_rank2");
  const auto classify = [&](std::int64_t mp) { return nd::classify_traces({{run}, {{"DP", 8}, {"MP", mp}}}); };
  const auto result = classify(1);
  REQUIRE(result);
  const auto& step = result->steps.at(0);
  CHECK(step.rank == 2);
  CHECK(step.step == 5);
  // 300 us over 10 ms of elapse.
  CHECK(wait(step, nd::WaitKind::pp) == 100'000 + 30'000);
  CHECK(wait(step, nd::WaitKind::dp) == 60'000);
  CHECK(wait(step, nd::WaitKind::ep) == 90'000);
  CHECK(wait(step, nd::WaitKind::op) == 75'000);
  CHECK(step.unclassified_ns == 45'000);
  CHECK(compute(step, nd::ComputePhase::unsplit) == 1'000'000);
  CHECK(step.idle_ns == 50'000);
  CHECK(step.time_ns == 1'450'000);
  // With tensor parallelism a gather may be anybody's.
  const auto tensor = classify(2);
  REQUIRE(tensor);
  CHECK(wait(tensor->steps[0], nd::WaitKind::op) == 0);
  CHECK(tensor->steps[0].unclassified_ns == 120'000);
  CHECK_THAT(refusal({{run}, {}}), Catch::Contains("needs the degrees"));
  CHECK_THAT(refusal({{folder.path("nowhere")}, {{"DP", 1}}}), Catch::Contains("no such file"));
}

TEST_CASE("an export of Nsight Systems: what no kernel covers of a collective is a wait", "[traces]") {
  const Folder folder;
  const std::string path = folder.path("report_rank1.sqlite");
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  const char* sql =
      "CREATE TABLE StringIds(id INTEGER, value TEXT);"
      "INSERT INTO StringIds VALUES (1,'gemm'),(2,'ncclDevKernel_AllReduce_Sum'),(3,'ncclDevKernel_AllGather'),(4,'ncclDevKernel_SendRecv');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, shortName INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000,5000,0,1),(4000,6000,0,1),(5000,9000,0,2),(9000,9500,0,1),(10000,12000,0,3),(12000,13000,0,4),(99000,99900,0,1);"
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, text TEXT, textId INTEGER);"
      "INSERT INTO NVTX_EVENTS VALUES (0,20000,'ProfilerStep#7',NULL),(0,20000,'forward',NULL);";
  REQUIRE(sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
  const auto result = nd::classify_traces({{path}, {{"DP", 2}, {"PP", 2}}});
  REQUIRE(result);
  REQUIRE(result->steps.size() == 1);
  const auto& step = result->steps[0];
  CHECK(step.rank == 1);
  CHECK(step.step == 7);
  CHECK(compute(step, nd::ComputePhase::unsplit) == 5'000 + 500);  // 1000-6000 joined, 9000-9500
  CHECK(wait(step, nd::WaitKind::dp) == 3'000);                   // 5000-9000 less the kernel until 6000
  CHECK(wait(step, nd::WaitKind::op) == 2'000);
  CHECK(wait(step, nd::WaitKind::pp) == 1'000);                   // pipelines and no experts
  CHECK(step.idle_ns == 20'000 - 5'500 - 6'000);
}

TEST_CASE("degrees of --dims", "[traces]") {
  const auto dims = nd::parse_dims("dp=8, MP=2,OP=16", {});
  REQUIRE(dims);
  CHECK(*dims == std::vector<std::pair<std::string, std::int64_t>>{{"DP", 8}, {"MP", 2}, {"OP", 16}});
  for (const char* text : {"SP=1", "XX=2", "DP", "DP=0", "DP=two", "DP=1,DP=2", ""}) {
    INFO(text);
    CHECK_FALSE(nd::parse_dims(text, {}));
  }
}

TEST_CASE("rows are appended to a table of the same columns only", "[traces]") {
  const Folder folder;
  nd::Classification one;
  one.dims = {{"DP", 8}};
  one.steps.resize(1);
  one.steps[0].time_ns = 1'000'000;
  const std::string path = folder.path("all.csv");
  CHECK_FALSE(nd::write_classified(path, one, true));
  one.dims = {{"DP", 4}};
  CHECK_FALSE(nd::write_classified(path, one, true));
  std::ifstream in(path);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  CHECK(text == nd::classified_header(one) + "8,1.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000\n4,1.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000,0.000\n");
  one.dims = {{"DP", 4}, {"PP", 2}};
  const auto refused = nd::write_classified(path, one, true);
  REQUIRE(refused);
  CHECK_THAT(nd::to_text(*refused), Catch::Contains("has the columns DP,time"));
}
