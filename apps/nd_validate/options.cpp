// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>

#include "nd/version.hpp"

namespace nd_validate {

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine out;
  Options& options = out.options;
  CLI::App app{"Prices every row of measured-run tables as the strategy it states and compares.", "nd_validate"};
  app.set_version_flag("--version", std::string("nd_validate ") + nd::kVersion);
  app.add_option("tables", options.tables, "Measured tables (CSV, columns in docs/validation.md)")->required()->type_name("ROWS.csv");
  app.add_option("--json", options.json, "Write the document nd/validation/1; - for standard output, then nothing else is printed there")
      ->type_name("FILE");
  app.add_option("--report", options.report, "Write a self-contained HTML page with tables and charts")->type_name("FILE");
  app.add_option("--markdown", options.markdown, "Write the tables as Markdown")->type_name("FILE");
  app.add_option("--bands", options.bands, "Write the p90 errors per framework and device (data/measured/bands.yaml)")->type_name("FILE");
  app.add_option("-j,--jobs", options.jobs, "Workers; 0 = one per core. The output is the same for every number")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  app.add_option("--data-dir", options.data_dir, "Folder of devices, frameworks, architectures and measured rules")->type_name("DIR");
  app.add_flag("--rows", options.rows, "Print one line per row, too");
  app.add_option("--worst", options.worst, "Rows in the tables of the worst")->check(CLI::Range(0, 100000))->type_name("N");
  CLI::Option* fit = app.add_flag("--fit", options.fit, "Fit the constants of data/measured/fit.yaml on the rows and judge the fit");
  app.add_option("--folds", options.folds, "Held out in turn: five folds by (file, model), whole files, both, or none")
      ->check(CLI::IsMember({"none", "model", "file", "both"}))
      ->needs(fit);
  app.add_option("--write", options.write, "Write the device and framework files with the fitted figures into this folder")
      ->needs(fit)
      ->type_name("DIR");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    out.status = 0;
    out.text = app.help();
  } catch (const CLI::CallForVersion&) {
    out.status = 0;
    out.text = app.version() + "\n";
  } catch (const CLI::ParseError& error) {
    out.status = 2;
    out.text = std::string("error: command line: ") + error.what() + " (see --help)\n";
  }
  return out;
}

}  // namespace nd_validate
