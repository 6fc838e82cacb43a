#!/usr/bin/python3
"""The form of the sources: formatted by clang-format, no function above 50 lines, and subjects of commits
of at most 72 characters.

Usage: form.py format|functions|subjects REPOSITORY; prints each finding and exits 1 if there is any, 4 where a
tool or the history is missing (ctest counts it as skipped). With --self-test it checks that each finds a fault.
"""

import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 4
FUNCTION_LINES_MAX = 50
SUBJECT_MAX = 72
# The rule on subjects holds for commits after this one.
RULE_BEGAN = "e16f1569fabc05cc4482087e135301de7a5eaeab"
TOP = ["plugin", "common", "config", "run", "server", "worker", "client", "exchange", "peer", "library", "launcher", "bench", "tests"]


def sources(root):
    return [p for top in TOP for p in sorted((root / top).rglob("*")) if p.suffix in {".cc", ".h"}]


def output(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def check_format(root):
    """Returns a line for each place that clang-format would write differently."""
    files = sources(root)
    batches = [files[i::8] for i in range(8) if files[i::8]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda batch: output(["clang-format", "--dry-run", "-Werror", *map(str, batch)], cwd=root), batches)
        return [line for run in runs for line in run.stderr.splitlines() if "error:" in line]


def check_functions(root):
    """Returns a line for each function that is too long."""
    listed = output(["ctags", "-L", "-", "--fields=+ne", "--kinds-c++=f", "--output-format=json", "-f", "-"],
                    input="\n".join(map(str, sources(root))))
    tags = [json.loads(line) for line in listed.stdout.splitlines()]
    lengths = [(tag["path"], tag["line"], tag["name"], tag["end"] - tag["line"] + 1) for tag in tags if "end" in tag]
    if not lengths:
        raise SystemExit(f"ctags found no function: {listed.stderr}")
    return [f"{path}:{line}: {name} has {length} lines, at most {FUNCTION_LINES_MAX}"
            for path, line, name, length in lengths if length > FUNCTION_LINES_MAX]


def too_long(subjects):
    return [f"{len(s)} characters, at most {SUBJECT_MAX}: {s}" for s in subjects if len(s) > SUBJECT_MAX]


def check_subjects(root):
    began = output(["git", "-C", str(root), "rev-parse", "--verify", "--quiet", RULE_BEGAN + "^{commit}"])
    if began.returncode != 0:
        print("SKIPPED: the history does not reach the commit from which the rule on subjects holds")
        sys.exit(SKIPPED)
    return too_long(output(["git", "-C", str(root), "log", "--format=%s", f"{RULE_BEGAN}..HEAD"]).stdout.splitlines())


CHECKS = {"format": (check_format, "clang-format"), "functions": (check_functions, "ctags"),
          "subjects": (check_subjects, "git")}


def self_test():
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "common").mkdir()
        (root / "common/bad.cc").write_text("int  Long() {\n" + "  Call();\n" * FUNCTION_LINES_MAX + "  return 1;\n}\n")
        missed += [name for name in ("format", "functions") if shutil.which(CHECKS[name][1]) and not CHECKS[name][0](root)]
    if not too_long(["x" * (SUBJECT_MAX + 1)]) or too_long(["x" * SUBJECT_MAX]):
        missed.append("subjects")
    return missed


def main():
    if sys.argv[1] == "--self-test":
        missed = self_test()
        print("checks that find nothing:", missed) if missed else print("every check finds")
        return 1 if missed else 0
    check, tool = CHECKS[sys.argv[1]]
    if shutil.which(tool) is None:
        print(f"SKIPPED: {tool} is not installed")
        return SKIPPED
    findings = check(pathlib.Path(sys.argv[2]).resolve())
    print("\n".join(findings) if findings else f"{sys.argv[1]}: in order")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
