#!/usr/bin/env python3
"""Every command of README.md, as it stands there, from a copy of the tree that shares this build.

    tests/training/readme.py commands"""

import os
import re
import shutil
import subprocess
import tempfile

import runs

# It runs this test; what it does otherwise is all the others.
OURSELVES = "./run-tests"
TREE = ["config", "data", "quickstart", "scripts", "CMakePresets.json"]


def commands_of(text):
    """The lines of the code blocks that name no language."""
    blocks = re.findall(r"^```\n(.*?)^```", text, re.S | re.M)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def copy_of_tree(folder):
    """What a command of README needs, and programs that are built: nothing is built again, no run is left behind."""
    for name in TREE:
        source = runs.SOURCE / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, f"{folder}/{name}")
    os.makedirs(f"{folder}/build/release")
    os.symlink(runs.BIN, f"{folder}/build/release/bin")
    programs = " ".join(["leeway", "leeway-server", "leeway-worker", "leeway-client"])
    with open(f"{folder}/build/release/build.ninja", "w", encoding="utf-8") as file:
        file.write(f"build {programs}: phony\n")
    with open(f"{folder}/build/release/CMakeCache.txt", "w", encoding="utf-8") as file:
        file.write("CMAKE_PROJECT_NAME:STATIC=leeway\nCMAKE_GENERATOR:INTERNAL=Ninja\n"
                   "CMAKE_MAKE_PROGRAM:FILEPATH=/usr/bin/ninja\n")


def run_as_written(command, folder):
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise runs.Failed(f"{command}: exit status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    found = re.search(r"(\S+/report\.html)", done.stdout)
    runs.check(found, f"{command}: trained, and said where its report is")
    report = os.path.join(folder, found.group(1))
    runs.check(os.path.getsize(report) > 1000, f"  which is there: {found.group(1)}")
    if "--run-dir" not in command and "leeway train" in command:
        mode = os.stat(os.path.dirname(report)).st_mode & 0o777
        runs.check(mode == 0o700, f"  and its folder is its user's alone: {mode:o}")


def commands():
    wanted = commands_of((runs.SOURCE / "README.md").read_text(encoding="utf-8"))
    runs.check(OURSELVES in wanted and len(wanted) >= 3, f"README's commands: {wanted}")
    with tempfile.TemporaryDirectory(prefix="leeway-readme-") as folder:
        copy_of_tree(folder)
        for command in wanted:
            if command != OURSELVES:
                run_as_written(command, folder)


if __name__ == "__main__":
    runs.main({"commands": commands})
