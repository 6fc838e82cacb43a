#!/usr/bin/python3
"""Checks the tables of docs/reliability.md, which give each promise and each command its tests by tier: every named
test exists and is in that tier, every promise and command has a test in the first tier, and every script is named.

Usage: tiers.py REPOSITORY BUILD_FOLDER; prints each finding and exits 1 if there is any. The list of tests comes from
ctest, the list of commands from `leeway --help`. With --self-test it checks that each rule finds a fault, and nothing
where there is none.

A cell names tests in one of these ways: `kills.py sync-int8 full-disk` (a script and its cases; `others` are all cases
of the nightly tier that no other cell names), a_test (a file of C++ tests), `leeway_sim` (whose worlds sim_test runs),
fuzzer `x` (its corpus), or "the fuzzers' corpora". A command's test must have the command's name as a string.
"""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys

DOCUMENT = "docs/reliability.md"
FIRST, NIGHTLY = "first", "nightly"
HEADINGS = [("## Promises", 14), ("### What else is tested where", 0)]
COMMANDS = "### Commands"
# Tests about the tree and not about behaviour: tests/house keeps its own list.
HOUSE = "tests/house/"
CORPUS = "fuzz corpus: "
SIMULATOR = "sim_test"

STRINGS = r'(?:"(?:[^"\\]|\\.)*"\s*)+'
TEST_CASE = re.compile(rf"TEST_CASE\(\s*({STRINGS})(?:,\s*({STRINGS}))?", re.DOTALL)


@dataclasses.dataclass
class Source:
    """The text of a test file and, for C++ tests, {case: whether it is in the nightly tier}."""
    text: str
    cases: dict = dataclasses.field(default_factory=dict)


