// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace nd::testing {

/// What a program left behind.
struct Outcome {
  int status = -1;  ///< exit status; 128 + n when a signal ended it
  std::string out, err;
};

/// Runs run_nd with these words (no shell) and waits.
Outcome run_nd(const std::vector<std::string>& words);
/// The same; as soon as standard error holds the text, the program gets the signal.
Outcome run_nd_and_signal(const std::vector<std::string>& words, const std::string& text, int signal);
/// The same; the program is killed (SIGKILL) after this many milliseconds.
Outcome run_nd_and_kill(const std::vector<std::string>& words, int milliseconds);
/// A line of the command, split at spaces.
Outcome run_nd(const std::string& line);
/// Runs nd_validate with these words.
Outcome nd_validate(const std::vector<std::string>& words);

/// A folder of one test, removed with the object.
class Folder {
 public:
  explicit Folder(const std::string& name);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::size_t files() const;

 private:
  std::filesystem::path root_;
};

std::string read_file(const std::string& path);

}  // namespace nd::testing
