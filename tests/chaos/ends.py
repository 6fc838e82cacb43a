#!/usr/bin/python3
"""What a run leaves behind when its files are damaged, removed or not regular files. No valuable result is lost with a
less valuable one, nothing hangs, and the first message names the cause.

    tests/chaos/ends.py CASE"""

import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))
import runs  # noqa: E402

DATA = "optdigits/optdigits.tra"
BASE = ["servers.count=2", "evaluation={}", "model.layers=[{flatten: {}}, {dense: {units: 10}}]",
        "update={type: sgd, learning_rate: 0.05}"]
# Slow steps leave time to do damage in the middle of a run; quick ones finish soon.
SLOWLY, QUICKLY = "workers.emulate={step_milliseconds: 10}", "workers.emulate={}"
ENDLESS = "stop={epochs: 3000}"
STEP = '{"event":"step","time":1,"rank":0,"clock":3,"epoch":%s,"steps":5,"examples":5,"train_loss":1}'
BAD_LINES = [(STEP % "NaN").encode(), (STEP % "null").encode(), b"\x00\xff\xfe binary \x01", b"x" * (60 << 20),
             (STEP % "1").encode()[:40], b"[" * 100_000]


def start(sets, name="run"):
    run = runs.Run("quickstart.yaml", [*BASE, SLOWLY, *sets], runs.data_with(DATA), name)
    return run.start()


