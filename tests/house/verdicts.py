#!/usr/bin/python3
"""What ctest reports about a test: a skipped test must not count as passed, and a failed one must not count as skipped.

Usage: verdicts.py THE PROGRAM verdicts.cc IS BUILT TO."""

import subprocess
import sys

PASSED, FAILED, SKIPPED = 0, 1, 4
WANTED = {
    "passes": PASSED, "skips": SKIPPED, "skips in a function": SKIPPED, "skips in its second section": SKIPPED,
    "fails": FAILED, "fails four times": FAILED, "fails and skips": FAILED, "throws": FAILED,
    "passes,passes too": PASSED, "passes,skips": PASSED, "skips,skips in a function": SKIPPED, "skips,fails": FAILED,
}


def main():
    wrong = 0
    for cases, wanted in WANTED.items():
        run = subprocess.run([sys.argv[1], cases], stdout=subprocess.PIPE, text=True, check=False)
        silent = "skips" in cases and "SKIPPED: " not in run.stdout
        if run.returncode != wanted or silent:
            wrong += 1
            print(f"{cases}: exit code {run.returncode}, wanted {wanted}\n{run.stdout}")
    print(f"{len(WANTED) - wrong} of {len(WANTED)} verdicts are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
