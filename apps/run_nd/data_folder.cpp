// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "modes.hpp"

namespace run_nd {

namespace fs = std::filesystem;

nd::Result<std::string> data_folder(const Options& options) {
  const auto is_data = [](const fs::path& folder) {
    std::error_code error;
    return fs::is_directory(folder / "devices", error);
  };
  if (!options.data_dir.empty()) {
    if (is_data(options.data_dir)) return options.data_dir;
    return nd::Error(usage_error("--data-dir", "'" + options.data_dir + "' has no folder devices", "the folder that holds devices/, frameworks/, arch/"));
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  // An installed program, then a build folder inside the source tree (build/<preset>/bin).
  for (const char* relative : {"../share/nd", "../../../data", "../../data"}) {
    const fs::path folder = (program.parent_path() / relative).lexically_normal();
    if (is_data(folder)) return folder.string();
  }
  return nd::Error(usage_error("--data-dir", "the data folder is not beside the program", "name it with --data-dir DIR"));
}

}  // namespace run_nd