def leeway(*arguments):
    return subprocess.run([str(runs.BIN / "leeway"), *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          check=False)


def bad_metrics():
    """Damaged lines, in the middle of a run and in a finished one: model, summary, report and --resume still work."""
    run = start(["workers.count=2", "stop={clocks: 300}", "consistency.mode=sync"])
    run.wait_for(lambda r: r.max_clock() >= 40)
    with open(run.dir / "metrics.jsonl", "ab") as file:
        for line in BAD_LINES:
            file.write(line + b"\n")
    # The rig's own reading of the file would fail, too.
    run.events = lambda kind=None: []
    summary = run.wait(whole=False)
    runs.check(summary["state"] == "finished" and summary["steps"] == 600, f"finished, {summary['steps']} steps")
    told = f"{len(BAD_LINES)} unreadable lines are skipped"
    runs.check(any(told in w for w in summary["warnings"]) and told in run.said(), f"the summary and stderr say: {told}")
    runs.check(told in (run.dir / "report.html").read_text(), "so does the report")
    runs.check(not run.wrong_with_model(summary), "the model is whole")
    text = bytearray((run.dir / "metrics.jsonl").read_bytes())
    text[text.index(b'"clock"')] ^= 4
    (run.dir / "metrics.jsonl").write_bytes(text)
    summary = run.start(resume=True, more=[QUICKLY, "stop={clocks: 400}"]).wait(whole=False)
    runs.check(summary["state"] == "finished" and summary["steps"] == 800, "it was resumed, with a flipped byte more")
    runs.check(leeway("report", run.dir).returncode == 0, "leeway report holds, too")
    run.clean()


def folder_removed():
    run = start(["workers.count=2", "stop={clocks: 100000}"])
    run.wait_for(lambda r: r.max_clock() >= 20)
    shutil.rmtree(run.dir, ignore_errors=True)
    shutil.rmtree(run.dir, ignore_errors=True)
    removed = time.monotonic()
    code = run.process.wait(60)
    runs.check(code not in (0, runs.STOPPED), f"exit status {code}")
    runs.check(time.monotonic() - removed < 20, f"{time.monotonic() - removed:.1f} s after the folder was removed")
    runs.check("removed or moved" in run.said(), run.said().splitlines()[-1])
    run.clean()


def no_files():
    """A pipe in the place of each file that a run replaces makes the run fail. It must not hang."""
    for name in ("model.safetensors", "summary.json", "report.html", "metrics.jsonl",
                 "checkpoints/clock-000000300/MANIFEST.json", "checkpoints/clock-000000300/shard-0-of-2.lwck"):
        run = start(["workers.count=2", "stop={clocks: 300}"])
        run.wait_for(lambda r: r.max_clock() >= 10)
        path = run.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        run.events = lambda kind=None: []
        code = run.process.wait(60)
        # A report or the metrics are not worth losing a run.
        wanted = (0,) if name in ("report.html", "metrics.jsonl") else (1, 3)
        runs.check(code in wanted, f"with a pipe as {name}: exit status {code}")
        run.clean()


def damaged_record():
    run = start(["workers.count=2", "stop={clocks: 400}", "consistency.mode=sync"])
    run.wait_for(lambda r: r.max_clock() >= 40)
    run.interrupt()
    run.wait(expect=runs.STOPPED)
    record = run.dir / "coordinator.json"
    for content in (b"", record.read_bytes()[:100], record.read_bytes().replace(b"job_id", b"jobxid"), b"\xff" * 500):
        record.write_bytes(content)
        said = subprocess.run(run.command(resume=True), capture_output=True, text=True, timeout=60, check=False)
        first = said.stderr.splitlines()[0]
        runs.check(said.returncode != 0 and "coordinator.json" in first and "move this file away" in first, first)
    record.rename(run.dir / "coordinator.json.damaged")
    runs.check(run.train(resume=True, more=[QUICKLY])["steps"] == 800, "without it the run goes on from its checkpoint")
    run.clean()


MODES = {"sync": "consistency.mode=sync", "bounded": "consistency={mode: bounded, staleness: 3}",
         "async": "consistency.mode=async"}
EXCHANGES = {1: "exchange={type: gradient}",
             5: "exchange={type: delta, local_steps: 5, optimizer: {type: sgd, learning_rate: 0.05}}"}


def exact_steps(modes=tuple(MODES), steps=tuple(EXCHANGES)):
    """Processes are killed at seeded moments, the launcher among them: every step is in the summary exactly once."""
    draws = random.Random(28)
    for mode, local in itertools.product(modes, steps):
        consistency, exchange = MODES[mode], EXCHANGES[local]
        workers = draws.choice((1, 3, 4))
        run = start([consistency, exchange, f"workers.count={workers}", ENDLESS,
                     "limits.lease_seconds=2", f"checkpoint={{every: {{clocks: {max(1, 30 // local)}}}}}"])
        for role in ("server", "worker", "server"):
            reached = run.max_clock()
            run.wait_for(lambda r, at=reached + 60 // local: r.max_clock() >= at)
            os.kill(run.process_of(role, 0), signal.SIGKILL)
        time.sleep(draws.random() / 2)
        run.kill()
        clocks = run.max_clock() + 60 // local
        summary = run.start(resume=True, more=[QUICKLY, f"stop={{clocks: {clocks}}}"]).wait()
        wanted = workers * clocks * local
        # Asynchronous workers end when all together have made this number of steps, and each finishes what it has
        # begun.
        fits = summary["steps"] == wanted if mode != "async" else wanted <= summary["steps"] <= wanted + workers * local
        runs.check(fits, f"{mode}, {local} steps a clock, {workers} workers: {summary['steps']} steps of {wanted}")
        run.clean()


def older_model():
    run = start(["workers.count=2", "stop={clocks: 100}", "checkpoint={every: {clocks: 50}, keep: 5}"])
    run.wait()
    for name in ("MANIFEST.json", "shard-1-of-2.lwck"):
        path = run.dir / "checkpoints/clock-000000100" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        for command in (["evaluate", run.dir, "--data", run.data], ["export", run.dir, "-o", run.parent / "out"]):
            said = leeway(*command, "--json", run.parent / "out.json")
            runs.check(said.returncode == 0 and "clock-000000100" in said.stderr, f"{command[0]}: {said.stderr}")
            told = json.loads((run.parent / "out.json").read_text())
            runs.check(told["clock"] == 50 and len(told["passed_over"]) == 1, f"JSON: {told}")
            refused = leeway(*command, "--checkpoint", 100)
            runs.check(refused.returncode != 0 and name in refused.stderr, f"refused: {refused.stderr}")
            runs.check(leeway(*command, "--checkpoint", 50).stderr == "", "a whole one is taken without a word")
        path.write_bytes(whole)
    run.clean()


CASES = {"bad-metrics": bad_metrics, "damaged-record": damaged_record, "exact-steps": exact_steps,
         "exact-steps-async": lambda: exact_steps(["async"], [5]),
         "folder-removed": folder_removed, "no-files": no_files, "older-model": older_model}

if __name__ == "__main__":
    runs.main(CASES)
