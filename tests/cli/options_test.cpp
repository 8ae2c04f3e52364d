// SPDX-License-Identifier: Apache-2.0
// The option table, and the pages that are made from it.
#include <catch2/catch.hpp>
#include <set>

#include "options.hpp"
#include "pages.hpp"
#include "process.hpp"
#include "values.hpp"
#include "words.hpp"

namespace run_nd {
namespace {

using nd::testing::read_file;

const std::string kDocs = std::string(ND_TEST_SOURCE_DIR) + "/docs/";

bool known(const std::string& long_name) {
  for (const auto& row : option_table())
    if (row.name == long_name) return true;
  return false;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++out;
  return out;
}

}  // namespace

TEST_CASE("Rows of the option table are whole and name each other correctly", "[options]") {
  std::set<std::string> names;
  for (const auto& row : option_table()) {
    INFO(row.name);
    CHECK(row.name.substr(0, 2) == "--");
    CHECK(names.insert(std::string(row.name)).second);
    for (const auto& name : spaced(row.short_names)) {
      CHECK(name.front() == '-');
      CHECK(names.insert(name).second);
    }
    for (const auto& other : spaced(row.needs)) CHECK(known(other));
    for (const auto& other : spaced(row.excludes)) CHECK(known(other));
    if (!row.available()) continue;
    CHECK_FALSE(row.help.empty());
    CHECK((row.hidden || (row.arity == Arity::flag) == row.value.empty()));
    CHECK(row.modes != 0);
  }
}

TEST_CASE("Every page shows every option, the refused ones apart", "[options]") {
  const std::string pages[] = {help_text(), help_markdown()};
  const std::string completions[] = {bash_completion(), zsh_completion(), fish_completion()};
  for (const auto& row : option_table()) {
    INFO(row.name);
    if (row.hidden) {
      CHECK(help_text().find(row.name) == std::string::npos);
      continue;
    }
    for (const auto& page : pages) CHECK(page.find(row.name) != std::string::npos);
    std::string dashed;
    for (const char c : row.name) dashed += c == '-' ? std::string("\\-") : std::string(1, c);
    CHECK(man_page().find("\\fB" + dashed + "\\fR") != std::string::npos);
    for (const auto& completion : completions) {
      const bool offered = completion.find(std::string(row.name)) != std::string::npos || completion.find(" -l " + std::string(row.name.substr(2))) != std::string::npos;
      CHECK((offered || !row.available()));
    }
  }
}

TEST_CASE("The files in docs/ are what the option table says; ./dev docs writes them", "[options]") {
  CHECK(read_file(kDocs + "cli.md") == help_markdown());
  CHECK(read_file(kDocs + "run_nd.1") == man_page());
  CHECK(read_file(kDocs + "completions/run_nd.bash") == bash_completion());
  CHECK(read_file(kDocs + "completions/_run_nd") == zsh_completion());
  CHECK(read_file(kDocs + "completions/run_nd.fish") == fish_completion());
}

TEST_CASE("The program prints the pages", "[options]") {
  for (const auto kind : kPageKinds) CHECK(nd::testing::run_nd({"--generate", std::string(kind)}).out == *generated_page(kind));
  CHECK(nd::testing::run_nd(std::string("--help")).out == help_text());
  CHECK(nd::testing::run_nd(std::string("--generate novel")).status == 2);
}

TEST_CASE("The man page is troff without surprises", "[options]") {
  const std::string page = man_page();
  std::size_t begin = 0;
  while (begin < page.size()) {
    const auto end = page.find('\n', begin);
    const std::string line = page.substr(begin, end - begin);
    begin = end + 1;
    INFO(line);
    CHECK_FALSE(line.empty());
    if (line.front() != '.') continue;
    // A request: .TH .SH .SS .TP .B .PP .br or the comment.
    CHECK((line.find(".TH ") == 0 || line.find(".SH ") == 0 || line.find(".SS ") == 0 || line == ".TP" || line.find(".B ") == 0 || line == ".PP" || line == ".br" ||
           line.find(".\\\"") == 0));
  }
  CHECK(count(page, "\\fB") == count(page, "\\fR") - count(page, "\\fI"));
}

TEST_CASE("Numbers of devices: one, doubling, in steps", "[options]") {
  const auto counts = [](const char* text) { return parse_device_counts(text); };
  CHECK(counts("64") == DeviceCounts{64, 64, 0});
  CHECK(counts("64..4096") == DeviceCounts{64, 4096, 0});
  CHECK(counts("64..512:64") == DeviceCounts{64, 512, 64});
  CHECK(counts("8..8") == DeviceCounts{8, 8, 0});
  for (const char* bad : {"", "..", "8..", "..8", "9..8", "8..16:0", "8..16:", "8...16", "8-16", "x"}) CHECK_FALSE(counts(bad));
}

TEST_CASE("Amounts have decimal suffixes", "[options]") {
  CHECK(parse_amount("15T")->value == 15e12);
  CHECK(parse_amount("300b")->value == 300e9);
  CHECK(parse_amount("1.5e12")->value == 1.5e12);
  CHECK(parse_amount("2 G")->value == 2e9);
  for (const char* bad : {"", "T", "0", "-3", "5X", "inf", "nan", "1T2"}) CHECK_FALSE(parse_amount(bad));
}

}  // namespace run_nd
