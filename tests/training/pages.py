#!/usr/bin/env python3
"""Runs the commands and job files of README.md and docs as they stand there. Commands run in a copy of the tree that
shares this build. They have a network of their own, because they name ports.

    tests/training/pages.py CASE"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import own_network
import runs
import yaml

# This command runs this test; apart from this test it only runs the others.
OURSELVES = "./run-tests"
TREE = ["config", "data", "quickstart", "scripts", "CMakePresets.json"]
YAML_PAGES = ["guide", "algorithms", "models", "checkpoint", "data", "python"]
# The page's job names files that are not in the tree: everything else in the job has been read by then.
ABSENT = re.compile(r"No such file or directory|files of the job are missing")


def blocks(page, language=""):
    found = re.findall(r"^```(\w*)\n(.*?)^```", (runs.SOURCE / page).read_text(encoding="utf-8"), re.S | re.M)
    return [block for name, block in found if name == language]


@contextlib.contextmanager
def copy_of_tree():
    """Copies what the commands need, with the programs that are built: nothing is built again, and no run is left
    behind."""
    own_network.enter()
    with tempfile.TemporaryDirectory(prefix="leeway-pages-") as folder:
        for name in TREE:
            source = runs.SOURCE / name
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, f"{folder}/{name}")
        release = pathlib.Path(folder, "build/release")
        release.mkdir(parents=True)
        (release / "bin").symlink_to(runs.BIN)
        (release / "build.ninja").write_text("build leeway leeway-server leeway-worker leeway-client: phony\n",
                                             encoding="utf-8")
        (release / "CMakeCache.txt").write_text("CMAKE_PROJECT_NAME:STATIC=leeway\nCMAKE_GENERATOR:INTERNAL=Ninja\n"
                                                "CMAKE_MAKE_PROGRAM:FILEPATH=/usr/bin/ninja\n", encoding="utf-8")
        yield folder


@contextlib.contextmanager
def shell(command, folder):
    """Starts the command. At the end of the context it and everything that it started, which is a session of its own,
    are ended."""
    environment = {**os.environ, "PATH": f"{folder}/build/release/bin:{os.environ['PATH']}"}
    with tempfile.TemporaryFile("w+") as said, \
            subprocess.Popen(["bash", "-e", "-c", command], cwd=folder, stdout=said, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL, env=environment, start_new_session=True) as process:
        try:
            yield process, lambda: said.seek(0) or said.read()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def ended(command, process, said, timeout=300):
    """Returns the command's output; it must exit with 0."""
    code = process.wait(timeout)
    if code:
        raise runs.Failed(f"{command}: exit status {code}\n{said()[-6000:]}")
    return said()


def run(command, folder):
    with shell(command, folder) as (process, said):
        print(command, flush=True)
        return ended(command, process, said)


def readme():
    wanted = [line for block in blocks("README.md") for line in block.splitlines() if line.strip()]
    runs.check(OURSELVES in wanted and len(wanted) >= 3, f"README's commands: {wanted}")
    with copy_of_tree() as folder:
        for command in wanted:
            if command == OURSELVES:
                continue
            found = re.search(r"(\S+/report\.html)", run(command, folder))
            runs.check(found, "  trained, and said where its report is")
            report = os.path.join(folder, found.group(1))
            runs.check(os.path.getsize(report) > 1000, f"  which is there: {found.group(1)}")
            mode = os.stat(os.path.dirname(report)).st_mode & 0o777
            runs.check(mode == 0o700, f"  and its folder is its user's alone: {mode:o}")


