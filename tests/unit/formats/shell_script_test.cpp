// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "formats/shell/arithmetic.hpp"
#include "formats/shell/script.hpp"

using namespace nd;
using namespace nd::formats::shell;

namespace {

Trace follow_good(const std::string& text) {
  const auto trace = follow(text, "run.sh");
  if (!trace) UNSCOPED_INFO(to_text(trace.error().diagnostics.front()));
  REQUIRE(trace);
  return *trace;
}

/// Words of the last command with options, joined by '|'; what is open is spelled $NAME.
std::string words(const std::string& text) {
  const Trace trace = follow_good(text);
  if (trace.commands.empty()) return "";
  std::string out;
  for (const auto& word : trace.commands.back().words) out += (out.empty() ? "" : "|") + shown(text_of(word));
  return out;
}

std::optional<std::int64_t> value(const std::string& text) {
  return evaluate(text, [](std::string_view name) { return name == "n" ? std::optional<std::int64_t>(6) : std::nullopt; });
}

}  // namespace

// What bash makes of each of these is the expected value; names it does not set stay open instead of being empty.
TEST_CASE("shell: variables and quotes", "[shell]") {
  CHECK(words("A=2\nx --a $A") == "x|--a|2");
  CHECK(words("A=2; B=${A}3\nx --a \"$B\" '$B'") == "x|--a|23|$B");
  CHECK(words("A='1 2'\nx --a $A \"$A\"") == "x|--a|1|2|1 2");
  CHECK(words("export A=4 B=5\nx --a $A$B") == "x|--a|45");
  CHECK(words("A=1\nA+=2\nx --a ${A}") == "x|--a|12");
  CHECK(words("x --a \\\n  --b # --c\n") == "x|--a|--b");
  CHECK(words("A=\"--p 1 \\\n  --q 2\n\"\nx $A --r") == "x|--p|1|--q|2|--r");
  CHECK(words("x --a \"\" b") == "x|--a||b");
  CHECK(words("x --a $UNSET") == "x|--a|$UNSET");
  CHECK(words("x --a a\\ b") == "x|--a|a b");
  CHECK(words("A=5 # comment\nx --a $A") == "x|--a|5");
  CHECK(words("unset A; A=1; unset A\nx --a $A") == "x|--a|$A");
}

TEST_CASE("shell: defaults and other forms of ${}", "[shell]") {
  CHECK(words("x --a ${A:-3}") == "x|--a|3");
  CHECK(words("A=1\nx --a ${A:-3}") == "x|--a|1");
  CHECK(words("A=\nx --a ${A:-3} ${A-4}") == "x|--a|3");
  CHECK(words("A=${SLURM_NNODES:-\"4\"}\nx --a $A") == "x|--a|4");
  CHECK(words("B=7\nx --a ${A:-$B} ${C:-${D:-8}}") == "x|--a|7|8");
  CHECK(words("A=1\nx --a ${A:+yes} ${B:+no}") == "x|--a|yes");
  CHECK(words("x --a ${A:=2} $A") == "x|--a|2|2");
  CHECK(words(": ${A:?needed}\nx --a $A") == "x|--a|$A");
  CHECK(words("A=file.tar\nx --a ${A%.tar}") == "x|--a|$(${A%.tar})");  // not followed: open, not wrong
  CHECK(follow_good("A=${TP:-8}\nB=${PP:-2}\n").defaults == std::vector<std::string>{"TP", "PP"});
}

TEST_CASE("shell: arithmetic", "[shell]") {
  CHECK(words("G=8\nN=4\nW=$(($G*$N))\nx --a $W $((W / 2)) $(( N ** 2 ))") == "x|--a|32|16|16");
  CHECK(words("x --a $((MISSING * 2))") == "x|--a|$MISSING");
  CHECK(words("x --a $((1 / 0))") == "x|--a|$($((1 / 0)))");
  CHECK(value("2 + 3 * 4") == 14);
  CHECK(value("(2 + 3) * -n") == -30);
  CHECK(value("10 - 4 - 3") == 3);
  CHECK(value("7 % 4 + 7 / 2") == 6);
  CHECK(value("2 ** 3 ** 2") == 512);
  CHECK(value("n > 5 && n <= 6") == 1);
  CHECK(value("n == 6 ? 1 : 2") == 1);
  CHECK(value("!n") == 0);
  CHECK(value("0x10 + 010") == 24);
  CHECK(value("1 << 4") == 16);
  CHECK_FALSE(value("9223372036854775807 + 1"));
  CHECK_FALSE(value("m"));
  CHECK_FALSE(value("1 +"));
  CHECK_FALSE(value("1 2"));
  CHECK_FALSE(value(std::string(100000, '(')));
}

TEST_CASE("shell: arrays", "[shell]") {
  CHECK(words("A=(\n --a 1\n --b # why\n)\nx ${A[@]}") == "x|--a|1|--b");
  CHECK(words("A=(--a \"1 2\")\nx \"${A[@]}\" ") == "x|--a|1 2");
  CHECK(words("A=(--a \"--b 2\")\nx ${A[@]}") == "x|--a|--b|2");
  CHECK(words("A=(--a)\nA+=(--b)\nB=(\"${A[@]}\" --c)\nx \"${B[@]}\"") == "x|--a|--b|--c");
  CHECK(words("A=(3 4 5)\nx --a ${A[1]} ${#A[@]} $A") == "x|--a|4|3|3");
  CHECK(words("A=()\nx --a \"${A[@]}\" --b") == "x|--a|--b");
  CHECK(words("x --a ${NOBODY[@]} --b") == "x|--a|--b");
  CHECK(words("declare -a A=(1 2)\nx --a ${A[*]}") == "x|--a|1|2");
}

