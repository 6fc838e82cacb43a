#!/usr/bin/python3
"""Clang's thread-safety analysis over every source file that has to do with a mutex.

Usage: thread_safety.py REPOSITORY COMPILE_COMMANDS.json; with --self-test it checks that clang finds a
field read without its lock."""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

CLANG = ["clang++", "-fsyntax-only", "-std=c++20", "-Wno-everything", "-Wthread-safety",
         "-Werror=thread-safety"]

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


def uses_mutex(source):
    header = source.with_suffix(".h")
    texts = [p.read_text() for p in (source, header) if p.exists()]
    return any("mutex" in text.lower() for text in texts)


def includes(entry):
    """The -I, -isystem and -D options of a compile command."""
    words = shlex.split(entry["command"])
    kept = []
    for index, word in enumerate(words):
        if word.startswith(("-I", "-D")):
            kept.append(word)
        elif word == "-isystem":
            kept += [word, words[index + 1]]
    return kept


def analyse(job):
    source, options, folder = job
    done = subprocess.run([*CLANG, *options, str(source)], cwd=folder, capture_output=True, text=True,
                          check=False)
    return source, done.returncode, done.stderr


def main():
    root = pathlib.Path(sys.argv[-2 if sys.argv[1] != "--self-test" else -1]).resolve()
    if sys.argv[1] == "--self-test":
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
            file.write(UNLOCKED)
            file.flush()
            _, code, text = analyse((file.name, ["-I", str(root)], "."))
        found = code != 0 and "requires holding mutex" in text
        print("a field read without its lock is found" if found else f"not found: {text}")
        return 0 if found else 1
    entries = json.loads(pathlib.Path(sys.argv[2]).read_text())
    jobs = [(pathlib.Path(e["file"]), includes(e), e["directory"]) for e in entries
            if pathlib.Path(e["file"]).is_relative_to(root) and "build" not in
            pathlib.Path(e["file"]).relative_to(root).parts and uses_mutex(pathlib.Path(e["file"]))]
    assert jobs, "no source file uses a mutex?"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = [(s, text) for s, code, text in pool.map(analyse, jobs) if code != 0]
    for source, text in failures:
        print(f"{source}:\n{text}")
    print(f"{len(jobs)} files analysed, {len(failures)} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