def guide():
    """docs/guide.md, Commands: the run that is to be watched goes on while the lines for another terminal run."""
    (block,) = [each for each in blocks("docs/guide.md") if each.startswith("leeway init")]
    commands = [line.split(" #")[0].strip() for line in block.splitlines()]
    runs.check(len(commands) >= 12 and all(c.startswith("leeway ") for c in commands), f"{len(commands)} commands")
    data = runs.data_with("mnist/t10k-images-idx3-ubyte.gz")
    with copy_of_tree() as folder:
        os.symlink(data / "mnist", f"{folder}/data/mnist")
        at = next(i for i, command in enumerate(commands) if "--run-dir runs/first --set" in command)
        for command in commands[:at]:
            run(command, folder)
        with shell(commands[at], folder) as (process, said):
            trains(pathlib.Path(folder, "runs/first"), process, said)
            for command in commands[at + 1:at + 3]:
                run(command, folder)
            ended(commands[at], process, said)
        rest = commands[at + 3:]
        # The reader brings another program's model: here it is what the page's next line exports.
        exports = next(i for i, command in enumerate(rest) if command.startswith("leeway export"))
        brought = next(i for i, command in enumerate(rest) if "--model digits.safetensors" in command)
        rest.insert(brought, rest.pop(exports))
        for command in rest:
            run(command, folder)


def trains(run_dir, process, said):
    deadline = time.monotonic() + 60
    metrics = run_dir / "metrics.jsonl"
    while not (metrics.exists() and '"event":"step"' in metrics.read_text()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise runs.Failed(f"{run_dir} does not train\n{said()[-3000:]}")
        time.sleep(0.02)


def by_hand():
    """docs/operations.md: servers and workers, each started by hand."""
    (block,) = [each for each in blocks("docs/operations.md") if "--rank 2" in each]
    with copy_of_tree() as folder:
        said = run(block, folder)
        accuracy = re.search(r"test accuracy +([\d.]+) %", said)
        runs.check(accuracy and float(accuracy.group(1)) > 90, f"  trained: {said[-200:].strip()}")


def base(fragment):
    """Returns (the job of config/jobs that a part of a job is inserted into, what changes there with it)."""
    text = json.dumps(fragment)
    if "embedding" in text:
        return "quickstart", {"data": {"train": {"type": "text", "files": "tinyshakespeare/input.txt", "context": 32},
                                       "holdout": 0.1, "batch_size": 16}}
    if "dense_9" in text:
        return "mnist-cnn", {}
    if "conv2d" in text or "resnet" in text:
        return "cifar10-cnn", {}
    return ("shakespeare-gpt" if '"text"' in text else "cifar10-cnn" if "augment" in text else "quickstart"), {}


def settings(fragment):
    """Yields --set for each key that a part of a job has."""
    for key, value in fragment.items():
        if key in ("evaluation", "checkpoint") or key == "data" and "train" not in value:
            yield from (f"{key}.{each}={json.dumps(part)}" for each, part in value.items())
        else:
            yield f"{key}={json.dumps(value)}"
    if fragment.get("exchange", {}).get("type") == "elastic":
        yield "update="  # it brings its own


def planned(block, folder):
    """Returns None if `leeway plan` accepts the block, a job or a part of one; else plan's output."""
    fragment = yaml.safe_load(block)
    job, sets = folder / "job.yaml", []
    if {"model", "data", "stop"} <= set(fragment):
        job.write_text(block, encoding="utf-8")
    else:
        if "layers" in fragment:
            fragment = {"model": fragment}
        if "model" in fragment:
            fragment["model"].setdefault("loss", "softmax_cross_entropy")
        name, more = base(fragment)
        job = runs.JOBS / f"{name}.yaml"
        for key, value in more.items():
            fragment[key] = {**value, **fragment.get(key, {})}
        sets = [word for one in settings(fragment) for word in ("--set", one)]
    done = subprocess.run([runs.BIN / "leeway", "plan", job, "--data", runs.SHARED, *sets], capture_output=True, text=True,
                          timeout=60, check=False)
    return None if done.returncode == 0 or ABSENT.search(done.stderr) else done.stderr


def job_files():
    """Each YAML block is a job, or a part of one that fits into a job of config/jobs."""
    runs.data_with("cifar10/data_batch_1.first4000.bin.gz")
    with tempfile.TemporaryDirectory(prefix="leeway-pages-") as name:
        for page in YAML_PAGES:
            found = blocks(f"docs/{page}.md", "yaml")
            wrong = [f"{block}{said}" for block in found if (said := planned(block, pathlib.Path(name)))]
            runs.check(found and not wrong, f"docs/{page}.md: {len(found)} job files\n" + "\n".join(wrong))


if __name__ == "__main__":
    runs.main({"readme": readme, "guide": guide, "by-hand": by_hand, "job-files": job_files})
