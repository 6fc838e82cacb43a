#!/usr/bin/python3
"""What the commands refuse before they start anything, and what they print.

    tests/training/commands.py CASE"""

import json
import math
import os
import shutil
import subprocess
import time

import numpy as np

import runs

DATA = "optdigits/optdigits.tra"
SMALL = ["servers.count=2", "workers.count=2", "evaluation={}", "model.layers=[{flatten: {}}, {dense: {units: 10}}]",
         "stop={clocks: 20}"]


def digits(sets=(), name="run"):
    return runs.Run("quickstart.yaml", [*SMALL, *sets], runs.data_with(DATA), name)


def leeway(*arguments, timeout=120):
    return subprocess.run([str(runs.BIN / "leeway"), *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, check=False)


def checked_first():
    """`train` refuses everything that `plan` refuses, in the same words, before it makes a folder or starts a
    process."""
    run = digits()
    run.parent.mkdir(exist_ok=True)
    rows = (run.data / DATA).read_text().splitlines()
    broken = {"absent.csv": None, "text.csv": "a,b\nc,d\n", "short.csv": rows[0] + "\n1,2,3\n", "empty.csv": ""}
    for name, text in broken.items():
        if text is not None:
            (run.parent / name).write_text(text)
    cases = [["data.train={type: csv, files: " + name + "}"] for name in broken]
    cases += [["data.test={type: csv, files: short.csv}"], ["model.layers=[{flatten: {}}, {dense: {units: 3}}]"],
              ["model.layers=[{conv2d: {filters: 4, kernel: 99}}, {flatten: {}}, {dense: {units: 10}}]"],
              ["data.partition={type: by_file}", "workers.count=5"]]
    (run.parent / "optdigits").symlink_to(run.data / "optdigits")
    good = leeway("plan", run.job, "--data", run.parent, *[a for one in SMALL for a in ("--set", one)])
    runs.check(good.returncode == 0, f"plan takes the job as it is {good.stderr}")
    for sets in cases:
        more = [a for one in [*SMALL, *sets] for a in ("--set", one)]
        said = [leeway(command, run.job, "--data", run.parent, *more, *extra)
                for command, extra in (("plan", []), ("train", ["--run-dir", run.dir]))]
        plan, train = ([line for line in s.stderr.splitlines() if line.startswith("leeway:")] for s in said)
        runs.check(all(s.returncode not in (0, runs.STOPPED) for s in said) and plan == train and plan,
                   f"{sets[0]}: plan says {plan}, train {train}")
        runs.check(not run.dir.exists(), "no folder was made")
    run.clean()


def used_again():
    """A run folder without a checkpoint is used for another run, with a message. A folder with a checkpoint is
    refused."""
    run = digits(["workers.emulate={step_milliseconds: 20}", "stop={clocks: 2000}"])
    run.start()
    run.wait_for(lambda r: r.max_clock() >= 1)
    run.kill()
    (run.dir / "mine.txt").write_text("a user's")
    run.read_events, run.read_to = [], 0
    summary = run.train(more=["workers.emulate={}", "stop={clocks: 20}"])
    runs.check("It is replaced: coordinator.json, metrics.jsonl" in run.said(), "what is replaced is said")
    runs.check(summary["steps"] == 40 and summary["state"] == "finished", "the new run is all there is")
    runs.check((run.dir / "mine.txt").read_text() == "a user's", "what is not a run's stays")
    refused = leeway("train", run.job, "--run-dir", run.dir, "--data", run.data)
    runs.check(refused.returncode != 0 and "already has a run" in refused.stderr, refused.stderr)
    run.clean()


def stop_in_the_past():
    """In every mode and unit of `stop`: a run that cannot go further is refused."""
    for mode in ("sync", "async", "bounded"):
        run = digits([f"consistency={{mode: {mode}" + (", staleness: 2}" if mode == "bounded" else "}")])
        first = run.train()
        for stop in ("stop={clocks: 10}", "stop={epochs: 0.1}"):
            said = leeway("train", "--resume", "--run-dir", run.dir, "--data", run.data, "--set", stop)
            runs.check(said.returncode == 2 and "Set a later stop" in said.stderr, f"{mode}, {stop}: {said.stderr}")
        runs.check(run.train(resume=True)["weights_sha256"] == first["weights_sha256"], f"{mode}: resumed as it was")
        if mode == "sync":
            runs.check(run.train(resume=True, more=["stop={clocks: 30}"])["steps"] == 60, "a later stop is taken")
        run.clean()


def only_run_folders():
    run = digits()
    run.train()
    place = run.parent / "other"
    place.mkdir()
    (place / "job.yaml").write_text((run.dir / "job.yaml").read_text())
    before = sorted(place.iterdir())
    for arguments in (["report", place], ["export", place, "-o", place / "m"], ["evaluate", place], ["report", "/"]):
        said = leeway(*arguments)
        runs.check(said.returncode == 1, f"{arguments[0]} {arguments[1]}: {said.stderr}")
    runs.check(sorted(place.iterdir()) == before, "nothing was written there")
    run.clean()


def idle_workers():
    """plan and train warn of workers without any example; the job still trains."""
    sets = ["workers.count=4", "data.batch_size=2000"]
    run = digits(sets)
    plan = leeway("plan", run.job, "--data", run.data, *[a for one in [*SMALL, *sets] for a in ("--set", one)])
    runs.check("workers 2, 3 have no examples at all" in plan.stderr, plan.stderr)
    summary = run.train()
    runs.check("workers 2, 3 have no examples at all" in run.said() and summary["worker_steps"] == [20] * 4,
               f"train says so, too; steps {summary['worker_steps']}")
    run.clean()


    leased = runs.Run("quickstart.yaml", [*SMALL, *sets, "consistency.mode=async", "data.assignment=leased"],
                      runs.data_with(DATA))
    leased.train()
    runs.check("no examples" not in leased.said(), "what is leased goes to whoever asks")
    leased.clean()


def unequal_files():
    """The data is divided by file. One worker has ten times another's data, a third has only two batches, and one has
    no data. Each mode trains its epochs completely, and in async mode each exchange has a batch."""
    rows = (runs.data_with(DATA) / DATA).read_text().splitlines()
    place = runs.RunFolder().parent
    for name, count in {"a.csv": 2000, "b.csv": 200, "c.csv": 60}.items():
        (place / name).write_text("\n".join(rows[:count]) + "\n")
    sets = ["data.train.files=[a.csv, b.csv, c.csv]", "data.partition={type: by_file}", "workers.count=3",
            "data.batch_size=32", "stop={epochs: 5}"]
    (place / "optdigits").symlink_to(runs.data_with(DATA) / "optdigits")
    for mode in ("sync", "async", "bounded"):
        run = runs.Run("quickstart.yaml", [*SMALL[:2], *SMALL[3:4], *sets, f"consistency.mode={mode}"], place, mode, place)
        summary = run.train()
        batches = 63 + 7 + 2
        wanted = 5 * 3 * -(-batches // 3) if mode == "async" else 5 * 3 * 63
        examples = sum(e.get("examples", 0) for e in run.events("step"))
        runs.check(summary["steps"] in range(wanted, wanted + 6), f"{mode}: {summary['steps']} steps, {wanted} wanted")
        if mode == "async":
            empty = [e for e in run.events("step") if e["steps"] and not e["examples"]]
            runs.check(not empty and all(summary["worker_steps"]), f"{mode}: {len(empty)} exchanges without a batch")
        else:
            runs.check(examples == 5 * 2260, f"{mode}: {examples} examples, {5 * 2260} wanted")
    run.clean()


def nothing_to_do():
    """In async mode a worker without data finishes at once, even rank 0, and the others train all epochs."""
    for count, batch in ((4, 2000), (3, 3823)):
        run = digits([f"workers.count={count}", f"data.batch_size={batch}", "consistency.mode=async", "stop={epochs: 8}"])
        summary = run.train()
        idle = [rank for rank, steps in enumerate(summary["worker_steps"]) if steps == 0]
        runs.check(idle == list(range(-(-3823 // batch), count)), f"{count} workers: idle {idle}")
        runs.check(summary["steps"] >= 8 * -(-3823 // batch), f"{summary['steps']} steps")
        run.clean()


def lost_checkpoints():
    """A run whose checkpoints are gone is not begun anew over its results. A run that never had a checkpoint is."""
    for lose in (["checkpoints"], ["checkpoints", "coordinator.json"], ["checkpoints", "model.safetensors"]):
        run = digits()
        run.train()
        for name in lose:
            path = run.dir / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        before = {p: p.read_bytes() for p in run.dir.iterdir() if p.is_file()}
        said = leeway("train", "--resume", "--run-dir", run.dir, "--data", run.data)
        runs.check(said.returncode == runs.PERMANENT and "restore a checkpoint, or begin a new run in another" in said.stderr,
                   f"without {lose}: {said.returncode} {said.stderr}")
        runs.check(before == {p: p.read_bytes() for p in run.dir.iterdir() if p.is_file()}, "all files are as they were")
        anew = leeway("train", run.job, "--run-dir", run.dir, "--data", run.data)
        runs.check(anew.returncode != 0 and "already has a run" in anew.stderr, f"without {lose}: {anew.stderr}")
        run.clean()
    run = digits(["stop={clocks: 100000}", "workers.emulate={step_milliseconds: 20}", "checkpoint={every: {clocks: 5}}"])
    run.start()
    run.wait_for(lambda r: r.events("checkpoint") and r.max_clock() >= 20)
    run.kill()
    shutil.rmtree(run.dir / "checkpoints")
    said = leeway("train", "--resume", "--run-dir", run.dir, "--data", run.data)
    runs.check(said.returncode == runs.PERMANENT and "had a checkpoint" in said.stderr, f"killed: {said.stderr}")
    run.clean()


def lost_metrics():
    """The summary and the report of a run that has lost half of its metrics.jsonl say so."""
    run = digits(["stop={clocks: 20}"])
    run.train()
    (run.dir / "metrics.jsonl").write_text("")
    run.read_events, run.read_to = [], 0
    summary = run.start(resume=True, more=["stop={clocks: 40}"]).wait(whole=False)
    runs.check(summary["steps"] == 80, f"{summary['steps']} steps")
    runs.check(any("begins at clock 20" in warning for warning in summary["warnings"]), f"{summary['warnings']}")
    seen = sum(e["examples"] for e in run.events("step"))
    runs.check(math.isclose(summary["samples_per_second"] * summary["seconds"], seen, rel_tol=1e-6),
               f"{summary['samples_per_second']} samples/s in {summary['seconds']} s, {seen} examples are told")
    run.clean()


def private_files():
    """metadata.private keeps every file of a run from other users: those of the launcher, the processes and the
    servers."""
    run = digits(["metadata.private=true"])
    run.train()
    found = [run.dir, *run.dir.rglob("*")]
    runs.check({"model.safetensors", "report.html", "summary.json", "launcher.log", "server-0.log", "worker-1.log",
                "MANIFEST.json", "metrics.jsonl", "coordinator.json"} <= {path.name for path in found}, f"{found}")
    seen = [f"{path}: {path.stat().st_mode & 0o777:o}" for path in found if path.stat().st_mode & 0o077]
    runs.check(not seen, f"others may use {seen}")
    run.clean()


REGRESSION = """
apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: regression, seed: 3}
model: {layers: [{flatten: {}}, {dense: {units: 1}}], loss: squared}
data:
  train: {type: csv, files: train.csv}
  test: {type: csv, files: test.csv}
  batch_size: 32
exchange: {type: gradient}
consistency: {mode: sync}
update: {type: sgd, learning_rate: 0.05}
servers: {count: 2}
workers: {count: 3}
evaluation: {every: {epochs: 5}}
stop: {epochs: 20}
"""


def regression():
    """MAE and R2 of labels that are far from zero and almost equal, compared with numpy on the exported model."""
    draws = np.random.default_rng(16)
    run = runs.RunFolder()
    for name, count in (("train.csv", 900), ("test.csv", 1031)):
        x = draws.normal(size=(count, 5))
        y = x @ np.arange(1, 6) / 5 + 1000 + 0.3 * draws.normal(size=count)
        np.savetxt(run.parent / name, np.column_stack([x, y]), delimiter=",", fmt="%.7g")
    (run.parent / "job.yaml").write_text(REGRESSION)
    job = runs.Run(run.parent / "job.yaml", [], run.parent, "regression", run.parent)
    summary = job.train()
    rows = np.loadtxt(run.parent / "test.csv", delimiter=",")
    model = {k.split("/")[1]: np.array(v) for k, v in job.model().items()}
    x, y = rows[:, :-1], rows[:, -1].astype(np.float32).astype(float)
    error = x.astype(np.float32).astype(float) @ model["weight"] + model["bias"] - y
    wanted = {"test_mae": np.abs(error).mean(), "test_r2": 1 - (error ** 2).sum() / ((y - y.mean()) ** 2).sum()}
    told = leeway("evaluate", job.dir, "--data", run.parent, "--json", run.parent / "out.json")
    runs.check(told.returncode == 0 and "MAE" in told.stdout and "R²" in told.stdout, told.stdout)
    evaluated = json.loads((run.parent / "out.json").read_text())
    for source in (summary, evaluated, job.events("evaluation")[-1]):
        for name, value in wanted.items():
            runs.check(math.isclose(source[name], value, rel_tol=1e-3, abs_tol=1e-4), f"{name} {source[name]}, numpy {value}")
    runs.check("mean absolute error" in (job.dir / "report.html").read_text(), "the report has it")
    runs.check("test_accuracy" not in evaluated, "there is no accuracy")
    job.clean()


def bench_quick():
    """Rows are printed as they are measured if there is no terminal, and all of them within seconds."""
    began = time.monotonic()
    process = subprocess.Popen([str(runs.BIN / "leeway"), "bench", "transport", "--quick"], stdout=subprocess.PIPE,
                               text=True, env={**os.environ, "TERM": "dumb"})
    first = process.stdout.readline()
    at, running = time.monotonic() - began, process.poll() is None
    rest = process.stdout.read()
    took = time.monotonic() - began
    runs.check(process.wait() == 0 and "GB/s, raw" in first and running and at < took / 2,
               f"after {at:.1f} s of {took:.1f}: {first.strip()}")
    runs.check("transport" in rest and took < 60, f"{len(rest.splitlines())} lines follow")


def bench():
    """Each subcommand prints one row, beside the limit of the same run."""
    for words in (["transport", "--transfers-only", "--transports", "shm", "--methods", "push", "--sizes", "64K", "--rounds",
                   "1", "--seconds", "0.01"], ["update", "--rules", "adam", "--shard", "4M", "--rounds", "1"]):
        done = leeway("bench", *words)
        runs.check(done.returncode == 0 and "GB/s" in done.stdout, f"bench {words[0]}: {done.stdout}{done.stderr}")


def scaled_rates():
    """`plan` prints the rates after scaling, and the metrics have the same rates."""
    local = "{type: sgd, learning_rate: 0.01, scaling: square_root, schedule: {type: constant, warm_up: {clocks: 4}}}"
    update = "update={type: sgd, learning_rate: 0.5, scaling: linear}"
    sets = [f"exchange={{type: delta, local_steps: 2, optimizer: {local}}}", update, "workers.count=4"]
    run = digits(sets)
    plan = leeway("plan", run.job, "--data", run.data, *[a for one in [*SMALL, *sets] for a in ("--set", one)])
    for line in ("Learning rate: update.learning_rate 0.5 is 2 for 4 workers\n",
                 "Learning rate: exchange.optimizer.learning_rate 0.01 is 0.02 for 4 workers; the warm-up rises to it "
                 "from 0.01\n"):
        runs.check(line in plan.stdout, line.strip())
    plan = leeway("plan", run.job, "--data", run.data, "--set", "workers.count=4", "--set", "consistency.mode=async")
    runs.check("Each contribution is an update of its own, with 0.00375: a clock of 4 workers moves the model as far as in "
               "sync mode\n" in plan.stdout, "outside of sync each contribution has its share of the rate")
    run.train()
    rates = {event["learning_rate"] for event in run.events("step")}
    runs.check(abs(max(rates) - 0.02) < 1e-6, f"steps were taken at {sorted(rates)}")
    run.clean()


CASES = {"bench": bench, "bench-quick": bench_quick, "checked-first": checked_first, "idle-workers": idle_workers,
         "lost-checkpoints": lost_checkpoints, "lost-metrics": lost_metrics, "nothing-to-do": nothing_to_do,
         "only-run-folders": only_run_folders, "private-files": private_files, "regression": regression, "scaled-rates": scaled_rates,
         "stop-in-the-past": stop_in_the_past,
         "unequal-files": unequal_files, "used-again": used_again}

if __name__ == "__main__":
    runs.main(CASES)
