// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <fstream>
#include <sstream>
#include <thread>

namespace nd::testing {

namespace fs = std::filesystem;

namespace {

/// Called with the child and the file of its standard error, before waiting.
using WhileRunning = std::function<void(pid_t, const std::string&)>;

Outcome run(const char* program, const std::vector<std::string>& words, const WhileRunning& meanwhile) {
  const Folder folder("program_output");
  const std::string out = folder.path("out"), err = folder.path("err");
  std::vector<std::string> all{program};
  all.insert(all.end(), words.begin(), words.end());
  // A build folder may be anywhere: the data of the source tree is named.
  if (std::find(words.begin(), words.end(), "--data-dir") == words.end()) all.insert(all.end(), {"--data-dir", ND_TEST_DATA_DIR});
  std::vector<char*> arguments;
  for (auto& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  // A test suite in the background of a shell ignores SIGINT; the program must not inherit that.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  Outcome outcome;
  pid_t child = 0;
  const int failed = posix_spawn(&child, program, &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return outcome;
  if (meanwhile) meanwhile(child, err);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

}  // namespace

Outcome run_nd(const std::vector<std::string>& words) { return run(ND_TEST_RUN_ND, words, {}); }

Outcome run_nd_and_kill(const std::vector<std::string>& words, int milliseconds) {
  return run(ND_TEST_RUN_ND, words, [milliseconds](pid_t child, const std::string&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
  });
}

Outcome run_nd_and_signal(const std::vector<std::string>& words, const std::string& text, int signal) {
  return run(ND_TEST_RUN_ND, words, [&](pid_t child, const std::string& err) {
    constexpr int kPatience = 1200;
    for (int i = 0; i < kPatience && read_file(err).find(text) == std::string::npos; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(child, signal);
  });
}

Outcome nd_validate(const std::vector<std::string>& words) { return run(ND_TEST_ND_VALIDATE, words, {}); }

Outcome run_nd(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return run_nd(words);
}

Folder::Folder(const std::string& name) : root_(fs::temp_directory_path() / ("nd_cli_" + name + "_" + std::to_string(getpid()))) {
  fs::remove_all(root_);
  fs::create_directories(root_);
}

Folder::~Folder() {
  std::error_code error;
  fs::remove_all(root_, error);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(root_ / name, std::ios::binary) << text;
  return path(name);
}

std::size_t Folder::files() const {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::recursive_directory_iterator(root_)) ++count;
  return count;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace nd::testing