def literal(text):
    """Returns the value of adjacent C++ string literals."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"', text or "")
    return re.sub(r"\\(.)", r"\1", "".join(parts))


def cases_of(text):
    return {literal(name): "[." in literal(tags) for name, tags in TEST_CASE.findall(text)}


class Tests:
    """`first` and `nightly` are ctest's lists; the second contains the first. `sources` is {name of a file: Source}.
    in_tier is {tier: {(script, case)}}, where a script without cases has the case ''."""

    def __init__(self, first, nightly, sources, corpora=(), commands=()):
        self.first, self.sources, self.corpora, self.commands = first, sources, corpora, commands
        self.in_tier = {FIRST: named(first), NIGHTLY: named(nightly) - named(first)}
        self.cases = self.in_tier[FIRST] | self.in_tier[NIGHTLY]
        self.scripts = {script for script, _ in self.cases}
        names = [{test["name"] for test in tests} for tests in (first, nightly)]
        self.names = {FIRST: names[0], NIGHTLY: names[1] - names[0]}
        # The names that ctest has: "core_test:a case" and, for all cases with the tag, "core_test: nightly".
        self.programs = {}
        for name in names[0] | names[1]:
            program, _, case = name.partition(":")
            self.programs.setdefault(case, set()).add(program)

    def wrong_source(self, name, tier):
        """Returns why no case of that C++ test file runs in the tier; empty if one does."""
        if name not in self.sources:
            return "there is no such test"
        cases = self.sources[name].cases
        programs = {program for case in cases for program in self.programs.get(case, ())}
        if tier == NIGHTLY:
            runs = any(cases.values()) and any(f"{program}: nightly" in self.names[NIGHTLY] for program in programs)
        else:
            runs = any(f"{program}:{case}" in self.names[FIRST] for case in cases for program in programs)
        return "" if runs else f"none of its cases is in the {tier} tier"


def named(tests):
    found = set()
    for test in tests:
        words = [word for word in test.get("command", []) if not word.startswith("-") or word == "--self-test"]
        scripts = [word for word in words if word.endswith(".py")]
        if scripts and HOUSE not in scripts[0]:
            rest = words[words.index(scripts[0]) + 1:]
            case = rest[0] if rest and re.fullmatch(r"[a-z_0-9-]+", rest[0]) else ""
            found.add((scripts[0].rsplit("/", 1)[1], case))
    return found


def list_of(build, *options):
    told = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", *options], capture_output=True,
                          text=True, check=True).stdout
    return json.loads(told)["tests"]


def commands_of(build):
    told = subprocess.run([build / "bin/leeway", "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+)  ", told.split("Subcommands:\n", 1)[1], re.MULTILINE)


def rows(text, heading):
    """Returns the cells of the first table below a heading, without its first two lines."""
    lines = text.split(heading + "\n", 1)[-1].split("\n## ", 1)[0].splitlines() if heading + "\n" in text else []
    table = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[2:]


def entries(cell):
    """Returns (script, cases), or (name of a C++ test, a fuzzer or the simulator, None)."""
    for entry in filter(None, (part.strip(" `") for part in cell.split(","))):
        words = entry.replace("`", "").split()
        yield (words[0], words[1:]) if words[0].endswith(".py") else (" ".join(words), None)


def wrong_program(tests, name, tier):
    """Returns why something other than a script does not run in the tier; empty if it does."""
    if name.startswith("leeway_sim"):
        return tests.wrong_source(SIMULATOR, tier)
    if name.startswith("fuzzer "):
        there = CORPUS + name.removeprefix("fuzzer ") in tests.names[tier]
        return "" if there else f"no corpus of that name runs in the {tier} tier"
    if name == "the fuzzers' corpora":
        missing = [one for one in tests.corpora if CORPUS + one not in tests.names[tier]]
        return f"not in the {tier} tier: {missing}" if missing or not tests.corpora else ""
    return tests.wrong_source(name, tier)


def check_cell(tests, where, cell, tier):
    """Returns what is wrong with the cell."""
    for name, cases in entries(cell):
        if cases is None:
            wrong = wrong_program(tests, name, tier)
            if wrong:
                yield f"{where}: {name}: {wrong}"
            continue
        if name not in tests.scripts:
            yield f"{where}: {name}: ctest runs no such script"
        for case in [] if cases == ["others"] else cases or [""]:
            if (name, case) not in tests.in_tier[tier] and not (case == "" and (name, "") not in tests.cases):
                yield f"{where}: {name} {case}: not in the {tier} tier"
            if case == "" and (name, "") not in tests.cases and not any(s == name for s, _ in tests.in_tier[tier]):
                yield f"{where}: {name}: none of its cases is in the {tier} tier"


def check_document(text, tests):
    seen = set()
    for heading, least in HEADINGS:
        table = rows(text, heading)
        if len(table) < max(least, 1):
            yield f"{heading}: {len(table)} rows, not {max(least, 1)}"
        for cells in table:
            where = f"{DOCUMENT}: {cells[0]}"
            first, nightly = cells[-2:]
            yield from check_cell(tests, where, first, FIRST)
            yield from check_cell(tests, where, nightly, NIGHTLY)
            if least and not list(entries(first)):
                yield f"{where}: no test in the first tier"
            seen |= {name for cell in (first, nightly) for name, cases in entries(cell) if cases is not None}
    for script in sorted(tests.scripts - seen):
        yield f"{DOCUMENT}: {script}: no row of the tables names it"


def check_commands(text, tests):
    """Checks that each command has a row, and that each test there has the command's name as a string."""
    table = {command.strip("`"): cell for command, cell in rows(text, COMMANDS)}
    for command in tests.commands:
        if not list(entries(table.get(command, ""))):
            yield f"{DOCUMENT}: {COMMANDS.strip('# ')}: {command}: no test in the first tier"
    for command, cell in table.items():
        where = f"{DOCUMENT}: {command}"
        if command not in tests.commands:
            yield f"{where}: leeway has no such command"
        yield from check_cell(tests, where, cell, FIRST)
        for name, _ in entries(cell):
            if name in tests.sources and f'"{command}"' not in tests.sources[name].text:
                yield f"{where}: {name} does not call it"


def check_alone(tests):
    """Checks that a test of the first tier leaves no core idle."""
    for test in tests.first:
        for one in test.get("properties", []):
            if one["name"] in ("RUN_SERIAL", "RESOURCE_LOCK") and one["value"]:
                yield f"{test['name']}: {one['name']} is for nightly tests"


def findings(text, tests):
    return [*check_document(text, tests), *check_commands(text, tests), *check_alone(tests)]


# ---- self-test

def test_of(script, *words, **properties):
    return {"name": f"{script} {words}", "command": ["/usr/bin/python3", f"/x/tests/chaos/{script}", *words],
            "properties": [{"name": name, "value": value} for name, value in properties.items()]}


FINE = ("## Promises\n\n| # | promise | first | nightly |\n|---|---|---|---|\n"
        + "".join(f"| {n} | p | kills.py sync, a_test, leeway_sim, fuzzer `wire` | kills.py others, late_test |\n"
                  for n in range(1, 15))
        + "\n### What else is tested where\n\n| what | first | nightly |\n|---|---|---|\n"
        + "| page | page.py, ends.py, the fuzzers' corpora | ends.py slow |\n"
        + "\n### Commands\n\n| command | first |\n|---|---|\n| `stop` | ends.py quick |\n| `plan` | a_test |\n")
