#!/usr/bin/python3
"""Names in files that are compiled as one. Functions and classes in their anonymous namespaces must have different
names: otherwise a call in one file could silently mean the other file's overload. (The compiler finds other conflicts
by itself.)

Usage: names.py COMPILE_COMMANDS.json; prints each name that two files of a compilation have, and exits 1 if there is any, 4
where ctags is missing or files are compiled one by one (ctest counts it as skipped). With --self-test it checks that such a
name is found.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 4
COMMAND = ["ctags", "-L", "-", "--languages=C++", "--kinds-C++=fcsg", "--fields=+Zsnp", "--output-format=json", "-f", "-"]


def compilations(commands):
    """Returns the lists of files that are compiled as one."""
    for entry in commands:
        path = pathlib.Path(entry["file"])
        if path.parent.name == "Unity":
            yield re.findall(r'#include "([^"]+)"', path.read_text())


def shared_names(files):
    """Returns {name: {file: line}} of the names that more than one file has in an anonymous namespace."""
    listed = subprocess.run(COMMAND, input="\n".join(map(str, files)), capture_output=True, text=True, check=True)
    found = collections.defaultdict(dict)
    for tag in map(json.loads, listed.stdout.splitlines()):
        around, _, scope = tag.get("scope", "").rpartition("::")
        if tag.get("scopeKind") == "namespace" and scope.startswith("__anon"):
            found[f"{around}::{tag['name']}"].setdefault(tag["path"], tag["line"])
    return {name: places for name, places in found.items() if len(places) > 1}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        one, other = pathlib.Path(folder) / "one.cc", pathlib.Path(folder) / "other.cc"
        one.write_text("namespace a {\nnamespace {\nint Size(int x) { return x; }\nint Mine() { return 1; }\n}\n}\n")
        other.write_text("namespace a {\nnamespace {\nint Size(char x) { return x; }\n}\nint Mine() { return 2; }\n}\n")
        found = set(shared_names([one, other]))
    print(f"found: {', '.join(found)}")
    return 0 if found == {"a::Size"} else 1


def main():
    if not shutil.which("ctags"):
        print("SKIPPED: ctags is not installed")
        return SKIPPED
    if sys.argv[1] == "--self-test":
        return self_test()
    together = list(compilations(json.loads(pathlib.Path(sys.argv[1]).read_text())))
    if not together:
        print("SKIPPED: each file is compiled by itself")
        return SKIPPED
    findings = 0
    for files in together:
        for name, places in sorted(shared_names(files).items()):
            findings += 1
            print(f"{name}: {', '.join(f'{path}:{line}' for path, line in places.items())}")
    print(f"{len(together)} compilations, {findings} names that two files of one have")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
