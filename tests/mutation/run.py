#!/usr/bin/python3
"""The mutation run makes one small change at a time in the product's pure parts, and runs their unit tests and the
simulator. A change that none of them notices is a gap in the tests, or does not affect any promise.

    tests/mutation/run.py --scratch /tmp/mutation             # 400 mutants; goes on where it was interrupted
    tests/mutation/run.py --scratch /tmp/mutation --update --again   # after a new test: what lived, and what is new
    tests/mutation/run.py --scratch /tmp/mutation --report    # what is known so far
    tests/mutation/run.py --only server/core/held_book.cc --count 1000

The tree at HEAD is copied to the scratch folder and built there; the working tree is not touched. A mutant is compiled
alone and linked before the libraries. A mutant whose object equals the original's is not counted. survivors.tsv says
why a mutant may survive. A run fails if one survives without a reason, or if fewer than 90 % are killed.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants  # noqa: E402
import programs  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
BOOKS = ["cut_book", "lease_book", "committed_set_book", "membership", "placement", "server_table",
         "server_processes", "straggler_grace", "arrival_history"]
KILLED_MIN = 0.9


def sources(root):
    found = [*sorted((root / "server/core").glob("*.cc")), *sorted((root / "common/update").glob("*.cc")),
             *(root / f"server/coordinator/core/{book}.cc" for book in BOOKS),
             root / "run/core/rank_progress.cc"]
    return [path.relative_to(root).as_posix() for path in found]


def reasons():
    """Returns {name of a mutant: why it may survive}."""
    lines = (HERE / "survivors.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {f"{file}: {function}: {before} => {after}": reason for file, function, before, after, reason in rows}


class State:
    """The result of each mutant, one line each, so that an interrupted run can continue."""

    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.results = {r["key"]: r for r in map(json.loads, lines)}

    def add(self, result):
        self.results[result["key"]] = result
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


class Run:
    def __init__(self, options):
        self.options = options
        self.tree = programs.Tree(REPOSITORY, options.scratch, options.update)
        self.state = State(options.scratch / "results.jsonl")
        self.texts = {file: (self.tree.root / file).read_text() for file in sources(self.tree.root)}
        self.seconds, self.originals = {}, {}

    def drawn(self):
        """Returns all wanted mutants with their keys. The order depends on the seed and each mutant's own key, so that
        a change of the product does not reorder the others."""
        wanted = [f for f in self.texts if not self.options.only or f in self.options.only]
        found, named = {}, collections.Counter()
        for mutant in (m for file in wanted for m in mutants.mutants_of(file, self.texts[file])):
            named[mutant.name] += 1
            found[f"{mutant.name} #{named[mutant.name]}"] = mutant
        return sorted(found.items(), key=lambda each: hashlib.sha256(f"{self.options.seed} {each[0]}".encode()).digest())

    def original(self, file):
        """Returns the bytes of the original's object, compiled in the same way as a mutant's."""
        if file not in self.originals:
            out = self.tree.work / "original.o"
            if not self.tree.compile(file, self.texts[file], out):
                raise SystemExit(f"{file} does not compile as it is")
            self.originals[file] = out.read_bytes()
        return self.originals[file]

    def judge(self, mutant):
        """Returns ('killed', by which program), ('survived', ''), ('broken', '') or ('same', '')."""
        original, out = self.original(mutant.file), self.tree.work / "mutant.o"
        if not self.tree.compile(mutant.file, mutant.apply(self.texts[mutant.file]), out):
            return "broken", ""
        if out.read_bytes() == original:
            return "same", ""
        linked = {}
        for program in self.tree.programs(mutant.file, self.options.schedules):
            if program.target not in linked:
                linked[program.target] = self.tree.work / program.target
                self.tree.link(program.target, out, linked[program.target])
            bound = max(programs.SECONDS_MIN, 8 * self.tree.measure(program, self.seconds))
            if wrong := self.tree.run(program, linked[program.target], bound):
                return "killed", f"{program.name}: {wrong}"
        return "survived", ""

    def go(self):
        """Judges all drawn mutants, and returns the results."""
        counted, results = 0, []
        for key, mutant in self.drawn():
            if counted >= self.options.count:
                break
            result = self.state.results.get(key)
            if result is None or self.options.again and result["fate"] == "survived":
                fate, by = self.judge(mutant)
                result = {"key": key, "name": mutant.name, "file": mutant.file, "line": mutant.line,
                          "rule": mutant.rule, "fate": fate, "by": by}
                self.state.add(result)
            counted += result["fate"] in ("killed", "survived")
            results.append(result)
            print(f"{counted:4} {result['fate']:8} {key}  {result['by']}", flush=True)
        return results


def report(results):
    """Prints the table and the survivors. Returns whether the result is good enough."""
    explained = reasons()
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        by = "simulator" if "leeway_sim" in result["by"] else "unit tests"
        fate = by if result["fate"] == "killed" else result["fate"]
        for row in (os.path.dirname(result["file"]), "all"):
            counts[row][fate] += 1
    print(f"{'':24}{'mutants':>9}{'unit tests':>12}{'simulator':>11}{'lives':>7}{'killed':>9}")
    for row in sorted(counts, key=lambda r: (r == "all", r)):
        c = counts[row]
        killed, all_of = c["unit tests"] + c["simulator"], c["unit tests"] + c["simulator"] + c["survived"]
        print(f"{row:24}{all_of:9}{c['unit tests']:12}{c['simulator']:11}{c['survived']:7}"
              f"{100 * killed / max(1, all_of):8.1f}%")
    print(f"not counted: {counts['all']['broken']} that do not compile, {counts['all']['same']} that are the same program")
    lives = [r for r in results if r["fate"] == "survived"]
    for result in lives:
        print(f"lives: line {result['line']} of {result['key']}\n       {explained.get(result['name'], 'NO REASON')}")
    killed = counts["all"]["unit tests"] + counts["all"]["simulator"]
    share = killed / max(1, killed + len(lives))
    return share >= KILLED_MIN and all(r["name"] in explained for r in lives)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=400, help="mutants that compile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="a source; may be repeated")
    parser.add_argument("--schedules", type=int, default=2000, help="of each of the simulator's worlds")
    parser.add_argument("--update", action="store_true", help="copies what HEAD has now; after a change, begin with it")
    parser.add_argument("--again", action="store_true", help="judges anew what lived")
    parser.add_argument("--report", action="store_true", help="judges nothing")
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    options.scratch.mkdir(parents=True, exist_ok=True)
    if options.report:
        results = State(options.scratch / "results.jsonl").results.values()
    else:
        results = Run(options).go()
    return 0 if report(list(results)) else 1


if __name__ == "__main__":
    sys.exit(main())
