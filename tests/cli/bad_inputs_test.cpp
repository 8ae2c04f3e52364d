// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "process.hpp"

namespace nd::testing {
namespace {

using Catch::Contains;

const std::string kLlama = "-y llama-3.1-8b -d 64 -A A3";

/// Refused with this status; the message holds the text, nothing is printed on the standard output, every line is an error.
void refused(const std::string& options, int status, const std::string& text) {
  const auto outcome = run_nd(options);
  INFO(options << "\n" << outcome.err);
  CHECK(outcome.status == status);
  CHECK_THAT(outcome.err, Contains(text));
  CHECK(outcome.out.empty());
  CHECK(outcome.err.rfind("error: ", 0) == 0);
}

}  // namespace

TEST_CASE("Command lines that are wrong: status 2") {
  refused("", 2, "error: -y: is missing");
  refused("-y llama-3.1-8b -A A3", 2, "error: -d: the input does not say how many devices there are (-d N)");
  refused("-y llama-3.1-8b -d 0", 2, "error: -d: must be from 1 to 1048576, got 0");
  refused("-y llama-3.1-8b -d -3", 2, "error: -d: must be from 1 to 1048576, got -3");
  refused("-y llama-3.1-8b -d 99999999999999999999", 2, "error: -d: must be from 1 to 1048576, got 99999999999999999999");
  refused("-y llama-3.1-8b -d many", 2, "error: -d: 'many' is no whole number (a number from 1 to 1048576)");
  refused("-d 8 -y", 2, "error: -y: needs a value (PATH)");
  refused("-y llama-3.1-8b -d", 2, "error: -d: needs a value (N|A..B)");
  refused(kLlama + " -d 8", 2, "error: -d: is given twice");
  refused(kLlama + " --devcies 8", 2, "error: --devcies: unknown option (did you mean '--devices'?)");
  refused(kLlama + " --set recompute=full --recompute off", 2, "error: --recompute: --set recompute=full says it as well");
  refused(kLlama + " --set tp=2 --set mp=4", 2, "error: --set: mp=4: the values of TP are given twice, before by tp=2 (one list, such as tp=A,B)");
  refused(kLlama + " --set tp=2 --set tp=auto", 2, "error: --set: tp=auto: the values of TP are given twice");
  refused(kLlama + " --schedule= --all --json -", 2, "error: --schedule: needs a value (NAME)");
  refused(kLlama + " --framework= --json -", 2, "error: --framework: needs a value");
  refused(kLlama + " --set sched=1f1b --schedule gpipe", 2, "error: --schedule: --set sched=1f1b says it as well");
  refused(kLlama + " -mem 100GB", 2, "error: -mem: 100.0 GiB is all of the memory budget");
  refused(kLlama + " --json /tmp/nd_same --ranking_csv /tmp/nd_same", 2, "error: --ranking_csv: /tmp/nd_same is what --json writes as well");
  refused(kLlama + " stray", 2, "error: stray: is no option");
  refused(kLlama + " --all", 2, "error: --all: needs --json or -o");
  refused(kLlama + " --timings", 2, "error: --timings: needs --json or -o");
  refused(kLlama + " --tokens 1T", 2, "error: --tokens: needs -d A..B or --what-if");
  refused(kLlama + " --explain file --json x.json", 2, "error: --explain file: cannot be combined with --json");
  refused(kLlama + " --explain file --set tp=2", 2, "error: --explain file: cannot be combined with --set");
  refused(kLlama + " -M 58", 2, "error: -M: '58' is no amount of memory");
  refused(kLlama + " -j 0", 2, "error: -j: must be from 1 to 1024, got 0");
  refused(kLlama + " -l TP XP", 2, "error: -l: unknown dimension 'XP' (did you mean");
  refused(kLlama + " --set tp", 2, "error: --set: 'tp' is no condition on a dimension");
  refused(kLlama + " --recompute auto full", 2, "error: --recompute: auto stands alone");
  refused(kLlama + " --explain best", 2, "error: --explain: 'best' is no rank");
  refused("--list devces", 2, "error: --list: there is no list of 'devces' (did you mean 'devices'?)");
  refused(kLlama + " --data-dir /nowhere", 2, "error: --data-dir: '/nowhere' has no folder devices");
}

TEST_CASE("Unknown names are refused with the nearest") {
  refused("-y llama-3.1-8b -d 8 -A H10O", 2, "did you mean");
  refused("-y llama-3.1-8b -d 8 -A A3 -f megatron-cor", 2, "did you mean 'megatron-core'?");
  refused("-y llama-3.1-8bb -d 8 -A A3", 3, "did you mean 'llama-3.1-8b'?");
}

TEST_CASE("Options of the predecessor that are not there yet are refused, never ignored") {
  for (const char* option : {"-ao", "--host_link_gibps 3", "--max-candidates 3"}) {
    INFO(option);
    refused(kLlama + " " + option, 2, "not available in this version");
  }
}

TEST_CASE("All problems of a command line come together") {
  const auto outcome = run_nd("-y llama-3.1-8b -d 0 -b x -t 0 --nonsense");
  CHECK(outcome.status == 2);
  for (const char* part : {"-d: must be", "-b: 'x' is no", "-t: must be", "--nonsense: unknown"}) CHECK_THAT(outcome.err, Contains(part));
}

TEST_CASE("Degrees that cannot be are refused with the nearest that can") {
  refused(kLlama + " --set tp=3", 2, "tp=3 is impossible on 64 devices: dp * tp * pp * cp is not the number of devices (nearest possible: 2, 4)");
  refused(kLlama + " --set tp=64", 2, "error: --set tp: tp=64 is impossible on 64 devices: the attention heads do not divide by tp");
  refused(kLlama + " --set ep=2", 2, "the model has no experts");
  refused(kLlama + " --set tp=1 --set pp=1 --set cp=1 -b 100", 2, "(nearest reachable: 64, 128)");
}

TEST_CASE("A list without values does not take the option after it for one") {
  // CLI11 reads the word after "--name=" as its value.
  CHECK(run_nd(kLlama + " -t 1 -l -v 1").out == run_nd(kLlama + " -t 1 -v 1 -l").out);
  refused("--recompute -y llama-3.1-8b -d 8", 2, "error: --recompute: needs a value (MODE)");
  refused("merge -v 1", 2, "error: --merge: needs a value (PART)");
}

TEST_CASE("Spellings of options") {
  for (const char* options : {"--yaml-config llama-3.1-8b --devices=64 --device-type A3", "-y=llama-3.1-8b -d64 -A=a3",
                              "--yaml_config=llama-3.1-8b -d +64 --device_type a3 --no-strict"}) {
    INFO(options);
    CHECK(run_nd(options).out == run_nd(kLlama).out);
  }
}

TEST_CASE("Files that are no configuration: status 3, the file named") {
  const Folder folder("bad");
  const auto bad = [&](const std::string& path, const std::string& text) {
    refused("-y " + path + " -d 8 -A A3", 3, text);
    refused("-y " + path + " -d 8 -A A3", 3, path);
  };
  bad(folder.path("missing.json"), "missing.json");
  bad(folder.write("empty.json", ""), "empty.json");
  bad(folder.write("empty.yaml", ""), "empty.yaml");
  bad(folder.write("binary.json", std::string("\x7f" "ELF\0\1\2\xff\xfe", 9)), "binary.json");
  bad(folder.write("truncated.json", "{\"model_type\": \"llama\", \"hidden_size\": 40"), "truncated.json:1");
  bad(folder.write("broken.yaml", "model: [1, 2\nother: }"), "broken.yaml:");
  bad(folder.write("list.json", "[1, 2, 3]"), "list.json");
  bad(folder.write("huge.json", "\"" + std::string((std::size_t{65} << 20U), 'x') + "\""), "huge.json");
  if (geteuid() != 0) {
    const auto secret = folder.write("secret.json", "{}");
    chmod(secret.c_str(), 0);
    bad(secret, "secret.json");
  }
}

TEST_CASE("A model that lacks fields is refused with all of them") {
  const Folder folder("lacks");
  const auto path = folder.write("config.json", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64})");
  const auto outcome = run_nd("-y " + path + " -d 8 -A A3");
  CHECK(outcome.status == 3);
  for (const char* part : {"num_hidden_layers", "num_attention_heads", "vocab_size"}) CHECK_THAT(outcome.err, Contains(part));
}

