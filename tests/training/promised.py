#!/usr/bin/python3
"""The accuracies that docs/guide.md promises for the jobs in config/jobs; only its table has them. Run as a program,
this checks that the table has exactly the jobs there are."""

import re
import sys

import runs

GUIDE = runs.SOURCE / "docs/guide.md"
HEAD = "| config/jobs/ | what it shows | test accuracy at least |"


def table(text):
    """Returns {job: share of right classes}, and {job: how much less it may have than the job above it}."""
    rows = text[text.index(HEAD):].split("\n\n")[0].splitlines()[2:]
    least, less = {}, {}
    for row in rows:
        names, _, wanted = (cell.strip() for cell in row.strip("|").split("|"))
        share = re.fullmatch(r"([\d.]+) %", wanted)
        points = re.fullmatch(r"at most ([\d.]+) points less", wanted)
        for name in names.split(", "):
            if share:
                least[name], plain = float(share[1]) / 100, name
            else:
                less[name] = (plain, float(points[1]) / 100)
    return least, less


LEAST, LESS = table(GUIDE.read_text())


def least(job):
    """Returns what `job` must reach, as a share."""
    if job in LEAST:
        return LEAST[job]
    plain, points = LESS[job]
    return LEAST[plain] - points


def main():
    named, there = {*LEAST, *LESS}, {path.stem for path in runs.JOBS.glob("*.yaml")}
    for job in sorted(named ^ there):
        print(f"{job}: " + ("not in the table of docs/guide.md" if job in there else "in docs/guide.md, not in config/jobs"))
    return 0 if named == there else 1


if __name__ == "__main__":
    sys.exit(main())
