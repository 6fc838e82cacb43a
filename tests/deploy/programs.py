"""The flags and variables that the programs know, read from their --help."""

import functools
import pathlib
import re
import subprocess
import tempfile

from manifests import runs

# Server 0 takes any key of the job from the environment.
OVERRIDE = re.compile(r"LEEWAY__[A-Z0-9_]+")


def path_of(program):
    path = runs.BIN / program
    if not path.exists():
        raise runs.Failed(f"no {path}: build the programs first, or name their folder in LEEWAY_BIN")
    return str(path)


@functools.cache
def help_of(program):
    return subprocess.run([path_of(program), "--help"], capture_output=True, text=True, check=True).stdout


@functools.cache
def flags(program):
    return set(re.findall(r"^\s+(?:-\w,)?(--[a-z-]+)", help_of(program), re.MULTILINE))


@functools.cache
def variables(program):
    return set(re.findall(r"\bLEEWAY_[A-Z_]+\b", help_of(program)))


def wrong_words(command, environment):
    """Returns what a container's program does not know."""
    if not command or not command[0].startswith("/usr/bin/leeway"):
        yield f"runs {command[:1]}, no program of the image"
        return
    program = command[0].rpartition("/")[2]
    for word in command[1:]:
        if word.startswith("--") and word.partition("=")[0] not in flags(program):
            yield f"{program} has no flag {word.partition('=')[0]}"
    known = variables(program)
    for name in environment:
        if name.startswith("LEEWAY_") and name not in known and not OVERRIDE.fullmatch(name):
            yield f"{program} reads no variable {name}"


@functools.cache
def wrong_job(text):
    """Returns what `leeway plan` says against the lines of a job file. Its data need not be here."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "job.yaml")
        path.write_text(text, encoding="utf-8")
        plan = [path_of("leeway"), "plan", str(path), "--data", str(runs.SOURCE / "data")]
        done = subprocess.run(plan, capture_output=True, text=True, check=False)
    return "; ".join(re.findall(r"job\.yaml:\d+.*", done.stderr)) if done.returncode else ""