TEST_CASE("--strict refuses what nobody stated") {
  refused(kLlama + " --strict", 3, "global_batch_size: nobody states it");
}

TEST_CASE("Options that exclude each other") { refused("--list devices --json x.json", 2, "error: --list: cannot be combined with --json"); }

TEST_CASE("Outputs that cannot be written: status 4, nothing half-written") {
  const Folder folder("unwritable");
  const auto file = folder.write("file", "x");
  refused(kLlama + " --json " + file + "/below.json", 4, "cannot write the file");
  refused(kLlama + " --ranking_csv " + folder.path("."), 4, "cannot write the file");
  refused(kLlama + " -o " + file, 4, "cannot write the file");
  CHECK(folder.files() == 1);
}

TEST_CASE("An input is never overwritten by an output") {
  const Folder folder("input_survives");
  const std::string text = read_file(std::string(ND_TEST_DATA_DIR) + "/models/llama-3.1-8b/config.json");
  const std::string input = folder.write("config.json", text);
  for (const char* option : {" --json ", " --ranking_csv ", " --report ", " --trace "})
    refused("-y " + input + " -d 64 -A A3" + option + input, 2, "is what -y reads and would be overwritten");
  CHECK(read_file(input) == text);
  CHECK(folder.files() == 1);
}

TEST_CASE("A memory limit above the device's is said to change nothing") {
  const auto outcome = run_nd(kLlama + " -M 500GB");
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("more than the") && Contains("a run can use on"));
}

TEST_CASE("A device without bf16 is searched in fp16, which is said") {
  const auto outcome = run_nd("-y llama-2-7b -d 64 -A V100");
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("compute_dtype = fp16"));
}

}  // namespace nd::testing