TEST_CASE("shell: tests, loops and functions are followed", "[shell]") {
  CHECK(words("D=fp8\nif [[ \"$D\" == \"fp8\" ]]; then A=1; else A=2; fi\nx --a $A") == "x|--a|1");
  CHECK(words("V=3\nif [ $V -gt 1 ]; then A=1\nelse A=2\nfi\nx --a $A") == "x|--a|1");
  CHECK(words("if [ -z \"$X\" ]; then A=none; fi\nx --a $A") == "x|--a|none");
  CHECK(words("A=1\n[ -n \"$X\" ] && A=2\nx --a $A") == "x|--a|1");
  CHECK(words("A=1\n[[ $A == 1 || $A == 2 ]] && A=3\nx --a $A") == "x|--a|3");
  CHECK(words("if [ 1 = 2 ]; then A=1; elif [ 2 = 2 ]; then A=2; fi\nx --a $A") == "x|--a|2");
  CHECK(words("M=7b\ncase $M in\n  1b) H=1 ;;\n  7*|8b) H=4096 ;;\n  *) H=0 ;;\nesac\nx --a $H") == "x|--a|4096");
  CHECK(words("S=\nfor i in 1 2 3; do S=\"$S$i\"; done\nx --a $S") == "x|--a|123");
  CHECK(words("while [[ $# -gt 0 ]]; do shift; done\nx --a 1") == "x|--a|1");
  CHECK(words("set_it() {\n  A=$1\n}\nset_it 9\nx --a $A") == "x|--a|9");
  CHECK(words("if (( 3 > 2 )); then A=1; fi\nx --a $A") == "x|--a|1");
  CHECK(words("x --a 1 2>&1 | tee log --b") == "tee|log|--b");
  CHECK(words("cat <<EOF > f\n--z ${Q}\nEOF\nx --a 1 > log 2>&1 &\n") == "x|--a|1");
  CHECK(words("C=\"python t.py --a 1\"\neval $C") == "eval|python|t.py|--a|1");
  CHECK(words("C=\"python t.py --a 1\"\nsrun -N 2 bash -c \"$C\"") == "srun|-N|2|bash|-c|python|t.py|--a|1");
}

TEST_CASE("shell: what only a run can tell stays open and is said", "[shell]") {
  CHECK(words("A=$(nproc)\nx --a $A") == "x|--a|$(output of $(nproc))");
  CHECK(words("A=`nproc`\nx --a $A") == "x|--a|$(output of `nproc`)");
  const Trace trace = follow_good("source env.sh\nif [ -f x ]; then A=1; fi\nB=$(date)\nif [ \"$B\" = 1 ]; then exit 1; fi\n");
  REQUIRE(trace.notes.size() == 2);
  CHECK(to_text(trace.notes[0]) == "note: run.sh:1:1: sourced files are not read: env.sh");
  CHECK(to_text(trace.notes[1]) == "warning: run.sh:2:1: a test that only a run can decide is taken as false");
}

TEST_CASE("shell: the places of a value", "[shell]") {
  const std::string text = "TP=8\nARGS=\"--tp ${TP}\"\nx $ARGS\n";
  const Trace trace = follow_good(text);
  const auto& word = trace.commands.back().words.back();
  REQUIRE(word.size() == 1);
  REQUIRE(word[0].sites.size() == 3);
  const auto at = [&](std::size_t i) { return text.substr(word[0].sites[i].begin, word[0].sites[i].end - word[0].sites[i].begin); };
  CHECK(at(0) == "8");
  CHECK(at(1) == "${TP}");
  CHECK(at(2) == "$ARGS");
}

TEST_CASE("shell: broken and hostile scripts give a reason", "[shell]") {
  const auto reason = [](const std::string& text) {
    const auto trace = follow(text, "run.sh");
    return trace ? std::string("ok") : to_text(trace.error().diagnostics.front());
  };
  CHECK(reason("if true; then\nx --a\n") == "error: run.sh:3:1: not a shell script that can be followed: 'fi' is missing");
  CHECK(reason("A=(1\n").find("the array A is not closed") != std::string::npos);
  CHECK(reason("x )").find("unexpected ')'") != std::string::npos);
  CHECK(reason("").find("ok") == 0);
  CHECK(reason("x --a \"unclosed").find("ok") == 0);
  std::string doubling = "A=--aaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 60; ++i) doubling += "A=\"$A $A\"\n";
  CHECK(reason(doubling) == "error: run.sh: the script unfolds to more text than any launch command has");
  CHECK(reason("while true; do A=1; done\n") == "ok");
  CHECK(reason("f() { f; f; }\nf\n").find("error") != 0);
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "( ";
  CHECK(reason(deep).find("nested too deeply") != std::string::npos);
  std::string quotes;
  for (int i = 0; i < 50000; ++i) quotes += "\"$(";
  CHECK_FALSE(reason("x " + quotes).empty());
  std::string braces;
  for (int i = 0; i < 50000; ++i) braces += "${A:-";
  CHECK_FALSE(reason("x --a " + braces).empty());
}