FINE_TESTS = [test_of("kills.py", "sync"), test_of("page.py"), test_of("ends.py", "quick"),
              *({"name": name} for name in ("p_test:one, two", "p_test:of its own", "sim_test:a world", "fuzz corpus: wire"))]
FINE_NIGHTLY = [*FINE_TESTS, test_of("kills.py", "async"), test_of("ends.py", "slow", RUN_SERIAL=True),
                {"name": "p_test: nightly"}]
A_TEST = 'TEST_CASE(\n    "one, "\n    "two") { Run({"plan"}); }\n'
SOURCES = {name: Source(text, cases_of(text)) for name, text in {
    "a_test": A_TEST, "sim_test": 'TEST_CASE("a world") {}', "ends.py": 'leeway("stop", run)', "page.py": "",
    "late_test": 'TEST_CASE("of its own") {}\nTEST_CASE("all", "[.nightly]") {}',
    "unbuilt_test": 'TEST_CASE("in no program") {}'}.items()}
BAD = {
    "a test that is not there": ("kills.py sync,", "kills.py gone,"),
    "a script that is not there": ("page.py", "gone.py"),
    "a C++ test that is not there": ("a_test", "gone_test"),
    "a C++ test that no program has": ("a_test", "unbuilt_test"),
    "a C++ test of the first tier among the nightly": ("late_test", "a_test"),
    "a fuzzer that is not there": ("fuzzer `wire`", "fuzzer `wires`"),
    "the simulator among the nightly": ("late_test", "leeway_sim"),
    "what is no test": ("a_test", "something"),
    "a nightly test in the first tier": ("kills.py sync,", "kills.py async,"),
    "a first test among the nightly": ("ends.py slow", "ends.py quick"),
    "a promise without a first test": ("| 3 | p | kills.py sync, a_test, leeway_sim, fuzzer `wire` |", "| 3 | p | |"),
    "a promise too few": ("| 14 | p | kills.py sync, a_test, leeway_sim, fuzzer `wire` | kills.py others, late_test |\n", ""),
    "a script that no row names": ("page.py, ends.py", "ends.py"),
    "no second table": ("### What else is tested where", "### Gone"),
    "a command without a row": ("| `stop` | ends.py quick |\n", ""),
    "a command without a test": ("| `stop` | ends.py quick |", "| `stop` | |"),
    "a command that there is not": ("`stop`", "`halt`"),
    "a command whose test is nightly": ("| ends.py quick |", "| ends.py slow |"),
    "a test that does not call its command": ("| ends.py quick |", "| page.py |"),
}


def self_test():
    def found(text, first=FINE_TESTS, corpora=("wire",)):
        return findings(text, Tests(first, FINE_NIGHTLY, SOURCES, corpora, ("stop", "plan")))
    missed = [what for what, (old, new) in BAD.items() if not found(FINE.replace(old, new, 1))]
    if not found(FINE, [*FINE_TESTS, test_of("kills.py", "sync", RUN_SERIAL=True)]):
        missed.append("a test of the first tier that runs alone")
    if not found(FINE, corpora=("wire", "yaml")):
        missed.append("a corpus that nobody runs")
    return missed + [f"where there is nothing: {text}" for text in found(FINE)]


def sources_below(folder):
    texts = {}
    for path in [*folder.rglob("*_test.cc"), *folder.rglob("*.py")]:
        # Files of the same name in two folders count as one, which runs where one of them does.
        name = path.name.removesuffix(".cc")
        texts[name] = texts.get(name, "") + path.read_text(encoding="utf-8")
    return {name: Source(text, cases_of(text)) for name, text in texts.items()}


def main():
    if sys.argv[1] == "--self-test":
        missed = self_test()
        print("rules that find nothing, or too much:", missed) if missed else print("every rule finds")
        return 1 if missed else 0
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tests = Tests(list_of(build), list_of(build, "--build-config", "nightly"), sources_below(root / "tests"),
                  sorted(path.name for path in (root / "tests/fuzz/corpus").iterdir()), commands_of(build))
    found = findings((root / DOCUMENT).read_text(encoding="utf-8"), tests)
    print("\n".join(found) if found else "every promise and command has its tests, and every script its row")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
