// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace nd::testing {

namespace fs = std::filesystem;

Outcome run_nd(const std::vector<std::string>& words) {
  const Folder folder("run_nd_output");
  const std::string out = folder.path("out"), err = folder.path("err");
  std::vector<std::string> all{ND_TEST_RUN_ND};
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
  Outcome outcome;
  pid_t child = 0;
  const int failed = posix_spawn(&child, ND_TEST_RUN_ND, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return outcome;
  int status = 0;
  waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

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
