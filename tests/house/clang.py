#!/usr/bin/python3
"""Checks the product with clang: its warnings, thread safety among them, are errors. Files that the build compiles as
one are analysed as one. The preset `dev` shows clang each file by itself, and the tests as well.

Usage: clang.py REPOSITORY COMPILE_COMMANDS.json; with --self-test it checks that clang finds a field read without its
lock."""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

CLANG = ["clang++", "-fsyntax-only", "-std=c++20", "-march=x86-64-v3", "-pthread", "-Wall", "-Wextra", "-Wthread-safety",
         "-Werror", "-Wno-unused-parameter", "-Wno-deprecated-declarations",
         "-Wno-overloaded-virtual"]  # in what gRPC generates
TOP = ["common", "config", "run", "client", "exchange", "peer", "library", "server", "worker", "bench", "launcher"]

UNLOCKED = """
#include "common/mutex.h"
class Counter {
 public:
  int Read() { return value_; }
 private:
  leeway::Mutex mutex_;
  int value_ GUARDED_BY(mutex_) = 0;
};
"""


def includes(entry):
    """Returns the -I, -isystem and -D options of a compile command."""
    words = shlex.split(entry["command"])
    kept = []
    for index, word in enumerate(words):
        if word.startswith(("-I", "-D")):
            kept.append(word)
        elif word == "-isystem":
            kept += [word, words[index + 1]]
    return kept


def sources_of(path):
    """Returns the files that one entry of the compile commands compiles."""
    if path.parent.name != "Unity":
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'#include "([^"]+)"', path.read_text())]


def product(root, entries):
    """Returns {file: options} of the product's compilations. A file that two targets compile is analysed once."""
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        of_product = [source for source in sources_of(path)
                      if source.is_relative_to(root) and source.relative_to(root).parts[0] in TOP]
        if of_product and path.suffix != ".cu" and "nvcc" not in entry["command"].split()[0]:
            found.setdefault(path, includes(entry))
    return found


def analyse(job):
    source, options = job
    done = subprocess.run([*CLANG, *options, str(source)], capture_output=True, text=True, check=False)
    return source, done.returncode, done.stderr


def self_test(root):
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
        file.write(UNLOCKED)
        file.flush()
        _, code, text = analyse((file.name, ["-I", str(root)]))
    found = code != 0 and "requires holding mutex" in text
    print("a field read without its lock is found" if found else f"not found: {text}")
    return 0 if found else 1


def main():
    root = pathlib.Path(sys.argv[-2 if sys.argv[1] != "--self-test" else -1]).resolve()
    if sys.argv[1] == "--self-test":
        return self_test(root)
    jobs = list(product(root, json.loads(pathlib.Path(sys.argv[2]).read_text())).items())
    assert jobs, "nothing of the product is compiled?"
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failures = [(source, text) for source, code, text in pool.map(analyse, jobs) if code != 0]
    for source, text in failures:
        print(f"{source}:\n{text}")
    print(f"{len(jobs)} compilations analysed, {len(failures)} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
