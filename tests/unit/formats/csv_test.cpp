// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.hpp"

#include <catch2/catch.hpp>

using namespace nd::formats;

namespace {
std::vector<std::string> problems(const nd::Result<CsvTable>& result) {
  std::vector<std::string> out;
  if (!result)
    for (const auto& diagnostic : result.error().diagnostics) out.push_back(to_text(diagnostic));
  return out;
}
using Cells = std::vector<std::string>;
}  // namespace

TEST_CASE("a table is read with header, quotes and lines", "[csv]") {
  const auto table = parse_csv("\xEF\xBB\xBFname, size,note\r\na,1,plain\r\n\r\n\"b, c\",2,\"two\r\nlines \"\"quoted\"\"\"\r\nd,,\" x \"", "f.csv");
  REQUIRE(table);
  CHECK(table->header == Cells{"name", "size", "note"});
  REQUIRE(table->rows.size() == 3);
  CHECK(table->rows[0].cells == Cells{"a", "1", "plain"});
  CHECK(table->rows[0].line == 2);
  CHECK(table->rows[1].cells == Cells{"b, c", "2", "two\r\nlines \"quoted\""});
  CHECK(table->rows[1].line == 4);
  CHECK(table->rows[2].cells == Cells{"d", "", " x "});
  CHECK(table->rows[2].line == 6);
  CHECK(table->column("size") == std::optional<std::size_t>(1));
  CHECK_FALSE(table->column("nothing"));
  const auto mac = parse_csv("a,b\r1,2\r3,4\r", "f");
  REQUIRE(mac);
  CHECK(mac->rows[1].line == 3);
  CHECK(parse_csv("a,b\n", "f")->rows.empty());
}

TEST_CASE("what is wrong with a table is said with its line", "[csv]") {
  CHECK(problems(parse_csv("a,b\n1,2\n3\n4,5,6\n", "f")) ==
        Cells{"error: f:3: has 1 cells, the header has 2", "error: f:4: has 3 cells, the header has 2"});
  CHECK(problems(parse_csv("a,,a\n", "f")) == Cells{"error: f:1: a column without a name", "error: f:1: a: the column 'a' stands twice"});
  CHECK(problems(parse_csv("a,b\n1,x\"y\n", "f")) ==
        Cells{"error: f:2:4: a quote inside a cell that is not quoted (quote the whole cell and double the quotes inside)"});
  CHECK(problems(parse_csv("a,b\n1,\"open\nmore\n", "f")) == Cells{"error: f:2: the record that starts here has a quote that is not closed"});
  CHECK(problems(parse_csv("", "f")) == Cells{"error: f:1:1: the file is empty"});
  CHECK(problems(parse_csv(std::string("a\0b", 3), "f")).size() == 1);
  CHECK(problems(parse_csv("a,b\n1,2\n", "f", {.max_nodes = 3})) == Cells{"error: f:2: more than 3 cells"});
  CHECK(problems(read_csv("/nonexistent/x.csv")) == Cells{"error: /nonexistent/x.csv: no such file"});
}

TEST_CASE("cells are typed on request", "[csv]") {
  const auto table = parse_csv("n,x,flag,text\n12,1e-3,yes,a\n2.0,inf,maybe,\n010,,0,\n", "f.csv");
  REQUIRE(table);
  std::vector<nd::Diagnostic> sink;
  CsvRecord first(*table, table->rows[0], sink);
  CHECK(first.integer("n") == std::optional<std::int64_t>(12));
  CHECK(first.real("x") == std::optional<double>(1e-3));
  CHECK(first.boolean("flag") == std::optional<bool>(true));
  CHECK(first.text("text") == std::optional<std::string>("a"));
  CHECK_FALSE(first.real("absent"));
  CsvRecord third(*table, table->rows[2], sink);
  CHECK(third.integer("n") == std::optional<std::int64_t>(10));
  CHECK_FALSE(third.real("x"));
  CHECK(third.boolean("flag") == std::optional<bool>(false));
  CHECK(sink.empty());
  CsvRecord second(*table, table->rows[1], sink);
  CHECK(second.integer("n") == std::optional<std::int64_t>(2));
  CHECK_FALSE(second.real("x"));
  CHECK_FALSE(second.boolean("flag"));
  CHECK_FALSE(second.integer("flag"));
  REQUIRE(sink.size() == 3);
  CHECK(to_text(sink[0]) == "error: f.csv:3: x: must be a number, is 'inf'");
  CHECK(to_text(sink[2]) == "error: f.csv:3: flag: must be an integer, is 'maybe'");
}

TEST_CASE("written records read back", "[csv]") {
  CHECK(csv_line({"a", "1.5", ""}) == "a,1.5,\n");
  CHECK(csv_line({"a,b", "say \"x\"", "two\nlines", " y"}) == "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\" y\"\n");
  const Cells header{"p", "q", "r"}, cells{"a\r\nb", " \"", ",,"};
  const auto table = parse_csv(csv_line(header) + csv_line(cells), "f");
  REQUIRE(table);
  CHECK(table->header == header);
  CHECK(table->rows[0].cells == cells);
  CHECK(parse_csv(csv_line({"only"}) + csv_line({""}), "f")->rows.size() == 1);
}

TEST_CASE("a table cut or changed anywhere gives a value or a reason", "[csv]") {
  const std::string text = "a,b\r\n\"x\"\"y\",2\n\n3,\"4\n5\"\r";
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto cut = parse_csv(std::string_view(text).substr(0, at), "f");
    if (!cut) CHECK_FALSE(cut.error().diagnostics.empty());
    for (int byte = 1; byte < 256; byte += 3) {
      std::string changed = text;
      changed[at] = static_cast<char>(byte);
      const auto result = parse_csv(changed, "f");
      if (!result) CHECK_FALSE(result.error().diagnostics.empty());
    }
  }
}
