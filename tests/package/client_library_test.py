#!/usr/bin/python3
"""The installed client library exports only leeway_*. The examples in C and C++ are built against it, and `leeway
train` trains with two processes of each.

Usage: client_library_test.py BUILD_FOLDER"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/c"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False, **options)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    return done.stdout


def declared():
    """Returns the functions that the header declares."""
    header = (ROOT / "library/client.h").read_text(encoding="utf-8")
    return set(re.findall(r"^[a-z][\w *]*?\b(leeway_\w+)\(", header, re.M))


def check_symbols(library):
    shown = set(re.findall(r" [TWBDRVu] (\S+)", run("nm", "-D", "--defined-only", library)))
    if shown != declared():
        sys.exit(f"FAILED: shown, not declared: {sorted(shown - declared())}; declared, not shown: {sorted(declared() - shown)}")
    print(f"the library shows the {len(shown)} functions of its header, and nothing else")


def check_example(prefix, folder):
    library = next(prefix.rglob("libleeway-client.so")).parent
    (folder / "header.c").write_text('#include "leeway/client.h"\n', encoding="utf-8")
    for options in (["-std=c99", "-pedantic-errors"], ["-x", "c++", "-std=c++20"]):
        run("cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *options, f"-I{prefix}/include", folder / "header.c")
    run("cc", "-O2", "-Wall", "-Wextra", "-Werror", EXAMPLE / "linear.c", f"-I{prefix}/include", f"-L{library}",
        f"-Wl,-rpath,{library}", "-lleeway-client", "-lm", "-o", folder / "linear", *os.environ.get("LEEWAY_FLAGS", "").split())
    train(prefix, folder / "c", folder / "linear", "C")


def train(prefix, folder, program, language):
    folder.mkdir()
    run(prefix / "bin/leeway", "train", EXAMPLE / "linear.yaml", "--run-dir", folder / "run", "--", program, cwd=folder)
    said = "".join(log.read_text(encoding="utf-8") for log in sorted((folder / "run").rglob("*.log")))
    errors = [float(e) for e in re.findall(r"the largest error of a weight is (\S+)", said)]
    if len(errors) != 2 or errors[0] != errors[1] or not errors[0] < 1e-4:
        sys.exit(f"FAILED: errors {errors}\n{said[-6000:]}")
    print(f"two workers in {language} have found the weights within {errors[0]}")


def check_cpp_example(prefix, folder):
    run("cmake", "-S", ROOT / "examples/cpp", "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_FLAGS=-O1 {os.environ.get('LEEWAY_FLAGS', '')}")
    run("cmake", "--build", folder / "build")
    train(prefix, folder / "cpp", folder / "build/linear", "C++")


def main():
    with tempfile.TemporaryDirectory(prefix="leeway-client-") as name:
        folder = pathlib.Path(name)
        prefix = folder / "installed"
        run("cmake", "--install", sys.argv[1], "--prefix", prefix)
        check_symbols(next(prefix.rglob("libleeway-client.so")))
        check_example(prefix, folder)
        check_cpp_example(prefix, folder)


if __name__ == "__main__":
    main()
