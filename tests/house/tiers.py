#!/usr/bin/python3
"""Keeps the tables of docs/reliability.md whole, in which each promise has its tests by tier: every test that is named is
there and in that tier, every promise has one in the first tier, and every script of tests is named.

Usage: tiers.py REPOSITORY BUILD_FOLDER; prints each finding and exits 1 if there is any. The list of tests is ctest's.
With --self-test it checks that each rule finds a fault, and nothing where there is none.

A cell names tests as `kills.py sync-int8 full-disk` (a script and its cases; `others` are all those of the nightly tier that
stand nowhere else), a_test (a file of C++ tests), `leeway_sim --resizes` or a fuzzer.
"""

import json
import pathlib
import re
import subprocess
import sys

DOCUMENT = "docs/reliability.md"
FIRST, NIGHTLY = "first", "nightly"
HEADINGS = [("## Promises", 14), ("### What else is tested where", 0)]
# What ctest runs that is about the tree, and no behaviour: tests/house says of itself what it keeps.
HOUSE = "tests/house/"


class Tests:
    """{tier: {(script, case)}}; a script without cases has the case ''. `properties`: of those in the first tier."""

    def __init__(self, first, nightly, sources):
        self.first, self.sources = first, sources
        self.in_tier = {FIRST: named(first), NIGHTLY: named(nightly) - named(first)}
        self.cases = self.in_tier[FIRST] | self.in_tier[NIGHTLY]
        self.scripts = {script for script, _ in self.cases}


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


def rows(text, heading):
    """The cells of the first table below a heading, without its first two lines."""
    lines = text.split(heading + "\n", 1)[-1].split("\n## ", 1)[0].splitlines() if heading + "\n" in text else []
    table = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            break
    return table[2:]


def entries(cell):
    """(script, cases) or (name of a C++ test or of a program, None)."""
    for entry in filter(None, (part.strip(" `") for part in cell.split(","))):
        words = entry.replace("`", "").split()
        yield (words[0], words[1:]) if words[0].endswith(".py") else (" ".join(words), None)


def check_cell(tests, where, cell, tier):
    """What is wrong with it."""
    for name, cases in entries(cell):
        if cases is None:
            if name.endswith("_test") and name not in tests.sources:
                yield f"{where}: {name}: there is no such test"
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


def check_alone(tests):
    """A test of the first tier leaves no core idle."""
    for test in tests.first:
        for one in test.get("properties", []):
            if one["name"] in ("RUN_SERIAL", "RESOURCE_LOCK") and one["value"]:
                yield f"{test['name']}: {one['name']} is for nightly tests"


def findings(text, tests):
    return [*check_document(text, tests), *check_alone(tests)]


# ---- self-test

def test_of(script, *words, **properties):
    return {"name": f"{script} {words}", "command": ["/usr/bin/python3", f"/x/tests/chaos/{script}", *words],
            "properties": [{"name": name, "value": value} for name, value in properties.items()]}


FINE = ("## Promises\n\n| # | promise | first | nightly |\n|---|---|---|---|\n"
        + "".join(f"| {n} | p | kills.py sync, a_test | kills.py others |\n" for n in range(1, 15))
        + "\n### What else is tested where\n\n| what | first | nightly |\n|---|---|---|\n| page | page.py, ends.py | ends.py slow |\n")
FINE_TESTS = [test_of("kills.py", "sync"), test_of("page.py"), test_of("ends.py", "quick")]
FINE_NIGHTLY = [*FINE_TESTS, test_of("kills.py", "async"), test_of("ends.py", "slow", RUN_SERIAL=True)]
BAD = {
    "a test that is not there": ("kills.py sync,", "kills.py gone,"),
    "a script that is not there": ("page.py", "gone.py"),
    "a C++ test that is not there": ("a_test", "gone_test"),
    "a nightly test in the first tier": ("kills.py sync,", "kills.py async,"),
    "a first test among the nightly": ("ends.py slow", "ends.py quick"),
    "a promise without a first test": ("| 3 | p | kills.py sync, a_test |", "| 3 | p | |"),
    "a promise too few": ("| 14 | p | kills.py sync, a_test | kills.py others |\n", ""),
    "a script that no row names": ("page.py, ends.py", "ends.py"),
    "no second table": ("### What else is tested where", "### Gone"),
}


def self_test():
    def found(text, first=FINE_TESTS):
        return findings(text, Tests(first, FINE_NIGHTLY, {"a_test"}))
    missed = [what for what, (old, new) in BAD.items() if not found(FINE.replace(old, new, 1))]
    if not found(FINE, [*FINE_TESTS, test_of("kills.py", "sync", RUN_SERIAL=True)]):
        missed.append("a test of the first tier that runs alone")
    return missed + [f"where there is nothing: {text}" for text in found(FINE)]


def main():
    if sys.argv[1] == "--self-test":
        missed = self_test()
        print("rules that find nothing, or too much:", missed) if missed else print("every rule finds")
        return 1 if missed else 0
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    sources = {path.stem for path in (root / "tests").rglob("*_test.cc")}
    tests = Tests(list_of(build), list_of(build, "--build-config", "nightly"), sources)
    found = findings((root / DOCUMENT).read_text(encoding="utf-8"), tests)
    print("\n".join(found) if found else "every promise has its tests, and every script its row")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
