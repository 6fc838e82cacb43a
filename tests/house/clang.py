#!/usr/bin/python3
"""Clang's view of every source file of the product that has to do with a mutex: its warnings, thread safety among
them, as errors. The preset `dev` shows it all files, and what each includes: here what most include is precompiled.

Usage: clang.py REPOSITORY COMPILE_COMMANDS.json; with --self-test it checks that clang finds a field read without its
lock."""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

CLANG = ["clang++", "-fsyntax-only", "-std=c++20", "-march=x86-64-v3", "-pthread", "-Wall", "-Wextra", "-Wthread-safety",
         "-Werror", "-Wno-unused-parameter", "-Wno-deprecated-declarations",
         "-Wno-overloaded-virtual"]  # of what gRPC generates
PRECOMPILED = ["algorithm", "functional", "map", "memory", "optional", "span", "string", "vector",
               "absl/status/statusor.h", "absl/strings/str_cat.h", "grpcpp/grpcpp.h", "spdlog/spdlog.h",
               "leeway/v1/checkpoint.pb.h", "leeway/v1/coordinator.grpc.pb.h", "leeway/v1/parameter_server.grpc.pb.h"]
TOP = ["common", "config", "client", "server", "worker", "bench", "launcher"]

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
    return any("mutex" in p.read_text().lower() for p in (source, header) if p.exists())


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


def options_of(root, entries):
    """What all files are analysed with, for a precompiled header is for one set of options."""
    # Files that are compiled together are named by the one that includes them, in the build's folder.
    product = [e for e in entries if pathlib.Path(e["file"]).is_relative_to(root)
               and (pathlib.Path(e["file"]).relative_to(root).parts[0] in TOP
                    or "Unity" in pathlib.Path(e["file"]).parts)]
    kept = {}
    for entry in product:
        words = includes(entry)
        for index, word in enumerate(words):
            if word == "-isystem":
                kept[word, words[index + 1]] = True
            elif word.startswith("-"):
                kept[(word,)] = True
    return [word for words in kept for word in words]


def precompile(folder, options):
    header = pathlib.Path(folder) / "most.h"
    header.write_text("".join(f"#include <{name}>\n" for name in PRECOMPILED), encoding="utf-8")
    made = header.with_suffix(".pch")
    subprocess.run([*CLANG[:1], *CLANG[2:], *options, "-x", "c++-header", str(header), "-o", str(made)], check=True)
    return ["-include-pch", str(made)]


def analyse(job):
    source, options = job
    done = subprocess.run([*CLANG, *options, str(source)], capture_output=True, text=True, check=False)
    return source, done.returncode, done.stderr


def main():
    root = pathlib.Path(sys.argv[-2 if sys.argv[1] != "--self-test" else -1]).resolve()
    if sys.argv[1] == "--self-test":
        with tempfile.NamedTemporaryFile("w", suffix=".cc") as file:
            file.write(UNLOCKED)
            file.flush()
            _, code, text = analyse((file.name, ["-I", str(root)]))
        found = code != 0 and "requires holding mutex" in text
        print("a field read without its lock is found" if found else f"not found: {text}")
        return 0 if found else 1
    entries = json.loads(pathlib.Path(sys.argv[2]).read_text())
    sources = [source for top in TOP for source in sorted((root / top).rglob("*.cc"))
               if uses_mutex(source)]
    assert sources, "no source file uses a mutex?"
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        options = options_of(root, entries)
        options += precompile(folder, options)
        jobs = [(source, options) for source in sources]
        failures = [(s, text) for s, code, text in pool.map(analyse, jobs) if code != 0]
    for source, text in failures:
        print(f"{source}:\n{text}")
    print(f"{len(jobs)} files analysed, {len(failures)} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
